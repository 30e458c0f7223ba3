//! Draws the next operation: mostly a sensible one, now and then a foreign or unknown id, and
//! time that creeps, leaps over a deadline or is set back.

mod runs;

use callboard_ambient::Entropy;
use callboard_domain::graph_run::Status;
use callboard_domain::limits::{QUEUED_EXPIRY_MS, TASK_EXPIRY_MS};
use callboard_domain::{
    CommandId, ConnectionId, DesktopId, Digest, ExecutionId, OwnerId, ProjectId, Scope, Scopes,
    Timestamp, WorkerId,
};
use callboard_store::{
    NewConnection, NewDesktop, NewProject, Project, RunFilter, RunKey, RunRow, TokenHash,
};
use callboard_wire::relay::SessionInfo;

use super::answer::Answer;
use super::chat_player::{ChatPlayer, Scene};
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
    chats: ChatPlayer,
}

/// What every history begins with, so that most of it is about runs and tasks.
#[derive(Debug, Clone, Copy)]
enum Opening {
    Project,
    Desktop,
    Connection,
    Sync,
    Chat,
}

impl Player {
    pub(super) fn new(seed: u64) -> Self {
        use Opening::{Chat, Connection, Desktop, Project, Sync};
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
                .chain([Chat; 3])
                .rev()
                .collect(),
            chats: ChatPlayer::default(),
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
        self.pass_time();
        if let Some(opening) = self.opening.pop() {
            return self.open(opening);
        }
        if self.once_in(2) {
            let scene = self.scene();
            return Operation::Chat(self.chats.next(&scene));
        }
        self.next_of_runs()
    }

    fn pass_time(&mut self) {
        let passed_ms = match self.entropy.below(80) {
            0 | 1 => QUEUED_EXPIRY_MS / 2 + self.entropy.below(QUEUED_EXPIRY_MS),
            2 => TASK_EXPIRY_MS / 2 + self.entropy.below(TASK_EXPIRY_MS),
            3..=20 => self.entropy.below(30_000),
            _ => self.entropy.below(50),
        };
        self.now = self.now.plus_ms(passed_ms);
        if self.once_in(8) {
            let due = self.chats.due(&self.scene());
            self.now = self.now.max(due.unwrap_or(self.now));
        }
        if self.once_in(30) {
            let back_ms = i64::try_from(self.entropy.below(60_000)).unwrap();
            self.now = Timestamp::from_millis(self.now.as_millis() - back_ms);
        }
    }

    /// What the players of chats draw from.
    fn scene(&self) -> Scene {
        Scene {
            entropy: self.entropy.clone(),
            now: self.now,
            owner_id: self.owner(),
            connection_id: self.connection(),
            project_id: self.project(),
        }
    }

    fn open(&mut self, opening: Opening) -> Operation {
        let name = NAMES[self.opening.len() % 2];
        match opening {
            Opening::Sync => self.sync(),
            Opening::Chat => Operation::Chat(ChatPlayer::link(&self.scene())),
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
            Opening::Connection | Opening::Sync | Opening::Chat => {
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
        match self.entropy.below(20) {
            0 => Operation::EnsureOwner(owner_id),
            1..=3 => Operation::RebindDesktop(owner_id, name),
            4 => Operation::RevokeConnection(owner_id, name),
            5..=12 => self.console(),
            _ => {
                let worker = u8::from(self.once_in(3));
                let worker = WorkerId::from_bytes([worker; 16]);
                Operation::BindWorker(self.desktop(), worker)
            }
        }
    }

    /// What the owner asks of all commands.
    fn console(&self) -> Operation {
        let nobodys = |bytes| {
            (
                CommandId::from_bytes(bytes),
                ConnectionId::UNKNOWN,
                DesktopId::UNKNOWN,
            )
        };
        let owner_id = self.owner();
        let (command_id, ..) = self.some(&self.commands, nobodys, 10);
        match self.entropy.below(8) {
            0 => Operation::CancelOwnedRun(owner_id, command_id),
            1 => Operation::RunCounts(owner_id),
            2 | 3 => Operation::OwnedRun(owner_id, command_id),
            _ => {
                let status = self.once_in(2).then(|| self.one(&Status::ALL));
                let before = self.once_in(2).then_some(command_id);
                let limit = self.one(&[0, 1, 3, 100]);
                Operation::OwnedRuns(owner_id, RunFilter { status, before }, limit)
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
            Answer::Chat(answer) => self.chats.learn(answer),
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
            | Answer::OwnedRuns(_)
            | Answer::RunCounts(_)
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

    /// All that is there of linked chats, to be read at the end.
    pub(super) fn last_looks(&self) -> Vec<Operation> {
        let whole = self.chats.whole(&self.owners);
        whole.into_iter().map(Operation::Chat).collect()
    }

    /// What is read after each operation.
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
        let chats = self.chats.looks(&self.scene(), &self.owners);
        looks.extend(chats.into_iter().map(Operation::Chat));
        looks
    }
}
