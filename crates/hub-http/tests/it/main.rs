//! The hub's HTTP surface from outside: real sockets, real MCP messages, real stores.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod chat_artifacts;
mod chat_client;
mod chat_downloads;
mod chat_hostile;
mod chat_keys;
mod chat_leases;
mod chat_races;
mod chat_revoked;
mod chat_strangers;
mod chat_tools;
mod chat_world;
mod chats;
mod console;
mod direct;
mod error_table;
mod guards;
mod large_bodies;
mod protocol;
mod relay_api;
mod tools;
mod waiting;
mod world;
