//! Linked chats and tasks as lines for people.

use super::requests::{ArtifactLine, ChatLine, TaskLine};

/// How many characters of a text a row shows.
const ROW_CHARS: usize = 48;

pub(super) fn chat_row(chat: &ChatLine) -> Vec<String> {
    vec![
        chat.label.clone(),
        chat.agent.clone(),
        chat.project.clone(),
        chat.chat_link_id.clone(),
        chat.linked_at.clone(),
        chat.reference.clone().unwrap_or_default(),
    ]
}

pub(super) fn task_row(task: &TaskLine) -> Vec<String> {
    vec![
        task.task_id.clone(),
        task.shown.clone(),
        labels(task),
        first_line(&task.text),
    ]
}

pub(super) fn task_lines(task: &TaskLine) -> Vec<String> {
    let mut lines = vec![
        format!("task      {}", task.task_id),
        format!("status    {}", task.shown),
        format!("chats     {}", labels(task)),
        format!("project   {}", task.project),
        format!("assigned  {}", task.assigned_at),
        format!("expires   {}", task.expires_at),
    ];
    if let Some(label) = &task.claimed_by {
        lines.push(format!("claimed   by {label}"));
    }
    if let Some(until) = &task.lease_until {
        lines.push(format!("lease     until {until}"));
    }
    if let Some(at) = &task.finished_at {
        lines.push(format!("finished  {at}"));
    }
    for file in &task.artifacts {
        let is_other = task
            .claim_id
            .as_ref()
            .is_some_and(|id| *id != file.claim_id);
        let other = if is_other {
            "  (of an earlier claim)"
        } else {
            ""
        };
        lines.push(artifact(file) + other);
        if let Some(path) = &file.saved_as {
            lines.push(format!("          saved as {}", path.display()));
        }
        if let Some(why) = &file.not_saved {
            lines.push(format!("          not saved: {why}"));
        }
    }
    lines.extend([String::new(), task.text.clone()]);
    if let Some(result) = &task.result {
        lines.extend([String::new(), "result".to_owned(), result.clone()]);
    }
    lines
}

fn artifact(artifact: &ArtifactLine) -> String {
    let (name, bytes) = (&artifact.name, artifact.size_bytes);
    format!("file      {name}  {}  {bytes} bytes", artifact.media_type)
}

fn labels(task: &TaskLine) -> String {
    let labels: Vec<_> = task.chats.iter().map(|chat| chat.label.as_str()).collect();
    labels.join(", ")
}

fn first_line(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default();
    let mut cut: String = line.chars().take(ROW_CHARS).collect();
    if cut.len() < text.trim().len() {
        cut.push('…');
    }
    cut
}
