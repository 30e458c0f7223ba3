//! Which desktops are there now, kept in memory and flushed in batches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_ambient::Clock;
use callboard_domain::limits::{CONTROL_INTERVAL_MS, ONLINE_WINDOW_MS};
use callboard_domain::{DesktopId, Timestamp};

/// The last signs of life of all desktops. Clones share their contents.
///
/// How long ago one was is told by the monotonic clock: a wall clock that is set back makes nobody
/// online. Wall time is what people see and what is stored.
#[derive(Debug, Clone)]
pub struct Presence {
    clock: Clock,
    signs: Arc<Mutex<BTreeMap<DesktopId, Signs>>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Signs {
    seen: Option<Seen>,
    stored: bool,
    wakes_held: u32,
    wake_ended_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Timestamp,
    monotonic_ms: u64,
}

/// A wake-up call that is being held; dropping it ends it.
#[derive(Debug)]
pub struct HeldWake {
    presence: Presence,
    desktop_id: DesktopId,
}

impl Presence {
    /// Nobody was seen yet.
    pub(crate) fn new(clock: Clock) -> Self {
        let signs = Arc::default();
        Self { clock, signs }
    }

    fn signs(&self) -> MutexGuard<'_, BTreeMap<DesktopId, Signs>> {
        self.signs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_within(&self, moment_ms: u64, window_ms: u64) -> bool {
        self.clock.monotonic_ms().saturating_sub(moment_ms) <= window_ms
    }

    /// Notes a call of a desktop.
    pub fn saw(&self, desktop_id: DesktopId) {
        let seen = Seen {
            at: self.clock.now(),
            monotonic_ms: self.clock.monotonic_ms(),
        };
        let mut signs = self.signs();
        let entry = signs.entry(desktop_id).or_default();
        entry.seen = Some(seen);
        entry.stored = false;
    }

    /// Notes that a wake-up call is held until the returned value is dropped.
    pub fn hold(&self, desktop_id: DesktopId) -> HeldWake {
        self.signs().entry(desktop_id).or_default().wakes_held += 1;
        let presence = self.clone();
        HeldWake {
            presence,
            desktop_id,
        }
    }

    /// The sign of life in memory, or else the stored one.
    pub fn last_seen_at(
        &self,
        desktop_id: DesktopId,
        stored: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let seen = self.signs().get(&desktop_id).and_then(|signs| signs.seen);
        seen.map(|seen| seen.at).or(stored)
    }

    /// Whether the desktop called within [`ONLINE_WINDOW_MS`] or holds a wake-up call. A `stored`
    /// sign counts until the desktop calls a hub that has just started.
    pub fn is_online(&self, desktop_id: DesktopId, stored: Option<Timestamp>) -> bool {
        let signs = self.signs().get(&desktop_id).copied().unwrap_or_default();
        let called = match signs.seen {
            Some(seen) => self.is_within(seen.monotonic_ms, ONLINE_WINDOW_MS),
            None => stored.is_some_and(|at| {
                let apart_ms = self.clock.now().as_millis().abs_diff(at.as_millis());
                apart_ms <= ONLINE_WINDOW_MS
            }),
        };
        called || signs.wakes_held > 0
    }

    /// Whether a wake-up call of the desktop is being held.
    pub fn is_holding(&self, desktop_id: DesktopId) -> bool {
        let signs = self.signs().get(&desktop_id).copied();
        signs.is_some_and(|signs| signs.wakes_held > 0)
    }

    /// Whether a queued command reaches the desktop at once: it holds a wake-up call, or ended one
    /// a moment ago to sync and will be back.
    pub fn is_woken_at_once(&self, desktop_id: DesktopId) -> bool {
        let signs = self.signs().get(&desktop_id).copied().unwrap_or_default();
        let ended = signs.wake_ended_ms;
        signs.wakes_held > 0 || ended.is_some_and(|ms| self.is_within(ms, CONTROL_INTERVAL_MS))
    }

    /// Takes the signs of life that were not handed out since they changed.
    pub(crate) fn take_unstored(&self) -> Vec<(DesktopId, Timestamp)> {
        let mut taken = Vec::new();
        for (desktop_id, signs) in self.signs().iter_mut().filter(|(_, signs)| !signs.stored) {
            if let Some(seen) = signs.seen {
                signs.stored = true;
                taken.push((*desktop_id, seen.at));
            }
        }
        taken
    }
}

impl Drop for HeldWake {
    fn drop(&mut self) {
        let now_ms = self.presence.clock.monotonic_ms();
        if let Some(signs) = self.presence.signs().get_mut(&self.desktop_id) {
            signs.wakes_held = signs.wakes_held.saturating_sub(1);
            signs.wake_ended_ms = Some(now_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use callboard_ambient::ManualClock;

    use super::*;

    const DESKTOP: DesktopId = DesktopId::from_bytes([1; 16]);
    const START: Timestamp = Timestamp::from_millis(10_000_000);

    fn presence() -> (Presence, ManualClock) {
        let (clock, hands) = Clock::manual(START);
        (Presence::new(clock), hands)
    }

    #[test]
    fn a_desktop_is_online_for_sixty_seconds_after_a_call_and_while_it_holds_a_wake() {
        let (presence, hands) = presence();
        assert!(!presence.is_online(DESKTOP, None));
        presence.saw(DESKTOP);
        hands.advance_ms(60_000);
        assert!(presence.is_online(DESKTOP, None));
        hands.advance_ms(1);
        assert!(!presence.is_online(DESKTOP, None));
        let held = presence.hold(DESKTOP);
        hands.advance_ms(600_000);
        assert!(presence.is_online(DESKTOP, None) && presence.is_woken_at_once(DESKTOP));
        drop(held);
        assert!(
            !presence.is_online(DESKTOP, None),
            "an ended wake-up call is no call"
        );
        hands.advance_ms(CONTROL_INTERVAL_MS + 1);
        assert!(!presence.is_woken_at_once(DESKTOP));
    }

    #[test]
    fn a_wall_clock_that_is_set_back_brings_nobody_back() {
        let (presence, hands) = presence();
        presence.saw(DESKTOP);
        hands.advance_ms(1_800_000);
        hands.set_wall(Timestamp::from_millis(START.as_millis() - 3_600_000));
        assert!(!presence.is_online(DESKTOP, None));
        assert!(!presence.is_online(DesktopId::from_bytes([2; 16]), Some(START)));
        presence.saw(DESKTOP);
        assert!(presence.is_online(DESKTOP, None));
    }

    #[test]
    fn a_stored_sign_counts_after_a_restart_of_the_hub() {
        let (presence, hands) = presence();
        hands.advance_ms(60_000);
        assert!(presence.is_online(DESKTOP, Some(START)));
        hands.advance_ms(1);
        assert!(!presence.is_online(DESKTOP, Some(START)));
    }

    #[test]
    fn a_sign_of_life_is_handed_out_for_storing_once() {
        let (presence, _hands) = presence();
        presence.saw(DESKTOP);
        assert_eq!(presence.take_unstored(), vec![(DESKTOP, START)]);
        assert_eq!(presence.take_unstored(), vec![]);
    }
}
