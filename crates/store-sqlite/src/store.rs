//! [`SqliteStore`]: which operation runs where.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use callboard_domain::graph_run::{Completion, Event};
use callboard_domain::{
    CommandId, ConnectionId, DesktopId, ExecutionId, OwnerId, ProjectId, Timestamp, WorkerId,
};
use callboard_store::{
    Connection, Desktop, NewConnection, NewDesktop, NewProject, Project, QueueRun, QueuedRun,
    RunKey, RunRow, SessionRow, Store, StoreError, Synced, TokenHash,
};
use callboard_wire::relay::{Progress, SessionInfo};
use rusqlite::{Connection as Sqlite, Transaction, TransactionBehavior};

use crate::error::Failure;
use crate::files::{self, Lock};
use crate::operations::runs::{self, Caller};
use crate::operations::{sharing, snapshot, sweeping, workspace};
use crate::readers::Readers;
use crate::rows::any;
use crate::writer::Writer;
use crate::{OpenError, open, sql};

/// A store in one SQLite file, or in memory. Clones are cheap and share it; the last one to be
/// dropped lets the queued writes finish and closes the file.
#[derive(Debug, Clone)]
pub struct SqliteStore(Arc<Shell>);

#[derive(Debug)]
enum Shell {
    Inline(Mutex<Sqlite>),
    /// Dropped in this order: the writer closes the file last, which folds its log into it.
    File {
        readers: Readers,
        writer: Writer,
        _lock: Option<Lock>,
    },
}

impl SqliteStore {
    /// Opens the database at `path` for this process alone, making it and its folder if there are
    /// none, and brings an older one up to date.
    ///
    /// # Errors
    /// Every [`OpenError`] but [`OpenError::Older`]; a database that cannot be used is left as it
    /// was.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::start(path, Some(Lock::take(path)?))
    }

    /// Opens the database at `path` beside a hub that may be running: for a command that does one
    /// thing and ends. Where no hub runs this is [`Self::open`].
    ///
    /// # Errors
    /// As [`Self::open`]; instead of [`OpenError::InUse`], [`OpenError::Older`] when the running
    /// hub is too old to share its database.
    pub fn open_beside(path: &Path) -> Result<Self, OpenError> {
        let lock = match Lock::take(path) {
            Err(OpenError::InUse { .. }) => None,
            taken => Some(taken?),
        };
        Self::start(path, lock)
    }

    /// A store in memory on one connection, without a thread: every future is ready at its first
    /// poll.
    ///
    /// # Errors
    /// [`OpenError::Sqlite`] when SQLite has no memory.
    pub fn inline_memory() -> Result<Self, OpenError> {
        let connection = Mutex::new(open::memory()?);
        Ok(Self(Arc::new(Shell::Inline(connection))))
    }

    fn start(path: &Path, lock: Option<Lock>) -> Result<Self, OpenError> {
        if lock.is_some() {
            files::private_file(path)?;
        }
        let connection = open::writer(path, lock.is_some())?;
        let readers = Readers::open(path)?;
        files::sync_folder(path)?;
        let writer = Writer::start(connection).map_err(|source| OpenError::files(path, source))?;
        Ok(Self(Arc::new(Shell::File {
            readers,
            writer,
            _lock: lock,
        })))
    }

    /// Transactions that this store has committed since it was opened. Many writes share one; an
    /// inline store has no such figure and gives zero.
    pub fn commit_count(&self) -> u64 {
        match &*self.0 {
            Shell::Inline(_) => 0,
            Shell::File { writer, .. } => writer.commits(),
        }
    }

    fn read<T>(
        &self,
        operation: impl FnOnce(&Sqlite) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let answer = match &*self.0 {
            Shell::Inline(connection) => {
                operation(&connection.lock().unwrap_or_else(PoisonError::into_inner))
            }
            Shell::File { readers, .. } => readers.with(operation),
        };
        answer.map_err(|failure| failure.0)
    }

    async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Sqlite) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &*self.0 {
            Shell::Inline(connection) => {
                let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                write_inline(&connection, operation).map_err(|failure| failure.0)
            }
            Shell::File { writer, .. } => writer.write(operation).await,
        }
    }

    async fn apply(
        &self,
        caller: Caller,
        command_id: CommandId,
        event: Event,
        now: Timestamp,
    ) -> Result<(RunRow, bool), StoreError> {
        self.write(move |sqlite| runs::apply(sqlite, caller, command_id, &event, now))
            .await
    }
}

fn write_inline<T>(
    connection: &Sqlite,
    operation: impl FnOnce(&Sqlite) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let answer = operation(&transaction)?;
    transaction.commit()?;
    Ok(answer)
}

impl Store for SqliteStore {
    async fn ensure_owner(&self, fresh_id: OwnerId, now: Timestamp) -> Result<OwnerId, StoreError> {
        if let Some(owner_id) = self.read(workspace::owner)? {
            return Ok(owner_id);
        }
        self.write(move |sqlite| workspace::ensure_owner(sqlite, fresh_id, now))
            .await
    }

    async fn create_project(&self, new: NewProject) -> Result<Project, StoreError> {
        self.write(|sqlite| workspace::create_project(sqlite, new))
            .await
    }

    async fn projects(&self, owner_id: OwnerId) -> Result<Vec<Project>, StoreError> {
        self.read(|sqlite| workspace::projects(sqlite, owner_id))
    }

    async fn create_desktop(&self, new: NewDesktop) -> Result<Desktop, StoreError> {
        self.write(|sqlite| workspace::create_desktop(sqlite, new))
            .await
    }

    async fn desktops(&self, owner_id: OwnerId) -> Result<Vec<Desktop>, StoreError> {
        self.read(|sqlite| workspace::desktops(sqlite, owner_id))
    }

    async fn rebind_desktop(&self, owner_id: OwnerId, name: String) -> Result<bool, StoreError> {
        self.write(move |sqlite| workspace::rebind_desktop(sqlite, owner_id, &name))
            .await
    }

    async fn create_connection(&self, new: NewConnection) -> Result<Connection, StoreError> {
        self.write(|sqlite| workspace::create_connection(sqlite, new))
            .await
    }

    async fn connections(&self, owner_id: OwnerId) -> Result<Vec<Connection>, StoreError> {
        self.read(|sqlite| workspace::connections(sqlite, owner_id))
    }

    async fn revoke_connection(
        &self,
        owner_id: OwnerId,
        name: String,
        now: Timestamp,
    ) -> Result<Option<Vec<RunRow>>, StoreError> {
        self.write(move |sqlite| runs::revoke_connection(sqlite, owner_id, &name, now))
            .await
    }

    async fn connection_by_token(
        &self,
        token_hash: TokenHash,
    ) -> Result<Option<Connection>, StoreError> {
        self.read(|sqlite| workspace::connection_by_token(sqlite, token_hash))
    }

    async fn desktop_by_token(&self, token_hash: TokenHash) -> Result<Option<Desktop>, StoreError> {
        self.read(|sqlite| workspace::desktop_by_token(sqlite, token_hash))
    }

    async fn bind_worker(
        &self,
        desktop_id: DesktopId,
        worker_id: WorkerId,
    ) -> Result<(), StoreError> {
        if !self.read(|sqlite| workspace::needs_worker(sqlite, desktop_id, worker_id))? {
            return Ok(());
        }
        self.write(move |sqlite| workspace::bind_worker(sqlite, desktop_id, worker_id))
            .await
    }

    async fn sessions(
        &self,
        connection_id: ConnectionId,
        project_id: ProjectId,
        limit: usize,
    ) -> Result<Option<Vec<SessionRow>>, StoreError> {
        self.read(|sqlite| {
            snapshot(sqlite, |sqlite| {
                sharing::sessions(sqlite, connection_id, project_id, limit)
            })
        })
    }

    async fn run(&self, key: RunKey, now: Timestamp) -> Result<Option<RunRow>, StoreError> {
        self.read(|sqlite| runs::run(sqlite, key, now))
    }

    async fn queue_run(&self, request: QueueRun) -> Result<QueuedRun, StoreError> {
        self.write(|sqlite| runs::queue_run(sqlite, request)).await
    }

    async fn request_cancel(&self, key: RunKey, now: Timestamp) -> Result<RunRow, StoreError> {
        let caller = Caller::Connection(key.connection_id);
        let applied = self.apply(caller, key.command_id, Event::RequestCancel, now);
        Ok(applied.await?.0)
    }

    async fn sync(
        &self,
        desktop_id: DesktopId,
        project_id: ProjectId,
        sessions: Vec<SessionInfo>,
        now: Timestamp,
    ) -> Result<Synced, StoreError> {
        let unchanged = self.read(|sqlite| {
            snapshot(sqlite, |sqlite| {
                sharing::unchanged(sqlite, desktop_id, project_id, &sessions, now)
            })
        })?;
        if let Some(synced) = unchanged {
            return Ok(synced);
        }
        self.write(move |sqlite| sharing::sync(sqlite, desktop_id, project_id, &sessions, now))
            .await
    }

    async fn start_run(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        execution_id: ExecutionId,
        now: Timestamp,
    ) -> Result<RunRow, StoreError> {
        let caller = Caller::Desktop(desktop_id);
        let applied = self.apply(caller, command_id, Event::Start { execution_id }, now);
        Ok(applied.await?.0)
    }

    async fn report_progress(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        phase: Option<String>,
        progress: Option<Progress>,
        now: Timestamp,
    ) -> Result<RunRow, StoreError> {
        let (row, differs) = self.read(|sqlite| {
            runs::noted(sqlite, desktop_id, command_id, phase.clone(), progress, now)
        })?;
        if !differs {
            return Ok(row);
        }
        self.write(move |sqlite| {
            runs::report_progress(sqlite, desktop_id, command_id, phase, progress, now)
        })
        .await
    }

    async fn complete_run(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        completion: Completion,
        now: Timestamp,
    ) -> Result<(RunRow, bool), StoreError> {
        let caller = Caller::Desktop(desktop_id);
        self.apply(caller, command_id, Event::Complete(completion), now)
            .await
    }

    async fn note_seen(&self, seen: Vec<(DesktopId, Timestamp)>) -> Result<(), StoreError> {
        if seen.is_empty() {
            return Ok(());
        }
        self.write(move |sqlite| workspace::note_seen(sqlite, &seen))
            .await
    }

    async fn sweep(
        &self,
        now: Timestamp,
        rows_max: usize,
    ) -> Result<(Vec<RunRow>, bool), StoreError> {
        if !self.read(|sqlite| sweeping::is_due(sqlite, now))? {
            return Ok((Vec::new(), false));
        }
        self.write(move |sqlite| sweeping::sweep(sqlite, now, rows_max))
            .await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.read(|sqlite| any(sqlite, sql::ALIVE, []))?;
        match &*self.0 {
            Shell::Inline(_) => Ok(()),
            Shell::File { writer, .. } => writer.ready(),
        }
    }
}
