//! Timers that can be off.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::Sleep;

/// One timer of a run.
#[derive(Debug)]
pub(super) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    pub(super) fn off() -> Self {
        Self(None)
    }

    pub(super) fn after(duration: Duration) -> Self {
        Self(Some(Box::pin(tokio::time::sleep(duration))))
    }

    pub(super) fn stop(&mut self) {
        self.0 = None;
    }

    /// Ends when the timer does; never when it is off. May be dropped and called again.
    pub(super) async fn elapsed(&mut self) {
        match &mut self.0 {
            Some(sleep) => sleep.as_mut().await,
            None => std::future::pending().await,
        }
    }
}

/// Waits the given number of milliseconds, or for ever.
pub(super) async fn wait(duration_ms: Option<u64>) {
    match duration_ms {
        Some(duration_ms) => tokio::time::sleep(Duration::from_millis(duration_ms)).await,
        None => std::future::pending().await,
    }
}
