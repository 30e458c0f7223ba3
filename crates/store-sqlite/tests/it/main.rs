//! The SQLite store against the suite of every store, and what only a file on a disk can do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod artifacts;
mod contention;
mod crash;
mod crash_chats;
mod opening;
mod suite;
