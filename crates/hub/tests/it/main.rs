//! What time does to the hub: expiry, lost desktops, presence.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod time;
