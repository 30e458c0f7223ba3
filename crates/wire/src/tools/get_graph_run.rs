//! `get_graph_run`: status, progress and result of one run.

use callboard_domain::limits::WAIT_SECONDS_MAX;
use callboard_domain::{CommandId, ExecutionId, TextBound, TextUnit};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::arguments::{Argument, Kind};
use crate::as_text;
use crate::present::present;
use crate::relay::Progress;

/// What it takes.
pub const ARGUMENTS: &[Argument] = &[
    super::COMMAND_ID,
    Argument {
        name: "wait_seconds",
        description: "Hold the call until the status changes, at most this long. 0 answers at \
                      once.",
        kind: Kind::Integer {
            min: 0,
            max: WAIT_SECONDS_MAX,
        },
        required: false,
    },
    Argument {
        name: "seen_status",
        description: "The status that you saw last: with wait_seconds, the call answers at once \
                      when the status is another one by now.",
        kind: Kind::Text(TextBound {
            min: 1,
            max: 20,
            unit: TextUnit::CodePoint,
        }),
        required: false,
    },
];

/// What it answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// The command that was asked for.
    #[serde(with = "as_text")]
    pub command_id: CommandId,
    /// `queued`, `running`, `completed`, `failed`, `cancelled` or `expired`.
    pub status: String,
    /// What a running Graph is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// How far a running Graph is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// RFC 3339.
    pub queued_at: String,
    /// RFC 3339, once a desktop began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// RFC 3339, once the run is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// Where it runs.
    pub desktop: Desktop,
    /// Somebody asked for the run to stop.
    pub cancel_requested: bool,
    /// The run's id in the desktop's own history.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "as_text::option"
    )]
    pub execution_id: Option<ExecutionId>,
    /// The whole result, or nothing; a Graph can return null.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub result: Option<Box<RawValue>>,
    /// The result exceeds 100,000 characters and stays on the desktop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub result_truncated: bool,
    /// Why the run failed or was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Tokens that the run used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// What the providers said the run cost, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_cost: Option<f64>,
    /// When to ask again; left out once the run is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_check_after_seconds: Option<u64>,
}

/// The desktop of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desktop {
    /// It called within 60 s, or holds a wake-up call.
    pub online: bool,
    /// RFC 3339; left out for a desktop that never called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<String>,
}
