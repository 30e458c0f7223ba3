//! The store on SQLite: SQL and row conversion, nothing else.
//!
//! The synchronous core is `operations` over one connection. Two shells drive it: inline, on one
//! connection in memory, where every future is ready at its first poll; and on a file, with one
//! writer thread that puts many operations into one commit, with read connections beside it, and
//! with a thread for the files of artifacts.
//! Which state may follow which is decided in `callboard-domain`; no statement here compares a
//! status.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod contents;
mod error;
mod file_thread;
mod files;
mod open;
mod operations;
mod readers;
mod rows;
mod shell;
mod sql;
mod store;
mod writer;

pub use error::OpenError;
pub use shell::SqliteStore;
