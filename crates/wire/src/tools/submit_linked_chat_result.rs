//! `submit_linked_chat_result`: answers a claimed task, once.

use callboard_domain::limits::TASK_RESULT_UTF16_MAX;
use callboard_domain::linked_task::Verdict;
use callboard_domain::{TextBound, TextUnit};
use serde::{Deserialize, Serialize};

use crate::arguments::{Argument, Kind};

/// What it takes.
pub const ARGUMENTS: &[Argument] = &[
    super::CHAT_LINK_ID,
    super::TASK_ID,
    super::CLAIM_ID,
    Argument {
        name: "status",
        description: "completed, or failed if the task could not be done; the result then says \
                      why.",
        kind: Kind::Word(&Verdict::WORDS),
        required: true,
    },
    Argument {
        name: "result",
        description: "The answer. Upload what is longer as an artifact first.",
        kind: Kind::Text(TextBound {
            min: 1,
            max: TASK_RESULT_UTF16_MAX,
            unit: TextUnit::Utf16,
        }),
        required: true,
    },
];

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The result is stored.
    pub ok: bool,
    /// It was stored before: this is the answer to a repeated submit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}
