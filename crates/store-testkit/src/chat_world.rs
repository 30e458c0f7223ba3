//! Short ways to do the usual things with linked chats, their tasks and files.

use callboard_domain::linked_task::{Claim, Outcome, State, Submission, Task, Verdict};
use callboard_domain::{ChatLinkId, ClaimId, ConnectionId, Digest, OwnerId, ProjectId, TaskId};
use callboard_store::{
    Artifact, AssignTask, AssignedTask, ChatLink, LinkKey, LinkedChat, NewArtifact, NewChatLink,
    OwnedTask, Store, StoreError, TaskRow,
};

use crate::world::{START, Workspace, World, at};

/// The lease of a claim made here, in milliseconds.
pub const LEASE_MS: u64 = 60_000;

/// What claiming and submitting give.
pub type Decided = Result<(TaskRow, bool), StoreError>;

#[allow(
    clippy::missing_panics_doc,
    reason = "each panics when the store fails"
)]
impl<S: Store> World<S> {
    /// A link to be made, its key and its digest made of `label`.
    pub fn new_chat(
        &self,
        connection_id: ConnectionId,
        project_id: ProjectId,
        label: &str,
    ) -> NewChatLink {
        let link = ChatLink {
            id: ChatLinkId::from_bytes(self.id()),
            connection_id,
            project_id,
            label: label.to_owned(),
            reference: None,
            host_hint: None,
            linked_at: START,
        };
        NewChatLink {
            link,
            idempotency_key: format!("key of {label}"),
            request: Digest::of(&[label.as_bytes()]),
        }
    }

    /// A chat called `label` of any connection.
    pub async fn chat_of(
        &self,
        connection_id: ConnectionId,
        project_id: ProjectId,
        label: &str,
    ) -> LinkKey {
        let new = self.new_chat(connection_id, project_id, label);
        let LinkedChat { link, replayed } = self.store.link_chat(new).await.unwrap();
        assert!(!replayed, "{label} is new");
        LinkKey {
            connection_id,
            link_id: link.id,
        }
    }

    /// A chat called `label` of the workspace's connection and project.
    pub async fn chat(&self, workspace: &Workspace, label: &str) -> LinkKey {
        let (connection_id, project_id) = (workspace.connection.id, workspace.project.id);
        self.chat_of(connection_id, project_id, label).await
    }

    /// A chat called `label` of a connection of that name of its own, in the workspace's project.
    pub async fn chat_elsewhere(&self, workspace: &Workspace, label: &str) -> LinkKey {
        let (owner_id, project_id) = (workspace.owner_id, workspace.project.id);
        let (connection, _) = self.connection(owner_id, label, &[project_id]).await;
        self.chat_of(connection.id, project_id, label).await
    }

    /// A task to be assigned, its key and its digest made of `text`.
    pub fn assignment(&self, owner_id: OwnerId, chats: &[LinkKey], text: &str) -> AssignTask {
        AssignTask {
            task_id: TaskId::from_bytes(self.id()),
            owner_id,
            candidates: chats.iter().map(|chat| chat.link_id).collect(),
            text: text.to_owned(),
            idempotency_key: format!("key of {text}"),
            request: Digest::of(&[text.as_bytes()]),
            now: START,
        }
    }

    /// Assigns `text` to `chats`.
    pub async fn assign(&self, workspace: &Workspace, chats: &[LinkKey], text: &str) -> TaskRow {
        let request = self.assignment(workspace.owner_id, chats, text);
        let AssignedTask { row, replayed } = self.store.assign_task(request).await.unwrap();
        assert!(!replayed, "{text} is new");
        row
    }

    /// Claims under a fresh id, for [`LEASE_MS`].
    pub async fn claim(&self, chat: LinkKey, row: &TaskRow, after_ms: u64) -> Decided {
        let fresh = ClaimId::from_bytes(self.id());
        let (task_id, now) = (row.task_id, at(after_ms));
        let claimed = self.store.claim_task(chat, task_id, fresh, LEASE_MS, now);
        claimed.await
    }

    /// Claims what waits.
    pub async fn claimed(&self, chat: LinkKey, row: &TaskRow, after_ms: u64) -> (TaskRow, Claim) {
        let (row, replayed) = self.claim(chat, row, after_ms).await.unwrap();
        assert!(!replayed, "it waited");
        let claim = claim_of(&row);
        (row, claim)
    }

    /// Submits `result` as completed.
    pub async fn submit(
        &self,
        chat: LinkKey,
        row: &TaskRow,
        claim_id: ClaimId,
        result: &str,
        after_ms: u64,
    ) -> Decided {
        let (task_id, verdict, result) = (row.task_id, Verdict::Completed, result.to_owned());
        let now = at(after_ms);
        let stored = self
            .store
            .submit_task(chat, task_id, claim_id, verdict, result, now);
        stored.await
    }

    /// Takes a task back.
    pub async fn cancel(&self, workspace: &Workspace, row: &TaskRow, after_ms: u64) -> TaskRow {
        let (owner_id, now) = (workspace.owner_id, at(after_ms));
        let cancelled = self.store.cancel_task(owner_id, row.task_id, now).await;
        cancelled.unwrap()
    }

    /// The task as its owner sees it.
    pub async fn owned(&self, workspace: &Workspace, row: &TaskRow, after_ms: u64) -> OwnedTask {
        let (owner_id, now) = (workspace.owner_id, at(after_ms));
        let found = self.store.task(owner_id, row.task_id, now).await.unwrap();
        found.expect("it is the owner's")
    }

    /// The same without what belongs to it.
    pub async fn task(&self, workspace: &Workspace, row: &TaskRow, after_ms: u64) -> TaskRow {
        self.owned(workspace, row, after_ms).await.row
    }

    /// What a live chat sees.
    pub async fn inbox(&self, chat: LinkKey, after_ms: u64) -> Vec<TaskRow> {
        let inbox = self.store.inbox(chat, at(after_ms)).await.unwrap();
        inbox.expect("the chat is live")
    }

    /// Revokes a live link and gives the tasks that changed.
    pub async fn revoke_chat(
        &self,
        workspace: &Workspace,
        chat: LinkKey,
        after_ms: u64,
    ) -> Vec<TaskRow> {
        let (owner_id, now) = (workspace.owner_id, at(after_ms));
        let revoked = self.store.revoke_chat_link(owner_id, chat.link_id, now);
        revoked.await.unwrap().expect("the chat is live")
    }

    /// Uploads a file.
    pub async fn upload(
        &self,
        chat: LinkKey,
        row: &TaskRow,
        file: NewArtifact,
        after_ms: u64,
    ) -> Result<(Artifact, bool), StoreError> {
        let stored = self
            .store
            .upload_artifact(chat, row.task_id, file, at(after_ms));
        stored.await
    }
}

/// The claim of a task that has one.
///
/// # Panics
/// When it has none.
pub fn claim_of(row: &TaskRow) -> Claim {
    *row.task.claim().expect("a claim")
}

/// `row` after a move to `state`.
pub fn moved(row: &TaskRow, state: State, after_ms: u64) -> TaskRow {
    let task = Task {
        updated_at: at(after_ms),
        state,
        ..row.task.clone()
    };
    TaskRow {
        task,
        ..row.clone()
    }
}

/// The end of a task that was cancelled.
pub const fn cancelled(after_ms: u64) -> State {
    State::Cancelled {
        finished_at: at(after_ms),
    }
}

/// The outcome of a submit.
pub fn outcome(claim: Claim, verdict: Verdict, result: &str, after_ms: u64) -> Outcome {
    let submission = Submission {
        link_id: claim.link_id,
        claim_id: claim.id,
        verdict,
        result: result.to_owned(),
    };
    Outcome {
        finished_at: at(after_ms),
        digest: submission.digest(),
        result: submission.result,
    }
}

/// A text file called `artifact_id`.
pub fn file(claim: Claim, artifact_id: &str, content: &[u8]) -> NewArtifact {
    NewArtifact {
        claim_id: claim.id,
        artifact_id: artifact_id.to_owned(),
        name: format!("{artifact_id}.txt"),
        media_type: "text/plain".to_owned(),
        content: content.to_vec(),
    }
}
