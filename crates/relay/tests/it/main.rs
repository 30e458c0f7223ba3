//! The relay against a model hub built on the real rules: single facts, and random histories.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod facts;
mod histories;
mod hub;
mod world;
