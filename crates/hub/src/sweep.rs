//! What time causes without anybody asking.

use std::sync::PoisonError;

use callboard_domain::Timestamp;
use callboard_domain::limits::{ONLINE_WINDOW_MS, SWEEP_ROWS_MAX};
use callboard_store::Store;

use crate::{Hub, HubError, Topic};

/// When sweeps happened, to notice that the hub itself was away.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    last_at: Option<Timestamp>,
    held_until: Option<Timestamp>,
}

impl Sweeps {
    /// Whether a sweep at `now` must wait: a hub that was off or asleep gives its desktops the
    /// time to call before it counts them as silent. Reads settle by themselves meanwhile.
    fn must_wait(&mut self, now: Timestamp) -> bool {
        let away = self
            .last_at
            .is_none_or(|last| now.millis_since(last) > ONLINE_WINDOW_MS);
        if away {
            self.held_until = Some(now.plus_ms(ONLINE_WINDOW_MS));
        }
        self.last_at = Some(now);
        self.held_until.is_some_and(|until| now < until)
    }
}

impl<S: Store> Hub<S> {
    /// Stores the signs of life that are new and what became due. Gives true when more is due, so
    /// that the caller goes on at once; otherwise once per
    /// [`SWEEP_INTERVAL_MS`](callboard_domain::limits::SWEEP_INTERVAL_MS) is enough.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn sweep(&self) -> Result<bool, HubError> {
        let seen = self.presence.take_unstored();
        if !seen.is_empty() {
            self.store.note_seen(seen).await?;
        }
        let now = self.clock.now();
        let must_wait = {
            let mut sweeps = self.sweeps.lock().unwrap_or_else(PoisonError::into_inner);
            sweeps.must_wait(now)
        };
        if must_wait {
            return Ok(false);
        }
        let swept = self.store.sweep(now, SWEEP_ROWS_MAX).await?;
        for row in swept.runs {
            self.signals.moved(Topic::Run(row.command_id));
            self.signals
                .moved(Topic::Work(row.desktop_id, row.project_id));
            tracing::info!(command.id = %row.command_id, status = %row.run.status(), "timed out");
        }
        for row in swept.tasks {
            tracing::info!(task.id = %row.task_id, status = %row.task.status(), "timed out");
        }
        Ok(swept.more)
    }
}
