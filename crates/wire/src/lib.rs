//! The types that hub, desktop and clients exchange, and how they are read and written.
//!
//! Only shape lives here: what a valid request looks like and what an answer contains. What is
//! permitted is decided by `callboard-domain`.

pub mod arguments;
pub mod as_text;
pub mod relay;
pub mod tools;

mod canonical;
mod present;
mod problem;
mod rfc3339;

pub use canonical::canonical_json;
pub use problem::{PROBLEM_MEDIA_TYPE, Problem};
pub use rfc3339::{epoch_seconds, rfc3339};
pub use serde_json::value::RawValue;

/// The header in which a desktop names its data folder: a UUID, made once for the folder.
pub const WORKER_HEADER: &str = "callboard-worker";
