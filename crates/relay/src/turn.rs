//! A turn: resend the outbox, sync each project, hand out.

use std::collections::VecDeque;

use callboard_domain::limits::{LATE_SYNC_MS, SESSIONS_PER_PROJECT_MAX};
use callboard_domain::{CommandId, ProjectId, Refusal};
use callboard_wire::relay::{SyncRequest, SyncResponse};

use crate::runs::Waiting;
use crate::step::{Cx, Pending, Relay, SyncUnderWay, Tried, until_ms};
use crate::{Call, Command, Failure, Output, ProjectView};

/// Most commands that are remembered while they wait; the hub keeps and repeats the others.
const WAITING_MAX: usize = 256;

/// Where the present turn stands. One call of it is under way at a time.
#[derive(Debug, Default)]
pub(crate) enum Turn {
    /// There is none.
    #[default]
    Idle,
    /// Resending these completions.
    Flushing(VecDeque<CommandId>),
    /// Telling the hub about these projects.
    Syncing(VecDeque<ProjectId>),
}

impl Relay {
    /// With the wake-up a turn ends with the last sync, so that results and withdrawn shares
    /// never wait behind a long run. The published turn lasts until its commands are over; a start
    /// that is to be asked for again belongs to no turn, and so holds none up.
    pub(crate) fn turn_is_busy(&self) -> bool {
        let calling = !matches!(self.turn, Turn::Idle);
        let fetched = |waiting: &Waiting| waiting.execution_id.is_none();
        let working = !self.slots.is_empty() || self.waiting.iter().any(fetched);
        calling || (!self.config.wake_up && (working || !self.sending.is_empty()))
    }

    pub(crate) fn begin_due_turn(&mut self, cx: &mut Cx<'_>) {
        let now_ms = cx.now_ms();
        let due = now_ms >= self.next_turn_ms;
        if due {
            let missed = (now_ms - self.next_turn_ms) / self.config.sync_interval_ms;
            self.next_turn_ms += (missed + 1) * self.config.sync_interval_ms;
        }
        if !(due || self.turn_wanted) || self.turn_is_busy() || self.is_held(now_ms) {
            return;
        }
        self.turn_wanted = false;
        self.last_turn = Some(cx.now.wall);
        let asked = self.calls.values().any(|call| *call == Pending::WhoAmI);
        if !asked && (due || self.revisions.is_empty()) {
            self.send(cx, Pending::WhoAmI, Call::WhoAmI);
        }
        self.turn = Turn::Flushing(self.outbox_to_resend(cx));
        self.continue_turn(cx);
    }

    /// Entries that failed before go behind the others, so that one that the hub cannot take
    /// delays nobody.
    fn outbox_to_resend(&mut self, cx: &Cx<'_>) -> VecDeque<CommandId> {
        let entries = cx.outbox();
        self.tried.retain(|id, _| entries.contains(id));
        let mut entries: Vec<_> = entries
            .into_iter()
            .filter(|id| !self.sending.contains(id))
            .map(|id| (self.tried.get(&id).copied(), id))
            .filter(|(tried, _)| tried.is_none_or(|tried| cx.now_ms() >= tried.not_before_ms))
            .collect();
        entries.sort_by_key(|(tried, _)| tried.map(|tried| tried.at_ms));
        entries.into_iter().map(|(_, id)| id).collect()
    }

    fn continue_turn(&mut self, cx: &mut Cx<'_>) {
        loop {
            match &mut self.turn {
                Turn::Idle => return,
                Turn::Flushing(entries) => match entries.pop_front() {
                    // Sent by its run in the meantime.
                    Some(id) if self.sending.contains(&id) => {}
                    Some(id) => return self.send_completion(cx, id, true),
                    None => {
                        for waiting in &mut self.waiting {
                            waiting.after_outbox = false;
                        }
                        self.turn = Turn::Syncing(self.projects_to_sync(cx));
                    }
                },
                Turn::Syncing(projects) => match projects.pop_front() {
                    Some(project_id) => {
                        if self.sync(cx, project_id) {
                            return;
                        }
                    }
                    None => self.turn = Turn::Idle,
                },
            }
        }
    }

    pub(crate) fn abandon_turn(&mut self, cx: &mut Cx<'_>) {
        let of_turn: Vec<_> = self
            .calls
            .iter()
            .filter(|(_, pending)| match pending {
                Pending::Sync(_) => true,
                Pending::Complete { of_turn, .. } => *of_turn,
                Pending::WhoAmI | Pending::Start(_) | Pending::Control(_) | Pending::Wait => false,
            })
            .map(|(call, pending)| (*call, *pending))
            .collect();
        for (call, pending) in of_turn {
            self.calls.remove(&call);
            cx.outputs.push(Output::Abandon { call });
            match pending {
                Pending::Sync(sync) => self.give_up_sync(cx, sync),
                Pending::Complete { command_id, .. } => {
                    self.sending.remove(&command_id);
                }
                Pending::WhoAmI | Pending::Start(_) | Pending::Control(_) | Pending::Wait => {}
            }
        }
        self.turn = Turn::Idle;
    }

    /// Tries a completion that is in the outbox, or goes there before this call is sent.
    pub(crate) fn send_completion(&mut self, cx: &mut Cx<'_>, id: CommandId, of_turn: bool) {
        self.sending.insert(id);
        let pending = Pending::Complete {
            command_id: id,
            of_turn,
        };
        self.send(cx, pending, Call::Complete(id));
    }

    pub(crate) fn delivered(&mut self, cx: &mut Cx<'_>, id: CommandId, of_turn: bool) {
        self.sending.remove(&id);
        self.tried.remove(&id);
        cx.outputs.push(Output::DeleteCompletion { command_id: id });
        if of_turn {
            self.continue_turn(cx);
        }
    }

    /// Only the hub's own final word parks an entry; a proxy's page, a busy hub or silence do not.
    pub(crate) fn not_delivered(
        &mut self,
        cx: &mut Cx<'_>,
        id: CommandId,
        of_turn: bool,
        failure: &Failure,
    ) {
        self.sending.remove(&id);
        let mut not_before_ms = 0;
        match failure {
            Failure::Refused(refusal) if refusal.is_final_for_a_completion() => {
                self.tried.remove(&id);
                cx.outputs.push(Output::ParkCompletion {
                    command_id: id,
                    refusal: *refusal,
                });
                if of_turn {
                    self.continue_turn(cx);
                }
                return;
            }
            Failure::Status {
                retry_after_ms: Some(retry_after_ms),
                ..
            } => not_before_ms = until_ms(cx.now_ms(), *retry_after_ms),
            Failure::Refused(_) | Failure::Status { .. } => {}
            // Each further entry would wait for its own time-out.
            Failure::NoAnswer { .. } if of_turn => {
                if let Turn::Flushing(entries) = &mut self.turn {
                    entries.clear();
                }
            }
            Failure::NoAnswer { .. } => {}
        }
        let at_ms = cx.now_ms();
        self.tried.insert(
            id,
            Tried {
                at_ms,
                not_before_ms,
            },
        );
        if of_turn {
            self.continue_turn(cx);
        }
    }

    /// Woken projects go first. A full disk fetches nothing.
    fn projects_to_sync(&self, cx: &Cx<'_>) -> VecDeque<ProjectId> {
        if self.draining || !self.disk_is_well() || self.is_held(cx.now_ms()) {
            return VecDeque::new();
        }
        let projects = cx.view.projects();
        let mut ids: Vec<_> = projects.iter().map(|project| project.project_id).collect();
        ids.sort_by_key(|id| !self.watch.woke(*id));
        ids.into()
    }

    /// Sends one sync; false when the project needs none any more.
    fn sync(&mut self, cx: &mut Cx<'_>, project_id: ProjectId) -> bool {
        let projects = cx.view.projects();
        let Some(project) = projects.into_iter().find(|p| p.project_id == project_id) else {
            return false;
        };
        let mut sessions = project.sessions;
        sessions.truncate(if project.enabled {
            SESSIONS_PER_PROJECT_MAX
        } else {
            0
        });
        let request = SyncRequest {
            project_id,
            sessions,
        };
        let under_way = SyncUnderWay {
            project_id,
            disabled: !project.enabled,
        };
        self.send(cx, Pending::Sync(under_way), Call::Sync(request));
        true
    }

    pub(crate) fn synced(&mut self, cx: &mut Cx<'_>, sync: SyncUnderWay, response: SyncResponse) {
        let id = sync.project_id;
        self.revisions.insert(id, response.revision);
        // With commands left the project is synced once more, until the hub has none to give.
        if response.commands.is_empty() {
            self.acknowledge(cx, sync);
        }
        for control in response.control {
            if control.cancel_requested {
                self.cancel(cx, control.command_id);
            }
        }
        let handed_out: Vec<_> = response
            .commands
            .iter()
            .map(|command| command.command_id)
            .collect();
        // What the hub no longer hands out ended there.
        self.waiting.retain(|waiting| {
            waiting.command.project_id != id
                || waiting.execution_id.is_some()
                || handed_out.contains(&waiting.command.id)
        });
        for command in response.commands {
            if self.waiting.len() >= WAITING_MAX || self.knows(cx, command.command_id) {
                continue;
            }
            let arguments = command.arguments.get().to_owned();
            let command = Command {
                id: command.command_id,
                project_id: id,
                graph_session_id: command.graph_session_id,
                slug: command.slug,
            };
            self.waiting.push_back(Waiting::new(command, arguments));
        }
        self.cancel_withdrawn(cx);
        self.continue_turn(cx);
    }

    fn give_up_sync(&mut self, cx: &Cx<'_>, sync: SyncUnderWay) {
        self.given_up_ms.insert(sync.project_id, cx.now_ms());
    }

    /// Whether a sync that was given up may still reach the hub and list again what is no longer
    /// shared.
    fn may_be_overtaken(&self, cx: &Cx<'_>, id: ProjectId) -> bool {
        let given_up_ms = self.given_up_ms.get(&id);
        given_up_ms.is_some_and(|at_ms| cx.now_ms() < at_ms.saturating_add(LATE_SYNC_MS))
    }

    /// The hub knows that the project is disabled, unless it was enabled again since. Until it
    /// knows for good, each turn tells it again.
    fn acknowledge(&mut self, cx: &mut Cx<'_>, sync: SyncUnderWay) {
        let id = sync.project_id;
        if self.may_be_overtaken(cx, id) {
            return;
        }
        let is_disabled = |project: &ProjectView| project.project_id == id && !project.enabled;
        if sync.disabled && cx.view.projects().iter().any(is_disabled) {
            self.revisions.remove(&id);
            cx.outputs
                .push(Output::AcknowledgeDisabled { project_id: id });
        }
    }

    pub(crate) fn sync_failed(&mut self, cx: &mut Cx<'_>, sync: SyncUnderWay, failure: &Failure) {
        if !matches!(failure, Failure::Refused(_)) {
            self.give_up_sync(cx, sync);
        }
        let goes_on = match failure {
            Failure::Refused(Refusal::DesktopInUse) | Failure::NoAnswer { .. } => false,
            Failure::Status {
                status: 401 | 403 | 429 | 503,
                ..
            } => false,
            // It says something about this project alone. Its revision would wake the desktop
            // again and again.
            Failure::Refused(_) | Failure::Status { .. } => {
                self.revisions.remove(&sync.project_id);
                true
            }
        };
        if *failure == Failure::Refused(Refusal::ProjectNotFound) {
            self.acknowledge(cx, sync);
        }
        if !goes_on {
            self.turn = Turn::Idle;
            self.back_off_watch(cx);
        }
        self.continue_turn(cx);
    }
}
