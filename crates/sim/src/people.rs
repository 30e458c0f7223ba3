//! What the agents, chats and the owner of a history know, and how they act on it.

use std::collections::BTreeMap;

use callboard_domain::graph_run::{Completion, Status};
use callboard_domain::{CommandId, ExecutionId, FinalStatus, ProjectId, Report};
use callboard_hub::HubError;
use callboard_relay::Call;
use callboard_store::Store;
use callboard_wire::relay::{CompleteRequest, StartRequest};

use crate::hub_side::{Ask, Told};
use crate::{Random, World};

/// Times that a call without an answer is made again.
const TRIES_MAX: u32 = 4;
/// The id that nothing has.
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

/// A run that an agent started.
#[derive(Debug, Clone)]
struct Started {
    agent: usize,
    command: String,
}

/// A start that an agent made.
#[derive(Debug, Clone)]
struct Key {
    agent: usize,
    session: String,
    argument: u64,
    key: String,
}

/// A chat that linked itself.
#[derive(Debug, Clone)]
struct Chat {
    agent: usize,
    link: String,
}

/// What a chat submitted or is about to submit again.
#[derive(Debug, Clone)]
struct Work {
    agent: usize,
    link: String,
    task: String,
    claim: String,
    /// Status and result, once submitted.
    said: Option<(String, String)>,
}

/// The people of one history.
#[derive(Debug)]
pub(crate) struct People {
    random: Random,
    projects: Vec<ProjectId>,
    keys: Vec<Key>,
    started: Vec<Started>,
    chats: Vec<Chat>,
    assigned: Vec<(Vec<String>, String, String)>,
    tasks: Vec<String>,
    works: Vec<Work>,
    tries: BTreeMap<u64, u32>,
    next_key: u64,
    /// Answers by what they were, for the report of a fuzz.
    pub(crate) answers: BTreeMap<&'static str, u64>,
}

impl People {
    pub(crate) fn new(seed: u64, projects: Vec<ProjectId>) -> Self {
        Self {
            random: Random::stream(seed, "people"),
            projects,
            keys: Vec::new(),
            started: Vec::new(),
            chats: Vec::new(),
            assigned: Vec::new(),
            tasks: Vec::new(),
            works: Vec::new(),
            tries: BTreeMap::new(),
            next_key: 0,
            answers: BTreeMap::new(),
        }
    }

    fn key(&mut self) -> String {
        self.next_key += 1;
        format!("key-{:05}", self.next_key)
    }

    fn count(&mut self, what: &'static str) {
        *self.answers.entry(what).or_default() += 1;
    }

    pub(crate) fn start<S: Store + Clone>(
        &mut self,
        world: &mut World<S>,
        agent: usize,
        session: String,
    ) {
        let (key, argument) = (self.key(), self.random.below(3));
        self.keys.push(Key {
            agent,
            session: session.clone(),
            argument,
            key: key.clone(),
        });
        let ask = Ask::Run {
            session,
            argument,
            key,
        };
        self.ask(world, agent, ask);
    }

    pub(crate) fn start_again<S: Store + Clone>(
        &mut self,
        world: &mut World<S>,
        nth: u64,
        is_other: bool,
    ) {
        let Some(used) = pick(&self.keys, nth).cloned() else {
            return;
        };
        let ask = Ask::Run {
            session: used.session,
            argument: used.argument + u64::from(is_other),
            key: used.key,
        };
        self.ask(world, used.agent, ask);
    }

    pub(crate) fn status<S: Store + Clone>(
        &mut self,
        world: &mut World<S>,
        nth: u64,
        wait_seconds: u64,
    ) {
        if let Some(run) = pick(&self.started, nth).cloned() {
            let command = run.command;
            let ask = Ask::Status {
                command,
                wait_seconds,
            };
            self.ask(world, run.agent, ask);
        }
    }

    pub(crate) fn cancel<S: Store + Clone>(&mut self, world: &mut World<S>, nth: u64) {
        // The latest runs are the ones that may still wait or run.
        let latest = self.started.len().saturating_sub(4);
        let latest = self.started.get(latest..).unwrap_or_default();
        if let Some(run) = pick(latest, nth).cloned() {
            let command = run.command;
            self.ask(world, run.agent, Ask::Cancel { command });
        }
    }

    /// Invariant e: what a stranger learns of a thing is what anybody learns of nothing.
    pub(crate) fn probe<S: Store + Clone>(&mut self, world: &mut World<S>, nth: u64) {
        let strangers = (self.random.index(3), self.random.index(3));
        if let Some(run) = pick(&self.started, nth).cloned() {
            let stranger = (run.agent + 1 + strangers.0 % 2) % 3;
            for ask in [
                |command: &str| Ask::Status {
                    command: command.to_owned(),
                    wait_seconds: 0,
                },
                |command: &str| Ask::Cancel {
                    command: command.to_owned(),
                },
            ] {
                compare(world, stranger, &ask(&run.command), &ask(UNKNOWN));
            }
        }
        if let Some(work) = pick(&self.works, nth).cloned() {
            let stranger = (work.agent + 1 + strangers.1 % 2) % 3;
            let inbox = |link: &str| Ask::Inbox {
                link: link.to_owned(),
            };
            compare(world, stranger, &inbox(&work.link), &inbox(UNKNOWN));
            let claim = |link: &str, task: &str| Ask::Claim {
                link: link.to_owned(),
                task: task.to_owned(),
            };
            let known = claim(&work.link, &work.task);
            compare(world, stranger, &known, &claim(UNKNOWN, &work.task));
            let submit = |link: &str| Ask::Submit {
                link: link.to_owned(),
                task: work.task.clone(),
                claim: work.claim.clone(),
                status: "completed".to_owned(),
                result: "4".to_owned(),
            };
            compare(world, stranger, &submit(&work.link), &submit(UNKNOWN));
            // A chat of the same connection that is no candidate.
            let mut others = self.chats.iter().rev();
            let other = others.find(|chat| chat.agent == work.agent);
            if let Some(other) = other.cloned() {
                let candidates = self.assigned.iter().zip(&self.tasks);
                let is_candidate = candidates
                    .filter(|(_, task)| **task == work.task)
                    .any(|((links, ..), _)| links.contains(&other.link));
                if !is_candidate {
                    let foreign = claim(&other.link, &work.task);
                    compare(world, other.agent, &foreign, &claim(&other.link, UNKNOWN));
                }
            }
        }
    }

    /// Invariant f: an execution id that is not the granted one changes nothing.
    pub(crate) fn stray<S: Store + Clone>(&mut self, world: &mut World<S>, nth: u64) {
        let begun: Vec<_> = world
            .witness
            .commands()
            .iter()
            .filter_map(|(id, facts)| {
                Some((*id, facts.row.filter(|row| row.execution_id.is_some())?))
            })
            .collect();
        let Some((command_id, before)) = pick(&begun, nth).copied() else {
            return;
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.random.next().to_be_bytes());
        let stale = ExecutionId::from_bytes(bytes);
        for desktop in 0..world.desktops().len() {
            let start = StartRequest {
                execution_id: stale,
            };
            let start = Call::Start(command_id, start);
            let completion = Completion {
                execution_id: Some(stale),
                status: FinalStatus::Completed,
                report: Report {
                    result: Some("\"stray\"".to_owned()),
                    ..Report::default()
                },
            };
            let completion = CompleteRequest::try_from(&completion).ok();
            let complete = Call::Complete(command_id);
            for (call, completion) in [(start, None), (complete, completion)] {
                let answer = world.probe_as_desktop(desktop, &call, completion);
                if matches!(answer, Some(Ok(_))) {
                    let what = "a start or completion with a stale execution id was taken";
                    world.witness.fail('f', what);
                }
            }
        }
        let after = world.witness.commands().get(&command_id);
        let same = after.and_then(|facts| facts.row) == Some(before);
        if !same {
            world
                .witness
                .fail('f', "a stale execution id changed a command");
        }
        let unknown: CommandId = CommandId::UNKNOWN;
        let foreign = |id| {
            Call::Start(
                id,
                StartRequest {
                    execution_id: stale,
                },
            )
        };
        let owner_of = |world: &World<S>| {
            let commands = world.desktops().iter();
            commands
                .map(|desktop| callboard_relay::View::seen(&desktop.disk, command_id).is_some())
                .collect::<Vec<_>>()
        };
        for (desktop, is_own) in owner_of(world).into_iter().enumerate() {
            if is_own {
                continue;
            }
            let known = world.probe_as_desktop(desktop, &foreign(command_id), None);
            let nothing = world.probe_as_desktop(desktop, &foreign(unknown), None);
            if let (Some(Err(known)), Some(Err(nothing))) = (known, nothing) {
                // A desktop writes its row before it asks for a start, and no crash takes it.
                if known != nothing {
                    let what = "a desktop can tell a foreign command from an unknown one";
                    world.witness.fail('e', what);
                }
            }
        }
    }

    pub(crate) fn link<S: Store + Clone>(&mut self, world: &mut World<S>, agent: usize) {
        let key = self.key();
        let project = match agent {
            0 => pick(&self.projects, self.random.next()),
            1 => self.projects.first(),
            _ => self.projects.last(),
        };
        let Some(project) = project.map(ToString::to_string) else {
            return;
        };
        let label = format!("chat <b>{key}</b>");
        let ask = Ask::Link {
            project,
            label,
            key,
        };
        self.ask(world, agent, ask);
    }

    pub(crate) fn assign<S: Store + Clone>(
        &mut self,
        world: &mut World<S>,
        nth: u64,
        is_again: bool,
    ) {
        let known = pick(&self.assigned, nth).cloned().filter(|_| is_again);
        let (links, text, key) = match known {
            Some(known) => known,
            None => {
                let count = 1 + self.random.index(3);
                let mut links = Vec::new();
                for _ in 0..count {
                    if let Some(chat) = pick(&self.chats, self.random.next()) {
                        links.push(chat.link.clone());
                    }
                }
                let key = self.key();
                (links, format!("add 2 and 2 ({key})"), key)
            }
        };
        if links.is_empty() {
            return;
        }
        let done = world.owner(async |hub| hub.assign_task(&links, &text, &key).await);
        let Some(Ok(assigned)) = done else {
            return self.count("assignment refused or unheard");
        };
        world.note(|| format!("the owner assigns {} to {links:?}", assigned.row.task_id));
        let task = assigned.row.task_id.to_string();
        let known = self.tasks.iter().position(|known| *known == task);
        let same_key = self.assigned.iter().position(|(.., known)| *known == key);
        match (known, same_key) {
            (None, Some(_)) => {
                let what = "one key assigned two tasks";
                world.witness.fail('a', what);
            }
            (Some(_), _) => self.count("assigned again"),
            (None, None) => {
                self.count("assigned");
                self.tasks.push(task);
                self.assigned.push((links, text, key));
            }
        }
    }

    pub(crate) fn inbox<S: Store + Clone>(&mut self, world: &mut World<S>, nth: u64) {
        if let Some(chat) = pick(&self.chats, nth).cloned() {
            self.ask(world, chat.agent, Ask::Inbox { link: chat.link });
        }
    }

    /// Claims a task by one of its candidates, or now and then by any chat.
    pub(crate) fn claim<S: Store + Clone>(&mut self, world: &mut World<S>, nth: u64) {
        let recent = self.tasks.len().saturating_sub(5);
        let tasks: Vec<_> = self.tasks.iter().zip(&self.assigned).skip(recent).collect();
        let Some((task, (links, ..))) = pick(&tasks, nth) else {
            return;
        };
        let (task, links) = ((*task).clone(), links.clone());
        let anybody = self.random.percent(15);
        let candidate = |chat: &&Chat| anybody || links.contains(&chat.link);
        let chats: Vec<_> = self.chats.iter().filter(candidate).cloned().collect();
        if let Some(chat) = pick(&chats, self.random.next()).cloned() {
            let link = chat.link;
            self.ask(world, chat.agent, Ask::Claim { link, task });
        }
    }

    /// Variants 0 to 3 submit, 4 and 5 repeat, 6 changes what was said, 7 forges the claim.
    pub(crate) fn submit<S: Store + Clone>(
        &mut self,
        world: &mut World<S>,
        nth: u64,
        variant: u64,
    ) {
        let length = self.works.len();
        let skip = if variant < 4 {
            length.saturating_sub(4)
        } else {
            0
        };
        let index = skip + usize::try_from(nth).unwrap_or(usize::MAX) % (length - skip).max(1);
        let fresh = format!("{}", self.random.below(1_000));
        let fails = self.random.percent(20);
        let Some(work) = self.works.get_mut(index) else {
            return;
        };
        let status = if fails { "failed" } else { "completed" };
        let new = (status.to_owned(), fresh);
        let (status, result) = match (variant, &work.said) {
            (6, _) | (_, None) => new,
            (_, Some(said)) => said.clone(),
        };
        if work.said.is_none() {
            work.said = Some((status.clone(), result.clone()));
        }
        let claim = match variant {
            7 => UNKNOWN.to_owned(),
            _ => work.claim.clone(),
        };
        let ask = Ask::Submit {
            link: work.link.clone(),
            task: work.task.clone(),
            claim,
            status,
            result,
        };
        let agent = work.agent;
        self.ask(world, agent, ask);
    }

    pub(crate) fn upload<S: Store + Clone>(&mut self, world: &mut World<S>, nth: u64) {
        let text = format!("{}", self.random.below(2));
        if let Some(work) = pick(&self.works, nth).cloned() {
            let ask = Ask::Upload {
                link: work.link,
                task: work.task,
                claim: work.claim,
                artifact: "notes".to_owned(),
                text,
            };
            self.ask(world, work.agent, ask);
        }
    }

    pub(crate) fn cancel_task<S: Store + Clone>(&mut self, world: &mut World<S>, nth: u64) {
        if let Some(task) = pick(&self.tasks, nth).cloned() {
            world.note(|| format!("the owner cancels {task}"));
            world.owner(async |hub| hub.cancel_task(&task).await);
        }
    }

    pub(crate) fn revoke_chat<S: Store + Clone>(&mut self, world: &mut World<S>, nth: u64) {
        if let Some(chat) = pick(&self.chats, nth).cloned() {
            world.note(|| format!("the owner unlinks {}", chat.link));
            if let Ok(link_id) = chat.link.parse() {
                world.witness.revokes(link_id);
            }
            world.owner(async |hub| hub.revoke_chat_link(&chat.link).await);
        }
    }

    pub(crate) fn revoke_agent<S: Store + Clone>(&mut self, world: &mut World<S>, agent: usize) {
        world.note(|| format!("the owner revokes agent {agent}"));
        for chat in self.chats.iter().filter(|chat| chat.agent == agent) {
            if let Ok(link_id) = chat.link.parse() {
                world.witness.revokes(link_id);
            }
        }
        world.witness.revokes_agent(agent);
        let name = agent_name(agent);
        world.owner(async |hub| hub.revoke_connection(&name).await);
    }

    fn ask<S: Store + Clone>(&mut self, world: &mut World<S>, agent: usize, ask: Ask) {
        let call = world.ask(agent, ask);
        self.tries.insert(call, 1);
    }

    /// An agent hears back, or does not and asks again.
    pub(crate) fn told<S: Store + Clone>(
        &mut self,
        world: &mut World<S>,
        call: u64,
        agent: usize,
        ask: Ask,
        told: Option<Result<Told, HubError>>,
    ) {
        let tries = self.tries.remove(&call).unwrap_or(TRIES_MAX);
        let Some(told) = told else {
            if tries < TRIES_MAX {
                let again = world.ask(agent, ask);
                self.tries.insert(again, tries + 1);
            }
            return self.count("unheard");
        };
        match (ask, told) {
            (Ask::Run { .. }, Ok(Told::Run(answer))) => {
                self.count("started");
                let command = answer.command_id.to_string();
                if !self.started.iter().any(|run| run.command == command) {
                    self.started.push(Started { agent, command });
                }
            }
            (Ask::Link { .. }, Ok(Told::Link(answer))) => {
                self.count("linked");
                let link = answer.chat_link_id.to_string();
                if !self.chats.iter().any(|chat| chat.link == link) {
                    self.chats.push(Chat { agent, link });
                }
            }
            (Ask::Claim { link, task }, Ok(Told::Claim(answer))) => {
                self.count("claimed");
                let claim = answer.claim_id.to_string();
                if !self.works.iter().any(|work| work.claim == claim) {
                    self.works.push(Work {
                        agent,
                        link,
                        task,
                        claim,
                        said: None,
                    });
                }
            }
            (Ask::Submit { .. }, Ok(Told::Submit(answer))) if answer.replayed => {
                self.count("submitted again");
            }
            (Ask::Submit { .. }, Ok(_)) => self.count("submitted"),
            (Ask::Status { .. }, Ok(Told::Status(answer))) => {
                let status = Status::from_word(&answer.status);
                self.count(status.map_or("odd status", Status::as_str));
            }
            (_, Ok(_)) => self.count("answered"),
            (_, Err(_)) => self.count("refused"),
        }
    }
}

/// The name of an agent's connection.
pub(crate) fn agent_name(agent: usize) -> String {
    format!("agent {agent}")
}

fn compare<S: Store + Clone>(world: &mut World<S>, stranger: usize, known: &Ask, nothing: &Ask) {
    let known_told = world.probe(stranger, known);
    let nothing_told = world.probe(stranger, nothing);
    let (Some(known_told), Some(nothing_told)) = (known_told, nothing_told) else {
        return;
    };
    let same = match (&known_told, &nothing_told) {
        (Err(known), Err(nothing)) => known == nothing,
        (Ok(_), _) | (_, Ok(_)) => false,
    };
    if !same {
        let what = format!("a foreign id was told apart: {known:?} gave {known_told:?}");
        world.witness.fail('e', what);
    }
}

fn pick<T>(from: &[T], nth: u64) -> Option<&T> {
    let length = u64::try_from(from.len())
        .ok()
        .filter(|length| *length > 0)?;
    from.get(usize::try_from(nth % length).ok()?)
}
