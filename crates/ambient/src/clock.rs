//! Wall and monotonic time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use callboard_domain::Timestamp;

/// Tells the time. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System { started: Instant },
    Manual(Arc<Hands>),
}

#[derive(Debug)]
struct Hands {
    wall_ms: AtomicI64,
    monotonic_ms: AtomicU64,
}

impl Clock {
    /// The clock of the machine.
    #[allow(clippy::disallowed_methods, reason = "this crate is where time enters")]
    pub fn system() -> Self {
        Self(Source::System {
            started: Instant::now(),
        })
    }

    /// A clock that stands still until its [`ManualClock`] moves it.
    pub fn manual(start: Timestamp) -> (Self, ManualClock) {
        let hands = Arc::new(Hands {
            wall_ms: AtomicI64::new(start.as_millis()),
            monotonic_ms: AtomicU64::new(0),
        });
        (Self(Source::Manual(Arc::clone(&hands))), ManualClock(hands))
    }

    /// Wall time, UTC. May jump when the owner or the network sets it.
    #[allow(clippy::disallowed_methods, reason = "this crate is where time enters")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System { .. } => {
                let since_epoch = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or(Duration::ZERO);
                Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
            }
            Source::Manual(hands) => Timestamp::from_millis(hands.wall_ms.load(Ordering::SeqCst)),
        }
    }

    /// Milliseconds since this clock was made, never running backwards. Stands still while the
    /// machine sleeps on systems whose monotonic clock does.
    #[allow(clippy::disallowed_methods, reason = "this crate is where time enters")]
    pub fn monotonic_ms(&self) -> u64 {
        match &self.0 {
            Source::System { started } => {
                u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
            }
            Source::Manual(hands) => hands.monotonic_ms.load(Ordering::SeqCst),
        }
    }
}

/// Moves a manual [`Clock`].
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Hands>);

impl ManualClock {
    /// Lets `duration_ms` pass on both the wall and the monotonic clock.
    pub fn advance_ms(&self, duration_ms: u64) {
        self.0.monotonic_ms.fetch_add(duration_ms, Ordering::SeqCst);
        self.0.wall_ms.fetch_add(
            i64::try_from(duration_ms).unwrap_or(i64::MAX),
            Ordering::SeqCst,
        );
    }

    /// Sets the wall clock alone, as sleep or a clock correction does.
    pub fn set_wall(&self, now: Timestamp) {
        self.0.wall_ms.store(now.as_millis(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let (clock, hands) = Clock::manual(Timestamp::from_millis(5));
        assert_eq!((clock.now().as_millis(), clock.monotonic_ms()), (5, 0));
        hands.advance_ms(10);
        assert_eq!((clock.now().as_millis(), clock.monotonic_ms()), (15, 10));
        hands.set_wall(Timestamp::from_millis(1));
        assert_eq!((clock.now().as_millis(), clock.monotonic_ms()), (1, 10));
    }

    #[test]
    fn the_system_clock_is_past_the_year_2026() {
        assert!(Clock::system().now().as_millis() > 1_767_225_600_000);
    }
}
