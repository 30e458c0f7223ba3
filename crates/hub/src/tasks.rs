//! What the owner does with linked chats: assign, list, cancel, revoke.

use callboard_domain::limits::{TASK_CANDIDATES_MAX, TASK_TEXT_UTF16_MAX, TASKS_LISTED_MAX};
use callboard_domain::{ChatLinkId, Digest, Refusal, TaskId, is_blank, utf16_len};
use callboard_store::{AssignTask, AssignedTask, ChatRow, OwnedTask, Store, TaskRow};
use callboard_wire::tools::IDEMPOTENCY_KEY_BOUND;

use crate::chats::read_task_id;
use crate::{Hub, HubError};

impl<S: Store> Hub<S> {
    /// The owner's live linked chats, oldest first.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn chat_links(&self) -> Result<Vec<ChatRow>, HubError> {
        Ok(self.store.chat_links(self.owner().await?).await?)
    }

    /// Takes a linked chat off everything: its tools answer as for an unknown link, its claims go
    /// back to the other candidates, and tasks without one are cancelled. Gives the tasks that
    /// changed: none when the chat was revoked before.
    ///
    /// # Errors
    /// [`Refusal::ChatLinkNotFound`], for a malformed id too.
    pub async fn revoke_chat_link(&self, chat_link_id: &str) -> Result<Vec<TaskRow>, HubError> {
        let link_id = chat_link_id.parse().unwrap_or(ChatLinkId::UNKNOWN);
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let changed = self.store.revoke_chat_link(owner_id, link_id, now).await?;
        Ok(changed.ok_or(Refusal::ChatLinkNotFound)?)
    }

    /// Assigns a task to linked chats, any of which may claim it, or finds the one that was
    /// assigned under the same key. The order of the chats does not matter.
    ///
    /// # Errors
    /// [`HubError::Invalid`] for an empty or too long text, no chat or more than 8, or a key that is
    /// none; [`Refusal::TaskKeyReused`], [`Refusal::ChatLinkNotFound`],
    /// [`Refusal::CandidatesApart`], [`Refusal::TooManyTasks`].
    pub async fn assign_task(
        &self,
        chat_link_ids: &[String],
        text: &str,
        idempotency_key: &str,
    ) -> Result<AssignedTask, HubError> {
        let mut candidates = Vec::new();
        for id in chat_link_ids {
            let id = id.trim().parse().unwrap_or(ChatLinkId::UNKNOWN);
            if !candidates.contains(&id) {
                candidates.push(id);
            }
            if candidates.len() > TASK_CANDIDATES_MAX {
                break;
            }
        }
        if candidates.is_empty() || candidates.len() > TASK_CANDIDATES_MAX {
            return Err(HubError::Invalid(format!(
                "A task names 1 to {TASK_CANDIDATES_MAX} linked chats."
            )));
        }
        if is_blank(text) || utf16_len(text) > TASK_TEXT_UTF16_MAX {
            return Err(HubError::Invalid(format!(
                "The text of a task has 1 to {TASK_TEXT_UTF16_MAX} characters, not only \
                 white space."
            )));
        }
        if !IDEMPOTENCY_KEY_BOUND.admits(idempotency_key) {
            return Err(HubError::Invalid(format!(
                "An idempotency key has {} to {} characters.",
                IDEMPOTENCY_KEY_BOUND.min, IDEMPOTENCY_KEY_BOUND.max
            )));
        }
        let now = self.clock.now();
        let request = AssignTask {
            task_id: TaskId::from_bytes(self.entropy.uuid_v7(now)),
            owner_id: self.owner().await?,
            request: request_digest(&candidates, text),
            candidates,
            text: text.to_owned(),
            idempotency_key: idempotency_key.to_owned(),
            now,
        };
        let assigned = self.store.assign_task(request).await?;
        if !assigned.replayed {
            tracing::info!(task.id = %assigned.row.task_id, "assigned");
        }
        Ok(assigned)
    }

    /// The owner's tasks, latest first, at most [`TASKS_LISTED_MAX`].
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn tasks(&self, limit: usize) -> Result<Vec<OwnedTask>, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let limit = limit.min(TASKS_LISTED_MAX);
        Ok(self.store.tasks(owner_id, limit, now).await?)
    }

    /// One task of the owner.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`], for a malformed id too.
    pub async fn task(&self, task_id: &str) -> Result<OwnedTask, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let found = self
            .store
            .task(owner_id, read_task_id(task_id), now)
            .await?;
        Ok(found.ok_or(Refusal::TaskNotFound)?)
    }

    /// The task that was assigned under an idempotency key.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn task_by_key(&self, idempotency_key: &str) -> Result<Option<OwnedTask>, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let key = idempotency_key.to_owned();
        Ok(self.store.task_by_key(owner_id, key, now).await?)
    }

    /// Takes a task back; idempotent. The row says whether it is cancelled now, or was over before.
    ///
    /// # Errors
    /// [`Refusal::TaskNotFound`], for a malformed id too.
    pub async fn cancel_task(&self, task_id: &str) -> Result<TaskRow, HubError> {
        let (owner_id, now) = (self.owner().await?, self.clock.now());
        let task_id = read_task_id(task_id);
        let row = self.store.cancel_task(owner_id, task_id, now).await?;
        tracing::info!(task.id = %row.task_id, status = %row.task.status(), "cancel asked");
        Ok(row)
    }
}

/// Digest of an assignment, by meaning: a set of candidates and a text.
fn request_digest(candidates: &[ChatLinkId], text: &str) -> Digest {
    let mut sorted: Vec<_> = candidates.iter().collect();
    sorted.sort_unstable();
    let mut parts: Vec<&[u8]> = vec![text.as_bytes()];
    parts.extend(sorted.into_iter().map(|id| id.as_bytes().as_slice()));
    Digest::of(&parts)
}
