//! The store in memory: for tests and simulation, and the model that the others are compared with.

mod tables;

use std::future::{Future, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_domain::graph_run::{Completion, Event};
use callboard_domain::{
    CommandId, ConnectionId, DesktopId, ExecutionId, OwnerId, ProjectId, Timestamp, WorkerId,
};
use callboard_wire::relay::{Progress, SessionInfo};

use crate::{
    Connection, Desktop, NewConnection, NewDesktop, NewProject, Project, QueueRun, QueuedRun,
    RunKey, RunRow, SessionRow, Store, StoreError, Synced, TokenHash,
};
use tables::{Caller, Tables};

/// A store that forgets everything when it is dropped. Clones share their contents.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Tables>>);

impl MemoryStore {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn ensure_owner(
        &self,
        fresh_id: OwnerId,
        _now: Timestamp,
    ) -> impl Future<Output = Result<OwnerId, StoreError>> + Send {
        ready(Ok(*self.tables().owner.get_or_insert(fresh_id)))
    }

    fn create_project(
        &self,
        new: NewProject,
    ) -> impl Future<Output = Result<Project, StoreError>> + Send {
        ready(self.tables().create_project(new))
    }

    fn projects(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Vec<Project>, StoreError>> + Send {
        ready(Ok(self.tables().projects(owner_id)))
    }

    fn create_desktop(
        &self,
        new: NewDesktop,
    ) -> impl Future<Output = Result<Desktop, StoreError>> + Send {
        ready(self.tables().create_desktop(new))
    }

    fn desktops(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Vec<Desktop>, StoreError>> + Send {
        ready(Ok(self.tables().desktops(owner_id)))
    }

    fn rebind_desktop(
        &self,
        owner_id: OwnerId,
        name: String,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(Ok(self.tables().rebind_desktop(owner_id, &name)))
    }

    fn create_connection(
        &self,
        new: NewConnection,
    ) -> impl Future<Output = Result<Connection, StoreError>> + Send {
        ready(self.tables().create_connection(new))
    }

    fn connections(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Vec<Connection>, StoreError>> + Send {
        ready(Ok(self.tables().connections(owner_id)))
    }

    fn revoke_connection(
        &self,
        owner_id: OwnerId,
        name: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<Vec<RunRow>>, StoreError>> + Send {
        ready(self.tables().revoke_connection(owner_id, &name, now))
    }

    fn connection_by_token(
        &self,
        token_hash: TokenHash,
    ) -> impl Future<Output = Result<Option<Connection>, StoreError>> + Send {
        ready(Ok(self.tables().connection_by_token(token_hash)))
    }

    fn desktop_by_token(
        &self,
        token_hash: TokenHash,
    ) -> impl Future<Output = Result<Option<Desktop>, StoreError>> + Send {
        ready(Ok(self.tables().desktop_by_token(token_hash)))
    }

    fn bind_worker(
        &self,
        desktop_id: DesktopId,
        worker_id: WorkerId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        ready(self.tables().bind_worker(desktop_id, worker_id))
    }

    fn sessions(
        &self,
        connection_id: ConnectionId,
        project_id: ProjectId,
        limit: usize,
    ) -> impl Future<Output = Result<Option<Vec<SessionRow>>, StoreError>> + Send {
        ready(Ok(self.tables().sessions(connection_id, project_id, limit)))
    }

    fn run(
        &self,
        key: RunKey,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<RunRow>, StoreError>> + Send {
        ready(Ok(self.tables().run(
            Caller::Connection(key.connection_id),
            key.command_id,
            now,
        )))
    }

    fn queue_run(
        &self,
        request: QueueRun,
    ) -> impl Future<Output = Result<QueuedRun, StoreError>> + Send {
        ready(self.tables().queue_run(request))
    }

    fn request_cancel(
        &self,
        key: RunKey,
        now: Timestamp,
    ) -> impl Future<Output = Result<RunRow, StoreError>> + Send {
        let caller = Caller::Connection(key.connection_id);
        let decided = self
            .tables()
            .decide(caller, key.command_id, &Event::RequestCancel, now);
        ready(decided.map(|(row, _)| row))
    }

    fn sync(
        &self,
        desktop_id: DesktopId,
        project_id: ProjectId,
        sessions: Vec<SessionInfo>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Synced, StoreError>> + Send {
        ready(self.tables().sync(desktop_id, project_id, sessions, now))
    }

    fn start_run(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        execution_id: ExecutionId,
        now: Timestamp,
    ) -> impl Future<Output = Result<RunRow, StoreError>> + Send {
        let event = Event::Start { execution_id };
        let decided = self
            .tables()
            .decide(Caller::Desktop(desktop_id), command_id, &event, now);
        ready(decided.map(|(row, _)| row))
    }

    fn report_progress(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        phase: Option<String>,
        progress: Option<Progress>,
        now: Timestamp,
    ) -> impl Future<Output = Result<RunRow, StoreError>> + Send {
        ready(
            self.tables()
                .report_progress(desktop_id, command_id, phase, progress, now),
        )
    }

    fn complete_run(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        completion: Completion,
        now: Timestamp,
    ) -> impl Future<Output = Result<(RunRow, bool), StoreError>> + Send {
        let event = Event::Complete(completion);
        ready(
            self.tables()
                .decide(Caller::Desktop(desktop_id), command_id, &event, now),
        )
    }

    fn note_seen(
        &self,
        seen: Vec<(DesktopId, Timestamp)>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.tables().note_seen(&seen);
        ready(Ok(()))
    }

    fn sweep(
        &self,
        now: Timestamp,
        rows_max: usize,
    ) -> impl Future<Output = Result<(Vec<RunRow>, bool), StoreError>> + Send {
        ready(Ok(self.tables().sweep(now, rows_max)))
    }

    fn ready(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        ready(Ok(()))
    }
}
