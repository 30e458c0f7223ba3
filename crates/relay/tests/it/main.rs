//! The relay against a model hub built on the real rules: single facts, and random histories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects, and fails on anything else"
)]

mod facts;
mod histories;
mod hub;
mod outbox_first;
mod pacing;
mod world;
