//! `link_current_chat`: makes the conversation known to a project.

use callboard_domain::limits::{CHAT_LABEL_UTF16_MAX, CHAT_REFERENCE_UTF16_MAX};
use callboard_domain::{ChatLinkId, ProjectId, TextBound, TextUnit};
use serde::{Deserialize, Serialize};

use crate::arguments::{Argument, Kind};
use crate::as_text;

/// What it takes.
pub const ARGUMENTS: &[Argument] = &[
    super::PROJECT_ID,
    Argument {
        name: "label",
        description: "What the owner calls this conversation by, such as its topic.",
        kind: Kind::Text(TextBound {
            min: 1,
            max: CHAT_LABEL_UTF16_MAX,
            unit: TextUnit::Utf16,
        }),
        required: true,
    },
    Argument {
        name: "reference",
        description: "Where the owner finds this conversation, such as its address.",
        kind: Kind::Text(TextBound {
            min: 0,
            max: CHAT_REFERENCE_UTF16_MAX,
            unit: TextUnit::Utf16,
        }),
        required: false,
    },
    Argument {
        name: "idempotency_key",
        description: "Chosen by you, 8 to 128 characters, new for each conversation. Repeat the \
                      same key after a lost response: it returns the same link.",
        kind: Kind::Text(super::IDEMPOTENCY_KEY_BOUND),
        required: true,
    },
];

/// The link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Names this conversation in the other tools.
    #[serde(with = "as_text")]
    pub chat_link_id: ChatLinkId,
    /// The project that was asked for.
    #[serde(with = "as_text")]
    pub project_id: ProjectId,
    /// The label as it is stored.
    pub label: String,
}
