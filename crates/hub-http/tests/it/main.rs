//! The hub's HTTP surface from outside: real sockets, real MCP messages, the in-memory store.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod error_table;
mod guards;
mod protocol;
mod relay_api;
mod tools;
mod waiting;
mod world;
