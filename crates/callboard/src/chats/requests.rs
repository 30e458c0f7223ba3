//! What the owner can ask of a hub about linked chats, over its socket or directly.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use callboard_domain::linked_task::{Host, status_text};
use callboard_domain::{ChatLinkId, ClaimId, TaskId, cut_utf16};
use callboard_hub::{Hub, HubError};
use callboard_store::{Artifact, Candidate, ChatRow, OwnedTask, Store, TaskRow};
use callboard_wire::rfc3339;
use serde::{Deserialize, Serialize};

/// How much of a task's text a list shows, in UTF-16 units.
const LISTED_TEXT_UTF16: usize = 120;

/// One request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub(crate) enum ChatRequest {
    Links,
    Revoke {
        chat: String,
    },
    Assign {
        /// Labels or ids, separated by commas.
        chats: String,
        text: String,
        idempotency_key: String,
    },
    Tasks {
        limit: usize,
    },
    Task {
        task_id: String,
    },
    Cancel {
        task_id: String,
    },
    Artifact {
        task_id: String,
        claim_id: String,
        artifact_id: String,
    },
}

/// The answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChatAnswer {
    Links {
        chats: Vec<ChatLine>,
    },
    Revoked {
        chat_link_id: String,
        /// `None` for a chat that was revoked before.
        label: Option<String>,
        tasks: Vec<ChangedTask>,
    },
    Assigned {
        task: TaskLine,
        replayed: bool,
    },
    Tasks {
        tasks: Vec<TaskLine>,
    },
    Task {
        task: TaskLine,
    },
    Cancelled {
        cancelled: bool,
        status: String,
    },
    Artifact {
        content_base64: String,
    },
}

/// A task that lost a candidate, and where that left it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChangedTask {
    pub(crate) task_id: String,
    pub(crate) status: String,
}

impl From<&TaskRow> for ChangedTask {
    fn from(row: &TaskRow) -> Self {
        Self {
            task_id: row.task_id.to_string(),
            status: row.task.status().to_string(),
        }
    }
}

/// A linked chat.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChatLine {
    pub(crate) chat_link_id: String,
    pub(crate) label: String,
    /// The name of its connection.
    pub(crate) agent: String,
    pub(crate) project: String,
    pub(crate) reference: Option<String>,
    pub(crate) linked_at: String,
}

/// A task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskLine {
    pub(crate) task_id: String,
    pub(crate) status: String,
    /// The status in the published words for people.
    pub(crate) shown: String,
    /// The whole text; its beginning in a list.
    pub(crate) text: String,
    pub(crate) project: String,
    pub(crate) chats: Vec<CandidateLine>,
    pub(crate) assigned_at: String,
    pub(crate) expires_at: String,
    /// The label of the chat that has the task, or did it.
    pub(crate) claimed_by: Option<String>,
    /// The id of that chat.
    pub(crate) claimed_by_chat_link_id: Option<String>,
    /// The claim that is alive, or that did it.
    pub(crate) claim_id: Option<String>,
    pub(crate) lease_until: Option<String>,
    pub(crate) finished_at: Option<String>,
    /// Left out of a list, and as long as there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<String>,
    /// How many files there are.
    #[serde(default)]
    pub(crate) artifact_count: usize,
    /// Left out of a list, and while there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) artifacts: Vec<ArtifactLine>,
}

/// A chat that may claim a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CandidateLine {
    pub(crate) chat_link_id: String,
    pub(crate) label: String,
    pub(crate) agent: String,
}

/// A file of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ArtifactLine {
    pub(crate) claim_id: String,
    pub(crate) artifact_id: String,
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) size_bytes: u64,
    pub(crate) sha256: String,
    /// Where it was saved just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) saved_as: Option<PathBuf>,
    /// Why it could not be saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_saved: Option<String>,
}

/// Does what was asked.
pub(crate) async fn answer<S: Store>(
    hub: &Hub<S>,
    request: ChatRequest,
) -> Result<ChatAnswer, HubError> {
    match request {
        ChatRequest::Links => {
            let chats = hub.chat_links().await?;
            let chats = chats.into_iter().map(chat_line).collect();
            Ok(ChatAnswer::Links { chats })
        }
        ChatRequest::Revoke { chat } => {
            let live = known(hub.chat_links().await?);
            let chat_link_id = find(&live, chat.trim())?;
            let changed = hub.revoke_chat_link(&chat_link_id).await?;
            let named = live.into_iter().find(|known| known.id == chat_link_id);
            let label = named.map(|known| known.label);
            let tasks = changed.iter().map(ChangedTask::from).collect();
            Ok(ChatAnswer::Revoked {
                chat_link_id,
                label,
                tasks,
            })
        }
        ChatRequest::Assign {
            chats,
            text,
            idempotency_key,
        } => {
            let ids = match ids_of(&chats) {
                Some(ids) => ids,
                None => find_all(&nameable(hub, &idempotency_key).await?, &chats)?,
            };
            let assigned = hub.assign_task(&ids, &text, &idempotency_key).await?;
            let task = hub.task(&assigned.row.task_id.to_string()).await?;
            let (task, replayed) = (task_line(task), assigned.replayed);
            Ok(ChatAnswer::Assigned { task, replayed })
        }
        ChatRequest::Tasks { limit } => {
            let tasks = hub.tasks(limit).await?;
            let tasks = tasks.into_iter().map(|task| listed(task_line(task)));
            Ok(ChatAnswer::Tasks {
                tasks: tasks.collect(),
            })
        }
        ChatRequest::Task { task_id } => {
            let task = task_line(hub.task(&task_id).await?);
            Ok(ChatAnswer::Task { task })
        }
        ChatRequest::Cancel { task_id } => {
            let row = hub.cancel_task(&task_id).await?;
            let status = row.task.status().to_string();
            let cancelled = status == "cancelled";
            Ok(ChatAnswer::Cancelled { cancelled, status })
        }
        ChatRequest::Artifact {
            task_id,
            claim_id,
            artifact_id,
        } => {
            let task_id = task_id.parse().unwrap_or(TaskId::UNKNOWN);
            let claim_id = claim_id.parse().unwrap_or(ClaimId::UNKNOWN);
            let (_, content) = hub.owned_artifact(task_id, claim_id, &artifact_id).await?;
            let content_base64 = STANDARD.encode(content);
            Ok(ChatAnswer::Artifact { content_base64 })
        }
    }
}

/// A chat that can be named.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    id: String,
    label: String,
}

/// The chats that an assignment under a key may name: the live ones, and those of the task that was
/// assigned under it before, which may have gone since.
async fn nameable<S: Store>(hub: &Hub<S>, idempotency_key: &str) -> Result<Vec<Known>, HubError> {
    let mut chats = known(hub.chat_links().await?);
    let before = hub.task_by_key(idempotency_key).await?;
    for candidate in before.into_iter().flat_map(|before| before.candidates) {
        let candidate = Known {
            id: candidate.link_id.to_string(),
            label: candidate.label,
        };
        if !chats.contains(&candidate) {
            chats.push(candidate);
        }
    }
    Ok(chats)
}

/// The ids of a list that holds nothing else.
fn ids_of(list: &str) -> Option<Vec<String>> {
    let parts = list.split(',').map(str::trim);
    let ids = parts.map(|part| part.parse::<ChatLinkId>().ok().map(|id| id.to_string()));
    ids.collect()
}

fn known(live: Vec<ChatRow>) -> Vec<Known> {
    let known = |row: ChatRow| Known {
        id: row.link.id.to_string(),
        label: row.link.label,
    };
    live.into_iter().map(known).collect()
}

/// The id of the chat that an id or a label means.
fn find(chats: &[Known], chat: &str) -> Result<String, HubError> {
    if let Ok(id) = chat.parse::<ChatLinkId>() {
        return Ok(id.to_string());
    }
    let mut named = chats.iter().filter(|known| known.label == chat);
    match (named.next(), named.next()) {
        (Some(only), None) => Ok(only.id.clone()),
        (None, _) => Err(HubError::Invalid(format!(
            "No linked chat is called `{chat}`: `callboard chat list` shows them."
        ))),
        (Some(_), Some(_)) => Err(HubError::Invalid(format!(
            "Several linked chats are called `{chat}`: use the id that `callboard chat list` \
             shows."
        ))),
    }
}

/// The ids of the chats that a list separated by commas names. A label may contain a comma: the
/// longest name that is known counts.
fn find_all(chats: &[Known], list: &str) -> Result<Vec<String>, HubError> {
    let parts: Vec<_> = list.split(',').collect();
    let mut ids = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        let is_known = |end: &usize| {
            let name = parts[at..*end].join(",");
            chats.iter().any(|known| known.label == name.trim())
        };
        let end = (at + 1..=parts.len())
            .rev()
            .find(is_known)
            .unwrap_or(at + 1);
        ids.push(find(chats, parts[at..end].join(",").trim())?);
        at = end;
    }
    Ok(ids)
}

fn chat_line(row: ChatRow) -> ChatLine {
    ChatLine {
        chat_link_id: row.link.id.to_string(),
        label: row.link.label,
        agent: row.connection_name,
        project: row.project_name,
        reference: row.link.reference,
        linked_at: rfc3339(row.link.linked_at),
    }
}

fn task_line(owned: OwnedTask) -> TaskLine {
    let (row, task) = (&owned.row, &owned.row.task);
    let status = task.status();
    let claim = task.claim();
    let claimed_by = claim.and_then(|claim| {
        let mut candidates = owned.candidates.iter();
        candidates.find(|candidate| candidate.link_id == claim.link_id)
    });
    TaskLine {
        task_id: row.task_id.to_string(),
        status: status.to_string(),
        shown: status_text(status, host(&owned.candidates)).to_owned(),
        claimed_by: claimed_by.map(|candidate| candidate.label.clone()),
        claimed_by_chat_link_id: claim.map(|claim| claim.link_id.to_string()),
        claim_id: claim.map(|claim| claim.id.to_string()),
        assigned_at: rfc3339(task.assigned_at),
        expires_at: rfc3339(task.expires_at),
        lease_until: task.lease_until().map(rfc3339),
        finished_at: task.finished_at().map(rfc3339),
        result: task.outcome().map(|outcome| outcome.result.clone()),
        text: row.text.clone(),
        project: owned.project_name,
        chats: owned.candidates.into_iter().map(candidate_line).collect(),
        artifact_count: owned.artifacts.len(),
        artifacts: owned.artifacts.into_iter().map(artifact_line).collect(),
    }
}

/// The host of all candidates, where it is the same.
fn host(candidates: &[Candidate]) -> Host {
    let mut hosts = candidates
        .iter()
        .map(|candidate| Host::of_client(&candidate.connection_name));
    let first = hosts.next().unwrap_or(Host::Other);
    if hosts.all(|host| host == first) {
        first
    } else {
        Host::Other
    }
}

/// A task as a list shows it.
fn listed(task: TaskLine) -> TaskLine {
    TaskLine {
        text: cut_utf16(&task.text, LISTED_TEXT_UTF16).to_owned(),
        result: None,
        artifacts: Vec::new(),
        ..task
    }
}

fn candidate_line(candidate: Candidate) -> CandidateLine {
    CandidateLine {
        chat_link_id: candidate.link_id.to_string(),
        label: candidate.label,
        agent: candidate.connection_name,
    }
}

fn artifact_line(artifact: Artifact) -> ArtifactLine {
    ArtifactLine {
        claim_id: artifact.claim_id.to_string(),
        artifact_id: artifact.artifact_id,
        name: artifact.name,
        media_type: artifact.media_type,
        size_bytes: artifact.size_bytes,
        sha256: artifact.content.to_hex(),
        saved_as: None,
        not_saved: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chats() -> Vec<Known> {
        let labels = ["Tax", "Tax, 2025", "Garden", "Garden", "a,b,c", "c"];
        let known = |(number, label): (u8, &str)| Known {
            id: ChatLinkId::from_bytes([number; 16]).to_string(),
            label: label.to_owned(),
        };
        (0..).zip(labels).map(known).collect()
    }

    #[test]
    fn a_list_of_chats_finds_labels_with_commas_and_ids() {
        let chats = chats();
        let id = |number: usize| chats[number].id.clone();
        let upper = id(2).to_uppercase();
        for (list, found) in [
            ("Tax", vec![id(0)]),
            ("Tax, 2025", vec![id(1)]),
            (" Tax , c ", vec![id(0), id(5)]),
            ("a,b,c,Tax, 2025,Tax", vec![id(4), id(1), id(0)]),
            (&format!("c,{upper}"), vec![id(5), id(2)]),
        ] {
            assert_eq!(find_all(&chats, list), Ok(found), "{list}");
        }
    }

    #[test]
    fn the_chat_that_is_not_known_or_not_alone_is_named() {
        for (list, words) in [
            (
                "Tax,Taxi",
                "No linked chat is called `Taxi`: `callboard chat list` shows them.",
            ),
            (
                "Tax, 2024",
                "No linked chat is called `2024`: `callboard chat list` shows them.",
            ),
            (
                "",
                "No linked chat is called ``: `callboard chat list` shows them.",
            ),
            (
                "Garden",
                "Several linked chats are called `Garden`: use the id that `callboard chat list` shows.",
            ),
        ] {
            let refused = find_all(&chats(), list).unwrap_err();
            assert_eq!(refused.to_string(), words, "{list}");
        }
    }
}
