//! What each MCP tool takes and answers: one file a tool.

pub mod cancel_graph_run;
pub mod get_graph_run;
pub mod list_graph_sessions;
pub mod list_projects;
pub mod run_graph_session;

use crate::arguments::{Argument, Kind};

/// The argument that names a command.
pub(crate) const COMMAND_ID: Argument = Argument {
    name: "command_id",
    description: "The ticket that run_graph_session returned.",
    kind: Kind::Id,
    required: true,
};
