//! A chat's side of its tasks: link, read, claim, submit, upload.

use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use callboard_domain::limits::{ARTIFACT_BYTES_MAX, ARTIFACT_ID_CHARS_MAX, TASK_RESULT_UTF16_MAX};
use callboard_domain::{Refusal, Timestamp};
use callboard_wire::rfc3339;
use callboard_wire::tools::{
    claim_linked_chat_task, link_current_chat, read_linked_chat_tasks, submit_linked_chat_result,
    upload_linked_chat_artifact,
};
use serde_json::json;

use super::{Chat, fresh_key, projects};
use crate::args::{LinkArgs, SubmitArgs, UploadArgs};
use crate::chats::text_or_input;
use crate::failure::Failure;
use crate::output::Output;

pub(super) async fn link(chat: &Chat, arguments: LinkArgs, output: &Output) -> Result<(), Failure> {
    let found = projects(chat, arguments.project.as_deref()).await?;
    let project = match found.as_slice() {
        [only] => only,
        [] => return Err(Failure::failed("this connection has no project")),
        [..] => {
            return Err(Failure::usage("this connection has several projects")
                .hint("name one with --project; `callboard client sessions` shows them"));
        }
    };
    let key = arguments.idempotency_key.unwrap_or_else(fresh_key);
    // Printed before the call: it is what a lost answer needs.
    output.note(format!(
        "key        {key}   (reuse it with --idempotency-key if this answer gets lost)"
    ));
    let call = json!({
        "project_id": project.project_id.to_string(),
        "label": arguments.label,
        "reference": arguments.reference,
        "idempotency_key": key,
    });
    let linked: link_current_chat::Answer =
        chat.ask("link_current_chat", call)
            .await
            .map_err(|failure| {
                let again = "it may have been linked: run this again with --idempotency-key";
                failure.if_lost(format!("{again} {key}"))
            })?;
    let link_id = linked.chat_link_id.to_string();
    output.data(&json!({"idempotency_key": key, "link": linked}), || {
        vec![
            format!("chat       {link_id}"),
            format!("label      {}", linked.label),
        ]
    });
    output.note(format!(
        "read its tasks with: callboard client tasks {link_id}"
    ));
    Ok(())
}

pub(super) async fn tasks(
    chat: &Chat,
    chat_link_id: String,
    output: &Output,
) -> Result<(), Failure> {
    let call = json!({"chat_link_id": chat_link_id});
    let inbox: read_linked_chat_tasks::Answer = chat.ask("read_linked_chat_tasks", call).await?;
    output.data(&inbox, || inbox.tasks.iter().flat_map(task_lines).collect());
    if inbox.tasks.is_empty() {
        output.note("Nothing waits for this chat.");
    }
    Ok(())
}

/// A task as a block of lines. Its text is indented, so that no line of it can be taken for a field.
fn task_lines(task: &read_linked_chat_tasks::Task) -> Vec<String> {
    let mut lines = vec![
        format!("task       {}", task.task_id),
        format!("status     {}", task.status),
    ];
    if let Some(claim_id) = task.claim_id {
        lines.push(format!("claim      {claim_id}"));
    }
    if let Some(until) = task.lease_until {
        lines.push(format!("until      {}", at(until)));
    }
    if let Some(text) = &task.text {
        lines.push(format!("expires    {}", task.expires_at));
        lines.extend(text.lines().map(|line| format!("    {line}")));
    }
    lines.push(String::new());
    lines
}

/// Epoch seconds, as people read them.
fn at(epoch_seconds: i64) -> String {
    rfc3339(Timestamp::from_millis(epoch_seconds.saturating_mul(1_000)))
}

pub(super) async fn claim(
    chat: &Chat,
    chat_link_id: String,
    task_id: String,
    output: &Output,
) -> Result<(), Failure> {
    let call = json!({"chat_link_id": chat_link_id, "task_id": task_id});
    let claimed = chat.ask("claim_linked_chat_task", call).await;
    let claimed: claim_linked_chat_task::Answer = claimed.map_err(again_is_fine)?;
    output.data(&claimed, || {
        vec![
            format!("claim      {}", claimed.claim_id),
            format!("until      {}", at(claimed.lease_until)),
        ]
    });
    Ok(())
}

pub(super) async fn submit(
    chat: &Chat,
    arguments: SubmitArgs,
    output: &Output,
) -> Result<(), Failure> {
    let status = if arguments.failed {
        "failed"
    } else {
        "completed"
    };
    let call = json!({
        "chat_link_id": arguments.chat_link_id,
        "task_id": arguments.task_id,
        "claim_id": arguments.claim_id,
        "status": status,
        "result": text_or_input(arguments.result, TASK_RESULT_UTF16_MAX)?,
    });
    let submitted = chat.ask("submit_linked_chat_result", call).await;
    let submitted: submit_linked_chat_result::Answer = submitted.map_err(again_is_fine)?;
    output.data(&submitted, || {
        vec![ok(submitted.replayed, "the result was stored before")]
    });
    Ok(())
}

pub(super) async fn upload(
    chat: &Chat,
    arguments: UploadArgs,
    output: &Output,
) -> Result<(), Failure> {
    let (file, content) = (&arguments.file, read(&arguments.file)?);
    let name = file
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let media_type = match arguments.media_type {
        Some(media_type) => media_type,
        None => media_type_of(file)
            .ok_or_else(|| {
                Failure::usage(format!("cannot tell the media type of {}", file.display()))
                    .hint("name it, such as --media-type text/plain")
            })?
            .to_owned(),
    };
    let call = json!({
        "chat_link_id": arguments.chat_link_id,
        "task_id": arguments.task_id,
        "claim_id": arguments.claim_id,
        "artifact_id": arguments.artifact_id.unwrap_or_else(|| default_id(&name)),
        "name": name,
        "media_type": media_type,
        "content_base64": STANDARD.encode(content),
    });
    let uploaded = chat.ask("upload_linked_chat_artifact", call).await;
    let uploaded: upload_linked_chat_artifact::Answer = uploaded.map_err(|failure| {
        if failure.message == Refusal::ArtifactDiffers.public_text() {
            return failure.hint("to keep both files, choose another id with --artifact-id");
        }
        again_is_fine(failure)
    })?;
    output.data(&uploaded, || {
        vec![
            ok(uploaded.replayed, "the file was stored before"),
            format!("sha256     {}", uploaded.sha256),
        ]
    });
    Ok(())
}

/// The id of a file that was given none: its name, as far as an id may be long.
fn default_id(name: &str) -> String {
    name.chars().take(ARTIFACT_ID_CHARS_MAX).collect()
}

fn ok(replayed: bool, before: &str) -> String {
    if replayed {
        format!("ok   ({before})")
    } else {
        "ok".to_owned()
    }
}

fn again_is_fine(failure: Failure) -> Failure {
    failure.if_lost("run the same command again: it has no second effect")
}

/// The file, if it is not larger than the hub takes.
fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed =
        |error: std::io::Error| Failure::usage(format!("cannot read {}: {error}", file.display()));
    let mut content = Vec::new();
    let bound = ARTIFACT_BYTES_MAX as u64 + 1;
    let opened = std::fs::File::open(file).map_err(failed)?;
    opened
        .take(bound)
        .read_to_end(&mut content)
        .map_err(failed)?;
    if content.len() > ARTIFACT_BYTES_MAX {
        return Err(Failure::usage(format!(
            "{} is larger than 5 MB, which is the most that a task takes",
            file.display()
        )));
    }
    Ok(content)
}

/// The media type that a file's name promises, for the usual kinds.
fn media_type_of(file: &Path) -> Option<&'static str> {
    let extension = file.extension()?.to_str()?.to_ascii_lowercase();
    let known = MEDIA_TYPES.iter().find(|(known, _)| *known == extension);
    known.map(|(_, media_type)| *media_type)
}

const MEDIA_TYPES: [(&str, &str); 24] = [
    ("csv", "text/csv"),
    ("css", "text/css"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("zip", "application/zip"),
];

#[cfg(test)]
mod tests {
    use callboard_domain::linked_task::is_media_type_admitted;

    use super::*;

    #[test]
    fn every_type_that_a_name_promises_is_taken_by_the_hub() {
        for (extension, media_type) in MEDIA_TYPES {
            assert!(is_media_type_admitted(media_type), "{extension}");
        }
        assert_eq!(
            media_type_of(Path::new("a/REPORT.MD")),
            Some("text/markdown")
        );
        assert_eq!(media_type_of(Path::new("program.exe")), None);
        assert_eq!(media_type_of(Path::new("Makefile")), None);
    }
}
