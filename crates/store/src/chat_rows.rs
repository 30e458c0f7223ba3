//! The rows of linked chats, their tasks and artifacts, as plain values.

use callboard_domain::linked_task::Task;
use callboard_domain::{
    ChatLinkId, ClaimId, ConnectionId, Digest, OwnerId, ProjectId, TaskId, Timestamp,
};

use crate::RunRow;

/// A conversation that linked itself to a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatLink {
    /// The link's id.
    pub id: ChatLinkId,
    /// The connection that the conversation came through.
    pub connection_id: ConnectionId,
    /// The project that it works for.
    pub project_id: ProjectId,
    /// What the conversation calls itself.
    pub label: String,
    /// Where the owner finds it, in its own words.
    pub reference: Option<String>,
    /// The host's own name for the conversation, if it sent one. For correlation only.
    pub host_hint: Option<String>,
    /// When it was linked.
    pub linked_at: Timestamp,
}

/// A link to be made.
#[derive(Debug, Clone)]
pub struct NewChatLink {
    /// The row; its id counts only if the link is new.
    pub link: ChatLink,
    /// The connection's own key for this request.
    pub idempotency_key: String,
    /// Digest of what was asked for.
    pub request: Digest,
}

/// The link of a request to link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedChat {
    /// The link, new or of the first request with this key.
    pub link: ChatLink,
    /// Whether the key was there already.
    pub replayed: bool,
}

/// A link as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatRow {
    /// The link.
    pub link: ChatLink,
    /// The name of its connection.
    pub connection_name: String,
    /// The name of its project.
    pub project_name: String,
}

/// A linked chat as its connection finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkKey {
    /// The connection that asks.
    pub connection_id: ConnectionId,
    /// The link it asks for.
    pub link_id: ChatLinkId,
}

/// A request to assign a task.
#[derive(Debug, Clone)]
pub struct AssignTask {
    /// The id that the task gets if it is new.
    pub task_id: TaskId,
    /// Who assigns it.
    pub owner_id: OwnerId,
    /// The chats that may claim it: 1 to 8, each once.
    pub candidates: Vec<ChatLinkId>,
    /// What to do.
    pub text: String,
    /// The owner's key for this assignment.
    pub idempotency_key: String,
    /// Digest of text and candidates.
    pub request: Digest,
    /// When.
    pub now: Timestamp,
}

/// The task of a request to assign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignedTask {
    /// The task, new or of the first request with this key.
    pub row: TaskRow,
    /// Whether the key was there already.
    pub replayed: bool,
}

/// A task and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// The task's id.
    pub task_id: TaskId,
    /// The project of its chats.
    pub project_id: ProjectId,
    /// What to do.
    pub text: String,
    /// Where it stands, settled at the time of the operation.
    pub task: Task,
}

/// A task as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTask {
    /// The task.
    pub row: TaskRow,
    /// The name of its project.
    pub project_name: String,
    /// Its candidates, in their order.
    pub candidates: Vec<Candidate>,
    /// What was uploaded for it, oldest first.
    pub artifacts: Vec<Artifact>,
}

/// A candidate of a task, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The link.
    pub link_id: ChatLinkId,
    /// What the conversation calls itself.
    pub label: String,
    /// The name of its connection.
    pub connection_name: String,
}

/// A file to be attached to a task.
#[derive(Debug, Clone)]
pub struct NewArtifact {
    /// The claim under which it is uploaded.
    pub claim_id: ClaimId,
    /// The chat's own id for it, unique within the claim.
    pub artifact_id: String,
    /// The file's name, for people.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// The bytes.
    pub content: Vec<u8>,
}

/// A stored file, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// The task that it belongs to.
    pub task_id: TaskId,
    /// The chat that uploaded it.
    pub link_id: ChatLinkId,
    /// The claim under which it did.
    pub claim_id: ClaimId,
    /// The chat's own id for it, unique within the claim.
    pub artifact_id: String,
    /// The file's name, for people.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Size of the content, in bytes.
    pub size_bytes: u64,
    /// SHA-256 of the content.
    pub content: Digest,
    /// When it was stored.
    pub uploaded_at: Timestamp,
}

/// Who wants to read an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactReader {
    /// The owner of the task.
    Owner(OwnerId),
    /// The connection whose link uploaded it.
    Connection(ConnectionId),
}

/// An artifact as somebody finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactKey {
    /// Who asks.
    pub reader: ArtifactReader,
    /// The task.
    pub task_id: TaskId,
    /// The claim under which it was uploaded.
    pub claim_id: ClaimId,
    /// The chat's own id for it.
    pub artifact_id: String,
}

/// What the revocation of a connection changed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Revoked {
    /// Commands that ended or were asked to stop.
    pub runs: Vec<RunRow>,
    /// Tasks that were open and lost a candidate, or had expired by then; in the order in which they
    /// were assigned.
    pub tasks: Vec<TaskRow>,
}

/// What a sweep changed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Swept {
    /// Commands that moved.
    pub runs: Vec<RunRow>,
    /// Tasks that moved.
    pub tasks: Vec<TaskRow>,
    /// More may be due: sweep again.
    pub more: bool,
}
