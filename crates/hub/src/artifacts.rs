//! Files that chats attach to their tasks.

use callboard_domain::limits::ARTIFACT_NAME_UTF16_MAX;
use callboard_domain::linked_task::is_media_type_admitted;
use callboard_domain::{ClaimId, Refusal, TaskId, ends_line};
use callboard_store::{Artifact, ArtifactKey, ArtifactReader, Connection, NewArtifact, Store};
use callboard_wire::tools::upload_linked_chat_artifact;

use crate::admin::one_line;
use crate::chats::{link_key, read_claim_id, read_task_id};
use crate::{Hub, HubError};

/// A file that a chat wants to attach.
#[derive(Debug, Clone)]
pub struct NewUpload<'a> {
    /// The chat.
    pub chat_link_id: &'a str,
    /// The task.
    pub task_id: &'a str,
    /// The claim under which the chat works.
    pub claim_id: &'a str,
    /// The chat's own id for the file.
    pub artifact_id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its media type.
    pub media_type: &'a str,
    /// Its bytes.
    pub content: Vec<u8>,
}

impl<S: Store> Hub<S> {
    /// `upload_linked_chat_artifact`: stores a file under a claim.
    ///
    /// # Errors
    /// [`HubError::Invalid`] for a name or id that is not one line or a media type that is not
    /// admitted; [`Refusal::SubmitMissing`], for malformed ids too; [`Refusal::SubmitOver`],
    /// [`Refusal::SubmitLapsed`], [`Refusal::SubmitStale`]; [`Refusal::ArtifactDiffers`],
    /// [`Refusal::TooManyArtifacts`].
    pub async fn upload_linked_chat_artifact(
        &self,
        caller: &Connection,
        new: NewUpload<'_>,
    ) -> Result<upload_linked_chat_artifact::Answer, HubError> {
        let name = one_line("`name`", new.name, ARTIFACT_NAME_UTF16_MAX)?;
        if new.artifact_id.contains(ends_line) || [".", ".."].contains(&new.artifact_id) {
            return Err(HubError::Invalid(ARTIFACT_ID.to_owned()));
        }
        let media_type = new.media_type.trim();
        if !is_media_type_admitted(media_type) {
            return Err(HubError::Invalid(MEDIA_TYPES.to_owned()));
        }
        let (key, now) = (link_key(caller, new.chat_link_id), self.clock.now());
        let task_id = read_task_id(new.task_id);
        let artifact = NewArtifact {
            claim_id: read_claim_id(new.claim_id),
            artifact_id: new.artifact_id.to_owned(),
            name,
            media_type: media_type.to_owned(),
            content: new.content,
        };
        let stored = self.store.upload_artifact(key, task_id, artifact, now);
        let (artifact, replayed) = stored.await?;
        if !replayed {
            let size_bytes = artifact.size_bytes;
            tracing::info!(task.id = %artifact.task_id, size_bytes, "artifact stored");
        }
        Ok(upload_linked_chat_artifact::Answer {
            ok: true,
            replayed,
            artifact_id: artifact.artifact_id,
            size_bytes: artifact.size_bytes,
            sha256: artifact.content.to_hex(),
        })
    }

    /// A file that one of the caller's own chats uploaded, and its bytes.
    ///
    /// # Errors
    /// [`Refusal::ArtifactNotFound`] for whatever is not the caller's, malformed ids included.
    pub async fn own_artifact(
        &self,
        caller: &Connection,
        task_id: &str,
        claim_id: &str,
        artifact_id: &str,
    ) -> Result<(Artifact, Vec<u8>), HubError> {
        let reader = ArtifactReader::Connection(caller.id);
        let (task_id, claim_id) = (read_task_id(task_id), read_claim_id(claim_id));
        self.find_artifact(reader, task_id, claim_id, artifact_id)
            .await
    }

    /// A file of one of the owner's tasks, and its bytes.
    ///
    /// # Errors
    /// [`Refusal::ArtifactNotFound`].
    pub async fn owned_artifact(
        &self,
        task_id: TaskId,
        claim_id: ClaimId,
        artifact_id: &str,
    ) -> Result<(Artifact, Vec<u8>), HubError> {
        let reader = ArtifactReader::Owner(self.owner().await?);
        self.find_artifact(reader, task_id, claim_id, artifact_id)
            .await
    }

    async fn find_artifact(
        &self,
        reader: ArtifactReader,
        task_id: TaskId,
        claim_id: ClaimId,
        artifact_id: &str,
    ) -> Result<(Artifact, Vec<u8>), HubError> {
        let artifact_id = artifact_id.to_owned();
        let found = self.store.artifact(ArtifactKey {
            reader,
            task_id,
            claim_id,
            artifact_id,
        });
        Ok(found.await?.ok_or(Refusal::ArtifactNotFound)?)
    }
}

/// What an artifact may be.
const MEDIA_TYPES: &str = "`media_type` must be text/…, image/…, audio/…, video/…, or a document, \
                           data or archive type such as application/pdf, application/json or \
                           application/zip. Scripts, macros and programs are not taken.";

/// What names an artifact, in an address too.
const ARTIFACT_ID: &str = "`artifact_id` has no line breaks or other control characters, and is not \
                           `.` or `..`.";
