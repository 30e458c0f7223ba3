//! What a chat may attach to a task, and when.

use super::decide::fence;
use super::{Task, settle};
use crate::limits::{ARTIFACTS_PER_CLAIM_MAX, ARTIFACTS_PER_TASK_MAX, MEDIA_TYPE_CHARS_MAX};
use crate::{ChatLinkId, ClaimId, Decision, Digest, Refusal, Timestamp};

/// A file that a chat wants to attach under its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upload {
    /// The chat.
    pub link_id: ChatLinkId,
    /// The claim under which it works.
    pub claim_id: ClaimId,
    /// SHA-256 of the content.
    pub content: Digest,
}

/// What was uploaded for a task before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uploaded {
    /// The content of this claim's artifact with the same `artifact_id`.
    pub same_id: Option<Digest>,
    /// How many artifacts this claim uploaded.
    pub of_claim: usize,
    /// How many artifacts the task has, over all claims.
    pub of_task: usize,
}

/// Answers an upload at `now`: `Moved` means that the file is new and must be stored.
///
/// A repeated upload is a success whatever became of the task since, so that a lost response costs
/// nothing.
///
/// # Errors
/// In this order, as for a submit: [`Refusal::SubmitMissing`], [`Refusal::SubmitOver`],
/// [`Refusal::SubmitLapsed`], [`Refusal::SubmitStale`]; then [`Refusal::ArtifactDiffers`],
/// [`Refusal::TooManyArtifacts`]: another id is advice only while there is something to upload to.
pub fn decide_upload(
    task: &Task,
    upload: &Upload,
    uploaded: Uploaded,
    now: Timestamp,
) -> Result<Decision<()>, Refusal> {
    let now = now.max(task.updated_at);
    let settled = settle(task, now);
    let task = settled.as_ref().unwrap_or(task);
    if !task.is_for(upload.link_id) {
        return Err(Refusal::SubmitMissing);
    }
    if uploaded.same_id == Some(upload.content) {
        return Ok(Decision::Replayed);
    }
    fence(task, upload.link_id, upload.claim_id)?;
    if uploaded.same_id.is_some() {
        return Err(Refusal::ArtifactDiffers);
    }
    if uploaded.of_claim >= ARTIFACTS_PER_CLAIM_MAX || uploaded.of_task >= ARTIFACTS_PER_TASK_MAX {
        return Err(Refusal::TooManyArtifacts);
    }
    Ok(Decision::Moved(()))
}

/// Kinds of which every subtype is a document.
const ADMITTED_KINDS: [&str; 4] = ["text", "image", "audio", "video"];

/// Documents, data and archives among the rest.
const ADMITTED_APPLICATIONS: [&str; 14] = [
    "gzip",
    "json",
    "ld+json",
    "msword",
    "pdf",
    "rtf",
    "sql",
    "toml",
    "vnd.ms-excel",
    "vnd.ms-powerpoint",
    "x-ndjson",
    "xml",
    "yaml",
    "zip",
];

/// Office documents: the registered names that begin so.
const ADMITTED_PREFIXES: [&str; 2] = [
    "vnd.openxmlformats-officedocument.",
    "vnd.oasis.opendocument.",
];

/// What in a subtype says that it runs somewhere.
const RUNS: [&str; 6] = [
    "script",
    "macroenabled",
    "x-sh",
    "x-python",
    "x-perl",
    "x-php",
];

/// Whether an artifact may be of this media type: text, an image, sound, film, or one of the usual
/// documents, data formats and archives. Scripts, macros and programs are not among them, as far as a
/// name tells. Parameters such as
/// `; charset=utf-8` are permitted.
pub fn is_media_type_admitted(media_type: &str) -> bool {
    if media_type.len() > MEDIA_TYPE_CHARS_MAX {
        return false;
    }
    let printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if !media_type.bytes().all(printable) {
        return false;
    }
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    let Some((kind, subtype)) = essence.split_once('/') else {
        return false;
    };
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
    if subtype.is_empty() || !subtype.bytes().all(named) {
        return false;
    }
    if RUNS.iter().any(|word| subtype.contains(word)) {
        return false;
    }
    ADMITTED_KINDS.contains(&kind)
        || (kind == "application"
            && (ADMITTED_APPLICATIONS.contains(&subtype)
                || ADMITTED_PREFIXES
                    .iter()
                    .any(|prefix| subtype.starts_with(prefix))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_admitted_and_programs_are_not() {
        for fine in [
            "text/plain",
            "text/markdown; charset=utf-8",
            "IMAGE/PNG",
            "image/svg+xml",
            "application/json",
            "application/pdf",
            "application/vnd.ms-excel",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ] {
            assert!(is_media_type_admitted(fine), "{fine}");
        }
        for wrong in [
            "",
            "text",
            "text/",
            "/plain",
            "text/pl ain",
            "text/plain\r\nSet-Cookie: a=b",
            "application/octet-stream",
            "application/x-msdownload",
            "text/javascript",
            "text/x-shellscript",
            "text/x-python",
            "text/x-perl",
            "application/x-php",
            "text/vbscript",
            "application/vnd.ms-excel.sheet.macroEnabled.12",
            "application/vnd.openxmlformats-officedocument.x.macroEnabled",
            "application/java-archive",
            "multipart/form-data",
            "text/ü",
            &format!("text/{}", "a".repeat(200)),
        ] {
            assert!(!is_media_type_admitted(wrong), "{wrong}");
        }
    }
}
