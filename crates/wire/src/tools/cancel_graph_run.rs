//! `cancel_graph_run`: asks a run to stop.

use callboard_domain::CommandId;
use serde::{Deserialize, Serialize};

use crate::arguments::Argument;
use crate::as_text;

/// What it takes.
pub const ARGUMENTS: &[Argument] = &[super::COMMAND_ID];

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The command that was asked for.
    #[serde(with = "as_text")]
    pub command_id: CommandId,
    /// `cancelled` at once for a queued run; a running one is stopped by its desktop.
    pub status: String,
    /// Somebody asked for the run to stop.
    pub cancel_requested: bool,
}
