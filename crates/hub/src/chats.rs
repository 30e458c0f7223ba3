//! The tools of linked chats: what a conversation can link, read, claim and submit.

use callboard_domain::limits::{
    CHAT_LABEL_UTF16_MAX, CHAT_REFERENCE_UTF16_MAX, HOST_HINT_UTF16_MAX,
};
use callboard_domain::linked_task::Verdict;
use callboard_domain::{
    ChatLinkId, ClaimId, Digest, ProjectId, Refusal, TaskId, cut_utf16, is_blank,
};
use callboard_store::{ChatLink, Connection, LinkKey, NewChatLink, Store, TaskRow};
use callboard_wire::tools::{
    claim_linked_chat_task, link_current_chat, read_linked_chat_tasks, submit_linked_chat_result,
};
use callboard_wire::{epoch_seconds, rfc3339};

use crate::admin::one_line;
use crate::{Hub, HubError};

/// What a conversation says of itself when it links itself.
#[derive(Debug, Clone, Copy)]
pub struct NewLink<'a> {
    /// The project that it wants to work for.
    pub project_id: &'a str,
    /// What it calls itself.
    pub label: &'a str,
    /// Where the owner finds it.
    pub reference: Option<&'a str>,
    /// Its own key for this request.
    pub idempotency_key: &'a str,
    /// The host's name for the conversation. For correlation only: anybody can send any.
    pub host_hint: Option<&'a str>,
}

impl<S: Store> Hub<S> {
    /// `link_current_chat`: makes a link, or finds the one of the same key.
    ///
    /// # Errors
    /// [`Refusal::LinkKeyReused`]; [`Refusal::ChatLinkNotFound`] when the link of the key was
    /// revoked; [`Refusal::ProjectNotFound`], for a malformed id too; [`Refusal::TooManyLinks`];
    /// [`HubError::Invalid`] for a label or reference that is not one line.
    pub async fn link_current_chat(
        &self,
        caller: &Connection,
        new: NewLink<'_>,
    ) -> Result<link_current_chat::Answer, HubError> {
        let label = one_line("`label`", new.label, CHAT_LABEL_UTF16_MAX)?;
        let reference = new.reference.filter(|given| !given.trim().is_empty());
        let reference = reference
            .map(|given| one_line("`reference`", given, CHAT_REFERENCE_UTF16_MAX))
            .transpose()?;
        let now = self.clock.now();
        // A malformed project is still part of what was asked for: the key comes first. One id is
        // the same request however it is written.
        let project_id = new.project_id.parse();
        let asked_for =
            project_id.map_or(new.project_id.to_owned(), |id: ProjectId| id.to_string());
        let request = Digest::of(&[
            asked_for.as_bytes(),
            label.as_bytes(),
            reference.as_deref().unwrap_or_default().as_bytes(),
        ]);
        let link = ChatLink {
            id: ChatLinkId::from_bytes(self.entropy.uuid_v7(now)),
            connection_id: caller.id,
            project_id: project_id.unwrap_or(ProjectId::UNKNOWN),
            label,
            reference,
            host_hint: new
                .host_hint
                .map(|hint| cut_utf16(hint, HOST_HINT_UTF16_MAX).to_owned()),
            linked_at: now,
        };
        let linked = self.store.link_chat(NewChatLink {
            link,
            idempotency_key: new.idempotency_key.to_owned(),
            request,
        });
        let linked = linked.await?;
        if !linked.replayed {
            tracing::info!(link.id = %linked.link.id, "linked");
        }
        Ok(link_current_chat::Answer {
            chat_link_id: linked.link.id,
            project_id: linked.link.project_id,
            label: linked.link.label,
        })
    }

    /// `read_linked_chat_tasks`: what waits for a linked chat, and what it did last.
    ///
    /// # Errors
    /// [`Refusal::ChatLinkNotFound`] for whatever is not this connection's live link.
    pub async fn read_linked_chat_tasks(
        &self,
        caller: &Connection,
        chat_link_id: &str,
    ) -> Result<read_linked_chat_tasks::Answer, HubError> {
        let key = link_key(caller, chat_link_id);
        let rows = self.store.inbox(key, self.clock.now()).await?;
        let rows = rows.ok_or(Refusal::ChatLinkNotFound)?;
        Ok(read_linked_chat_tasks::Answer {
            chat_link_id: key.link_id,
            tasks: rows.into_iter().map(shown).collect(),
        })
    }

    /// `claim_linked_chat_task`: takes a task, or finds the chat's own claim.
    ///
    /// # Errors
    /// [`Refusal::ChatLinkNotFound`]; [`Refusal::ClaimMissing`], for a malformed id too;
    /// [`Refusal::ClaimTaken`], [`Refusal::ClaimOver`].
    pub async fn claim_linked_chat_task(
        &self,
        caller: &Connection,
        chat_link_id: &str,
        task_id: &str,
    ) -> Result<claim_linked_chat_task::Answer, HubError> {
        let (key, now) = (link_key(caller, chat_link_id), self.clock.now());
        let fresh = ClaimId::from_bytes(self.entropy.uuid_v7(now));
        let (task_id, lease_ms) = (read_task_id(task_id), self.task_lease_ms);
        let claimed = self.store.claim_task(key, task_id, fresh, lease_ms, now);
        let (row, replayed) = claimed.await?;
        if !replayed {
            tracing::info!(task.id = %row.task_id, "claimed");
        }
        let claim = row.task.claim().zip(row.task.lease_until());
        let (claim, lease_until) = claim.ok_or_else(|| {
            tracing::error!(task.id = %row.task_id, "a claimed task has no claim");
            HubError::Unavailable
        })?;
        Ok(claim_linked_chat_task::Answer {
            claim_id: claim.id,
            lease_until: epoch_seconds(lease_until),
        })
    }

    /// `submit_linked_chat_result`: stores how a claimed task went.
    ///
    /// # Errors
    /// [`Refusal::SubmitMissing`], for malformed ids too; [`Refusal::SubmitOver`],
    /// [`Refusal::SubmitLapsed`], [`Refusal::SubmitStale`]; [`HubError::Invalid`] for another status
    /// than `completed` and `failed`, and for a result that says nothing.
    pub async fn submit_linked_chat_result(
        &self,
        caller: &Connection,
        chat_link_id: &str,
        task_id: &str,
        claim_id: &str,
        status: &str,
        result: &str,
    ) -> Result<submit_linked_chat_result::Answer, HubError> {
        let (key, now) = (link_key(caller, chat_link_id), self.clock.now());
        let verdict = Verdict::from_word(status).ok_or_else(|| {
            let words = Verdict::WORDS.join(", ");
            HubError::Invalid(format!("`status` must be one of {words}."))
        })?;
        if is_blank(result) {
            return Err(HubError::Invalid(BLANK_RESULT.to_owned()));
        }
        let (task_id, claim_id) = (read_task_id(task_id), read_claim_id(claim_id));
        let result = result.to_owned();
        let submitted = self
            .store
            .submit_task(key, task_id, claim_id, verdict, result, now);
        let (row, replayed) = submitted.await?;
        if !replayed {
            tracing::info!(task.id = %row.task_id, status = %row.task.status(), "submitted");
        }
        Ok(submit_linked_chat_result::Answer { ok: true, replayed })
    }
}

/// What the owner could not read.
const BLANK_RESULT: &str =
    "`result` must say how the task went: it holds nothing, or only white space.";

fn shown(row: TaskRow) -> read_linked_chat_tasks::Task {
    let status = row.task.status();
    let open = status.ended().is_none();
    let claim_id = row.task.claim().map(|claim| claim.id);
    read_linked_chat_tasks::Task {
        task_id: row.task_id,
        status: status.to_string(),
        text: open.then_some(row.text),
        claim_id: claim_id.filter(|_| open),
        lease_until: row.task.lease_until().map(epoch_seconds),
        expires_at: rfc3339(row.task.expires_at),
    }
}

/// A malformed id is looked up like an unknown one.
pub(crate) fn link_key(caller: &Connection, chat_link_id: &str) -> LinkKey {
    LinkKey {
        connection_id: caller.id,
        link_id: chat_link_id.parse().unwrap_or(ChatLinkId::UNKNOWN),
    }
}

pub(crate) fn read_task_id(task_id: &str) -> TaskId {
    task_id.parse().unwrap_or(TaskId::UNKNOWN)
}

pub(crate) fn read_claim_id(claim_id: &str) -> ClaimId {
    claim_id.parse().unwrap_or(ClaimId::UNKNOWN)
}
