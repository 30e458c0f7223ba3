//! The owner's way in: one JSON request a line over a Unix socket, one JSON answer a line.
//!
//! `protocol` has the types, `client` is for the command line, `server` answers.

mod client;
mod protocol;
mod server;

pub use client::{CallError, Client, ConnectError, Watch};
pub use protocol::{
    Delivery, DeliveryState, FolderInfo, GraphDetail, GraphInfo, HubReport, Place, ProjectInfo,
    Refused, Request, Response, RunDetail, RunSummary, StatusReport,
};
pub use server::Control;

pub(crate) use server::{Socket, listen, serve};
