//! The real binary, as people start it: processes that are killed, a network that loses answers, a
//! disk that is full. `CALLBOARD_BIN` names the binary to test; else it is the one of this build.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test names what it expects, and fails on anything else"
)]

mod bad_days;
mod bad_input;
mod bad_network;
mod bench;
mod chats;
mod client;
mod consent;
mod full_disk;
mod kill_desktop;
mod kill_hub;
mod kill_hub_chats;
mod sockets;
mod stopped_desktop;
mod up;

mod mcp;
mod model;
mod network;
mod process;
mod rig;
