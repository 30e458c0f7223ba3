//! `upload_linked_chat_artifact`: attaches a file to a claimed task.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use callboard_domain::limits::{
    ARTIFACT_BYTES_MAX, ARTIFACT_ID_CHARS_MAX, ARTIFACT_NAME_UTF16_MAX, BODY_BYTES_MAX,
    MEDIA_TYPE_CHARS_MAX,
};
use callboard_domain::{TextBound, TextUnit};
use serde::{Deserialize, Serialize};

use crate::arguments::{Argument, ArgumentError, Kind};

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

/// The content of a file that came as text or in base64.
///
/// Base64 is read with and without padding and line breaks, in both alphabets.
///
/// # Errors
/// [`ArgumentError::Missing`] when neither came, [`ArgumentError::Invalid`] when both did, for what
/// is not base64, and for more than [`ARTIFACT_BYTES_MAX`] bytes.
pub fn content(text: Option<&str>, base64: Option<&str>) -> Result<Vec<u8>, ArgumentError> {
    let invalid = |name, expected: &str| ArgumentError::Invalid {
        name,
        expected: expected.to_owned(),
    };
    let (name, content) = match (text, base64) {
        (Some(text), None) => ("text", text.as_bytes().to_vec()),
        (None, Some(base64)) => {
            let decoded = decode(base64);
            let expected = "base64 of the file's bytes";
            let content = decoded.ok_or_else(|| invalid("content_base64", expected))?;
            ("content_base64", content)
        }
        (Some(_), Some(_)) => {
            let expected = "left out where `text` is given";
            return Err(invalid("content_base64", expected));
        }
        (None, None) => {
            let expected = "the content of a text file, or `content_base64` for another".to_owned();
            return Err(ArgumentError::Missing {
                name: "text",
                expected,
            });
        }
    };
    if content.len() > ARTIFACT_BYTES_MAX {
        return Err(invalid(name, "at most 5 MB (5,242,880 bytes) of content"));
    }
    Ok(content)
}

fn decode(base64: &str) -> Option<Vec<u8>> {
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let plain: String = base64
        .chars()
        .filter(|character| !character.is_ascii_whitespace())
        .map(|character| match character {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    GeneralPurpose::new(&alphabet::STANDARD, lenient)
        .decode(plain)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_however_it_is_written() {
        for written in ["+/+/YQ==", "-_-_YQ", "+/+/\r\nYQ=="] {
            let read = content(None, Some(written));
            assert_eq!(read.as_deref(), Ok(&[251, 255, 191, 97][..]), "{written}");
        }
        assert_eq!(content(Some("é"), None).as_deref(), Ok("é".as_bytes()));
        assert_eq!(content(None, Some("")).as_deref(), Ok(&[][..]));
    }

    #[test]
    fn what_is_no_content_is_named() {
        let sentence = |text, base64| content(text, base64).expect_err("refused").to_string();
        assert_eq!(
            sentence(None, Some("a*b")),
            "`content_base64` must be base64 of the file's bytes."
        );
        assert_eq!(
            sentence(Some(""), Some("")),
            "`content_base64` must be left out where `text` is given."
        );
        assert_eq!(
            sentence(None, None),
            "`text` is required: the content of a text file, or `content_base64` for another."
        );
        let too_much = "é".repeat(ARTIFACT_BYTES_MAX / 2 + 1);
        assert_eq!(
            sentence(Some(&too_much), None),
            "`text` must be at most 5 MB (5,242,880 bytes) of content."
        );
    }
}
