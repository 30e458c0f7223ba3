//! One operation on linked chats with its arguments, how it is played, and what it gave.

use callboard_domain::linked_task::Verdict;
use callboard_domain::{ChatLinkId, ClaimId, OwnerId, TaskId, Timestamp};
use callboard_store::{
    Artifact, ArtifactKey, AssignTask, AssignedTask, ChatRow, LinkKey, LinkedChat, NewArtifact,
    NewChatLink, OwnedTask, Store, TaskRow,
};

use super::answer::Answer;

#[derive(Debug, Clone)]
pub(super) enum ChatOperation {
    Link(NewChatLink),
    Links(OwnerId),
    Revoke(OwnerId, ChatLinkId),
    Assign(AssignTask),
    Tasks(OwnerId, usize),
    Task(OwnerId, TaskId),
    Cancel(OwnerId, TaskId),
    Inbox(LinkKey),
    Claim {
        key: LinkKey,
        task_id: TaskId,
        claim_id: ClaimId,
        lease_ms: u64,
    },
    Submit {
        key: LinkKey,
        task_id: TaskId,
        claim_id: ClaimId,
        verdict: Verdict,
        result: String,
    },
    Upload(LinkKey, TaskId, NewArtifact),
    Artifact(ArtifactKey),
}

#[derive(Debug, PartialEq)]
pub(super) enum ChatAnswer {
    Linked(LinkedChat),
    Links(Vec<ChatRow>),
    Revoked(Option<Vec<TaskRow>>),
    Assigned(AssignedTask),
    Tasks(Vec<OwnedTask>),
    Task(Option<OwnedTask>),
    Cancelled(TaskRow),
    Inbox(Option<Vec<TaskRow>>),
    Claimed(TaskRow, bool),
    Submitted(TaskRow, bool),
    Uploaded(Artifact, bool),
    Artifact(Option<(Artifact, Vec<u8>)>),
}

impl ChatOperation {
    pub(super) async fn play<S: Store>(self, store: &S, now: Timestamp) -> Answer {
        use ChatAnswer as Gave;
        let played = match self {
            Self::Link(new) => store.link_chat(new).await.map(Gave::Linked),
            Self::Links(owner) => store.chat_links(owner).await.map(Gave::Links),
            Self::Revoke(owner, link) => {
                let revoked = store.revoke_chat_link(owner, link, now).await;
                revoked.map(Gave::Revoked)
            }
            Self::Assign(request) => store.assign_task(request).await.map(Gave::Assigned),
            Self::Tasks(owner, limit) => store.tasks(owner, limit, now).await.map(Gave::Tasks),
            Self::Task(owner, task) => store.task(owner, task, now).await.map(Gave::Task),
            Self::Cancel(owner, task) => {
                let cancelled = store.cancel_task(owner, task, now).await;
                cancelled.map(Gave::Cancelled)
            }
            Self::Inbox(key) => store.inbox(key, now).await.map(Gave::Inbox),
            Self::Claim {
                key,
                task_id,
                claim_id,
                lease_ms,
            } => {
                let claimed = store.claim_task(key, task_id, claim_id, lease_ms, now);
                claimed.await.map(|(row, known)| Gave::Claimed(row, known))
            }
            Self::Submit {
                key,
                task_id,
                claim_id,
                verdict,
                result,
            } => {
                let stored = store.submit_task(key, task_id, claim_id, verdict, result, now);
                stored.await.map(|(row, known)| Gave::Submitted(row, known))
            }
            Self::Upload(key, task_id, new) => {
                let stored = store.upload_artifact(key, task_id, new, now).await;
                stored.map(|(artifact, known)| Gave::Uploaded(artifact, known))
            }
            Self::Artifact(key) => store.artifact(key).await.map(Gave::Artifact),
        };
        Answer::of(played, Answer::Chat)
    }
}
