//! What survives a crash of a virtual desktop.

use std::collections::BTreeMap;

use callboard_domain::graph_run::Completion;
use callboard_domain::{CommandId, Consent, Grant, GraphSessionId, ProjectId, Refusal};
use callboard_relay::{Command, Output, ProjectView, Seen, Unfinished, View};
use callboard_wire::relay::SessionInfo;

/// The database of a desktop, as far as the relay sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk {
    rows: BTreeMap<CommandId, Row>,
    next_row: u64,
    outbox: Vec<Entry>,
    projects: Vec<Shared>,
    /// Refuses every write.
    pub(crate) is_full: bool,
}

#[derive(Debug, Clone)]
struct Row {
    order: u64,
    command: Command,
    seen: Seen,
}

#[derive(Debug, Clone)]
struct Entry {
    command_id: CommandId,
    completion: Completion,
    parked: Option<Refusal>,
}

#[derive(Debug, Clone)]
struct Shared {
    project_id: ProjectId,
    is_enabled: bool,
    is_acknowledged: bool,
    sessions: Vec<SessionInfo>,
}

/// The disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Disk {
    /// Enables a project, or disables it; the hub has yet to hear of the latter.
    pub(crate) fn enable(&mut self, project_id: ProjectId, is_enabled: bool) {
        match self.project(project_id) {
            Some(project) => {
                project.is_enabled = is_enabled;
                project.is_acknowledged = false;
            }
            None => self.projects.push(Shared {
                project_id,
                is_enabled,
                is_acknowledged: true,
                sessions: Vec::new(),
            }),
        }
    }

    /// Whether a project is enabled here.
    pub(crate) fn is_enabled(&self, project_id: ProjectId) -> bool {
        let mut projects = self.projects.iter();
        projects.any(|project| project.project_id == project_id && project.is_enabled)
    }

    /// Shares a session, or replaces what is shared under its id.
    pub(crate) fn share(&mut self, project_id: ProjectId, session: SessionInfo) {
        self.unshare(project_id, session.graph_session_id);
        if let Some(project) = self.project(project_id) {
            project.sessions.push(session);
        }
    }

    /// Shares a session no longer; true when it was shared.
    pub(crate) fn unshare(&mut self, project_id: ProjectId, session_id: GraphSessionId) -> bool {
        let Some(project) = self.project(project_id) else {
            return false;
        };
        let before = project.sessions.len();
        project
            .sessions
            .retain(|session| session.graph_session_id != session_id);
        project.sessions.len() < before
    }

    fn project(&mut self, project_id: ProjectId) -> Option<&mut Shared> {
        let mut projects = self.projects.iter_mut();
        projects.find(|project| project.project_id == project_id)
    }

    /// The completion that waits, as it is sent.
    pub(crate) fn completion(&self, command_id: CommandId) -> Option<&Completion> {
        let mut waiting = self.outbox.iter().filter(|entry| entry.parked.is_none());
        let entry = waiting.find(|entry| entry.command_id == command_id)?;
        Some(&entry.completion)
    }

    /// Completions that the hub refused for good.
    pub(crate) fn parked(&self) -> impl Iterator<Item = (CommandId, Refusal)> {
        let parked = self.outbox.iter();
        parked.filter_map(|entry| Some((entry.command_id, entry.parked?)))
    }

    /// Performs an output that changes the disk; the grant, for one that asks for it.
    ///
    /// # Errors
    /// [`Full`]; nothing was performed.
    pub(crate) fn perform(&mut self, output: &Output) -> Result<Option<Grant>, Full> {
        let is_write = match output {
            Output::Send { .. }
            | Output::Abandon { .. }
            | Output::BeginExecution { .. }
            | Output::StopExecution { .. } => false,
            Output::RecordStarting { .. }
            | Output::RecordRunning { .. }
            | Output::RecordDone { .. }
            | Output::RecordRefused { .. }
            | Output::DeleteCompletion { .. }
            | Output::ParkCompletion { .. }
            | Output::AcknowledgeDisabled { .. }
            | Output::RecordDesktop { .. } => true,
        };
        if is_write && self.is_full {
            return Err(Full);
        }
        match output {
            Output::RecordStarting {
                command,
                execution_id,
                ..
            } => self.put(command, Seen::Starting(*execution_id)),
            Output::RecordRunning {
                command,
                execution_id,
            } => {
                let grant = self.consent(command).grant();
                if grant == Grant::Given {
                    self.put(command, Seen::Running(*execution_id));
                }
                return Ok(Some(grant));
            }
            Output::RecordDone {
                command,
                completion,
            } => {
                self.put(command, Seen::Done);
                self.outbox.push(Entry {
                    command_id: command.id,
                    completion: completion.clone(),
                    parked: None,
                });
            }
            Output::RecordRefused { command, .. } => self.put(command, Seen::Done),
            Output::DeleteCompletion { command_id } => {
                self.outbox.retain(|entry| entry.command_id != *command_id);
            }
            Output::ParkCompletion {
                command_id,
                refusal,
            } => {
                let mut entries = self.outbox.iter_mut();
                if let Some(entry) = entries.find(|entry| entry.command_id == *command_id) {
                    entry.parked = Some(*refusal);
                }
            }
            Output::AcknowledgeDisabled { project_id } => {
                if let Some(project) = self.project(*project_id) {
                    project.is_acknowledged = true;
                }
            }
            Output::RecordDesktop { .. }
            | Output::Send { .. }
            | Output::Abandon { .. }
            | Output::BeginExecution { .. }
            | Output::StopExecution { .. } => {}
        }
        Ok(None)
    }

    /// Writes a row as it is, without a look at anything.
    pub(crate) fn put(&mut self, command: &Command, seen: Seen) {
        self.next_row += 1;
        let row = Row {
            order: self.next_row,
            command: command.clone(),
            seen,
        };
        match self.rows.get_mut(&command.id) {
            Some(known) => known.seen = seen,
            None => drop(self.rows.insert(command.id, row)),
        }
    }

    /// Takes a completion out of the outbox that nobody has sent.
    pub(crate) fn lose_completion(&mut self, command_id: CommandId) {
        self.outbox.retain(|entry| entry.command_id != command_id);
    }

    /// The command of a row.
    pub(crate) fn command(&self, command_id: CommandId) -> Option<&Command> {
        self.rows.get(&command_id).map(|row| &row.command)
    }
}

impl View for Disk {
    fn seen(&self, command_id: CommandId) -> Option<Seen> {
        self.rows.get(&command_id).map(|row| row.seen)
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        let mut open: Vec<_> = self
            .rows
            .values()
            .filter_map(|row| {
                let (execution_id, running) = match row.seen {
                    Seen::Starting(id) => (id, false),
                    Seen::Running(id) => (id, true),
                    Seen::Done => return None,
                };
                let unfinished = Unfinished {
                    command: row.command.clone(),
                    execution_id,
                    running,
                };
                Some((row.order, unfinished))
            })
            .collect();
        open.sort_by_key(|(order, _)| *order);
        open.into_iter().map(|(_, unfinished)| unfinished).collect()
    }

    fn outbox(&self) -> Vec<CommandId> {
        let waiting = self.outbox.iter().filter(|entry| entry.parked.is_none());
        waiting.map(|entry| entry.command_id).collect()
    }

    fn projects(&self) -> Vec<ProjectView> {
        let told = self
            .projects
            .iter()
            .filter(|project| project.is_enabled || !project.is_acknowledged);
        told.map(|project| ProjectView {
            project_id: project.project_id,
            enabled: project.is_enabled,
            sessions: project.sessions.clone(),
        })
        .collect()
    }

    fn consent(&self, command: &Command) -> Consent {
        let mut projects = self.projects.iter();
        let project = projects.find(|project| project.project_id == command.project_id);
        let shared = project.and_then(|project| {
            let mut sessions = project.sessions.iter();
            sessions.find(|session| session.graph_session_id == command.graph_session_id)
        });
        Consent {
            project_enabled: project.is_some_and(|project| project.is_enabled),
            session_shared: shared.is_some(),
            slug_unchanged: shared.is_some_and(|session| session.slug == command.slug),
        }
    }
}

/// A Graph as it is shared.
pub(crate) fn session_info(graph_session_id: GraphSessionId, slug: &str) -> SessionInfo {
    SessionInfo {
        graph_session_id,
        name: "Graph".to_owned(),
        description: String::new(),
        slug: slug.to_owned(),
        version: 1,
        status: "ready".to_owned(),
    }
}
