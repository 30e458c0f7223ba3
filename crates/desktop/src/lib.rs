//! The daemon on the owner's machine: it comes for the work, runs it here, and opens no port.
//!
//! [`Desktop::open`] takes the data folder, [`Desktop::run`] works until it is told to stop.
//! Everything else is a client of its Unix socket, see [`control`]. One thread owns the database
//! and drives the relay's step machine; HTTP calls and runs are tasks beside it.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")
)]

pub mod control;

mod activity;
mod config;
mod daemon;
mod database;
mod desktop;
mod engine;
mod error;
mod folder;
mod hub_client;
mod operations;
mod perform;
mod report;

pub use activity::{Activity, RunStatus};
pub use config::{DesktopConfig, ParseStepError, Step};
pub use desktop::Desktop;
pub use error::{OpenError, RunError};
