//! What the hub does, without HTTP: the use cases of the MCP tools, of the relay API and of the
//! owner's commands.
//!
//! A use case loads and stores through [`callboard_store::Store`], decides through
//! `callboard-domain`, and answers with wire types. One that must wait answers with
//! [`Reply::Hold`]; no timer lives here.

mod access;
mod admin;
mod artifacts;
mod chats;
mod console;
mod error;
mod hub;
mod presence;
mod relay;
mod runs;
mod signals;
mod sweep;
mod tasks;

pub use access::token_hash;
pub use admin::{Created, DesktopSummary};
pub use artifacts::NewUpload;
pub use chats::NewLink;
pub use console::{StoredPassword, hash_password};
pub use error::HubError;
pub use hub::Hub;
pub use presence::{HeldWake, Presence};
pub use signals::{Hold, Patience, Reply, Signals, Topic, Watch};
