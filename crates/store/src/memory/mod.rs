//! The store in memory: for tests and simulation, and the model that the others are compared with.

mod tables;

use std::future::{Future, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_domain::graph_run::{Completion, Event};
use callboard_domain::linked_task::{self, Submission, Verdict};
use callboard_domain::{
    ChatLinkId, ClaimId, CommandId, ConnectionId, DesktopId, ExecutionId, OwnerId, ProjectId,
    SignInId, TaskId, Timestamp, WorkerId,
};
use callboard_wire::relay::{Progress, SessionInfo};

use crate::{
    Artifact, ArtifactKey, AssignTask, AssignedTask, ChatRow, Connection, Desktop, LinkKey,
    LinkedChat, NewArtifact, NewChatLink, NewConnection, NewDesktop, NewProject, NewSignIn,
    OwnedRun, OwnedTask, Project, QueueRun, QueuedRun, Revoked, RunCount, RunFilter, RunKey,
    RunRow, SessionRow, SignIn, Store, StoreError, Swept, Synced, TaskRow, TokenHash,
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
    ) -> impl Future<Output = Result<Option<Revoked>, StoreError>> + Send {
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

    fn link_chat(
        &self,
        new: NewChatLink,
    ) -> impl Future<Output = Result<LinkedChat, StoreError>> + Send {
        ready(self.tables().link_chat(new))
    }

    fn chat_links(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Vec<ChatRow>, StoreError>> + Send {
        ready(Ok(self.tables().chat_links(owner_id)))
    }

    fn revoke_chat_link(
        &self,
        owner_id: OwnerId,
        link_id: ChatLinkId,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<Vec<TaskRow>>, StoreError>> + Send {
        ready(self.tables().revoke_chat_link(owner_id, link_id, now))
    }

    fn assign_task(
        &self,
        request: AssignTask,
    ) -> impl Future<Output = Result<AssignedTask, StoreError>> + Send {
        ready(self.tables().assign_task(request))
    }

    fn tasks(
        &self,
        owner_id: OwnerId,
        limit: usize,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<OwnedTask>, StoreError>> + Send {
        ready(Ok(self.tables().tasks(owner_id, limit, now)))
    }

    fn task(
        &self,
        owner_id: OwnerId,
        task_id: TaskId,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<OwnedTask>, StoreError>> + Send {
        ready(Ok(self.tables().task(owner_id, task_id, now)))
    }

    fn task_by_key(
        &self,
        owner_id: OwnerId,
        idempotency_key: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<OwnedTask>, StoreError>> + Send {
        ready(Ok(self.tables().task_by_key(
            owner_id,
            &idempotency_key,
            now,
        )))
    }

    fn cancel_task(
        &self,
        owner_id: OwnerId,
        task_id: TaskId,
        now: Timestamp,
    ) -> impl Future<Output = Result<TaskRow, StoreError>> + Send {
        ready(self.tables().cancel_task(owner_id, task_id, now))
    }

    fn inbox(
        &self,
        key: LinkKey,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<Vec<TaskRow>>, StoreError>> + Send {
        ready(Ok(self.tables().inbox(key, now)))
    }

    fn claim_task(
        &self,
        key: LinkKey,
        task_id: TaskId,
        claim_id: ClaimId,
        lease_ms: u64,
        now: Timestamp,
    ) -> impl Future<Output = Result<(TaskRow, bool), StoreError>> + Send {
        let event = linked_task::Event::Claim {
            link_id: key.link_id,
            claim_id,
            lease_ms,
        };
        ready(self.tables().decide_task(key, task_id, &event, now))
    }

    fn submit_task(
        &self,
        key: LinkKey,
        task_id: TaskId,
        claim_id: ClaimId,
        verdict: Verdict,
        result: String,
        now: Timestamp,
    ) -> impl Future<Output = Result<(TaskRow, bool), StoreError>> + Send {
        let event = linked_task::Event::Submit(Submission {
            link_id: key.link_id,
            claim_id,
            verdict,
            result,
        });
        ready(self.tables().decide_task(key, task_id, &event, now))
    }

    fn upload_artifact(
        &self,
        key: LinkKey,
        task_id: TaskId,
        new: NewArtifact,
        now: Timestamp,
    ) -> impl Future<Output = Result<(Artifact, bool), StoreError>> + Send {
        ready(self.tables().upload_artifact(key, task_id, new, now))
    }

    fn artifact(
        &self,
        key: ArtifactKey,
    ) -> impl Future<Output = Result<Option<(Artifact, Vec<u8>)>, StoreError>> + Send {
        ready(Ok(self.tables().artifact(&key)))
    }

    fn owned_runs(
        &self,
        owner_id: OwnerId,
        filter: RunFilter,
        limit: usize,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<OwnedRun>, StoreError>> + Send {
        ready(Ok(self.tables().owned_runs(owner_id, filter, limit, now)))
    }

    fn owned_run(
        &self,
        owner_id: OwnerId,
        command_id: CommandId,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<OwnedRun>, StoreError>> + Send {
        ready(Ok(self.tables().owned_run(owner_id, command_id, now)))
    }

    fn run_counts(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Vec<RunCount>, StoreError>> + Send {
        ready(Ok(self.tables().run_counts(owner_id)))
    }

    fn cancel_owned_run(
        &self,
        owner_id: OwnerId,
        command_id: CommandId,
        now: Timestamp,
    ) -> impl Future<Output = Result<RunRow, StoreError>> + Send {
        let caller = Caller::Owner(owner_id);
        let decided = self
            .tables()
            .decide(caller, command_id, &Event::RequestCancel, now);
        ready(decided.map(|(row, _)| row))
    }

    fn password_hash(
        &self,
        owner_id: OwnerId,
    ) -> impl Future<Output = Result<Option<String>, StoreError>> + Send {
        ready(Ok(self.tables().console.password_hash(owner_id)))
    }

    fn set_password_hash(
        &self,
        owner_id: OwnerId,
        hash: Option<String>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.tables().console.set_password_hash(owner_id, hash);
        ready(Ok(()))
    }

    fn add_sign_in(&self, new: NewSignIn) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.tables().console.add_sign_in(new);
        ready(Ok(()))
    }

    fn sign_in_by_token(
        &self,
        token_hash: TokenHash,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<SignIn>, StoreError>> + Send {
        ready(Ok(self.tables().console.sign_in_by_token(token_hash, now)))
    }

    fn sign_ins(
        &self,
        owner_id: OwnerId,
        now: Timestamp,
    ) -> impl Future<Output = Result<Vec<SignIn>, StoreError>> + Send {
        ready(Ok(self.tables().console.sign_ins(owner_id, now)))
    }

    fn end_sign_in(
        &self,
        owner_id: OwnerId,
        id: SignInId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(Ok(self.tables().console.end_sign_in(owner_id, id)))
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
    ) -> impl Future<Output = Result<Swept, StoreError>> + Send {
        ready(Ok(self.tables().sweep(now, rows_max)))
    }

    fn ready(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        ready(Ok(()))
    }
}
