//! What each MCP tool takes and answers: one file a tool.

pub mod cancel_graph_run;
pub mod claim_linked_chat_task;
pub mod get_graph_run;
pub mod link_current_chat;
pub mod list_graph_sessions;
pub mod list_projects;
pub mod read_linked_chat_tasks;
pub mod run_graph_session;
pub mod submit_linked_chat_result;
pub mod upload_linked_chat_artifact;

use callboard_domain::limits::{IDEMPOTENCY_KEY_CHARS_MAX, IDEMPOTENCY_KEY_CHARS_MIN};
use callboard_domain::{TextBound, TextUnit};

use crate::arguments::{Argument, Kind};

/// What every idempotency key may be.
pub const IDEMPOTENCY_KEY_BOUND: TextBound = TextBound {
    min: IDEMPOTENCY_KEY_CHARS_MIN,
    max: IDEMPOTENCY_KEY_CHARS_MAX,
    unit: TextUnit::CodePoint,
};

/// The argument that names a command.
pub(crate) const COMMAND_ID: Argument = Argument {
    name: "command_id",
    description: "The ticket that run_graph_session returned.",
    kind: Kind::Id,
    required: true,
};

/// The argument that names a project.
pub(crate) const PROJECT_ID: Argument = Argument {
    name: "project_id",
    description: "A project from list_projects.",
    kind: Kind::Id,
    required: true,
};

/// The argument that names a linked chat.
pub(crate) const CHAT_LINK_ID: Argument = Argument {
    name: "chat_link_id",
    description: "This conversation's own link, from link_current_chat.",
    kind: Kind::Id,
    required: true,
};

/// The argument that names a task.
pub(crate) const TASK_ID: Argument = Argument {
    name: "task_id",
    description: "A task from read_linked_chat_tasks.",
    kind: Kind::Id,
    required: true,
};

/// The argument that names a claim.
pub(crate) const CLAIM_ID: Argument = Argument {
    name: "claim_id",
    description: "What claim_linked_chat_task returned for this task.",
    kind: Kind::Id,
    required: true,
};
