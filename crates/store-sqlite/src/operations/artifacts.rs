//! Files that chats upload under their claims: the rows of their bytes.

use std::io;

use callboard_domain::linked_task::{Upload, decide_upload};
use callboard_domain::{Decision, Digest, Timestamp};
use callboard_store::rules::{self, Unknown};
use callboard_store::{Artifact, ArtifactKey, ArtifactReader, LinkKey, StoreError};
use rusqlite::{Connection, params};

use super::tasks::{self, Caller};
use crate::contents::{Contents, file_name};
use crate::error::Failure;
use crate::rows::{self, all, change, first};
use crate::sql;

/// Whether a row names the file.
pub(crate) fn is_named(connection: &Connection, file: Digest) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(sql::ARTIFACT_IN_FILE)?;
    statement.exists([file.as_bytes()])
}

/// What a repeated upload finds; `None` for `artifact` when it is new and may be stored.
pub(crate) fn answered(
    connection: &Connection,
    key: LinkKey,
    artifact: &Artifact,
    now: Timestamp,
) -> Result<Option<Artifact>, Failure> {
    let caller = Caller::Link(key);
    let task = tasks::stored(connection, caller, artifact.task_id, Unknown::TO_UPLOAD)?;
    let of_task = all(
        connection,
        sql::ARTIFACTS_OF_TASK,
        [task.seq],
        rows::artifact,
    )?;
    let of_task: Vec<_> = of_task.iter().collect();
    let (claim_id, artifact_id) = (artifact.claim_id, &artifact.artifact_id);
    let (uploaded, stored) = rules::uploaded(&of_task, key.link_id, claim_id, artifact_id);
    let upload = Upload {
        link_id: key.link_id,
        claim_id: artifact.claim_id,
        content: artifact.content,
    };
    match decide_upload(&task.row.task, &upload, uploaded, now)? {
        Decision::Moved(()) => Ok(None),
        Decision::Replayed | Decision::Unchanged => Ok(stored.cloned()),
    }
}

/// Stores the row of `artifact`, whose bytes are in `contents`; true when it was there. The bytes
/// of an upload that is refused after all go again, unless a row names them.
///
/// All this happens on the one thread that writes, so that a file cannot go between the look at it
/// and the row.
pub(crate) fn upload(
    connection: &Connection,
    contents: &Contents,
    key: LinkKey,
    artifact: Artifact,
    now: Timestamp,
) -> Result<(Artifact, bool), Failure> {
    let file = file_name(&artifact);
    match answered(connection, key, &artifact, now) {
        Ok(Some(stored)) => return Ok((stored, true)),
        Ok(None) => {}
        Err(failure) => {
            let refused = matches!(failure.0, StoreError::Refused(_));
            if refused && !is_named(connection, file)? {
                contents.remove(file);
            }
            return Err(failure);
        }
    }
    if !contents.has(file)? {
        return Err(io::Error::from(io::ErrorKind::NotFound).into());
    }
    let values = params![
        artifact.task_id.as_bytes(),
        artifact.link_id.as_bytes(),
        artifact.claim_id.as_bytes(),
        artifact.artifact_id,
        artifact.name,
        artifact.media_type,
        artifact.size_bytes.cast_signed(),
        artifact.content.as_bytes(),
        file.as_bytes(),
        artifact.uploaded_at.as_millis(),
    ];
    change(connection, sql::ADD_ARTIFACT, values)?;
    Ok((artifact, false))
}

pub(crate) fn artifact(
    connection: &Connection,
    key: &ArtifactKey,
) -> Result<Option<Artifact>, Failure> {
    let (sql, reader) = match key.reader {
        ArtifactReader::Owner(id) => (sql::ARTIFACT_OF_OWNER, *id.as_bytes()),
        ArtifactReader::Connection(id) => (sql::ARTIFACT_OF_CONNECTION, *id.as_bytes()),
    };
    let key = params![
        reader,
        key.task_id.as_bytes(),
        key.claim_id.as_bytes(),
        key.artifact_id,
    ];
    first(connection, sql, key, rows::artifact)
}
