//! `read_linked_chat_tasks`: what waits for this conversation.

use callboard_domain::{ChatLinkId, ClaimId, TaskId};
use serde::{Deserialize, Serialize};

use crate::arguments::Argument;
use crate::as_text;

/// What it takes.
pub const ARGUMENTS: &[Argument] = &[super::CHAT_LINK_ID];

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The link that was asked for.
    #[serde(with = "as_text")]
    pub chat_link_id: ChatLinkId,
    /// The conversation's own claims and then the waiting tasks, oldest first, at most 20 of each;
    /// then at most 5 that are over, latest first.
    pub tasks: Vec<Task>,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Claims it.
    #[serde(with = "as_text")]
    pub task_id: TaskId,
    /// `queued`, `claimed`, `completed`, `failed`, `cancelled` or `expired`.
    pub status: String,
    /// What to do; left out once the task is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// This conversation's own claim.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "as_text::option"
    )]
    pub claim_id: Option<ClaimId>,
    /// When that claim lapses, in epoch seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<i64>,
    /// RFC 3339.
    pub expires_at: String,
}
