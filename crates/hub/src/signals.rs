//! Who waits for what: versions that move after each commit.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use callboard_ambient::Entropy;
use callboard_domain::{CommandId, DesktopId, ProjectId};
use tokio::sync::Notify;

/// More slots make a spurious wake-up rarer; each costs about 40 bytes.
const SLOTS: usize = 1_024;

/// Something that can be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// The status of one command.
    Run(CommandId),
    /// What waits for one desktop in one project.
    Work(DesktopId, ProjectId),
}

/// The version of a topic, read before the state that it guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    topic: Topic,
    version: u64,
}

/// A use case's answer, or the wish to be asked again.
#[derive(Debug)]
pub enum Reply<T> {
    /// The answer.
    Done(T),
    /// Nothing to say yet.
    Hold(Hold),
}

/// When to ask again, and what to hand in then.
#[derive(Debug, Clone, PartialEq)]
pub struct Hold {
    /// Ask again as soon as one of these moved.
    pub watches: Vec<Watch>,
    /// What the next asking gets; also holds the instant at which to ask at the latest.
    pub patience: Patience,
}

/// What a waiting caller remembers from one asking to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// Monotonic milliseconds of the hub's clock at which the present answer must do.
    pub deadline_ms: u64,
    /// The first status that was seen; another one ends the wait.
    pub first_seen: Option<String>,
}

/// Versions of everything that can be waited for, in bounded memory: topics share slots, so a
/// wait may end early and ask once more than needed, and never too late.
pub struct Signals {
    /// Differs from one start of the hub to the next, so that a revision is never met twice.
    epoch: u64,
    slots: Vec<Slot>,
}

/// The version of all topics that share a slot, and who waits for the next one.
#[derive(Debug, Default)]
struct Slot {
    version: AtomicU64,
    moved: Notify,
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals")
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl Signals {
    /// Fresh signals for one start of the hub.
    pub fn new(entropy: &Entropy) -> Self {
        let slots = (0..SLOTS).map(|_| Slot::default()).collect();
        Self {
            epoch: entropy.below(u64::MAX),
            slots,
        }
    }

    /// The present version of `topic`. Read it before the state.
    pub fn watch(&self, topic: Topic) -> Watch {
        let version = self.slot(topic).map_or(0, |slot| slot.version());
        Watch { topic, version }
    }

    /// The present version of `topic` as an opaque text that no other start of the hub gives.
    pub fn revision(&self, topic: Topic) -> String {
        format!("{:016x}-{}", self.epoch, self.watch(topic).version)
    }

    /// Moves the version of `topic`. Call it after the commit.
    pub fn moved(&self, topic: Topic) {
        if let Some(slot) = self.slot(topic) {
            slot.version.fetch_add(1, Ordering::SeqCst);
            slot.moved.notify_waiters();
        }
    }

    /// Whether the version of `watch` is no longer the one it was made with.
    pub fn has_moved(&self, watch: Watch) -> bool {
        self.watch(watch.topic) != watch
    }

    /// Returns as soon as the version of `watch` is no longer the one it was made with.
    pub async fn changed(&self, watch: Watch) {
        let Some(slot) = self.slot(watch.topic) else {
            return std::future::pending().await;
        };
        loop {
            // Made before the look at the version: a move after that look wakes it.
            let moved = slot.moved.notified();
            if slot.version() != watch.version {
                return;
            }
            moved.await;
        }
    }

    /// Ids are the hub's own and end in random bits, so their ends are hash enough.
    fn slot(&self, topic: Topic) -> Option<&Slot> {
        let end = |id: &[u8; 16]| {
            let [.., high, low] = *id;
            usize::from(u16::from_be_bytes([high, low]))
        };
        let hash = match topic {
            Topic::Run(command) => end(command.as_bytes()),
            Topic::Work(desktop, project) => {
                end(desktop.as_bytes()) ^ end(project.as_bytes()).rotate_left(5)
            }
        };
        self.slots.get(hash % SLOTS)
    }
}

impl Slot {
    fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_move_between_reading_and_waiting_is_not_missed() {
        let signals = Signals::new(&Entropy::seeded(1, "signals"));
        let topic = Topic::Run(CommandId::from_bytes([1; 16]));
        let watch = signals.watch(topic);
        assert!(!signals.has_moved(watch));
        signals.moved(topic);
        signals.changed(watch).await;
        assert!(signals.has_moved(watch));
    }

    #[test]
    fn a_revision_differs_after_a_move_and_after_a_restart() {
        let entropy = Entropy::seeded(1, "signals");
        let topic = Topic::Work(
            DesktopId::from_bytes([1; 16]),
            ProjectId::from_bytes([2; 16]),
        );
        let signals = Signals::new(&entropy);
        let before = signals.revision(topic);
        assert_eq!(signals.revision(topic), before);
        signals.moved(topic);
        assert_ne!(signals.revision(topic), before);
        assert_ne!(Signals::new(&entropy).revision(topic), before);
    }
}
