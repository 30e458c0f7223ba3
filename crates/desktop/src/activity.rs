//! What happens on a desktop, as it happens, for whoever watches.

use serde::{Deserialize, Serialize};

/// How a run ended, or that it has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The engine works on it.
    Running,
    /// The Graph returned a result.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped, or never began.
    Cancelled,
}

/// One event. Ids are those of the hub and of the history; durations are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Activity {
    /// The hub's state changed.
    Hub {
        /// It answers, and takes this desktop for its own.
        reachable: bool,
        /// One phrase, such as `reachable` or why not.
        state: String,
    },
    /// A command was handed out and its start is asked for.
    Accepted {
        /// The command.
        command_id: String,
        /// The Graph.
        slug: String,
    },
    /// The engine got a script.
    Started {
        /// The execution.
        execution_id: String,
        /// The command, unless the owner started the run here.
        command_id: Option<String>,
        /// The Graph.
        slug: String,
        /// Since the command was handed out.
        after_ms: u64,
    },
    /// The script entered a phase.
    Phase {
        /// The execution.
        execution_id: String,
        /// The phase.
        title: String,
    },
    /// The script logged a line.
    Log {
        /// The execution.
        execution_id: String,
        /// The line.
        message: String,
    },
    /// Calls or tokens were counted.
    Progress {
        /// The execution.
        execution_id: String,
        /// How far it is.
        progress: callboard_wire::relay::Progress,
    },
    /// A run is over, and what there is to say is on disk.
    Ended {
        /// The execution; none for a command that never began.
        execution_id: Option<String>,
        /// The command, unless the owner started the run here.
        command_id: Option<String>,
        /// The Graph.
        slug: String,
        /// How it ended.
        status: RunStatus,
        /// How long the engine had it.
        duration_ms: Option<u64>,
        /// Tokens that it used.
        total_tokens: Option<u64>,
        /// Why it failed or was cancelled.
        error: Option<String>,
    },
    /// The hub refused a start for good.
    Refused {
        /// The command.
        command_id: String,
        /// The Graph.
        slug: String,
        /// The hub's sentence.
        reason: String,
    },
    /// The hub has the completion.
    Delivered {
        /// The command.
        command_id: String,
    },
    /// The hub will never take the completion; it stays here with the reason.
    Parked {
        /// The command.
        command_id: String,
        /// The hub's sentence.
        reason: String,
    },
    /// The disk does not take writes; no new work is fetched until it does.
    DiskTrouble {
        /// What it said.
        reason: String,
    },
    /// The desktop waits forever before this step, as it was configured to.
    Halted {
        /// The step.
        step: String,
    },
}
