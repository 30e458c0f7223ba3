//! What the store's answers say of commands and tasks, in short: the material of the invariants.

use callboard_domain::graph_run::Status;
use callboard_domain::linked_task;
use callboard_domain::{
    ChatLinkId, ClaimId, CommandId, ConnectionId, Digest, ExecutionId, FinalStatus, OwnerId,
    TaskId, Timestamp,
};
use callboard_store::{
    Artifact, AssignedTask, ChatRow, Connection, Desktop, LinkedChat, OwnedRun, OwnedTask, Project,
    QueuedRun, Revoked, RunCount, RunRow, SessionRow, SignIn, Swept, Synced, TaskRow,
};

/// A row that passed between hub and store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A command.
    Run(RunSeen),
    /// A task.
    Task(TaskSeen),
}

/// A command at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunSeen {
    pub(crate) command_id: CommandId,
    pub(crate) status: Status,
    pub(crate) execution_id: Option<ExecutionId>,
    pub(crate) end: Option<Digest>,
    pub(crate) is_within_bounds: bool,
}

/// A task at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskSeen {
    pub(crate) task_id: TaskId,
    pub(crate) status: linked_task::Status,
    pub(crate) claim: Option<(ClaimId, ChatLinkId)>,
    pub(crate) lease_until: Option<Timestamp>,
    pub(crate) result: Option<Digest>,
    pub(crate) expires_at: Timestamp,
    /// It came with a write; what a read shows may be settled in memory only.
    pub(crate) is_stored: bool,
}

/// An answer of the store.
pub(crate) trait Answer {
    /// Notes the rows in it.
    fn note(&self, seen: &mut Vec<Seen>);
}

impl Answer for RunRow {
    fn note(&self, seen: &mut Vec<Seen>) {
        let status = match self.run.status() {
            Status::Completed => FinalStatus::Completed,
            Status::Cancelled => FinalStatus::Cancelled,
            Status::Queued | Status::Running | Status::Failed | Status::Expired => {
                FinalStatus::Failed
            }
        };
        let end = self.run.end();
        seen.push(Seen::Run(RunSeen {
            command_id: self.command_id,
            status: self.run.status(),
            execution_id: self.run.execution().map(|execution| execution.id),
            end: end.map(|end| end.digest),
            is_within_bounds: end.is_none_or(|end| end.report.is_within_bounds(status)),
        }));
    }
}

impl Answer for TaskRow {
    fn note(&self, seen: &mut Vec<Seen>) {
        let task = &self.task;
        seen.push(Seen::Task(TaskSeen {
            task_id: self.task_id,
            status: task.status(),
            claim: task.claim().map(|claim| (claim.id, claim.link_id)),
            lease_until: task.lease_until(),
            result: task.outcome().map(|outcome| outcome.digest),
            expires_at: task.expires_at,
            is_stored: true,
        }));
    }
}

impl<T: Answer> Answer for Option<T> {
    fn note(&self, seen: &mut Vec<Seen>) {
        self.iter().for_each(|answer| answer.note(seen));
    }
}

impl<T: Answer> Answer for Vec<T> {
    fn note(&self, seen: &mut Vec<Seen>) {
        self.iter().for_each(|answer| answer.note(seen));
    }
}

impl<T: Answer, U: Answer> Answer for (T, U) {
    fn note(&self, seen: &mut Vec<Seen>) {
        self.0.note(seen);
        self.1.note(seen);
    }
}

impl Answer for QueuedRun {
    fn note(&self, seen: &mut Vec<Seen>) {
        self.row.note(seen);
    }
}

impl Answer for AssignedTask {
    fn note(&self, seen: &mut Vec<Seen>) {
        self.row.note(seen);
        // A replay finds the task as a read does.
        if let Some(Seen::Task(task)) = seen.last_mut() {
            task.is_stored = !self.replayed;
        }
    }
}

impl Answer for OwnedTask {
    fn note(&self, seen: &mut Vec<Seen>) {
        self.row.note(seen);
    }
}

impl Answer for OwnedRun {
    fn note(&self, seen: &mut Vec<Seen>) {
        self.row.note(seen);
    }
}

impl Answer for Revoked {
    fn note(&self, seen: &mut Vec<Seen>) {
        self.runs.note(seen);
        self.tasks.note(seen);
    }
}

impl Answer for Swept {
    fn note(&self, seen: &mut Vec<Seen>) {
        self.runs.note(seen);
        self.tasks.note(seen);
    }
}

macro_rules! without_rows {
    ($($answer:ty),*) => {$(
        impl Answer for $answer {
            fn note(&self, _seen: &mut Vec<Seen>) {}
        }
    )*};
}

without_rows!(
    (),
    bool,
    u8,
    OwnerId,
    ConnectionId,
    Project,
    Desktop,
    Connection,
    SessionRow,
    Synced,
    LinkedChat,
    ChatRow,
    RunCount,
    SignIn,
    String,
    Artifact
);
