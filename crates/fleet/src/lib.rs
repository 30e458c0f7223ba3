//! Runs a Graph: a saved JavaScript program that starts agents and tools under hard limits.
//!
//! `scheduler` decides everything and does nothing; `run` performs what it says; `child` is the
//! process that holds the script and nothing else.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod limits;
pub mod scheduler;

mod child;
mod dispatch;
mod fleet;
mod frame;
mod inline;
mod meta;
mod run;
mod sandbox;
mod script;
mod spawn;

pub use child::child_main;
pub use fleet::{Calls, Event, Failure, Finished, Fleet, FleetStatus, RunRequest};
pub use inline::{InlineScript, Said};
pub use meta::{Limits, Meta, Phase};
pub use script::ScriptError;
pub use spawn::Launcher;
