//! The simulator: the real hub, the real relay and the real scheduler on a virtual clock, with a
//! wire, disks, crashes and people that one seed decides.
//!
//! It re-implements nothing: [`World`] calls the use cases of `callboard-hub`, steps
//! `callboard-relay` and `callboard-fleet`, and plays what lies between them.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod bug;
#[cfg(test)]
mod cases;
mod disk;
mod engine;
mod fuzz;
mod history;
mod hub_side;
mod people;
mod plan;
mod port;
mod random;
mod rows;
pub mod tables;
mod witness;
mod world;

pub use bug::Bug;
pub use fuzz::{Failed, Found, Search, ranges, search, shorten};
pub use history::{Counts, Outcome, Stage, play};
pub use plan::{CHAOS_MS, HEAL_MS, Op, Plan, Planned};
pub use witness::Violation;
pub use world::Faults;

pub(crate) use port::Death;
pub(crate) use random::Random;
pub(crate) use world::{Durations, Notice, Setup, World};
