//! `claim_linked_chat_task`: takes a task, for one conversation alone.

use callboard_domain::ClaimId;
use serde::{Deserialize, Serialize};

use crate::arguments::Argument;
use crate::as_text;

/// What it takes.
pub const ARGUMENTS: &[Argument] = &[super::CHAT_LINK_ID, super::TASK_ID];

/// The claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Goes with the result.
    #[serde(with = "as_text")]
    pub claim_id: ClaimId,
    /// When the claim lapses, in epoch seconds.
    pub lease_until: i64,
}
