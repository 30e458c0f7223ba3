//! `callboard chat …` and `callboard task …`: what the owner does with linked chats.

mod requests;
mod save;
mod show;

use std::io::Read as _;
use std::path::Path;

use callboard_domain::limits::TASK_TEXT_UTF16_MAX;
use callboard_domain::utf16_len;
use serde_json::json;

use crate::args::{ChatCommand, TaskCommand};
use crate::client::fresh_key;
use crate::failure::Failure;
use crate::hub::{AdminAnswer, AdminRequest, ask};
use crate::output::{Output, table};

pub(crate) use requests::{ChangedTask, ChatAnswer, ChatRequest, answer};

/// Runs one of the commands about linked chats.
pub(crate) async fn chat(
    data: &Path,
    command: ChatCommand,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        ChatCommand::List => {
            let ChatAnswer::Links { chats } = asked(data, ChatRequest::Links).await? else {
                return Err(unexpected());
            };
            output.data(&json!({"chats": chats}), || {
                table(&chats.iter().map(show::chat_row).collect::<Vec<_>>())
            });
            if chats.is_empty() {
                output.note(
                    "No chat is linked yet. Say in one: \"Link this chat to my Callboard project.\"",
                );
            }
            Ok(())
        }
        ChatCommand::Revoke { chat } => {
            let request = ChatRequest::Revoke { chat };
            let ChatAnswer::Revoked {
                chat_link_id,
                label,
                tasks,
            } = asked(data, request).await?
            else {
                return Err(unexpected());
            };
            let told = json!({"chat_link_id": chat_link_id, "label": label, "tasks": tasks});
            output.data(&told, || {
                let unlinked = match label {
                    Some(label) => format!("{label} is unlinked: it can submit nothing more"),
                    None => format!("{chat_link_id} was unlinked before"),
                };
                let mut lines = vec![unlinked];
                lines.extend(tasks.iter().map(changed_task));
                lines
            });
            Ok(())
        }
    }
}

/// What became of a task that lost a candidate.
pub(crate) fn changed_task(task: &ChangedTask) -> String {
    let became = match task.status.as_str() {
        "cancelled" => "cancelled: no chat is left that could do it",
        "queued" => "waits for its other chats",
        "claimed" => "stays with the other chat that has it",
        status => status,
    };
    format!("task      {}  {became}", task.task_id)
}

/// Runs one of the commands about tasks.
pub(crate) async fn task(
    data: &Path,
    command: TaskCommand,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        TaskCommand::Assign {
            chats,
            text,
            idempotency_key,
        } => assign(data, chats, text, idempotency_key, output).await,
        TaskCommand::List { limit } => {
            let ChatAnswer::Tasks { tasks } = asked(data, ChatRequest::Tasks { limit }).await?
            else {
                return Err(unexpected());
            };
            output.data(&json!({"tasks": tasks}), || {
                table(&tasks.iter().map(show::task_row).collect::<Vec<_>>())
            });
            if tasks.is_empty() {
                output.note("No tasks yet. `callboard chat list` shows who could take one.");
            }
            Ok(())
        }
        TaskCommand::Show { task_id, save } => {
            let ChatAnswer::Task { mut task } = asked(data, ChatRequest::Task { task_id }).await?
            else {
                return Err(unexpected());
            };
            let saved = match save {
                Some(folder) => save::artifacts(data, &mut task, &folder).await,
                None => Ok(()),
            };
            output.data(&task, || show::task_lines(&task));
            saved.map_err(Failure::told)
        }
        TaskCommand::Cancel { task_id } => {
            let ChatAnswer::Cancelled { cancelled, status } =
                asked(data, ChatRequest::Cancel { task_id }).await?
            else {
                return Err(unexpected());
            };
            let told = json!({"cancelled": cancelled, "status": status});
            output.data(&told, || match cancelled {
                true => vec!["cancelled: whatever is submitted for it is rejected".to_owned()],
                false => vec![format!("not cancelled: the task is {status} already")],
            });
            if cancelled {
                return Ok(());
            }
            Err(Failure::failed("nothing changed").told())
        }
    }
}

async fn assign(
    data: &Path,
    chats: String,
    text: String,
    key: Option<String>,
    output: &Output,
) -> Result<(), Failure> {
    let text = text_or_input(text, TASK_TEXT_UTF16_MAX)?;
    let key = key.unwrap_or_else(fresh_key);
    // Printed before the call: it is what a lost answer needs.
    output.note(format!(
        "key       {key}   (reuse it with --idempotency-key if this answer gets lost)"
    ));
    let request = ChatRequest::Assign {
        chats,
        text,
        idempotency_key: key.clone(),
    };
    let answer = asked(data, request).await.map_err(|failure| {
        let hint =
            format!("it may have been assigned: run the same command with --idempotency-key {key}");
        failure.if_lost(hint)
    });
    let ChatAnswer::Assigned { task, replayed } = answer? else {
        return Err(unexpected());
    };
    let told = json!({"idempotency_key": key, "replayed": replayed, "task": task});
    output.data(&told, || {
        let before = if replayed { "   (assigned before)" } else { "" };
        vec![
            format!("task      {}{before}", task.task_id),
            format!("status    {}", task.shown),
            format!("expires   {}", task.expires_at),
        ]
    });
    output.note(
        "Open the host conversation to start each task, and say: Check your Callboard tasks.",
    );
    Ok(())
}

/// The text itself, or for `-` what the standard input holds: at most `utf16_max` characters, and
/// not nothing, which is what the end of a broken pipe leaves.
pub(crate) fn text_or_input(text: String, utf16_max: usize) -> Result<String, Failure> {
    let text = if text == "-" { input(utf16_max)? } else { text };
    if utf16_len(&text) > utf16_max {
        let message = format!("the text is too long: {utf16_max} characters are the most");
        return Err(Failure::usage(message));
    }
    Ok(text)
}

fn input(utf16_max: usize) -> Result<String, Failure> {
    // No text that fits has more bytes: three for each UTF-16 unit.
    let bytes_max = u64::try_from(utf16_max.saturating_mul(3).saturating_add(1));
    let mut input = Vec::new();
    let mut stdin = std::io::stdin().take(bytes_max.unwrap_or(u64::MAX));
    let failed = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read the standard input: {error}"))
    };
    stdin
        .read_to_end(&mut input)
        .map_err(|error| failed(&error))?;
    let is_cut = input.len() > utf16_max.saturating_mul(3);
    let input = match String::from_utf8(input) {
        Ok(input) => input,
        // Too long anyway: it says so whatever became of its last character.
        Err(cut) if is_cut => String::from_utf8_lossy(cut.as_bytes()).into_owned(),
        Err(_) => return Err(failed(&"it is not UTF-8")),
    };
    if input.trim().is_empty() {
        return Err(failed(&"it holds nothing"));
    }
    Ok(input)
}

/// Asks the hub of this data folder about chats.
pub(crate) async fn asked(data: &Path, request: ChatRequest) -> Result<ChatAnswer, Failure> {
    // Where no hub runs the database is opened for it: a large future, awaited in many places.
    match Box::pin(ask(data, AdminRequest::Chats(request))).await? {
        AdminAnswer::Chats(answer) => Ok(*answer),
        AdminAnswer::Project { .. }
        | AdminAnswer::Projects { .. }
        | AdminAnswer::Secret { .. }
        | AdminAnswer::SetupLink { .. }
        | AdminAnswer::Desktops { .. }
        | AdminAnswer::Tokens { .. }
        | AdminAnswer::Done { .. }
        | AdminAnswer::Disconnected { .. }
        | AdminAnswer::Refused { .. } => Err(unexpected()),
    }
}

fn unexpected() -> Failure {
    Failure::failed("the hub answered with something else")
        .hint("use the same version of callboard for both")
}
