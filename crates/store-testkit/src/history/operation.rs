//! One operation with its arguments, and how it is played on a store.

use callboard_domain::graph_run::Completion;
use callboard_domain::{
    CommandId, ConnectionId, DesktopId, ExecutionId, OwnerId, ProjectId, Timestamp, WorkerId,
};
use callboard_store::{
    NewConnection, NewDesktop, NewProject, QueueRun, RunFilter, RunKey, Store, TokenHash,
};
use callboard_wire::relay::{Progress, SessionInfo};

use super::answer::Answer;
use super::chat_operation::ChatOperation;

#[derive(Debug, Clone)]
pub(super) enum Operation {
    EnsureOwner(OwnerId),
    CreateProject(NewProject),
    Projects(OwnerId),
    CreateDesktop(NewDesktop),
    Desktops(OwnerId),
    RebindDesktop(OwnerId, String),
    CreateConnection(NewConnection),
    Connections(OwnerId),
    RevokeConnection(OwnerId, String),
    ConnectionByToken(TokenHash),
    DesktopByToken(TokenHash),
    BindWorker(DesktopId, WorkerId),
    Sessions(ConnectionId, ProjectId, usize),
    Sync(DesktopId, ProjectId, Vec<SessionInfo>),
    NoteSeen(Vec<(DesktopId, Timestamp)>),
    Sweep(usize),
    Run(RunOperation),
    OwnedRuns(OwnerId, RunFilter, usize),
    OwnedRun(OwnerId, CommandId),
    RunCounts(OwnerId),
    CancelOwnedRun(OwnerId, CommandId),
    Chat(ChatOperation),
}

/// One that is about a single command.
#[derive(Debug, Clone)]
pub(super) enum RunOperation {
    Read(RunKey),
    Queue(QueueRun),
    RequestCancel(RunKey),
    Start(DesktopId, CommandId, ExecutionId),
    ReportProgress(DesktopId, CommandId, Option<String>, Option<Progress>),
    Complete(DesktopId, CommandId, Completion),
}

impl Operation {
    pub(super) async fn play<S: Store>(&self, store: &S, now: Timestamp) -> Answer {
        match self.clone() {
            Self::EnsureOwner(id) => Answer::of(store.ensure_owner(id, now).await, Answer::Owner),
            Self::CreateProject(new) => {
                Answer::of(store.create_project(new).await, Answer::Project)
            }
            Self::Projects(owner) => Answer::of(store.projects(owner).await, Answer::Projects),
            Self::CreateDesktop(new) => {
                let made = store.create_desktop(new).await;
                Answer::of(made, |desktop| Answer::Desktop(Some(desktop)))
            }
            Self::Desktops(owner) => Answer::of(store.desktops(owner).await, Answer::Desktops),
            Self::RebindDesktop(owner, name) => {
                Answer::of(store.rebind_desktop(owner, name).await, Answer::Flag)
            }
            Self::CreateConnection(new) => {
                let made = store.create_connection(new).await;
                Answer::of(made, |connection| Answer::Connection(Some(connection)))
            }
            Self::Connections(owner) => {
                Answer::of(store.connections(owner).await, Answer::Connections)
            }
            Self::RevokeConnection(owner, name) => {
                let revoked = store.revoke_connection(owner, name, now).await;
                Answer::of(revoked, Answer::Revoked)
            }
            Self::ConnectionByToken(token) => {
                Answer::of(store.connection_by_token(token).await, Answer::Connection)
            }
            Self::DesktopByToken(token) => {
                Answer::of(store.desktop_by_token(token).await, Answer::Desktop)
            }
            Self::BindWorker(desktop, worker) => {
                Answer::of(store.bind_worker(desktop, worker).await, |()| Answer::Done)
            }
            Self::Sessions(connection, project, limit) => {
                let sessions = store.sessions(connection, project, limit).await;
                Answer::of(sessions, Answer::Sessions)
            }
            Self::NoteSeen(seen) => Answer::of(store.note_seen(seen).await, |()| Answer::Done),
            Self::Sweep(rows_max) => {
                let swept = store.sweep(now, rows_max).await;
                Answer::of(swept, Answer::Swept)
            }
            Self::Sync(desktop, project, sessions) => {
                let synced = store.sync(desktop, project, sessions, now).await;
                Answer::of(synced, Answer::synced)
            }
            Self::OwnedRuns(owner, filter, limit) => {
                let runs = store.owned_runs(owner, filter, limit, now).await;
                Answer::of(runs, Answer::OwnedRuns)
            }
            Self::OwnedRun(owner, command) => {
                let run = store.owned_run(owner, command, now).await;
                Answer::of(run, |run| Answer::OwnedRuns(run.into_iter().collect()))
            }
            Self::RunCounts(owner) => Answer::of(store.run_counts(owner).await, Answer::RunCounts),
            Self::CancelOwnedRun(owner, command) => {
                let cancelled = store.cancel_owned_run(owner, command, now).await;
                Answer::of(cancelled, |row| Answer::Run(Some(row)))
            }
            Self::Run(operation) => operation.play(store, now).await,
            Self::Chat(operation) => operation.play(store, now).await,
        }
    }
}

impl RunOperation {
    async fn play<S: Store>(self, store: &S, now: Timestamp) -> Answer {
        let row = |row| Answer::Run(Some(row));
        match self {
            Self::Read(key) => Answer::of(store.run(key, now).await, Answer::Run),
            Self::Queue(request) => Answer::of(store.queue_run(request).await, Answer::Queued),
            Self::RequestCancel(key) => Answer::of(store.request_cancel(key, now).await, row),
            Self::Start(desktop, command, execution) => {
                let started = store.start_run(desktop, command, execution, now).await;
                Answer::of(started, row)
            }
            Self::ReportProgress(desktop, command, phase, progress) => {
                let told = store.report_progress(desktop, command, phase, progress, now);
                Answer::of(told.await, row)
            }
            Self::Complete(desktop, command, completion) => {
                let stored = store.complete_run(desktop, command, completion, now).await;
                Answer::of(stored, |(row, replayed)| Answer::Completed(row, replayed))
            }
        }
    }
}
