//! `upload_linked_chat_artifact`: attaches a file to a claimed task.

use callboard_domain::limits::{
    ARTIFACT_BYTES_MAX, ARTIFACT_ID_CHARS_MAX, ARTIFACT_NAME_UTF16_MAX, BODY_BYTES_MAX,
    MEDIA_TYPE_CHARS_MAX,
};
use callboard_domain::{TextBound, TextUnit};
use serde::{Deserialize, Serialize};

use crate::arguments::{Argument, Kind};

/// The content is counted in bytes once it is decoded; these bounds only refuse what is hopeless.
const TEXT_BOUND: TextBound = TextBound {
    min: 0,
    max: ARTIFACT_BYTES_MAX,
    unit: TextUnit::Utf16,
};
const BASE64_BOUND: TextBound = TextBound {
    max: BODY_BYTES_MAX,
    ..TEXT_BOUND
};

/// What it takes.
pub const ARGUMENTS: &[Argument] = &[
    super::CHAT_LINK_ID,
    super::TASK_ID,
    super::CLAIM_ID,
    Argument {
        name: "artifact_id",
        description: "Chosen by you, 1 to 128 characters, one for each file. Repeat the same id \
                      after a lost response: the file is stored once.",
        kind: Kind::Text(TextBound {
            min: 1,
            max: ARTIFACT_ID_CHARS_MAX,
            unit: TextUnit::CodePoint,
        }),
        required: true,
    },
    Argument {
        name: "name",
        description: "The file's name, such as report.md.",
        kind: Kind::Text(TextBound {
            min: 1,
            max: ARTIFACT_NAME_UTF16_MAX,
            unit: TextUnit::Utf16,
        }),
        required: true,
    },
    Argument {
        name: "media_type",
        description: "Such as text/markdown, image/png or application/pdf.",
        kind: Kind::Text(TextBound {
            min: 1,
            max: MEDIA_TYPE_CHARS_MAX,
            unit: TextUnit::CodePoint,
        }),
        required: true,
    },
    Argument {
        name: "text",
        description: "The content of a text file. Give this or content_base64, not both.",
        kind: Kind::Text(TEXT_BOUND),
        required: false,
    },
    Argument {
        name: "content_base64",
        description: "The content of any other file, in base64.",
        kind: Kind::Text(BASE64_BOUND),
        required: false,
    },
];

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The file is stored.
    pub ok: bool,
    /// It was stored before: this is the answer to a repeated upload.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// The id that was given.
    pub artifact_id: String,
    /// Size of the content.
    pub size_bytes: u64,
    /// SHA-256 of the content, in hex.
    pub sha256: String,
}
