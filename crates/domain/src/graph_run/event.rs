//! What can happen to a run.

use crate::{Digest, ExecutionId, FinalStatus, Report, Timestamp};

/// Something that happens to a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A start call with the idempotency key of this run.
    Queue {
        /// Digest of the request that came with the key.
        request: Digest,
    },
    /// The desktop asks to begin under `execution_id`.
    Start {
        /// The desktop's own id for the execution.
        execution_id: ExecutionId,
    },
    /// The connection, or the owner, asks to stop.
    RequestCancel,
    /// The connection was revoked, or lost the project that the run belongs to.
    RemoveAccess,
    /// The desktop reports the end.
    Complete(Completion),
    /// The desktop will not report any more.
    GiveUp(LostDesktop),
}

/// What the desktop sends when a run is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The execution that ended; absent for a command that never began.
    pub execution_id: Option<ExecutionId>,
    /// How it ended.
    pub status: FinalStatus,
    /// What there is to report, already bounded.
    pub report: Report,
}

/// Why a desktop counts as lost to its running commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostDesktop {
    /// It has been silent since `last_seen_at`; whether that is long enough is decided here.
    Silent {
        /// Its last sign of life, or the start of the run if there was none since.
        last_seen_at: Timestamp,
    },
    /// Its owner revoked it.
    Revoked,
}
