//! How long the script may run before it waits or is over, in processor time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::confine::{cpu_ms, limit_cpu};
use crate::limits::{SLICE_CPU_MS, TOTAL_CPU_MS};

/// What a script may use before it must wait or be over.
pub(crate) trait Allowance: std::fmt::Debug + Send + Sync {
    /// Begins a turn of the script; `false` when everything is used up.
    fn begin(&self) -> bool;
    /// Whether the script must stop now. Asked by the engine while it runs, and between jobs.
    fn is_over(&self) -> bool;
    /// Whether the script was interrupted.
    fn was_interrupted(&self) -> bool;
    /// Whether the total, not only this turn, is used up.
    fn total_is_over(&self) -> bool;
    /// Whether the run is being stopped.
    fn is_stopping(&self) -> bool;
}

/// For scripts that are known to be short, in a process that does not belong to them.
#[derive(Debug)]
pub(crate) struct Unlimited;

impl Allowance for Unlimited {
    fn begin(&self) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        false
    }

    fn was_interrupted(&self) -> bool {
        false
    }

    fn total_is_over(&self) -> bool {
        false
    }

    fn is_stopping(&self) -> bool {
        false
    }
}

/// Processor time of this process. Shared by the thread that runs the script, its interrupt handler and the reading thread.
#[derive(Debug)]
pub(super) struct Slice {
    until_ms: AtomicU64,
    /// End of the last slice of a script that is being stopped; 0 before it begins.
    last_until_ms: AtomicU64,
    stopping: AtomicBool,
    interrupted: AtomicBool,
}

impl Slice {
    pub(super) fn new() -> Self {
        Self {
            until_ms: AtomicU64::new(0),
            last_until_ms: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
        }
    }

    fn prolong(&self, used_ms: u64) {
        let mut until_ms = (used_ms + SLICE_CPU_MS).min(TOTAL_CPU_MS);
        if self.is_stopping() {
            until_ms = self
                .last_until_ms
                .compare_exchange(0, until_ms, Ordering::SeqCst, Ordering::SeqCst)
                .map_or_else(|begun| begun, |_| until_ms);
        }
        self.until_ms.store(until_ms, Ordering::SeqCst);
    }

    /// The run is being stopped.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }
}

impl Allowance for Slice {
    /// Begins a slice; `false` when the total is used up. The first one that begins while the
    /// run is being stopped is the last: answers that arrive later do not prolong it.
    fn begin(&self) -> bool {
        let used_ms = cpu_ms().unwrap_or(TOTAL_CPU_MS);
        if used_ms >= TOTAL_CPU_MS || limit_cpu(used_ms).is_err() {
            return false;
        }
        self.prolong(used_ms);
        true
    }

    /// Whether the script must stop now. Asked by the engine while it runs, and between jobs.
    fn is_over(&self) -> bool {
        let over = cpu_ms().unwrap_or(u64::MAX) >= self.until_ms.load(Ordering::SeqCst);
        if over {
            self.interrupted.store(true, Ordering::SeqCst);
        }
        over
    }

    /// Whether the script was interrupted.
    fn was_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }

    /// Whether the total, not only the slice, is used up.
    fn total_is_over(&self) -> bool {
        cpu_ms().unwrap_or(u64::MAX) >= TOTAL_CPU_MS
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slice_of_a_stopped_script_ends_when_it_would_have_however_often_it_begins() {
        let slice = Slice::new();
        slice.stop();
        let end = cpu_ms().unwrap() + 1;
        slice.last_until_ms.store(end, Ordering::SeqCst);
        while cpu_ms().unwrap() < end {
            std::hint::spin_loop();
        }
        slice.prolong(cpu_ms().unwrap());
        assert!(slice.is_over());
        let running = Slice::new();
        running.prolong(cpu_ms().unwrap());
        assert!(!running.is_over());
    }
}
