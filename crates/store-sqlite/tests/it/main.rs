//! The SQLite store against the suite of every store, and what only a file on a disk can do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod contention;
mod crash;
mod opening;
mod suite;
