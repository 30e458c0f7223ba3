//! What a case needs before it begins: an owner's workspace, and short ways to do the usual things.

use std::fmt::Debug;

use callboard_ambient::Entropy;
use callboard_domain::graph_run::Completion;
use callboard_domain::{
    CommandId, ConnectionId, DesktopId, Digest, ExecutionId, FinalStatus, GraphSessionId, OwnerId,
    ProjectId, Refusal, Report, Scopes, Timestamp, WorkerId,
};
use callboard_store::{
    Connection, Desktop, NewConnection, NewDesktop, NewProject, Project, QueueRun, QueuedRun,
    RunKey, RunRow, Store, StoreError, Synced, TokenHash,
};
use callboard_wire::relay::SessionInfo;

/// When every world begins.
pub const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// The session that a [`Workspace`] shares.
pub const SESSION: GraphSessionId = GraphSessionId::from_bytes([0x5e; 16]);

/// A store with a source of ids.
#[derive(Debug)]
pub struct World<S> {
    /// The store under test.
    pub store: S,
    /// Ids, the same in every run.
    pub entropy: Entropy,
}

/// One owner with a project, a desktop that shares [`SESSION`] with it, and a connection.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each is the thing of its name")]
pub struct Workspace {
    pub owner_id: OwnerId,
    pub project: Project,
    pub desktop: Desktop,
    pub desktop_token: TokenHash,
    pub connection: Connection,
    pub connection_token: TokenHash,
}

/// [`START`] and so many milliseconds.
pub const fn at(after_ms: u64) -> Timestamp {
    START.plus_ms(after_ms)
}

/// A session called `name` with the id made of `id` sixteen times.
pub fn session(id: u8, name: &str) -> SessionInfo {
    SessionInfo {
        graph_session_id: GraphSessionId::from_bytes([id; 16]),
        name: name.to_owned(),
        description: format!("Does {name}."),
        slug: name.to_lowercase(),
        version: 1,
        status: "ready".to_owned(),
    }
}

/// A completion of `execution_id` with `result` as JSON text.
pub fn completed(execution_id: ExecutionId, result: &str) -> Completion {
    Completion {
        execution_id: Some(execution_id),
        status: FinalStatus::Completed,
        report: Report {
            result: Some(result.to_owned()),
            total_tokens: Some(7),
            reported_cost: Some(0.25),
            ..Report::default()
        },
    }
}

/// The refusal that `result` is.
///
/// # Panics
/// When it is anything else.
pub fn refusal<T: Debug>(result: Result<T, StoreError>) -> Refusal {
    match result {
        Err(StoreError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, not {other:?}"),
    }
}

/// Everything that a caller can see of an answer.
pub fn seen<T: Debug>(result: &Result<T, StoreError>) -> String {
    format!("{result:?}")
}

#[allow(
    clippy::missing_panics_doc,
    reason = "each panics when the store fails"
)]
impl<S: Store> World<S> {
    /// A world around `store`.
    pub fn new(store: S) -> Self {
        let entropy = Entropy::seeded(1, "world");
        Self { store, entropy }
    }

    /// 16 bytes for an id, of no particular order.
    pub fn id(&self) -> [u8; 16] {
        let drawn = self.entropy.below(1 << 20);
        self.entropy.uuid_v7(at(drawn))
    }

    /// A token's hash.
    pub fn token(&self) -> TokenHash {
        Digest::of(&[self.entropy.secret("").as_bytes()])
    }

    /// A new owner's workspace, its session shared.
    pub async fn workspace(&self) -> Workspace {
        let owner_id = OwnerId::from_bytes(self.id());
        let project = self.project(owner_id, "Home").await;
        let (desktop, desktop_token) = self.desktop(owner_id, "den").await;
        let (connection, connection_token) =
            self.connection(owner_id, "Claude", &[project.id]).await;
        let workspace = Workspace {
            owner_id,
            project,
            desktop,
            desktop_token,
            connection,
            connection_token,
        };
        self.share(&workspace, vec![session(0x5e, "Report")]).await;
        workspace
    }

    /// A project called `name`.
    pub async fn project(&self, owner_id: OwnerId, name: &str) -> Project {
        let project = Project {
            id: ProjectId::from_bytes(self.id()),
            owner_id,
            name: name.to_owned(),
        };
        let new = NewProject {
            project,
            now: START,
        };
        self.store.create_project(new).await.unwrap()
    }

    /// A desktop called `name`, and the hash of its token.
    pub async fn desktop(&self, owner_id: OwnerId, name: &str) -> (Desktop, TokenHash) {
        let new = self.new_desktop(owner_id, name);
        let token = new.token_hash;
        (self.store.create_desktop(new).await.unwrap(), token)
    }

    /// A desktop to be made.
    pub fn new_desktop(&self, owner_id: OwnerId, name: &str) -> NewDesktop {
        NewDesktop {
            id: DesktopId::from_bytes(self.id()),
            owner_id,
            name: name.to_owned(),
            token_hash: self.token(),
            now: START,
        }
    }

    /// A connection called `name`, and the hash of its token.
    pub async fn connection(
        &self,
        owner_id: OwnerId,
        name: &str,
        projects: &[ProjectId],
    ) -> (Connection, TokenHash) {
        let new = self.new_connection(owner_id, name, projects);
        let token = new.token_hash;
        (self.store.create_connection(new).await.unwrap(), token)
    }

    /// A connection to be made.
    pub fn new_connection(
        &self,
        owner_id: OwnerId,
        name: &str,
        projects: &[ProjectId],
    ) -> NewConnection {
        NewConnection {
            id: ConnectionId::from_bytes(self.id()),
            owner_id,
            name: name.to_owned(),
            token_hash: self.token(),
            scopes: Scopes::ALL,
            projects: projects.to_vec(),
            now: START,
        }
    }

    /// Syncs `sessions` from the workspace's desktop to its project.
    pub async fn share(&self, workspace: &Workspace, sessions: Vec<SessionInfo>) -> Synced {
        self.sync(workspace, sessions, START).await
    }

    /// The same at `now`.
    pub async fn sync(
        &self,
        workspace: &Workspace,
        sessions: Vec<SessionInfo>,
        now: Timestamp,
    ) -> Synced {
        let (desktop_id, project_id) = (workspace.desktop.id, workspace.project.id);
        let synced = self.store.sync(desktop_id, project_id, sessions, now);
        synced.await.unwrap()
    }

    /// A request for [`SESSION`] under `key`.
    pub fn request(&self, workspace: &Workspace, key: &str) -> QueueRun {
        QueueRun {
            command_id: CommandId::from_bytes(self.id()),
            connection_id: workspace.connection.id,
            graph_session_id: SESSION,
            idempotency_key: key.to_owned(),
            arguments: format!(r#"{{"topic":"{key}"}}"#),
            request: Digest::of(&[key.as_bytes()]),
            now: START,
        }
    }

    /// Queues [`SESSION`] under `key`.
    pub async fn queue(&self, workspace: &Workspace, key: &str) -> RunRow {
        let request = self.request(workspace, key);
        let QueuedRun { row, replayed } = self.store.queue_run(request).await.unwrap();
        assert!(!replayed, "{key} is new");
        row
    }

    /// Queues and starts; gives the execution too.
    pub async fn start(&self, workspace: &Workspace, key: &str) -> (RunRow, ExecutionId) {
        let row = self.queue(workspace, key).await;
        let execution_id = ExecutionId::from_bytes(self.id());
        let started = self
            .store
            .start_run(row.desktop_id, row.command_id, execution_id, at(1_000));
        (started.await.unwrap(), execution_id)
    }

    /// The command as its connection reads it at `now`.
    pub async fn read(&self, row: &RunRow, now: Timestamp) -> Option<RunRow> {
        self.store.run(key(row), now).await.unwrap()
    }

    /// The command as its desktop sees it at `now`, whoever may still read it.
    pub async fn told(&self, row: &RunRow, now: Timestamp) -> RunRow {
        let (desktop_id, command_id) = (row.desktop_id, row.command_id);
        let told = self
            .store
            .report_progress(desktop_id, command_id, None, None, now);
        told.await.unwrap()
    }

    /// A data folder's id.
    pub fn worker(&self) -> WorkerId {
        WorkerId::from_bytes(self.id())
    }
}

/// How the connection of `row` finds it.
pub const fn key(row: &RunRow) -> RunKey {
    RunKey {
        connection_id: row.connection_id,
        command_id: row.command_id,
    }
}
