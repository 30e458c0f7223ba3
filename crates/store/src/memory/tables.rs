//! The tables and what each operation does to them.

mod chats;
mod console;

use std::collections::BTreeMap;

use callboard_domain::graph_run::{Event, Run, decide};
use callboard_domain::{
    CommandId, ConnectionId, Decision, DesktopId, OwnerId, ProjectId, Refusal, Scopes, Timestamp,
    WorkerId,
};
use callboard_wire::relay::{Progress, SessionInfo};

use crate::rules::{self, settled_at};
use crate::{
    Connection, Desktop, NewConnection, NewDesktop, NewProject, Project, QueueRun, QueuedRun,
    Revoked, RunRow, SessionRow, StoreError, Swept, Synced, TokenHash,
};

/// Whose command it must be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Caller {
    Connection(ConnectionId),
    Desktop(DesktopId),
    Owner(OwnerId),
}

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) owner: Option<OwnerId>,
    projects: Vec<Project>,
    desktops: Vec<DesktopRow>,
    connections: Vec<ConnectionRow>,
    sessions: BTreeMap<(ProjectId, DesktopId), Vec<SessionInfo>>,
    runs: BTreeMap<CommandId, RunRow>,
    /// Every command in the order in which it was queued: ids follow the wall clock, which can be
    /// set back.
    queue: Vec<CommandId>,
    keys: BTreeMap<(ConnectionId, String), CommandId>,
    chats: chats::Chats,
    pub(super) console: console::Console,
}

#[derive(Debug)]
struct DesktopRow {
    desktop: Desktop,
    token_hash: TokenHash,
}

#[derive(Debug)]
struct ConnectionRow {
    id: ConnectionId,
    owner_id: OwnerId,
    name: String,
    token_hash: TokenHash,
    scopes: Scopes,
    projects: Vec<ProjectId>,
    revoked: bool,
}

impl Tables {
    pub(super) fn create_project(&mut self, new: NewProject) -> Result<Project, StoreError> {
        let NewProject { project, .. } = new;
        let taken =
            |other: &Project| other.owner_id == project.owner_id && other.name == project.name;
        if self.projects.iter().any(taken) {
            return Err(StoreError::NameTaken);
        }
        self.projects.push(project.clone());
        Ok(project)
    }

    pub(super) fn projects(&self, owner_id: OwnerId) -> Vec<Project> {
        self.projects
            .iter()
            .filter(|project| project.owner_id == owner_id)
            .cloned()
            .collect()
    }

    pub(super) fn create_desktop(&mut self, new: NewDesktop) -> Result<Desktop, StoreError> {
        let NewDesktop {
            id,
            owner_id,
            name,
            token_hash,
            ..
        } = new;
        if self.find_desktop(owner_id, &name).is_some() {
            return Err(StoreError::NameTaken);
        }
        let desktop = Desktop {
            id,
            owner_id,
            name,
            worker_id: None,
            last_seen_at: None,
        };
        self.desktops.push(DesktopRow {
            desktop: desktop.clone(),
            token_hash,
        });
        Ok(desktop)
    }

    fn find_desktop(&mut self, owner_id: OwnerId, name: &str) -> Option<&mut DesktopRow> {
        self.desktops
            .iter_mut()
            .find(|row| row.desktop.owner_id == owner_id && row.desktop.name == name)
    }

    fn desktop(&self, id: DesktopId) -> Option<&Desktop> {
        self.desktops
            .iter()
            .map(|row| &row.desktop)
            .find(|desktop| desktop.id == id)
    }

    pub(super) fn desktops(&self, owner_id: OwnerId) -> Vec<Desktop> {
        self.desktops
            .iter()
            .map(|row| &row.desktop)
            .filter(|desktop| desktop.owner_id == owner_id)
            .cloned()
            .collect()
    }

    pub(super) fn rebind_desktop(&mut self, owner_id: OwnerId, name: &str) -> bool {
        let found = self.find_desktop(owner_id, name);
        found.map(|row| row.desktop.worker_id = None).is_some()
    }

    pub(super) fn create_connection(
        &mut self,
        new: NewConnection,
    ) -> Result<Connection, StoreError> {
        let owned = |id: &ProjectId| {
            self.projects
                .iter()
                .any(|project| project.id == *id && project.owner_id == new.owner_id)
        };
        if !new.projects.iter().all(owned) {
            return Err(Refusal::ProjectNotFound.into());
        }
        let taken = |row: &ConnectionRow| {
            !row.revoked && row.owner_id == new.owner_id && row.name == new.name
        };
        if self.connections.iter().any(taken) {
            return Err(StoreError::NameTaken);
        }
        let row = ConnectionRow {
            id: new.id,
            owner_id: new.owner_id,
            name: new.name,
            token_hash: new.token_hash,
            scopes: new.scopes,
            projects: new.projects,
            revoked: false,
        };
        let connection = self.view(&row);
        self.connections.push(row);
        Ok(connection)
    }

    fn view(&self, row: &ConnectionRow) -> Connection {
        let projects = row
            .projects
            .iter()
            .filter_map(|id| self.projects.iter().find(|project| project.id == *id))
            .cloned()
            .collect();
        Connection {
            id: row.id,
            owner_id: row.owner_id,
            name: row.name.clone(),
            scopes: row.scopes,
            projects,
        }
    }

    pub(super) fn connections(&self, owner_id: OwnerId) -> Vec<Connection> {
        self.connections
            .iter()
            .filter(|row| row.owner_id == owner_id && !row.revoked)
            .map(|row| self.view(row))
            .collect()
    }

    pub(super) fn revoke_connection(
        &mut self,
        owner_id: OwnerId,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<Revoked>, StoreError> {
        let found = self
            .connections
            .iter_mut()
            .find(|row| row.owner_id == owner_id && row.name == name && !row.revoked);
        let Some(connection) = found else {
            return Ok(None);
        };
        connection.revoked = true;
        let connection_id = connection.id;
        let mut changed = Vec::new();
        for row in self.runs.values_mut() {
            if row.connection_id != connection_id {
                continue;
            }
            if let Decision::Moved(next) = decide(&row.run, &Event::RemoveAccess, now)? {
                row.run = next;
                changed.push(row.clone());
            }
        }
        let runs = changed
            .iter()
            .map(|row| self.shown(row, row.run.clone()))
            .collect();
        let tasks = self.chats.revoke_connection(connection_id, now)?;
        Ok(Some(Revoked { runs, tasks }))
    }

    pub(super) fn connection_by_token(&self, token_hash: TokenHash) -> Option<Connection> {
        let found = self
            .connections
            .iter()
            .find(|row| row.token_hash == token_hash);
        found.filter(|row| !row.revoked).map(|row| self.view(row))
    }

    pub(super) fn desktop_by_token(&self, token_hash: TokenHash) -> Option<Desktop> {
        let found = self
            .desktops
            .iter()
            .find(|row| row.token_hash == token_hash);
        found.map(|row| row.desktop.clone())
    }

    pub(super) fn bind_worker(
        &mut self,
        desktop_id: DesktopId,
        worker_id: WorkerId,
    ) -> Result<(), StoreError> {
        for row in self
            .desktops
            .iter_mut()
            .filter(|row| row.desktop.id == desktop_id)
        {
            if rules::bind_worker(row.desktop.worker_id, worker_id)? {
                row.desktop.worker_id = Some(worker_id);
            }
        }
        Ok(())
    }

    /// Whether a command is `caller`'s to see: a revoked connection has none any more.
    fn permits(&self, caller: Caller, row: &RunRow) -> bool {
        let revoked = |id| {
            let mut connections = self.connections.iter();
            connections.any(|connection| connection.id == id && connection.revoked)
        };
        let gone = match caller {
            Caller::Connection(id) => revoked(id),
            Caller::Desktop(_) | Caller::Owner(_) => false,
        };
        self.is_of(row, caller) && !gone
    }

    fn is_of(&self, row: &RunRow, caller: Caller) -> bool {
        match caller {
            Caller::Connection(id) => row.connection_id == id,
            Caller::Desktop(id) => row.desktop_id == id,
            Caller::Owner(id) => self.owner_of(row.connection_id) == Some(id),
        }
    }

    fn projects_of(&self, connection_id: ConnectionId) -> &[ProjectId] {
        let found = self
            .connections
            .iter()
            .find(|row| row.id == connection_id && !row.revoked);
        found.map(|row| row.projects.as_slice()).unwrap_or_default()
    }

    pub(super) fn sessions(
        &self,
        connection_id: ConnectionId,
        project_id: ProjectId,
        limit: usize,
    ) -> Option<Vec<SessionRow>> {
        if !self.projects_of(connection_id).contains(&project_id) {
            return None;
        }
        let mut rows: Vec<_> = self
            .sessions
            .iter()
            .filter(|((project, _), _)| *project == project_id)
            .flat_map(|((_, desktop), sessions)| {
                sessions
                    .iter()
                    .map(|session| self.session_row(project_id, *desktop, session))
            })
            .collect();
        rows.sort_by(|a, b| {
            (&a.session.name, a.session.graph_session_id, a.desktop_id).cmp(&(
                &b.session.name,
                b.session.graph_session_id,
                b.desktop_id,
            ))
        });
        rows.truncate(limit);
        Some(rows)
    }

    fn session_row(
        &self,
        project_id: ProjectId,
        desktop_id: DesktopId,
        session: &SessionInfo,
    ) -> SessionRow {
        let desktop = self.desktop(desktop_id);
        SessionRow {
            session: session.clone(),
            project_id,
            desktop_id,
            desktop_name: desktop
                .map(|desktop| desktop.name.clone())
                .unwrap_or_default(),
            desktop_last_seen_at: desktop.and_then(|desktop| desktop.last_seen_at),
        }
    }

    pub(super) fn run(
        &self,
        caller: Caller,
        command_id: CommandId,
        now: Timestamp,
    ) -> Option<RunRow> {
        let row = self.runs.get(&command_id)?;
        if !self.permits(caller, row) {
            return None;
        }
        Some(self.shown(row, settled_at(&row.run, now)))
    }

    /// The row as it is read: with `run` in it and the desktop's present last sign of life.
    fn shown(&self, row: &RunRow, run: Run) -> RunRow {
        let desktop_last_seen_at = self
            .desktop(row.desktop_id)
            .and_then(|desktop| desktop.last_seen_at);
        RunRow {
            run,
            desktop_last_seen_at,
            ..row.clone()
        }
    }

    pub(super) fn queue_run(&mut self, request: QueueRun) -> Result<QueuedRun, StoreError> {
        let key = (request.connection_id, request.idempotency_key.clone());
        let caller = Caller::Connection(request.connection_id);
        let known = self
            .keys
            .get(&key)
            .and_then(|command_id| self.runs.get(command_id))
            .filter(|row| self.permits(caller, row));
        if let Some(row) = known {
            let run = rules::replay_queue(&row.run, request.request, request.now)?;
            return Ok(QueuedRun {
                row: self.shown(row, run),
                replayed: true,
            });
        }
        let (project_id, desktop_id, slug) =
            self.place(&request).ok_or(Refusal::SessionNotFound)?;
        let row = RunRow {
            command_id: request.command_id,
            connection_id: request.connection_id,
            project_id,
            desktop_id,
            graph_session_id: request.graph_session_id,
            slug,
            arguments: request.arguments,
            run: Run::queued(request.request, request.now),
            phase: None,
            progress: None,
            desktop_last_seen_at: None,
        };
        self.keys.insert(key, row.command_id);
        self.queue.push(row.command_id);
        self.runs.insert(row.command_id, row.clone());
        Ok(QueuedRun {
            row: self.shown(&row, row.run.clone()),
            replayed: false,
        })
    }

    /// Where a session runs: the project that was added to the connection first, and there the
    /// desktop with the smallest id.
    fn place(&self, request: &QueueRun) -> Option<(ProjectId, DesktopId, String)> {
        self.projects_of(request.connection_id)
            .iter()
            .find_map(|project_id| {
                self.sessions
                    .iter()
                    .filter(|((project, _), _)| project == project_id)
                    .find_map(|((_, desktop_id), sessions)| {
                        let session = sessions
                            .iter()
                            .find(|session| session.graph_session_id == request.graph_session_id)?;
                        Some((*project_id, *desktop_id, session.slug.clone()))
                    })
            })
    }

    /// Applies `event` to a command of `caller`; true when the event was a replay.
    pub(super) fn decide(
        &mut self,
        caller: Caller,
        command_id: CommandId,
        event: &Event,
        now: Timestamp,
    ) -> Result<(RunRow, bool), StoreError> {
        let found = self.runs.get(&command_id);
        let permitted = found.is_some_and(|row| self.permits(caller, row));
        let row = self.runs.get_mut(&command_id).filter(|_| permitted);
        let row = row.ok_or(Refusal::RunNotFound)?;
        let decision = decide(&row.run, event, now)?;
        let replayed = decision == Decision::Replayed;
        if let Decision::Moved(next) = decision {
            row.run = next;
        }
        let row = row.clone();
        Ok((self.shown(&row, row.run.clone()), replayed))
    }

    pub(super) fn sync(
        &mut self,
        desktop_id: DesktopId,
        project_id: ProjectId,
        sessions: Vec<SessionInfo>,
        now: Timestamp,
    ) -> Result<Synced, StoreError> {
        let owner = self.desktop(desktop_id).map(|desktop| desktop.owner_id);
        let owned = |project: &Project| project.id == project_id && Some(project.owner_id) == owner;
        if !self.projects.iter().any(owned) {
            return Err(Refusal::ProjectNotFound.into());
        }
        let stored = self.sessions.entry((project_id, desktop_id)).or_default();
        let changed = *stored != sessions;
        *stored = sessions;
        let waiting: Vec<_> = self
            .queue
            .iter()
            .filter_map(|command_id| self.runs.get(command_id))
            .filter(|row| row.project_id == project_id && row.desktop_id == desktop_id)
            .filter(is_open)
            .map(|row| self.shown(row, settled_at(&row.run, now)))
            .collect();
        Ok(Synced {
            handout: rules::hand_out(&waiting)?,
            changed,
        })
    }

    pub(super) fn report_progress(
        &mut self,
        desktop_id: DesktopId,
        command_id: CommandId,
        phase: Option<String>,
        progress: Option<Progress>,
        now: Timestamp,
    ) -> Result<RunRow, StoreError> {
        let row = self.runs.get_mut(&command_id);
        let row = row.filter(|row| row.desktop_id == desktop_id);
        let row = row.ok_or(Refusal::RunNotFound)?;
        rules::note_progress(row, phase, progress);
        let row = row.clone();
        Ok(self.shown(&row, settled_at(&row.run, now)))
    }

    pub(super) fn note_seen(&mut self, seen: &[(DesktopId, Timestamp)]) {
        for (id, at) in seen {
            for row in self.desktops.iter_mut().filter(|row| row.desktop.id == *id) {
                row.desktop.last_seen_at = row.desktop.last_seen_at.max(Some(*at));
            }
        }
    }

    pub(super) fn sweep(&mut self, now: Timestamp, rows_max: usize) -> Swept {
        let (runs, more_runs) = self.sweep_runs(now, rows_max);
        let (tasks, more_tasks) = self.chats.sweep(now, rows_max);
        let more = more_runs || more_tasks;
        Swept { runs, tasks, more }
    }

    fn sweep_runs(&mut self, now: Timestamp, rows_max: usize) -> (Vec<RunRow>, bool) {
        let mut due: Vec<_> = self
            .runs
            .values()
            .filter(is_open)
            .map(|row| self.shown(row, row.run.clone()))
            .filter_map(|row| Some((rules::due_at(&row).filter(|due| *due <= now)?, row)))
            .collect();
        due.sort_by_key(|(due, row)| (*due, row.command_id));
        let more = due.len() > rows_max;
        let mut moved = Vec::new();
        for (_, shown) in due.into_iter().take(rows_max) {
            if let Some(next) = rules::swept(&shown, now)
                && let Some(row) = self.runs.get_mut(&shown.command_id)
            {
                row.run = next.clone();
                moved.push(RunRow { run: next, ..shown });
            }
        }
        (moved, more)
    }
}

/// What is over changes no more, so nobody needs a copy of it.
fn is_open(row: &&RunRow) -> bool {
    !row.run.status().is_terminal()
}
