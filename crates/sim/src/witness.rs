//! Watches a history and says which invariant it breaks.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::graph_run::Status;
use callboard_domain::limits::TASK_RESULT_UTF16_MAX;
use callboard_domain::linked_task::{Ended, Status as TaskStatus, Submission, Verdict};
use callboard_domain::{
    ChatLinkId, ClaimId, CommandId, Digest, ExecutionId, FinalStatus, Refusal, TaskId, Timestamp,
    utf16_len,
};
use callboard_hub::HubError;

use crate::hub_side::{Ask, Told};
use crate::rows::{RunSeen, Seen, TaskSeen};

/// What a history must not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The invariant's letter, a to m.
    pub invariant: char,
    /// What happened, in one sentence.
    pub what: String,
    /// World time, in milliseconds.
    pub at_ms: u64,
}

/// What is known of one command.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandFacts {
    /// Executions that the desktop began.
    pub(crate) begun: Vec<ExecutionId>,
    /// How the desktop says that it ended.
    pub(crate) finished: Option<FinalStatus>,
    /// The last row that passed by.
    pub(crate) row: Option<RunSeen>,
    /// It ended before any desktop was granted it.
    pub(crate) ended_in_queue: bool,
    /// World time of its first row that is not queued, in milliseconds.
    pub(crate) left_queue_ms: Option<u64>,
    /// World time of its first row that is over, in milliseconds.
    pub(crate) ended_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Claimed {
    id: ClaimId,
    link_id: ChatLinkId,
    lease_until: Timestamp,
}

#[derive(Debug, Clone, Default)]
struct TaskFacts {
    row: Option<TaskSeen>,
    claim: Option<Claimed>,
    /// A submit was answered as the first one.
    is_answered: bool,
}

/// Remembers what a history showed so far.
#[derive(Debug)]
pub(crate) struct Witness {
    commands: BTreeMap<CommandId, CommandFacts>,
    keys: BTreeMap<(usize, String), (CommandId, String, u64)>,
    tasks: BTreeMap<TaskId, TaskFacts>,
    revoked: BTreeSet<ChatLinkId>,
    violation: Option<Violation>,
    /// The latest that the hub's wall clock ever was: what ended then stays ended when it is set
    /// back.
    latest: Timestamp,
    /// World time, for the report.
    pub(crate) now_ms: u64,
}

impl Default for Witness {
    fn default() -> Self {
        Self {
            commands: BTreeMap::new(),
            keys: BTreeMap::new(),
            tasks: BTreeMap::new(),
            revoked: BTreeSet::new(),
            violation: None,
            latest: Timestamp::from_millis(i64::MIN),
            now_ms: 0,
        }
    }
}

impl Witness {
    /// The first violation.
    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// The commands that were seen.
    pub(crate) fn commands(&self) -> &BTreeMap<CommandId, CommandFacts> {
        &self.commands
    }

    /// Notes a violation; the first one stays.
    pub(crate) fn fail(&mut self, invariant: char, what: impl Into<String>) {
        let at_ms = self.now_ms;
        self.violation.get_or_insert_with(|| Violation {
            invariant,
            what: what.into(),
            at_ms,
        });
    }

    /// Rows that passed between hub and store; `wall` is the hub's.
    pub(crate) fn rows(&mut self, wall: Timestamp, rows: &[Seen]) {
        self.latest = self.latest.max(wall);
        for row in rows {
            match row {
                Seen::Run(run) => self.run_row(run),
                Seen::Task(task) => self.task_row(wall, task),
            }
        }
    }

    fn run_row(&mut self, row: &RunSeen) {
        let facts = self.commands.entry(row.command_id).or_default();
        let before = facts.row.replace(*row);
        if row.status != Status::Queued {
            facts.left_queue_ms.get_or_insert(self.now_ms);
        }
        if row.status.is_terminal() {
            facts.ended_ms.get_or_insert(self.now_ms);
        }
        if row.status.is_terminal() && row.execution_id.is_none() {
            facts.ended_in_queue = true;
        }
        if !row.is_within_bounds {
            self.fail('k', "a stored result is longer than its bound");
        }
        let Some(before) = before else {
            return;
        };
        if before.status.is_terminal() && before != *row {
            let (from, to) = (before.status, row.status);
            self.fail('d', format!("a finished command changed: {from} to {to}"));
        }
        if before.execution_id.is_some() && before.execution_id != row.execution_id {
            self.fail('d', "a command changed its execution");
        }
        if before.status == Status::Running && row.status == Status::Queued {
            self.fail('d', "a running command was queued again");
        }
    }

    fn task_row(&mut self, wall: Timestamp, row: &TaskSeen) {
        let facts = self.tasks.entry(row.task_id).or_default();
        let before = facts.row;
        // What was stored once stays so, however often it is read.
        let was_stored =
            before.is_some_and(|before| before.is_stored && before.status == row.status);
        facts.row = Some(TaskSeen {
            is_stored: row.is_stored || was_stored,
            ..*row
        });
        let is_over = row.status.ended().is_some();
        if row.status == TaskStatus::Over(Ended::Expired) && self.latest < row.expires_at {
            self.fail('j', "a task expired before its time");
        }
        let Some(before) = before else {
            return;
        };
        // What only a read has shown is undone when the clock is set back before it was stored.
        let is_undone = before.status == TaskStatus::Over(Ended::Expired)
            && !before.is_stored
            && wall < before.expires_at;
        if before.status.ended().is_some() && !is_undone {
            let same =
                (before.status, before.claim, before.result) == (row.status, row.claim, row.result);
            if !same {
                let (from, to) = (before.status, row.status);
                let letter = match row.status {
                    TaskStatus::Over(Ended::Expired) => 'j',
                    TaskStatus::Queued | TaskStatus::Claimed | TaskStatus::Over(_) => 'd',
                };
                self.fail(letter, format!("a finished task changed: {from} to {to}"));
            }
        } else if !is_over
            && before.claim == row.claim
            && let (Some(earlier), Some(later)) = (before.lease_until, row.lease_until)
            && later < earlier
        {
            self.fail('g', "the lease of a claim was cut short");
        }
    }

    /// The engine begins an execution.
    pub(crate) fn begins(
        &mut self,
        command_id: CommandId,
        execution_id: ExecutionId,
        has_consent: bool,
        runs: usize,
        slots: usize,
    ) {
        let facts = self.commands.entry(command_id).or_default();
        let again = facts.begun.contains(&execution_id);
        facts.begun.push(execution_id);
        let begun = facts.begun.len();
        let in_queue = facts.ended_in_queue;
        if !has_consent {
            self.fail('c', "an execution began without the owner's consent");
        }
        if in_queue {
            self.fail('i', "a command that ended in the queue was executed");
        }
        if begun > 1 {
            let same = if again { "the same" } else { "another" };
            self.fail(
                'a',
                format!("a command was executed twice, under {same} id"),
            );
        }
        if runs > slots {
            self.fail('l', format!("{runs} executions in {slots} slots"));
        }
    }

    /// The desktop noted how an execution ended.
    pub(crate) fn finished(&mut self, command_id: CommandId, status: FinalStatus) {
        self.commands.entry(command_id).or_default().finished = Some(status);
    }

    /// The hub answered an agent.
    pub(crate) fn answered(
        &mut self,
        agent: usize,
        wall: Timestamp,
        ask: &Ask,
        told: &Result<Told, HubError>,
    ) {
        match (ask, told) {
            (
                Ask::Run {
                    session,
                    argument,
                    key,
                },
                told,
            ) => self.run_answered(agent, (session, *argument), key, told),
            (Ask::Claim { link, task }, Ok(Told::Claim(claim))) => {
                let (Ok(task_id), Ok(link_id)) = (task.parse(), link.parse()) else {
                    return self.fail('g', "a malformed task was claimed");
                };
                self.claimed(task_id, link_id, wall, claim.claim_id, claim.lease_until);
            }
            (
                Ask::Submit {
                    task,
                    claim,
                    status,
                    result,
                    ..
                },
                told,
            ) => self.submit_answered(task, claim, (status, result), told),
            _ => {}
        }
    }

    fn run_answered(
        &mut self,
        agent: usize,
        (session, argument): (&str, u64),
        key: &str,
        told: &Result<Told, HubError>,
    ) {
        let known = self.keys.get(&(agent, key.to_owned()));
        let same = known.is_some_and(|(_, asked, n)| asked == session && *n == argument);
        match (known, told) {
            (Some((known, ..)), Ok(Told::Run(answer))) if same && *known == answer.command_id => {}
            (Some(_), Ok(_)) if same => {
                self.fail('a', "one idempotency key queued two commands");
            }
            (Some(_), Ok(_)) => self.fail('a', "a key was taken for another request"),
            (Some(_), Err(error)) if !same => {
                let refused = error.is(Refusal::KeyReused);
                if !refused && !is_about_access(error) {
                    self.fail('a', format!("a reused key was answered with: {error}"));
                }
            }
            (None, Ok(Told::Run(answer))) => {
                let asked = (answer.command_id, session.to_owned(), argument);
                self.keys.insert((agent, key.to_owned()), asked);
            }
            _ => {}
        }
    }

    fn claimed(
        &mut self,
        task_id: TaskId,
        link_id: ChatLinkId,
        wall: Timestamp,
        claim_id: ClaimId,
        lease_until: i64,
    ) {
        let facts = self.tasks.entry(task_id).or_default();
        let lease_until = Timestamp::from_millis(lease_until.saturating_mul(1_000));
        let before = facts.claim.replace(Claimed {
            id: claim_id,
            link_id,
            lease_until,
        });
        let Some(before) = before else {
            return;
        };
        // A lease that ended stays ended when the clock is set back.
        let alive = self.latest.max(wall) < before.lease_until;
        if before.id == claim_id {
            if before.link_id != link_id {
                self.fail('g', "two chats were given one claim");
            } else if before.lease_until != lease_until {
                self.fail('g', "a repeated claim moved its lease");
            }
        } else if alive && before.link_id == link_id {
            self.fail('g', "a chat got another claim while its own lived");
        } else if alive && !self.revoked.contains(&before.link_id) {
            self.fail('g', "two claims of one task lived at a time");
        }
    }

    /// The owner revokes a connection: what it may do with its keys is over.
    pub(crate) fn revokes_agent(&mut self, agent: usize) {
        self.keys.retain(|(owner, _), _| *owner != agent);
    }

    /// The owner revokes a link, or its connection.
    pub(crate) fn revokes(&mut self, link_id: ChatLinkId) {
        self.revoked.insert(link_id);
    }

    fn submit_answered(
        &mut self,
        task: &str,
        claim: &str,
        (status, result): (&str, &str),
        told: &Result<Told, HubError>,
    ) {
        let Ok(task_id) = task.parse::<TaskId>() else {
            return;
        };
        let digest = Verdict::from_word(status).map(|verdict| digest(verdict, result));
        let facts = self.tasks.entry(task_id).or_default();
        let stored = facts.row.and_then(|row| Some((row.claim?.0, row.result?)));
        let by_this = stored.is_some_and(|(id, _)| id.to_string() == claim);
        let same = by_this && stored.map(|(_, stored)| stored) == digest;
        match told {
            Ok(Told::Submit(answer)) => {
                let again = std::mem::replace(&mut facts.is_answered, true);
                if !by_this {
                    self.fail('f', "a submit counted under another claim than the last");
                } else if !same {
                    self.fail('h', "a second result was taken, or another one stored");
                } else if again && !answer.replayed {
                    self.fail('h', "a repeated submit was stored again");
                }
                if utf16_len(result) > TASK_RESULT_UTF16_MAX {
                    self.fail('k', "a result over the limit was stored");
                }
            }
            Err(error) if same && !is_about_access(error) => {
                self.fail('h', format!("a repeated submit was answered with: {error}"));
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// The caller may not see the thing any more, or the hub could not answer at all.
fn is_about_access(error: &HubError) -> bool {
    match error {
        HubError::Unavailable | HubError::Invalid(_) => true,
        HubError::Refused(refusal) => matches!(
            refusal,
            Refusal::SubmitMissing | Refusal::ChatLinkNotFound | Refusal::SessionNotFound
        ),
    }
}

/// The digest under which a result is stored; it does not depend on the ids.
fn digest(verdict: Verdict, result: &str) -> Digest {
    let submission = Submission {
        link_id: ChatLinkId::UNKNOWN,
        claim_id: ClaimId::UNKNOWN,
        verdict,
        result: result.to_owned(),
    };
    submission.digest()
}
