//! `run_graph_session`: queues a run and answers with a ticket.

use callboard_domain::CommandId;
use callboard_domain::limits::ARGUMENTS_UTF16_MAX;
use serde::{Deserialize, Serialize};

use crate::arguments::{Argument, Kind};
use crate::as_text;

/// What it takes.
pub const ARGUMENTS: &[Argument] = &[
    Argument {
        name: "graph_session_id",
        description: "A session from list_graph_sessions: gs_ and 32 hex digits.",
        kind: Kind::Id,
        required: true,
    },
    Argument {
        name: "arguments",
        description: "The Graph's own arguments, as its description asks for them.",
        kind: Kind::Object {
            utf16_max: ARGUMENTS_UTF16_MAX,
        },
        required: false,
    },
    Argument {
        name: "idempotency_key",
        description: "Chosen by you, 8 to 128 characters, new for each run you intend. Repeat the \
                      same key after a lost response: it returns the same command and never \
                      queues a second run.",
        kind: Kind::Text(super::IDEMPOTENCY_KEY_BOUND),
        required: true,
    },
];

/// The ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Reads and cancels the run.
    #[serde(with = "as_text")]
    pub command_id: CommandId,
    /// `queued`; for a repeated key, the present status of its command.
    pub status: String,
    /// The tool that reads progress and result: `get_graph_run`.
    pub read_with: String,
    /// When the first status check is worth it: one pickup interval for a desktop that polls, 0
    /// (use `wait_seconds`) for one that holds a wake-up call.
    pub first_check_after_seconds: u64,
    /// The pause between later checks.
    pub then_every_seconds: u64,
}
