//! The desktop's side of the relay as a step machine: when to call the hub, when to begin a run,
//! what must be on disk before what.
//!
//! [`Relay::step`] takes what happened and returns ordered [`Output`]s. A shell performs them one
//! after another and makes each durable before the next; a crash is "the shell stopped after
//! output k". There is no clock, network, disk or randomness here.

mod io;
mod runs;
mod status;
mod step;
mod turn;
mod view;
mod wake;

pub use io::{Answer, Call, CallId, Command, Failure, Input, Now, Outcome, Output};
pub use status::{DiskTrouble, HubState, Status, WakeUp};
pub use step::{Config, DESKTOP_STOPPED, Relay};
pub use view::{Draw, ProjectView, Seen, Unfinished, View};
