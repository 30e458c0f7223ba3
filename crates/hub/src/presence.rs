//! Which desktops are there now, kept in memory and flushed in batches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_domain::limits::{CONTROL_INTERVAL_MS, ONLINE_WINDOW_MS};
use callboard_domain::{DesktopId, Timestamp};

/// The last signs of life of all desktops. Clones share their contents.
#[derive(Debug, Clone, Default)]
pub struct Presence(Arc<Mutex<BTreeMap<DesktopId, Signs>>>);

#[derive(Debug, Clone, Copy, Default)]
struct Signs {
    last_seen_at: Option<Timestamp>,
    stored: bool,
    wakes_held: u32,
    wake_ended_at: Option<Timestamp>,
}

/// A wake-up call that is being held; dropping it ends it.
#[derive(Debug)]
pub struct HeldWake {
    presence: Presence,
    desktop_id: DesktopId,
    clock: callboard_ambient::Clock,
}

impl Presence {
    fn signs(&self) -> MutexGuard<'_, BTreeMap<DesktopId, Signs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call of a desktop.
    pub fn saw(&self, desktop_id: DesktopId, now: Timestamp) {
        let mut signs = self.signs();
        let entry = signs.entry(desktop_id).or_default();
        if entry.last_seen_at < Some(now) {
            entry.last_seen_at = Some(now);
            entry.stored = false;
        }
    }

    /// Notes that a wake-up call is held until the returned value is dropped.
    pub fn hold(&self, desktop_id: DesktopId, clock: callboard_ambient::Clock) -> HeldWake {
        self.signs().entry(desktop_id).or_default().wakes_held += 1;
        HeldWake {
            presence: self.clone(),
            desktop_id,
            clock,
        }
    }

    /// The later of the stored sign of life and the one in memory.
    pub fn last_seen_at(
        &self,
        desktop_id: DesktopId,
        stored: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let in_memory = self
            .signs()
            .get(&desktop_id)
            .and_then(|signs| signs.last_seen_at);
        in_memory.max(stored)
    }

    /// Whether the desktop called within [`ONLINE_WINDOW_MS`] or holds a wake-up call.
    pub fn is_online(
        &self,
        desktop_id: DesktopId,
        stored: Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        let recent = |at: Timestamp| now.millis_since(at) <= ONLINE_WINDOW_MS;
        self.last_seen_at(desktop_id, stored).is_some_and(recent)
            || self
                .signs()
                .get(&desktop_id)
                .is_some_and(|signs| signs.wakes_held > 0)
    }

    /// Whether a queued command reaches the desktop at once: it holds a wake-up call, or ended one
    /// a moment ago to sync and will be back.
    pub fn is_woken_at_once(&self, desktop_id: DesktopId, now: Timestamp) -> bool {
        let recent = |at: Timestamp| now.millis_since(at) <= CONTROL_INTERVAL_MS;
        self.signs()
            .get(&desktop_id)
            .is_some_and(|signs| signs.wakes_held > 0 || signs.wake_ended_at.is_some_and(recent))
    }

    /// Takes the signs of life that were not handed out since they changed.
    pub(crate) fn take_unstored(&self) -> Vec<(DesktopId, Timestamp)> {
        let mut taken = Vec::new();
        for (desktop_id, signs) in self.signs().iter_mut().filter(|(_, signs)| !signs.stored) {
            if let Some(at) = signs.last_seen_at {
                signs.stored = true;
                taken.push((*desktop_id, at));
            }
        }
        taken
    }
}

impl Drop for HeldWake {
    fn drop(&mut self) {
        let now = self.clock.now();
        if let Some(signs) = self.presence.signs().get_mut(&self.desktop_id) {
            signs.wakes_held = signs.wakes_held.saturating_sub(1);
            signs.wake_ended_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use callboard_ambient::Clock;

    use super::*;

    const DESKTOP: DesktopId = DesktopId::from_bytes([1; 16]);

    #[test]
    fn a_desktop_is_online_for_sixty_seconds_after_a_call_and_while_it_holds_a_wake() {
        let (clock, hands) = Clock::manual(Timestamp::from_millis(1_000_000));
        let presence = Presence::default();
        let online = |clock: &Clock| presence.is_online(DESKTOP, None, clock.now());
        assert!(!online(&clock));
        presence.saw(DESKTOP, clock.now());
        hands.advance_ms(ONLINE_WINDOW_MS);
        assert!(online(&clock));
        hands.advance_ms(1);
        assert!(!online(&clock));
        let held = presence.hold(DESKTOP, clock.clone());
        hands.advance_ms(10 * ONLINE_WINDOW_MS);
        assert!(online(&clock) && presence.is_woken_at_once(DESKTOP, clock.now()));
        drop(held);
        assert!(!online(&clock), "a dropped wake-up call is no sign of life");
        hands.advance_ms(CONTROL_INTERVAL_MS + 1);
        assert!(!presence.is_woken_at_once(DESKTOP, clock.now()));
    }

    #[test]
    fn a_sign_of_life_is_handed_out_for_storing_once() {
        let presence = Presence::default();
        let at = Timestamp::from_millis(5);
        presence.saw(DESKTOP, at);
        assert_eq!(presence.take_unstored(), vec![(DESKTOP, at)]);
        assert_eq!(presence.take_unstored(), vec![]);
        presence.saw(DESKTOP, Timestamp::from_millis(4));
        assert_eq!(
            presence.take_unstored(),
            vec![],
            "time does not run backwards"
        );
    }
}
