//! What a task is at an instant. Each state holds exactly the facts of that state.

use std::fmt;

use crate::limits::TASK_EXPIRY_MS;
use crate::{ChatLinkId, ClaimId, Digest, Timestamp};

/// One task and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Digest of the request that assigned it, for replays of its idempotency key.
    pub request: Digest,
    /// When it was assigned.
    pub assigned_at: Timestamp,
    /// When it expires unless it ends before.
    pub expires_at: Timestamp,
    /// When it last changed. Time never runs backwards on a task.
    pub updated_at: Timestamp,
    /// The links that may claim it, in the order in which they were named. A revoked link is taken
    /// off an open task; a task that is over keeps those that it had.
    pub candidates: Vec<ChatLinkId>,
    /// Where it stands.
    pub state: State,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Waits for a chat; also again after a claim lapsed.
    Queued,
    /// A chat has it.
    Claimed {
        /// Who, and since when.
        claim: Claim,
        /// When the claim lapses; never later than the task's expiry.
        lease_until: Timestamp,
    },
    /// The chat did it.
    Completed(Claim, Outcome),
    /// The chat said that it could not.
    Failed(Claim, Outcome),
    /// The owner took it back, or no candidate was left.
    Cancelled {
        /// When.
        finished_at: Timestamp,
    },
    /// Nobody finished it in time.
    Expired {
        /// When it expired.
        finished_at: Timestamp,
    },
}

/// One taking of a task by a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The fencing token: only its holder can submit.
    pub id: ClaimId,
    /// The chat that took the task.
    pub link_id: ChatLinkId,
    /// When it did.
    pub claimed_at: Timestamp,
}

/// What a chat submitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// When it was stored.
    pub finished_at: Timestamp,
    /// SHA-256 of status and result: tells a repeated submit from a different one.
    pub digest: Digest,
    /// The result.
    pub result: String,
}

/// The name of a state, as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// See [`State::Queued`].
    Queued,
    /// See [`State::Claimed`].
    Claimed,
    /// The task is over.
    Over(Ended),
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// See [`State::Completed`].
    Completed,
    /// See [`State::Failed`].
    Failed,
    /// See [`State::Cancelled`].
    Cancelled,
    /// See [`State::Expired`].
    Expired,
}

impl Status {
    /// Every status, in the order of a task's life.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Claimed,
        Self::Over(Ended::Completed),
        Self::Over(Ended::Failed),
        Self::Over(Ended::Cancelled),
        Self::Over(Ended::Expired),
    ];

    /// The word on the wire and in the stores.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Claimed => "claimed",
            Self::Over(Ended::Completed) => "completed",
            Self::Over(Ended::Failed) => "failed",
            Self::Over(Ended::Cancelled) => "cancelled",
            Self::Over(Ended::Expired) => "expired",
        }
    }

    /// The status that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// How a task with this status ended; `None` for an open one.
    pub const fn ended(self) -> Option<Ended> {
        match self {
            Self::Queued | Self::Claimed => None,
            Self::Over(ended) => Some(ended),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Task {
    /// A task that was just assigned.
    pub fn assigned(request: Digest, candidates: Vec<ChatLinkId>, now: Timestamp) -> Self {
        Self {
            request,
            assigned_at: now,
            expires_at: now.plus_ms(TASK_EXPIRY_MS),
            updated_at: now,
            candidates,
            state: State::Queued,
        }
    }

    /// The name of the state.
    pub const fn status(&self) -> Status {
        match self.state {
            State::Queued => Status::Queued,
            State::Claimed { .. } => Status::Claimed,
            State::Completed(..) => Status::Over(Ended::Completed),
            State::Failed(..) => Status::Over(Ended::Failed),
            State::Cancelled { .. } => Status::Over(Ended::Cancelled),
            State::Expired { .. } => Status::Over(Ended::Expired),
        }
    }

    /// The claim that is alive, or that finished the task.
    pub const fn claim(&self) -> Option<&Claim> {
        match &self.state {
            State::Claimed { claim, .. } | State::Completed(claim, _) | State::Failed(claim, _) => {
                Some(claim)
            }
            State::Queued | State::Cancelled { .. } | State::Expired { .. } => None,
        }
    }

    /// When the claim that is alive lapses.
    pub const fn lease_until(&self) -> Option<Timestamp> {
        match &self.state {
            State::Claimed { lease_until, .. } => Some(*lease_until),
            State::Queued
            | State::Completed(..)
            | State::Failed(..)
            | State::Cancelled { .. }
            | State::Expired { .. } => None,
        }
    }

    /// What was submitted, if that ended the task.
    pub const fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Completed(_, outcome) | State::Failed(_, outcome) => Some(outcome),
            State::Queued
            | State::Claimed { .. }
            | State::Cancelled { .. }
            | State::Expired { .. } => None,
        }
    }

    /// When the task ended, if it did.
    pub const fn finished_at(&self) -> Option<Timestamp> {
        match &self.state {
            State::Queued | State::Claimed { .. } => None,
            State::Completed(_, outcome) | State::Failed(_, outcome) => Some(outcome.finished_at),
            State::Cancelled { finished_at } | State::Expired { finished_at } => Some(*finished_at),
        }
    }

    /// Whether `link_id` may see and claim the task.
    pub fn is_for(&self, link_id: ChatLinkId) -> bool {
        self.candidates.contains(&link_id)
    }
}
