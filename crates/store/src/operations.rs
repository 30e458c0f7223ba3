//! The operations, each one transaction.

use std::future::Future;

use callboard_domain::graph_run::Completion;
use callboard_domain::linked_task::Verdict;
use callboard_domain::{
    ChatLinkId, ClaimId, CommandId, ConnectionId, DesktopId, ExecutionId, OwnerId, ProjectId,
    SignInId, TaskId, Timestamp, WorkerId,
};
use callboard_wire::relay::{Progress, SessionInfo};

use crate::{
    Artifact, ArtifactKey, AssignTask, AssignedTask, ChatRow, Connection, Desktop, LinkKey,
    LinkedChat, NewArtifact, NewChatLink, NewConnection, NewDesktop, NewProject, NewSignIn,
    OwnedRun, OwnedTask, Project, QueueRun, QueuedRun, Revoked, RunCount, RunFilter, RunKey,
    RunRow, SessionRow, SignIn, StoreError, Swept, Synced, TaskRow, TokenHash,
};

/// Where the hub keeps everything. An answered write is durable; a read never waits for a writer
/// and never writes.
///
/// Every operation fails with [`StoreError::Unavailable`] when the storage does; refusals are
/// named where they can occur.
pub trait Store: Send + Sync + 'static {
    /// The one owner of this hub, made under `fresh_id` if there is none yet.
    fn ensure_owner(
        &self,
        fresh_id: OwnerId,
        now: Timestamp,
    ) -> impl Future<Output = Result<OwnerId, StoreError>> + Send;

    /// Makes a project. [`StoreError::NameTaken`] when the owner has one of that name.
    fn create_project(
        &self,
        new: NewProject,
    ) -> impl Future<Output = Result<Project, StoreError>> + Send;

    /// The owner's projects, oldest first.
    fn projects(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Vec<Project>, StoreError>> + Send;

    /// Makes a desktop. [`StoreError::NameTaken`] when the owner has one of that name.
    fn create_desktop(
        &self,
        new: NewDesktop,
    ) -> impl Future<Output = Result<Desktop, StoreError>> + Send;

    /// The owner's desktops, oldest first.
    fn desktops(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Vec<Desktop>, StoreError>> + Send;

    /// Frees a desktop identity from its data folder: the next one that calls is bound. False when
    /// the owner has no desktop of that name.
    fn rebind_desktop(
        &self,
        owner_id: OwnerId,
        name: String,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Makes a connection. [`StoreError::NameTaken`] when the owner has one of that name;
    /// [`Refusal::ProjectNotFound`](callboard_domain::Refusal::ProjectNotFound) when a project is
    /// not the owner's.
    fn create_connection(
        &self,
        new: NewConnection,
    ) -> impl Future<Output = Result<Connection, StoreError>> + Send;

    /// The owner's connections that are not revoked, oldest first.
    fn connections(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Vec<Connection>, StoreError>> + Send;

    /// Revokes a connection: its token stops working, its queued commands end cancelled, its
    /// running ones are asked to stop, its links are revoked. Gives what changed, or `None` when
    /// the owner has no such connection.
    fn revoke_connection(
        &self,
        owner_id: OwnerId,
        name: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<Revoked>, StoreError>> + Send;

    /// The connection that a token belongs to.
    fn connection_by_token(
        &self,
        token_hash: TokenHash,
    ) -> impl Future<Output = Result<Option<Connection>, StoreError>> + Send;

    /// The desktop that a token belongs to.
    fn desktop_by_token(
        &self,
        token_hash: TokenHash,
    ) -> impl Future<Output = Result<Option<Desktop>, StoreError>> + Send;

    /// Binds a desktop identity to a data folder, unless it is bound already.
    /// [`Refusal::DesktopInUse`](callboard_domain::Refusal::DesktopInUse) when it is bound to
    /// another one.
    fn bind_worker(
        &self,
        desktop_id: DesktopId,
        worker_id: WorkerId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The sessions shared with a project, by name, or `None` when the connection was not added to
    /// it.
    fn sessions(
        &self,
        connection_id: ConnectionId,
        project_id: ProjectId,
        limit: usize,
    ) -> impl Future<Output = Result<Option<Vec<SessionRow>>, StoreError>> + Send;

    /// The command of a connection, settled at `now`.
    fn run(
        &self,
        key: RunKey,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<RunRow>, StoreError>> + Send;

    /// Queues a run, or finds the one that was queued under the same key.
    /// [`Refusal::KeyReused`](callboard_domain::Refusal::KeyReused),
    /// [`Refusal::SessionNotFound`](callboard_domain::Refusal::SessionNotFound).
    fn queue_run(
        &self,
        request: QueueRun,
    ) -> impl Future<Output = Result<QueuedRun, StoreError>> + Send;

    /// Asks a run to stop; idempotent.
    /// [`Refusal::RunNotFound`](callboard_domain::Refusal::RunNotFound).
    fn request_cancel(
        &self,
        key: RunKey,
        now: Timestamp,
    ) -> impl Future<Output = Result<RunRow, StoreError>> + Send;

    /// Replaces the list of what a desktop shares with a project, and gives what waits for it
    /// there. Writes nothing when the list is the stored one.
    /// [`Refusal::ProjectNotFound`](callboard_domain::Refusal::ProjectNotFound).
    fn sync(
        &self,
        desktop_id: DesktopId,
        project_id: ProjectId,
        sessions: Vec<SessionInfo>,
        now: Timestamp,
    ) -> impl Future<Output = Result<Synced, StoreError>> + Send;

    /// Grants a start. Refusals as in [`callboard_domain::graph_run::decide`], and
    /// [`Refusal::RunNotFound`](callboard_domain::Refusal::RunNotFound) for a command of another
    /// desktop.
    fn start_run(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        execution_id: ExecutionId,
        now: Timestamp,
    ) -> impl Future<Output = Result<RunRow, StoreError>> + Send;

    /// Notes how far a running command is and tells how it stands; writes only what differs.
    /// [`Refusal::RunNotFound`](callboard_domain::Refusal::RunNotFound).
    fn report_progress(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        phase: Option<String>,
        progress: Option<Progress>,
        now: Timestamp,
    ) -> impl Future<Output = Result<RunRow, StoreError>> + Send;

    /// Stores how a run ended; true when the same completion was stored before. Refusals as in
    /// [`callboard_domain::graph_run::decide`], and
    /// [`Refusal::RunNotFound`](callboard_domain::Refusal::RunNotFound).
    fn complete_run(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        completion: Completion,
        now: Timestamp,
    ) -> impl Future<Output = Result<(RunRow, bool), StoreError>> + Send;

    /// Links a conversation to a project, or finds the link that was made under the same key.
    /// [`Refusal::LinkKeyReused`](callboard_domain::Refusal::LinkKeyReused),
    /// [`Refusal::ChatLinkNotFound`](callboard_domain::Refusal::ChatLinkNotFound) when that link
    /// is not live any more, [`Refusal::ProjectNotFound`](callboard_domain::Refusal::ProjectNotFound),
    /// [`Refusal::TooManyLinks`](callboard_domain::Refusal::TooManyLinks).
    fn link_chat(
        &self,
        new: NewChatLink,
    ) -> impl Future<Output = Result<LinkedChat, StoreError>> + Send;

    /// The owner's live links, oldest first. A link is live until it or its connection is revoked,
    /// or the connection loses the project.
    fn chat_links(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Vec<ChatRow>, StoreError>> + Send;

    /// Revokes a link and takes it off its open tasks. Gives the tasks that changed, none for a link
    /// that was revoked before, or `None` when the owner never had such a link.
    fn revoke_chat_link(
        &self,
        owner_id: OwnerId,
        link_id: ChatLinkId,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<Vec<TaskRow>>, StoreError>> + Send;

    /// Assigns a task, or finds the one that was assigned under the same key.
    /// [`Refusal::TaskKeyReused`](callboard_domain::Refusal::TaskKeyReused),
    /// [`Refusal::ChatLinkNotFound`](callboard_domain::Refusal::ChatLinkNotFound) when a candidate
    /// is not a live link of the owner,
    /// [`Refusal::CandidatesApart`](callboard_domain::Refusal::CandidatesApart),
    /// [`Refusal::TooManyTasks`](callboard_domain::Refusal::TooManyTasks).
    fn assign_task(
        &self,
        request: AssignTask,
    ) -> impl Future<Output = Result<AssignedTask, StoreError>> + Send;

    /// The owner's tasks, settled at `now`, latest first, at most `limit`.
    fn tasks(
        &self,
        owner_id: OwnerId,
        limit: usize,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<OwnedTask>, StoreError>> + Send;

    /// One task of the owner, settled at `now`.
    fn task(
        &self,
        owner_id: OwnerId,
        task_id: TaskId,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<OwnedTask>, StoreError>> + Send;

    /// The task that the owner assigned under an idempotency key, settled at `now`.
    fn task_by_key(
        &self,
        owner_id: OwnerId,
        idempotency_key: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<OwnedTask>, StoreError>> + Send;

    /// Takes a task back; one that is over stays as it is.
    /// [`Refusal::TaskNotFound`](callboard_domain::Refusal::TaskNotFound).
    fn cancel_task(
        &self,
        owner_id: OwnerId,
        task_id: TaskId,
        now: Timestamp,
    ) -> impl Future<Output = Result<TaskRow, StoreError>> + Send;

    /// What a linked chat sees, settled at `now` and chosen by [`crate::rules::inbox`]; `None` when
    /// the connection has no such live link.
    fn inbox(
        &self,
        key: LinkKey,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<Vec<TaskRow>>, StoreError>> + Send;

    /// Claims a task under `claim_id`, or finds the link's own claim that is alive; true for the
    /// latter. [`Refusal::ChatLinkNotFound`](callboard_domain::Refusal::ChatLinkNotFound), and the
    /// refusals of a claim in [`callboard_domain::linked_task::decide`].
    fn claim_task(
        &self,
        key: LinkKey,
        task_id: TaskId,
        claim_id: ClaimId,
        lease_ms: u64,
        now: Timestamp,
    ) -> impl Future<Output = Result<(TaskRow, bool), StoreError>> + Send;

    /// Stores how a task went; true when the same result was stored before. Refusals of a submit as
    /// in [`callboard_domain::linked_task::decide`];
    /// [`Refusal::SubmitMissing`](callboard_domain::Refusal::SubmitMissing) for an unknown link, too.
    fn submit_task(
        &self,
        key: LinkKey,
        task_id: TaskId,
        claim_id: ClaimId,
        verdict: Verdict,
        result: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<(TaskRow, bool), StoreError>> + Send;

    /// Stores a file under a claim; true when the same was stored before. Refusals as in
    /// [`callboard_domain::linked_task::decide_upload`];
    /// [`Refusal::SubmitMissing`](callboard_domain::Refusal::SubmitMissing) for an unknown link, too.
    fn upload_artifact(
        &self,
        key: LinkKey,
        task_id: TaskId,
        new: NewArtifact,
        now: Timestamp,
    ) -> impl Future<Output = Result<(Artifact, bool), StoreError>> + Send;

    /// An artifact and its bytes; `None` for whatever is not the reader's.
    fn artifact(
        &self,
        key: ArtifactKey,
    ) -> impl Future<Output = Result<Option<(Artifact, Vec<u8>)>, StoreError>> + Send;

    /// The owner's commands, settled at `now`, last queued first, at most `limit`.
    fn owned_runs(
        &self,
        owner_id: OwnerId,
        filter: RunFilter,
        limit: usize,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<OwnedRun>, StoreError>> + Send;

    /// One command of the owner, whole, settled at `now`.
    fn owned_run(
        &self,
        owner_id: OwnerId,
        command_id: CommandId,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<OwnedRun>, StoreError>> + Send;

    /// How many commands the owner has of each status that occurs, in the order of a run's life.
    fn run_counts(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Vec<RunCount>, StoreError>> + Send;

    /// Asks a run of the owner to stop, whoever started it; idempotent.
    /// [`Refusal::RunNotFound`](callboard_domain::Refusal::RunNotFound).
    fn cancel_owned_run(
        &self,
        owner_id: OwnerId,
        command_id: CommandId,
        now: Timestamp,
    ) -> impl Future<Output = Result<RunRow, StoreError>> + Send;

    /// The hash of the owner's console password; `None` until one is set.
    fn password_hash(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Option<String>, StoreError>> + Send;

    /// Sets or takes away the console password, and ends every sign-in.
    fn set_password_hash(
        &self,
        owner_id: OwnerId,
        hash: Option<String>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Keeps a sign-in, and forgets those of the owner that ended by then.
    fn add_sign_in(&self, new: NewSignIn) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The sign-in of a cookie, unless it is over at `now`.
    fn sign_in_by_token(
        &self,
        token_hash: TokenHash,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<SignIn>, StoreError>> + Send;

    /// The owner's sign-ins that are not over at `now`, oldest first.
    fn sign_ins(
        &self,
        owner_id: OwnerId,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<SignIn>, StoreError>> + Send;

    /// Ends a sign-in. False when the owner has none of that id.
    fn end_sign_in(
        &self,
        owner_id: OwnerId,
        id: SignInId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Stores when desktops were last seen. Never moves a desktop's time backwards.
    fn note_seen(
        &self,
        seen: Vec<(DesktopId, Timestamp)>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Stores what time caused in at most `rows_max` commands and as many tasks that are due,
    /// longest due first.
    fn sweep(
        &self,
        now: Timestamp,
        rows_max: usize,
    ) -> impl Future<Output = Result<Swept, StoreError>> + Send;

    /// Whether the store can answer now.
    fn ready(&self) -> impl Future<Output = Result<(), StoreError>> + Send;
}
