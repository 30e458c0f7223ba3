//! What the relay can say about itself.

use callboard_domain::{Refusal, Timestamp};

use crate::Failure;

/// How the hub answered last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HubState {
    /// Not called yet.
    #[default]
    Unknown,
    /// It answers.
    Reachable,
    /// It does not answer.
    Unreachable {
        /// What went wrong.
        reason: String,
    },
    /// It does not know the device token (401, 403).
    Unauthorized {
        /// What it said.
        reason: String,
    },
    /// The desktop identity is bound to another data folder (409).
    InUse,
    /// It answers, with an error.
    Failing {
        /// The HTTP status.
        status: u16,
        /// What it said.
        reason: String,
    },
}

impl HubState {
    /// What a failed call says about the hub; `None` when it says nothing new.
    pub(crate) fn after(failure: &Failure) -> Self {
        match failure {
            Failure::Refused(Refusal::DesktopInUse) => Self::InUse,
            // A refusal is an answer.
            Failure::Refused(_) => Self::Reachable,
            Failure::Status {
                status: 401 | 403,
                reason,
                ..
            } => Self::Unauthorized {
                reason: reason.clone(),
            },
            Failure::Status { status, reason, .. } => Self::Failing {
                status: *status,
                reason: reason.clone(),
            },
            Failure::NoAnswer { reason } => Self::Unreachable {
                reason: reason.clone(),
            },
        }
    }
}

/// The state of the wake-up connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeUp {
    /// Switched off: the desktop polls.
    Off,
    /// The hub holds the call.
    Held,
    /// Nothing to watch: no project is enabled, or none was synced yet.
    Idle,
    /// It failed, and is tried again later.
    Reconnecting,
}

/// The disk does not take writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskTrouble {
    /// What it said.
    pub reason: String,
    /// Results that are held in memory until it does.
    pub unsaved: usize,
}

/// The relay at an instant, for the owner's eyes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// How the hub answered last.
    pub hub: HubState,
    /// The wake-up connection.
    pub wake_up: WakeUp,
    /// Why no new work is fetched, if the disk is the reason.
    pub disk: Option<DiskTrouble>,
    /// Commands that wait for a free slot.
    pub waiting: usize,
    /// Commands that hold a slot.
    pub busy_slots: usize,
    /// When the last turn began.
    pub last_turn: Option<Timestamp>,
    /// The hub asked to be left alone for this long, in milliseconds.
    pub held_ms: Option<u64>,
}
