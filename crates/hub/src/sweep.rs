//! What time causes without anybody asking.

use callboard_domain::limits::SWEEP_ROWS_MAX;
use callboard_store::Store;

use crate::{Hub, HubError, Topic};

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
        let (moved, more) = self.store.sweep(self.clock.now(), SWEEP_ROWS_MAX).await?;
        for row in moved {
            self.signals.moved(Topic::Run(row.command_id));
            self.signals
                .moved(Topic::Work(row.desktop_id, row.project_id));
            tracing::info!(command.id = %row.command_id, status = %row.run.status(), "timed out");
        }
        Ok(more)
    }
}
