//! The hub over HTTP: the MCP endpoint, the relay API, the owner's console and the probes. The only crate on the hub's
//! side that knows HTTP.

mod access;
mod artifacts;
mod console;
mod guard;
mod hold;
mod mcp;
mod options;
mod probes;
mod relay;
mod reply;
mod serve;

use std::sync::Arc;

use callboard_hub::Hub;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use options::{HttpOptions, OptionsError};
pub use serve::{router, serve};

/// What every handler shares.
#[derive(Debug)]
struct Shared<S> {
    hub: Arc<Hub<S>>,
    options: HttpOptions,
    /// Cancelled when the hub stops, so that held calls answer at once.
    shutdown: CancellationToken,
    /// A place for each large request that may be in memory.
    large_bodies: Semaphore,
}

type SharedHub<S> = Arc<Shared<S>>;
