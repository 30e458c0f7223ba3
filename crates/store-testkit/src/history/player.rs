//! Draws the next operation: mostly a sensible one, now and then a foreign or unknown id, and
//! time that creeps, leaps over a deadline or is set back.

use callboard_ambient::Entropy;
use callboard_domain::graph_run::Completion;
use callboard_domain::limits::{ERROR_UTF16_MAX, QUEUED_EXPIRY_MS, SWEEP_ROWS_MAX};
use callboard_domain::{
    CommandId, ConnectionId, DesktopId, Digest, ExecutionId, FinalStatus, OwnerId, ProjectId,
    Report, Scope, Scopes, Timestamp, WorkerId,
};
use callboard_store::{
    NewConnection, NewDesktop, NewProject, Project, QueueRun, RunKey, RunRow, TokenHash,
};
use callboard_wire::relay::{Progress, SessionInfo};

use super::answer::Answer;
use super::operation::{Operation, RunOperation};
use crate::world::{START, session};

/// Few names, so that they are often taken.
const NAMES: [&str; 4] = ["Home", "Work", "home", "\u{1F600}"];

#[derive(Debug)]
pub(super) struct Player {
    entropy: Entropy,
    pub(super) now: Timestamp,
    owners: Vec<OwnerId>,
    projects: Vec<ProjectId>,
    desktops: Vec<DesktopId>,
    connections: Vec<ConnectionId>,
    commands: Vec<(CommandId, ConnectionId, DesktopId)>,
    executions: Vec<(CommandId, ExecutionId)>,
    completion: Option<Operation>,
    tokens: Vec<TokenHash>,
    opening: Vec<Opening>,
}

/// What every history begins with, so that most of it is about runs.
#[derive(Debug, Clone, Copy)]
enum Opening {
    Project,
    Desktop,
    Connection,
    Sync,
}

impl Player {
    pub(super) fn new(seed: u64) -> Self {
        use Opening::{Connection, Desktop, Project, Sync};
        let owner = |id| OwnerId::from_bytes([id; 16]);
        Self {
            entropy: Entropy::seeded(seed, "history"),
            now: START,
            owners: vec![owner(1), owner(2)],
            projects: Vec::new(),
            desktops: Vec::new(),
            connections: Vec::new(),
            commands: Vec::new(),
            executions: Vec::new(),
            completion: None,
            tokens: vec![Digest::of(&[])],
            opening: [Project, Project, Desktop, Desktop, Connection, Connection]
                .into_iter()
                .chain([Sync; 4])
                .rev()
                .collect(),
        }
    }

    /// True once in `times`.
    fn once_in(&self, times: u64) -> bool {
        self.entropy.below(times) == 0
    }

    fn one<T: Clone>(&self, of: &[T]) -> T {
        let drawn = self.entropy.below(of.len() as u64);
        of[usize::try_from(drawn).unwrap()].clone()
    }

    /// A known id, or once in `times` and while none is known one that nobody has.
    fn some<T: Copy>(&self, of: &[T], nobodys: impl Fn([u8; 16]) -> T, times: u64) -> T {
        if of.is_empty() || self.once_in(times) {
            return nobodys([9; 16]);
        }
        self.one(of)
    }

    fn project(&self) -> ProjectId {
        self.some(&self.projects, ProjectId::from_bytes, 15)
    }

    fn desktop(&self) -> DesktopId {
        self.some(&self.desktops, DesktopId::from_bytes, 15)
    }

    fn connection(&self) -> ConnectionId {
        self.some(&self.connections, ConnectionId::from_bytes, 15)
    }

    /// An owner; the first one seven times out of eight.
    fn owner(&self) -> OwnerId {
        self.owners[usize::from(self.once_in(8))]
    }

    fn id(&self) -> [u8; 16] {
        self.entropy.uuid_v7(self.now)
    }

    fn token(&mut self) -> TokenHash {
        let token = Digest::of(&[self.entropy.secret("").as_bytes()]);
        self.tokens.push(token);
        token
    }

    /// Lets time pass and draws what happens then.
    pub(super) fn next(&mut self) -> Operation {
        let passed_ms = match self.entropy.below(40) {
            0 => QUEUED_EXPIRY_MS / 2 + self.entropy.below(QUEUED_EXPIRY_MS),
            1..=10 => self.entropy.below(30_000),
            _ => self.entropy.below(50),
        };
        self.now = self.now.plus_ms(passed_ms);
        if self.once_in(30) {
            let back_ms = i64::try_from(self.entropy.below(60_000)).unwrap();
            self.now = Timestamp::from_millis(self.now.as_millis() - back_ms);
        }
        if let Some(opening) = self.opening.pop() {
            return self.open(opening);
        }
        match self.entropy.below(100) {
            0..=4 => {
                let kinds = [Opening::Project, Opening::Desktop, Opening::Connection];
                let kind = self.one(&kinds);
                let name = self.one(&NAMES);
                self.make(kind, name)
            }
            5..=12 => self.sync(),
            13..=17 => self.housekeeping(),
            18..=37 => self.queue_run(),
            38..=43 => {
                let (command_id, connection_id, _) = self.command();
                let key = RunKey {
                    connection_id,
                    command_id,
                };
                Operation::Run(RunOperation::RequestCancel(key))
            }
            44..=60 => {
                let (command_id, _, desktop_id) = self.command();
                let execution_id = self.execution(command_id);
                Operation::Run(RunOperation::Start(desktop_id, command_id, execution_id))
            }
            61..=70 => self.report_progress(),
            71..=87 => self.complete_run(),
            88..=91 => {
                Operation::NoteSeen(vec![(self.desktop(), self.now), (self.desktop(), START)])
            }
            _ => {
                // A sweep finds nothing unless a deadline has just passed.
                if self.once_in(3) {
                    self.now = self.now.plus_ms(QUEUED_EXPIRY_MS);
                }
                Operation::Sweep(self.one(&[1, 2, 10, SWEEP_ROWS_MAX]))
            }
        }
    }

    fn open(&mut self, opening: Opening) -> Operation {
        let name = NAMES[self.opening.len() % 2];
        match opening {
            Opening::Sync => self.sync(),
            Opening::Project | Opening::Desktop | Opening::Connection => self.make(opening, name),
        }
    }

    fn make(&mut self, kind: Opening, name: &str) -> Operation {
        let opened = self.opening.is_empty();
        let owner_id = if opened { self.owner() } else { self.owners[0] };
        let (name, now) = (name.to_owned(), self.now);
        match kind {
            Opening::Project => Operation::CreateProject(NewProject {
                project: Project {
                    id: ProjectId::from_bytes(self.id()),
                    owner_id,
                    name,
                },
                now,
            }),
            Opening::Desktop => Operation::CreateDesktop(NewDesktop {
                id: DesktopId::from_bytes(self.id()),
                owner_id,
                name,
                token_hash: self.token(),
                now,
            }),
            Opening::Connection | Opening::Sync => {
                let scopes = [
                    Scopes::default(),
                    Scopes::default().with(Scope::Read),
                    Scopes::ALL,
                ];
                let count = 1 + self.entropy.below(3);
                let projects = if opened {
                    (0..count).map(|_| self.project()).collect()
                } else {
                    self.projects.clone()
                };
                Operation::CreateConnection(NewConnection {
                    id: ConnectionId::from_bytes(self.id()),
                    owner_id,
                    name,
                    scopes: self.one(&scopes),
                    projects,
                    token_hash: self.token(),
                    now,
                })
            }
        }
    }

    fn housekeeping(&mut self) -> Operation {
        let (owner_id, name) = (self.owner(), self.one(&NAMES).to_owned());
        match self.entropy.below(12) {
            0 => Operation::EnsureOwner(owner_id),
            1..=3 => Operation::RebindDesktop(owner_id, name),
            4 => Operation::RevokeConnection(owner_id, name),
            _ => {
                let worker = u8::from(self.once_in(3));
                let worker = WorkerId::from_bytes([worker; 16]);
                Operation::BindWorker(self.desktop(), worker)
            }
        }
    }

    fn sync(&mut self) -> Operation {
        let count = self.one(&[0, 2, 3, 4, 5]);
        let sessions = (0..count).map(|_| self.session()).collect();
        Operation::Sync(self.desktop(), self.project(), sessions)
    }

    fn session(&self) -> SessionInfo {
        let id = self.one(&[1, 2, 3]);
        SessionInfo {
            version: 1 + self.entropy.below(2),
            ..session(id, self.one(&NAMES))
        }
    }

    fn queue_run(&mut self) -> Operation {
        let graph_session_id = self.session().graph_session_id;
        let topic = u8::from(self.once_in(3));
        let arguments = format!(r#"{{"topic":{topic}}}"#);
        let request = Digest::of(&[&graph_session_id.to_bytes(), arguments.as_bytes()]);
        Operation::Run(RunOperation::Queue(QueueRun {
            command_id: CommandId::from_bytes(self.id()),
            connection_id: self.connection(),
            graph_session_id,
            idempotency_key: format!("key-number-{}", self.entropy.below(30)),
            arguments,
            request,
            now: self.now,
        }))
    }

    /// A command with its connection and desktop, mostly a recent one; one of them wrong once in
    /// fifteen.
    fn command(&self) -> (CommandId, ConnectionId, DesktopId) {
        let nobodys = |id| {
            let (connection, desktop) = (ConnectionId::from_bytes(id), DesktopId::from_bytes(id));
            (CommandId::from_bytes(id), connection, desktop)
        };
        let recent = self.commands.len().saturating_sub(3);
        let from = if self.once_in(3) { 0 } else { recent };
        let (command, connection, desktop) = self.some(&self.commands[from..], nobodys, 20);
        match self.entropy.below(15) {
            0 => (command, self.connection(), self.desktop()),
            _ => (command, connection, desktop),
        }
    }

    /// The execution of a command if it has one, now and then a fresh one all the same.
    fn execution(&mut self, command_id: CommandId) -> ExecutionId {
        let known = self.executions.iter().find(|(of, _)| *of == command_id);
        match known.filter(|_| !self.once_in(12)) {
            Some((_, id)) => *id,
            None => ExecutionId::from_bytes(self.id()),
        }
    }

    fn report_progress(&mut self) -> Operation {
        let (command_id, _, desktop_id) = self.command();
        let calls_done = self.entropy.below(2);
        let progress = Progress {
            calls_done,
            calls_started: calls_done + 1,
            tokens: 0,
            tokens_cap: self.one(&[None, Some(u64::MAX)]),
        };
        let phase = self.one(&[None, Some("reading"), Some("writing")]);
        let phase = phase.map(str::to_owned);
        let progress = self.one(&[None, Some(progress)]);
        Operation::Run(RunOperation::ReportProgress(
            desktop_id, command_id, phase, progress,
        ))
    }

    fn complete_run(&mut self) -> Operation {
        if let Some(again) = self.completion.take_if(|_| self.entropy.below(3) == 0) {
            return again;
        }
        let (mut command_id, _, mut desktop_id) = self.command();
        if let Some((started, _)) = self.executions.last().filter(|_| !self.once_in(3)) {
            let known = self.commands.iter().find(|(id, ..)| id == started);
            (command_id, _, desktop_id) = known.copied().unwrap_or(self.commands[0]);
        }
        let execution_id = match self.entropy.below(8) {
            0 => None,
            _ => Some(self.execution(command_id)),
        };
        let status = match execution_id {
            None if !self.once_in(4) => FinalStatus::Cancelled,
            None | Some(_) => self.one(&FinalStatus::ALL),
        };
        let texts = [None, Some("1".to_owned()), Some("1.0".to_owned())];
        let errors = match self.entropy.below(10) {
            0 => vec![Some("x".repeat(ERROR_UTF16_MAX + 1))],
            _ => vec![None, Some("it broke".to_owned())],
        };
        let report = Report {
            result: execution_id.and_then(|_| self.one(&texts)),
            result_truncated: self.once_in(2),
            error: self.one(&errors),
            total_tokens: self.one(&[None, Some(0), Some(1 << 40)]),
            reported_cost: self.one(&[None, Some(0.0), Some(0.1)]),
        };
        let completion = Completion {
            execution_id,
            status,
            report,
        };
        let complete = RunOperation::Complete(desktop_id, command_id, completion);
        self.completion = Some(Operation::Run(complete.clone()));
        Operation::Run(complete)
    }

    /// Remembers the ids that now exist.
    pub(super) fn learn(&mut self, answer: &Answer) {
        match answer {
            Answer::Project(project) => self.projects.push(project.id),
            Answer::Desktop(Some(desktop)) => self.desktops.push(desktop.id),
            Answer::Connection(Some(connection)) => self.connections.push(connection.id),
            Answer::Queued(queued) if !queued.replayed => {
                let row = &queued.row;
                self.commands
                    .push((row.command_id, row.connection_id, row.desktop_id));
            }
            Answer::Run(Some(row)) => self.learn_execution(row),
            Answer::Refused(_)
            | Answer::NameTaken
            | Answer::Done
            | Answer::Flag(_)
            | Answer::Owner(_)
            | Answer::Projects(_)
            | Answer::Desktop(None)
            | Answer::Desktops(_)
            | Answer::Connection(None)
            | Answer::Connections(_)
            | Answer::Sessions(_)
            | Answer::Revoked(_)
            | Answer::Run(None)
            | Answer::Queued(_)
            | Answer::Completed(..)
            | Answer::Swept(..)
            | Answer::Synced { .. } => {}
        }
    }

    fn learn_execution(&mut self, row: &RunRow) {
        if let Some(execution) = row.run.execution() {
            let known = (row.command_id, execution.id);
            if !self.executions.contains(&known) {
                self.executions.push(known);
            }
        }
    }

    /// Everything that can be read, as operations.
    pub(super) fn looks(&self) -> Vec<Operation> {
        let mut looks = Vec::new();
        for owner_id in &self.owners {
            looks.push(Operation::Projects(*owner_id));
            looks.push(Operation::Desktops(*owner_id));
            looks.push(Operation::Connections(*owner_id));
        }
        for (command_id, connection_id, _) in &self.commands {
            let key = RunKey {
                connection_id: *connection_id,
                command_id: *command_id,
            };
            looks.push(Operation::Run(RunOperation::Read(key)));
        }
        let (connection_id, project_id) = (self.connection(), self.project());
        looks.push(Operation::Sessions(connection_id, project_id, 50));
        looks.push(Operation::Sessions(connection_id, project_id, 1));
        let token = self.one(&self.tokens);
        looks.push(Operation::ConnectionByToken(token));
        looks.push(Operation::DesktopByToken(token));
        looks
    }
}
