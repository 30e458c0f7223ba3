//! Which operation of [`SqliteStore`] runs where.

use callboard_domain::graph_run::{self, Completion};
use callboard_domain::linked_task::{self, Submission, Verdict};
use callboard_domain::{
    ChatLinkId, ClaimId, CommandId, ConnectionId, DesktopId, Digest, ExecutionId, OwnerId,
    ProjectId, SignInId, TaskId, Timestamp, WorkerId,
};
use callboard_store::{
    Artifact, ArtifactKey, AssignTask, AssignedTask, ChatRow, Connection, Desktop, LinkKey,
    LinkedChat, NewArtifact, NewChatLink, NewConnection, NewDesktop, NewProject, NewSignIn,
    OwnedRun, OwnedTask, Project, QueueRun, QueuedRun, Revoked, RunCount, RunFilter, RunKey,
    RunRow, SessionRow, SignIn, Store, StoreError, Swept, Synced, TaskRow, TokenHash, rules,
};
use callboard_wire::relay::{Progress, SessionInfo};

use crate::operations::{artifacts, chats, console, runs, sharing, sweeping, tasks, workspace};
use crate::rows::any;
use crate::{SqliteStore, sql};

impl SqliteStore {
    async fn apply_to_run(
        &self,
        caller: runs::Caller,
        command_id: CommandId,
        event: graph_run::Event,
        now: Timestamp,
    ) -> Result<(RunRow, bool), StoreError> {
        self.0
            .write(move |sqlite| runs::apply(sqlite, caller, command_id, &event, now))
            .await
    }

    /// Asks a reader first: a chat that repeats itself, or tries in vain, writes nothing.
    async fn apply_to_task(
        &self,
        caller: tasks::Caller,
        task_id: TaskId,
        event: linked_task::Event,
        now: Timestamp,
    ) -> Result<(TaskRow, bool), StoreError> {
        let answered = self
            .0
            .read_all(|sqlite| tasks::answered(sqlite, caller, task_id, &event, now))?;
        if let Some(answer) = answered {
            return Ok(answer);
        }
        self.0
            .write(move |sqlite| tasks::apply(sqlite, caller, task_id, &event, now))
            .await
    }
}

impl Store for SqliteStore {
    async fn ensure_owner(&self, fresh_id: OwnerId, now: Timestamp) -> Result<OwnerId, StoreError> {
        if let Some(owner_id) = self.0.read(workspace::owner)? {
            return Ok(owner_id);
        }
        self.0
            .write(move |sqlite| workspace::ensure_owner(sqlite, fresh_id, now))
            .await
    }

    async fn create_project(&self, new: NewProject) -> Result<Project, StoreError> {
        self.0
            .write(|sqlite| workspace::create_project(sqlite, new))
            .await
    }

    async fn projects(&self, owner_id: OwnerId) -> Result<Vec<Project>, StoreError> {
        self.0.read(|sqlite| workspace::projects(sqlite, owner_id))
    }

    async fn create_desktop(&self, new: NewDesktop) -> Result<Desktop, StoreError> {
        self.0
            .write(|sqlite| workspace::create_desktop(sqlite, new))
            .await
    }

    async fn desktops(&self, owner_id: OwnerId) -> Result<Vec<Desktop>, StoreError> {
        self.0.read(|sqlite| workspace::desktops(sqlite, owner_id))
    }

    async fn rebind_desktop(&self, owner_id: OwnerId, name: String) -> Result<bool, StoreError> {
        self.0
            .write(move |sqlite| workspace::rebind_desktop(sqlite, owner_id, &name))
            .await
    }

    async fn create_connection(&self, new: NewConnection) -> Result<Connection, StoreError> {
        self.0
            .write(|sqlite| workspace::create_connection(sqlite, new))
            .await
    }

    async fn connections(&self, owner_id: OwnerId) -> Result<Vec<Connection>, StoreError> {
        self.0
            .read(|sqlite| workspace::connections(sqlite, owner_id))
    }

    async fn revoke_connection(
        &self,
        owner_id: OwnerId,
        name: String,
        now: Timestamp,
    ) -> Result<Option<Revoked>, StoreError> {
        self.0
            .write(move |sqlite| runs::revoke_connection(sqlite, owner_id, &name, now))
            .await
    }

    async fn connection_by_token(
        &self,
        token_hash: TokenHash,
    ) -> Result<Option<Connection>, StoreError> {
        self.0
            .read(|sqlite| workspace::connection_by_token(sqlite, token_hash))
    }

    async fn desktop_by_token(&self, token_hash: TokenHash) -> Result<Option<Desktop>, StoreError> {
        self.0
            .read(|sqlite| workspace::desktop_by_token(sqlite, token_hash))
    }

    async fn bind_worker(
        &self,
        desktop_id: DesktopId,
        worker_id: WorkerId,
    ) -> Result<(), StoreError> {
        if !self
            .0
            .read(|sqlite| workspace::needs_worker(sqlite, desktop_id, worker_id))?
        {
            return Ok(());
        }
        self.0
            .write(move |sqlite| workspace::bind_worker(sqlite, desktop_id, worker_id))
            .await
    }

    async fn sessions(
        &self,
        connection_id: ConnectionId,
        project_id: ProjectId,
        limit: usize,
    ) -> Result<Option<Vec<SessionRow>>, StoreError> {
        self.0
            .read_all(|sqlite| sharing::sessions(sqlite, connection_id, project_id, limit))
    }

    async fn run(&self, key: RunKey, now: Timestamp) -> Result<Option<RunRow>, StoreError> {
        self.0.read(|sqlite| runs::run(sqlite, key, now))
    }

    async fn queue_run(&self, request: QueueRun) -> Result<QueuedRun, StoreError> {
        self.0
            .write(|sqlite| runs::queue_run(sqlite, request))
            .await
    }

    async fn request_cancel(&self, key: RunKey, now: Timestamp) -> Result<RunRow, StoreError> {
        let caller = runs::Caller::Connection(key.connection_id);
        let applied =
            self.apply_to_run(caller, key.command_id, graph_run::Event::RequestCancel, now);
        Ok(applied.await?.0)
    }

    async fn sync(
        &self,
        desktop_id: DesktopId,
        project_id: ProjectId,
        sessions: Vec<SessionInfo>,
        now: Timestamp,
    ) -> Result<Synced, StoreError> {
        let unchanged = self.0.read_all(|sqlite| {
            sharing::unchanged(sqlite, desktop_id, project_id, &sessions, now)
        })?;
        if let Some(synced) = unchanged {
            return Ok(synced);
        }
        self.0
            .write(move |sqlite| sharing::sync(sqlite, desktop_id, project_id, &sessions, now))
            .await
    }

    async fn start_run(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        execution_id: ExecutionId,
        now: Timestamp,
    ) -> Result<RunRow, StoreError> {
        let caller = runs::Caller::Desktop(desktop_id);
        let applied = self.apply_to_run(
            caller,
            command_id,
            graph_run::Event::Start { execution_id },
            now,
        );
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
        let (row, differs) = self.0.read(|sqlite| {
            runs::noted(sqlite, desktop_id, command_id, phase.clone(), progress, now)
        })?;
        if !differs {
            return Ok(row);
        }
        self.0
            .write(move |sqlite| {
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
        let caller = runs::Caller::Desktop(desktop_id);
        self.apply_to_run(
            caller,
            command_id,
            graph_run::Event::Complete(completion),
            now,
        )
        .await
    }

    async fn link_chat(&self, new: NewChatLink) -> Result<LinkedChat, StoreError> {
        if let Some(linked) = self.0.read_all(|sqlite| chats::linked(sqlite, &new))? {
            return Ok(linked);
        }
        self.0.write(|sqlite| chats::link_chat(sqlite, new)).await
    }

    async fn chat_links(&self, owner_id: OwnerId) -> Result<Vec<ChatRow>, StoreError> {
        self.0.read(|sqlite| chats::chat_links(sqlite, owner_id))
    }

    async fn revoke_chat_link(
        &self,
        owner_id: OwnerId,
        link_id: ChatLinkId,
        now: Timestamp,
    ) -> Result<Option<Vec<TaskRow>>, StoreError> {
        let revoked = self
            .0
            .read(|sqlite| chats::is_revoked(sqlite, owner_id, link_id))?;
        if revoked != Some(false) {
            return Ok(revoked.map(|_| Vec::new()));
        }
        self.0
            .write(move |sqlite| chats::revoke_chat_link(sqlite, owner_id, link_id, now))
            .await
    }

    async fn assign_task(&self, request: AssignTask) -> Result<AssignedTask, StoreError> {
        if let Some(assigned) = self
            .0
            .read_all(|sqlite| tasks::assigned(sqlite, &request))?
        {
            return Ok(assigned);
        }
        self.0
            .write(|sqlite| tasks::assign_task(sqlite, request))
            .await
    }

    async fn tasks(
        &self,
        owner_id: OwnerId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<OwnedTask>, StoreError> {
        self.0
            .read_all(|sqlite| tasks::tasks(sqlite, owner_id, limit, now))
    }

    async fn task(
        &self,
        owner_id: OwnerId,
        task_id: TaskId,
        now: Timestamp,
    ) -> Result<Option<OwnedTask>, StoreError> {
        self.0
            .read_all(|sqlite| tasks::task(sqlite, owner_id, task_id, now))
    }

    async fn task_by_key(
        &self,
        owner_id: OwnerId,
        idempotency_key: String,
        now: Timestamp,
    ) -> Result<Option<OwnedTask>, StoreError> {
        self.0
            .read_all(|sqlite| tasks::task_by_key(sqlite, owner_id, &idempotency_key, now))
    }

    async fn cancel_task(
        &self,
        owner_id: OwnerId,
        task_id: TaskId,
        now: Timestamp,
    ) -> Result<TaskRow, StoreError> {
        let caller = tasks::Caller::Owner(owner_id);
        let applied = self.apply_to_task(caller, task_id, linked_task::Event::Cancel, now);
        Ok(applied.await?.0)
    }

    async fn inbox(
        &self,
        key: LinkKey,
        now: Timestamp,
    ) -> Result<Option<Vec<TaskRow>>, StoreError> {
        self.0.read_all(|sqlite| tasks::inbox(sqlite, key, now))
    }

    async fn claim_task(
        &self,
        key: LinkKey,
        task_id: TaskId,
        claim_id: ClaimId,
        lease_ms: u64,
        now: Timestamp,
    ) -> Result<(TaskRow, bool), StoreError> {
        let event = linked_task::Event::Claim {
            link_id: key.link_id,
            claim_id,
            lease_ms,
        };
        let caller = tasks::Caller::Link(key);
        self.apply_to_task(caller, task_id, event, now).await
    }

    async fn submit_task(
        &self,
        key: LinkKey,
        task_id: TaskId,
        claim_id: ClaimId,
        verdict: Verdict,
        result: String,
        now: Timestamp,
    ) -> Result<(TaskRow, bool), StoreError> {
        let event = linked_task::Event::Submit(Submission {
            link_id: key.link_id,
            claim_id,
            verdict,
            result,
        });
        let caller = tasks::Caller::Link(key);
        self.apply_to_task(caller, task_id, event, now).await
    }

    async fn upload_artifact(
        &self,
        key: LinkKey,
        task_id: TaskId,
        new: NewArtifact,
        now: Timestamp,
    ) -> Result<(Artifact, bool), StoreError> {
        let content = Digest::plain(&new.content);
        let artifact = rules::stored_artifact(key.link_id, task_id, &new, content, now);
        self.0.upload(key, artifact, new.content, now).await
    }

    async fn artifact(&self, key: ArtifactKey) -> Result<Option<(Artifact, Vec<u8>)>, StoreError> {
        match self.0.read(|sqlite| artifacts::artifact(sqlite, &key))? {
            Some(artifact) => self.0.bytes(artifact).await.map(Some),
            None => Ok(None),
        }
    }

    async fn owned_runs(
        &self,
        owner_id: OwnerId,
        filter: RunFilter,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<OwnedRun>, StoreError> {
        self.0
            .read_all(|sqlite| console::owned_runs(sqlite, owner_id, filter, limit, now))
    }

    async fn owned_run(
        &self,
        owner_id: OwnerId,
        command_id: CommandId,
        now: Timestamp,
    ) -> Result<Option<OwnedRun>, StoreError> {
        self.0
            .read(|sqlite| console::owned_run(sqlite, owner_id, command_id, now))
    }

    async fn run_counts(&self, owner_id: OwnerId) -> Result<Vec<RunCount>, StoreError> {
        self.0.read(|sqlite| console::run_counts(sqlite, owner_id))
    }

    async fn cancel_owned_run(
        &self,
        owner_id: OwnerId,
        command_id: CommandId,
        now: Timestamp,
    ) -> Result<RunRow, StoreError> {
        let caller = runs::Caller::Owner(owner_id);
        let applied = self.apply_to_run(caller, command_id, graph_run::Event::RequestCancel, now);
        Ok(applied.await?.0)
    }

    async fn password_hash(&self, owner_id: OwnerId) -> Result<Option<String>, StoreError> {
        self.0
            .read(|sqlite| console::password_hash(sqlite, owner_id))
    }

    async fn set_password_hash(
        &self,
        owner_id: OwnerId,
        hash: Option<String>,
    ) -> Result<(), StoreError> {
        self.0
            .write(move |sqlite| console::set_password_hash(sqlite, owner_id, hash.as_deref()))
            .await
    }

    async fn add_sign_in(&self, new: NewSignIn) -> Result<(), StoreError> {
        self.0
            .write(move |sqlite| console::add_sign_in(sqlite, &new))
            .await
    }

    async fn sign_in_by_token(
        &self,
        token_hash: TokenHash,
        now: Timestamp,
    ) -> Result<Option<SignIn>, StoreError> {
        self.0
            .read(|sqlite| console::sign_in_by_token(sqlite, token_hash, now))
    }

    async fn sign_ins(&self, owner_id: OwnerId, now: Timestamp) -> Result<Vec<SignIn>, StoreError> {
        self.0
            .read(|sqlite| console::sign_ins(sqlite, owner_id, now))
    }

    async fn end_sign_in(&self, owner_id: OwnerId, id: SignInId) -> Result<bool, StoreError> {
        self.0
            .write(move |sqlite| console::end_sign_in(sqlite, owner_id, id))
            .await
    }

    async fn note_seen(&self, seen: Vec<(DesktopId, Timestamp)>) -> Result<(), StoreError> {
        if seen.is_empty() {
            return Ok(());
        }
        self.0
            .write(move |sqlite| workspace::note_seen(sqlite, &seen))
            .await
    }

    async fn sweep(&self, now: Timestamp, rows_max: usize) -> Result<Swept, StoreError> {
        if !self.0.read_all(|sqlite| sweeping::is_due(sqlite, now))? {
            return Ok(Swept::default());
        }
        self.0
            .write(move |sqlite| sweeping::sweep(sqlite, now, rows_max))
            .await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.0.read(|sqlite| any(sqlite, sql::ALIVE, []))?;
        self.0.ready()
    }
}
