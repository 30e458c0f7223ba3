//! The hub itself: a store, a clock, a source of ids, and who waits.

use std::sync::Mutex;

use callboard_ambient::{Clock, Entropy};
use callboard_domain::limits::{TASK_LEASE_MS_DEFAULT, TASK_LEASE_MS_MIN};

use crate::console::Door;
use crate::sweep::Sweeps;
use crate::{Presence, Signals};

/// All use cases. Share it behind an `Arc`.
#[derive(Debug)]
pub struct Hub<S> {
    pub(crate) store: S,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) signals: Signals,
    pub(crate) presence: Presence,
    pub(crate) sweeps: Mutex<Sweeps>,
    pub(crate) door: Mutex<Door>,
    pub(crate) task_lease_ms: u64,
}

impl<S> Hub<S> {
    /// A hub over `store`.
    pub fn new(store: S, clock: Clock, entropy: Entropy) -> Self {
        let signals = Signals::new(&entropy);
        let presence = Presence::new(clock.clone());
        Self {
            store,
            clock,
            entropy,
            signals,
            presence,
            sweeps: Mutex::default(),
            door: Mutex::default(),
            task_lease_ms: TASK_LEASE_MS_DEFAULT,
        }
    }

    /// The same hub with another lease for tasks that several chats may claim, in milliseconds; at
    /// least [`TASK_LEASE_MS_MIN`].
    #[must_use]
    pub fn with_task_lease_ms(self, task_lease_ms: u64) -> Self {
        Self {
            task_lease_ms: task_lease_ms.max(TASK_LEASE_MS_MIN),
            ..self
        }
    }

    /// The hub's clock, by which [`crate::Patience::deadline_ms`] is counted.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Who waits for what.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Which desktops are there.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }
}
