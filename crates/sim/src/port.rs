//! The store as a virtual hub sees it: it can die between any two operations, tells what passed
//! through it, and is where the hub's faults are planted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_domain::graph_run::{Completion, State};
use callboard_domain::limits::RESULT_UTF16_MAX;
use callboard_domain::linked_task::Verdict;
use callboard_domain::{
    ChatLinkId, ClaimId, CommandId, ConnectionId, DesktopId, ExecutionId, OwnerId, ProjectId,
    Refusal, SignInId, TaskId, Timestamp, WorkerId,
};
use callboard_store::{
    Artifact, ArtifactKey, AssignTask, AssignedTask, ChatRow, Connection, Desktop, LinkKey,
    LinkedChat, NewArtifact, NewChatLink, NewConnection, NewDesktop, NewProject, NewSignIn,
    OwnedRun, OwnedTask, Project, QueueRun, QueuedRun, Revoked, RunCount, RunFilter, RunKey,
    RunRow, SessionRow, SignIn, Store, StoreError, Swept, Synced, TaskRow, TokenHash,
};
use callboard_wire::relay::{Progress, SessionInfo};

use crate::Bug;
use crate::rows::{Answer, Seen};

/// When a hub dies: at an operation of its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Death {
    /// Operations that still succeed.
    pub(crate) after_operations: u64,
    /// The fatal one is stored, and its answer is lost; otherwise it does not reach the store.
    pub(crate) is_stored: bool,
}

/// What the world and the hub's port share.
#[derive(Debug, Default)]
struct Shared {
    bug: Option<Bug>,
    death: Option<Death>,
    is_dead: bool,
    seen: Vec<Seen>,
    /// Commands and who runs them, for the planted faults.
    executions: Vec<(CommandId, ExecutionId)>,
    forgotten: u64,
}

/// A store with a death in it. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Port<S> {
    store: S,
    shared: Arc<Mutex<Shared>>,
}

impl<S> Port<S> {
    /// A port to `store`.
    pub(crate) fn new(store: S, bug: Option<Bug>) -> Self {
        let shared = Shared {
            bug,
            ..Shared::default()
        };
        Self {
            store,
            shared: Arc::new(Mutex::new(shared)),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the hub die at an operation to come.
    pub(crate) fn dies(&self, death: Death) {
        self.shared().death = Some(death);
    }

    /// Whether the hub died since it was last asked; a new one may use the port again.
    pub(crate) fn take_death(&self) -> bool {
        std::mem::take(&mut self.shared().is_dead)
    }

    /// Whether the hub died and nobody has noticed yet.
    pub(crate) fn is_dead(&self) -> bool {
        self.shared().is_dead
    }

    /// No death is to come any more.
    pub(crate) fn spare(&self) {
        self.shared().death = None;
    }

    /// Takes the rows that passed since the last time.
    pub(crate) fn take_seen(&self, into: &mut Vec<Seen>) {
        into.clear();
        std::mem::swap(&mut self.shared().seen, into);
    }

    fn has(&self, bug: Bug) -> bool {
        self.shared().bug == Some(bug)
    }

    fn before(&self) -> Result<(), StoreError> {
        let mut shared = self.shared();
        let dies_here = shared
            .death
            .is_some_and(|death| death.after_operations == 0 && !death.is_stored);
        if dies_here {
            shared.death = None;
            shared.is_dead = true;
        }
        if shared.is_dead {
            return Err(StoreError::unavailable("the hub died"));
        }
        Ok(())
    }

    fn after<T: Answer>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let mut shared = self.shared();
        if let Ok(answer) = &answer {
            answer.note(&mut shared.seen);
        }
        let Some(death) = &mut shared.death else {
            return answer;
        };
        if death.after_operations > 0 {
            death.after_operations -= 1;
            return answer;
        }
        shared.death = None;
        shared.is_dead = true;
        Err(StoreError::unavailable("the hub died"))
    }
}

macro_rules! through {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {$(
        async fn $name(&self, $($argument: $kind),*) -> Result<$answer, StoreError> {
            self.before()?;
            let answer = self.store.$name($($argument),*).await;
            self.after(answer)
        }
    )*};
}

/// Reads of tasks: what time caused in them is not stored.
macro_rules! settled_reads {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {$(
        async fn $name(&self, $($argument: $kind),*) -> Result<$answer, StoreError> {
            self.before()?;
            let answer = self.store.$name($($argument),*).await;
            let noted = self.shared().seen.len();
            let answer = self.after(answer);
            for seen in self.shared().seen.iter_mut().skip(noted) {
                if let Seen::Task(task) = seen {
                    task.is_stored = false;
                }
            }
            answer
        }
    )*};
}

impl<S: Store> Store for Port<S> {
    through! {
        ensure_owner(fresh_id: OwnerId, now: Timestamp) -> OwnerId;
        create_project(new: NewProject) -> Project;
        projects(owner_id: OwnerId) -> Vec<Project>;
        create_desktop(new: NewDesktop) -> Desktop;
        desktops(owner_id: OwnerId) -> Vec<Desktop>;
        rebind_desktop(owner_id: OwnerId, name: String) -> bool;
        create_connection(new: NewConnection) -> Connection;
        connections(owner_id: OwnerId) -> Vec<Connection>;
        revoke_connection(owner_id: OwnerId, name: String, now: Timestamp) -> Option<Revoked>;
        connection_by_token(token_hash: TokenHash) -> Option<Connection>;
        desktop_by_token(token_hash: TokenHash) -> Option<Desktop>;
        bind_worker(desktop_id: DesktopId, worker_id: WorkerId) -> ();
        sessions(
            connection_id: ConnectionId, project_id: ProjectId, limit: usize
        ) -> Option<Vec<SessionRow>>;
        request_cancel(key: RunKey, now: Timestamp) -> RunRow;
        sync(
            desktop_id: DesktopId, project_id: ProjectId, sessions: Vec<SessionInfo>, now: Timestamp
        ) -> Synced;
        report_progress(
            desktop_id: DesktopId, command_id: CommandId, phase: Option<String>,
            progress: Option<Progress>, now: Timestamp
        ) -> RunRow;
        link_chat(new: NewChatLink) -> LinkedChat;
        chat_links(owner_id: OwnerId) -> Vec<ChatRow>;
        revoke_chat_link(
            owner_id: OwnerId, link_id: ChatLinkId, now: Timestamp
        ) -> Option<Vec<TaskRow>>;
        assign_task(request: AssignTask) -> AssignedTask;
        cancel_task(owner_id: OwnerId, task_id: TaskId, now: Timestamp) -> TaskRow;
        upload_artifact(
            key: LinkKey, task_id: TaskId, new: NewArtifact, now: Timestamp
        ) -> (Artifact, bool);
        artifact(key: ArtifactKey) -> Option<(Artifact, Vec<u8>)>;
        owned_runs(
            owner_id: OwnerId, filter: RunFilter, limit: usize, now: Timestamp
        ) -> Vec<OwnedRun>;
        owned_run(owner_id: OwnerId, command_id: CommandId, now: Timestamp) -> Option<OwnedRun>;
        run_counts(owner_id: OwnerId) -> Vec<RunCount>;
        cancel_owned_run(owner_id: OwnerId, command_id: CommandId, now: Timestamp) -> RunRow;
        password_hash(owner_id: OwnerId) -> Option<String>;
        set_password_hash(owner_id: OwnerId, hash: Option<String>) -> ();
        add_sign_in(new: NewSignIn) -> ();
        sign_in_by_token(token_hash: TokenHash, now: Timestamp) -> Option<SignIn>;
        sign_ins(owner_id: OwnerId, now: Timestamp) -> Vec<SignIn>;
        end_sign_in(owner_id: OwnerId, id: SignInId) -> bool;
        note_seen(seen: Vec<(DesktopId, Timestamp)>) -> ();
        ready() -> ();
    }

    settled_reads! {
        tasks(owner_id: OwnerId, limit: usize, now: Timestamp) -> Vec<OwnedTask>;
        task(owner_id: OwnerId, task_id: TaskId, now: Timestamp) -> Option<OwnedTask>;
        task_by_key(owner_id: OwnerId, idempotency_key: String, now: Timestamp) -> Option<OwnedTask>;
        inbox(key: LinkKey, now: Timestamp) -> Option<Vec<TaskRow>>;
    }

    async fn run(&self, key: RunKey, now: Timestamp) -> Result<Option<RunRow>, StoreError> {
        self.before()?;
        let mut found = self.store.run(key, now).await;
        if self.has(Bug::EndRewritten)
            && let Ok(Some(row)) = &mut found
            && let State::Completed(execution, end) = &row.run.state
            && now.millis_since(end.finished_at) > 60_000
        {
            row.run.state = State::Failed(*execution, end.clone());
        }
        if self.has(Bug::ForeignTold) && matches!(found, Ok(None)) {
            let known = self.shared().executions.clone();
            if known.iter().any(|(id, _)| *id == key.command_id) {
                found = Err(Refusal::RunOver.into());
            }
        }
        self.after(found)
    }

    async fn queue_run(&self, mut request: QueueRun) -> Result<QueuedRun, StoreError> {
        self.before()?;
        if self.has(Bug::KeyForgotten) {
            let forgotten = {
                let mut shared = self.shared();
                shared.forgotten += 1;
                shared.forgotten
            };
            request.idempotency_key.push_str(&forgotten.to_string());
        }
        let queued = self.store.queue_run(request).await;
        self.after(queued)
    }

    async fn start_run(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        execution_id: ExecutionId,
        now: Timestamp,
    ) -> Result<RunRow, StoreError> {
        self.before()?;
        let started = self
            .store
            .start_run(desktop_id, command_id, execution_id, now)
            .await;
        if started.is_ok() {
            self.shared().executions.push((command_id, execution_id));
        }
        self.after(started)
    }

    async fn complete_run(
        &self,
        desktop_id: DesktopId,
        command_id: CommandId,
        mut completion: Completion,
        now: Timestamp,
    ) -> Result<(RunRow, bool), StoreError> {
        self.before()?;
        if self.has(Bug::FenceIgnored) {
            let shared = self.shared();
            let current = shared.executions.iter().rev();
            let current = current.copied().find(|(id, _)| *id == command_id);
            completion.execution_id = current.map(|(_, execution_id)| execution_id);
        }
        let mut completed = self
            .store
            .complete_run(desktop_id, command_id, completion, now)
            .await;
        if self.has(Bug::ResultUnbounded)
            && let Ok((row, _)) = &mut completed
            && let State::Completed(_, end) = &mut row.run.state
            && std::mem::take(&mut end.report.result_truncated)
        {
            end.report.result = Some("0".repeat(2 * RESULT_UTF16_MAX));
        }
        self.after(completed)
    }

    async fn claim_task(
        &self,
        key: LinkKey,
        task_id: TaskId,
        claim_id: ClaimId,
        lease_ms: u64,
        now: Timestamp,
    ) -> Result<(TaskRow, bool), StoreError> {
        self.before()?;
        let now = match self.has(Bug::LeaseIgnored) {
            true => now.plus_ms(lease_ms),
            false => now,
        };
        let claimed = self
            .store
            .claim_task(key, task_id, claim_id, lease_ms, now)
            .await;
        self.after(claimed)
    }

    async fn submit_task(
        &self,
        key: LinkKey,
        task_id: TaskId,
        claim_id: ClaimId,
        verdict: Verdict,
        mut result: String,
        now: Timestamp,
    ) -> Result<(TaskRow, bool), StoreError> {
        self.before()?;
        if self.has(Bug::SubmitAppends) {
            let mut shared = self.shared();
            shared.forgotten += 1;
            result.push_str(&shared.forgotten.to_string());
        }
        let submitted = self
            .store
            .submit_task(key, task_id, claim_id, verdict, result, now)
            .await;
        self.after(submitted)
    }

    async fn sweep(&self, now: Timestamp, rows_max: usize) -> Result<Swept, StoreError> {
        self.before()?;
        let now = match self.has(Bug::ExpiresEarly) {
            true => now.plus_ms(3_600_000),
            false => now,
        };
        let swept = self.store.sweep(now, rows_max).await;
        self.after(swept)
    }
}
