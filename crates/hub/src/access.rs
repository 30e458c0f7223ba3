//! Who calls: bearer tokens of connections and desktops.

use callboard_domain::{Digest, WorkerId};
use callboard_store::{Connection, Desktop, Store, TokenHash};

use crate::{Hub, HubError};

/// The hash under which a bearer token is stored.
pub fn token_hash(token: &str) -> TokenHash {
    Digest::of(&[b"bearer", token.as_bytes()])
}

impl<S: Store> Hub<S> {
    /// The connection that a bearer token belongs to; `None` for an unknown or revoked one.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn authenticate_connection(
        &self,
        token: &str,
    ) -> Result<Option<Connection>, HubError> {
        Ok(self.store.connection_by_token(token_hash(token)).await?)
    }

    /// The desktop that a device token belongs to; `None` for an unknown one. The call counts as a
    /// sign of life, and binds the identity to the data folder `worker_id` if it is still free.
    ///
    /// # Errors
    /// [`Refusal::DesktopInUse`](callboard_domain::Refusal::DesktopInUse) when the identity is
    /// bound to another data folder; [`HubError::Unavailable`].
    pub async fn authenticate_desktop(
        &self,
        token: &str,
        worker_id: WorkerId,
    ) -> Result<Option<Desktop>, HubError> {
        let Some(desktop) = self.store.desktop_by_token(token_hash(token)).await? else {
            return Ok(None);
        };
        if callboard_store::rules::bind_worker(desktop.worker_id, worker_id)? {
            self.store.bind_worker(desktop.id, worker_id).await?;
        }
        self.presence.saw(desktop.id);
        Ok(Some(desktop))
    }

    /// Whether a device token belongs to a desktop. Neither a sign of life nor a binding.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn knows_device_token(&self, token: &str) -> Result<bool, HubError> {
        let found = self.store.desktop_by_token(token_hash(token)).await?;
        Ok(found.is_some())
    }
}
