//! Agents against real HTTP on loopback, and the files tools against attempts to leave their
//! folders.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod calls;
mod files;
mod network;
mod server;
