//! What a run is at an instant. Each state holds exactly the facts of that state.

use std::fmt;

use crate::{Digest, ExecutionId, Report, Timestamp};

/// One command and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Digest of the request that queued it, for replays of its idempotency key.
    pub request: Digest,
    /// When the command was queued.
    pub queued_at: Timestamp,
    /// When the state last changed. Time never runs backwards on a run.
    pub updated_at: Timestamp,
    /// Where it stands.
    pub state: State,
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Waits for its desktop.
    Queued,
    /// A desktop was granted the start.
    Running(Execution),
    /// The Graph returned.
    Completed(Execution, End),
    /// The Graph, the engine or the desktop failed.
    Failed(Execution, End),
    /// Stopped while it ran.
    Cancelled(Execution, End),
    /// Cancelled before it began.
    Withdrawn {
        /// When its connection or owner asked for that; absent when access or consent was gone.
        cancel_requested_at: Option<Timestamp>,
        /// How it ended.
        end: End,
    },
    /// Nobody started it in time.
    Expired {
        /// When it expired.
        finished_at: Timestamp,
    },
}

/// The one execution of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    /// The fencing token: only its holder can report on the run.
    pub id: ExecutionId,
    /// When the start was granted.
    pub started_at: Timestamp,
    /// When a cancel was asked for, if it was.
    pub cancel_requested_at: Option<Timestamp>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// When the end was stored.
    pub finished_at: Timestamp,
    /// Tells a repeated completion from a different one, also after the report was pruned.
    pub digest: Digest,
    /// What was reported.
    pub report: Report,
}

/// The name of a state, as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// See [`State::Queued`].
    Queued,
    /// See [`State::Running`].
    Running,
    /// See [`State::Completed`].
    Completed,
    /// See [`State::Failed`].
    Failed,
    /// See [`State::Cancelled`] and [`State::Withdrawn`].
    Cancelled,
    /// See [`State::Expired`].
    Expired,
}

impl Status {
    /// Every status, in the order of a run's life.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];

    /// The word on the wire and in the stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    /// The status that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether a run with this status never changes again.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Expired => true,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Run {
    /// A run that was just queued.
    pub const fn queued(request: Digest, now: Timestamp) -> Self {
        Self {
            request,
            queued_at: now,
            updated_at: now,
            state: State::Queued,
        }
    }

    /// The name of the state.
    pub const fn status(&self) -> Status {
        match self.state {
            State::Queued => Status::Queued,
            State::Running(..) => Status::Running,
            State::Completed(..) => Status::Completed,
            State::Failed(..) => Status::Failed,
            State::Cancelled(..) | State::Withdrawn { .. } => Status::Cancelled,
            State::Expired { .. } => Status::Expired,
        }
    }

    /// The execution, once one was granted.
    pub const fn execution(&self) -> Option<&Execution> {
        match &self.state {
            State::Queued | State::Withdrawn { .. } | State::Expired { .. } => None,
            State::Running(execution)
            | State::Completed(execution, _)
            | State::Failed(execution, _)
            | State::Cancelled(execution, _) => Some(execution),
        }
    }

    /// How the run ended, if a report belongs to its end.
    pub const fn end(&self) -> Option<&End> {
        match &self.state {
            State::Queued | State::Running(_) | State::Expired { .. } => None,
            State::Completed(_, end)
            | State::Failed(_, end)
            | State::Cancelled(_, end)
            | State::Withdrawn { end, .. } => Some(end),
        }
    }

    /// When the run ended, if it did.
    pub const fn finished_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Expired { finished_at } => Some(*finished_at),
            State::Queued
            | State::Running(_)
            | State::Completed(..)
            | State::Failed(..)
            | State::Cancelled(..)
            | State::Withdrawn { .. } => match self.end() {
                Some(end) => Some(end.finished_at),
                None => None,
            },
        }
    }

    /// When its connection or owner asked for the run to stop, if one of them did.
    pub const fn cancel_requested_at(&self) -> Option<Timestamp> {
        match (&self.state, self.execution()) {
            (_, Some(execution)) => execution.cancel_requested_at,
            (
                State::Withdrawn {
                    cancel_requested_at,
                    ..
                },
                None,
            ) => *cancel_requested_at,
            (_, None) => None,
        }
    }

    /// Whether somebody asked for the run to stop.
    pub const fn cancel_requested(&self) -> bool {
        self.cancel_requested_at().is_some()
    }
}
