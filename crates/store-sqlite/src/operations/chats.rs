//! Links of conversations: made, listed, revoked.

use std::collections::BTreeMap;

use callboard_domain::limits::CHATS_PER_CONNECTION_MAX;
use callboard_domain::{ChatLinkId, ConnectionId, Digest, OwnerId, ProjectId, Timestamp};
use callboard_store::{ChatRow, LinkKey, LinkedChat, NewChatLink, TaskRow, rules};
use rusqlite::{Connection, params};

use super::tasks;
use crate::error::Failure;
use crate::rows::{self, all, any, change, first, row_count};
use crate::sql;

/// Whether the connection has such a live link.
pub(super) fn is_live(connection: &Connection, key: LinkKey) -> Result<bool, Failure> {
    let key = params![key.connection_id.as_bytes(), key.link_id.as_bytes()];
    any(connection, sql::LINK_OF_CONNECTION, key)
}

/// The project of a live link of the owner.
pub(super) fn project_of(
    connection: &Connection,
    owner_id: OwnerId,
    link_id: ChatLinkId,
) -> Result<Option<ProjectId>, Failure> {
    let key = params![owner_id.as_bytes(), link_id.as_bytes()];
    let link = first(connection, sql::LINK_OF_OWNER, key, rows::link)?;
    Ok(link.map(|link| link.project_id))
}

fn has_access(
    connection: &Connection,
    connection_id: ConnectionId,
    project_id: ProjectId,
) -> Result<bool, Failure> {
    let key = params![connection_id.as_bytes(), project_id.as_bytes()];
    any(connection, sql::PROJECT_ADDED, key)
}

/// The link that was made under the key of `new`, if there is one.
pub(crate) fn linked(
    connection: &Connection,
    new: &NewChatLink,
) -> Result<Option<LinkedChat>, Failure> {
    let key = params![new.link.connection_id.as_bytes(), new.idempotency_key];
    let known = first(connection, sql::LINK_BY_KEY, key, |cells| {
        let link = rows::link(cells)?;
        Ok((link, Digest::from_bytes(cells.take()?), cells.time()?))
    })?;
    let Some((link, stored, revoked_at)) = known else {
        return Ok(None);
    };
    let access = has_access(connection, link.connection_id, link.project_id)?;
    rules::replay_link(stored, new.request, revoked_at.is_none() && access)?;
    Ok(Some(LinkedChat {
        link,
        replayed: true,
    }))
}

pub(crate) fn link_chat(connection: &Connection, new: NewChatLink) -> Result<LinkedChat, Failure> {
    if let Some(linked) = linked(connection, &new)? {
        return Ok(linked);
    }
    let NewChatLink {
        link,
        idempotency_key,
        request,
    } = new;
    let theirs = link.connection_id.as_bytes();
    let last = row_count(CHATS_PER_CONNECTION_MAX - 1);
    rules::admit_link(
        has_access(connection, link.connection_id, link.project_id)?,
        || any(connection, sql::MORE_LINKS, params![theirs, last]),
    )?;
    let row = params![
        link.id.as_bytes(),
        theirs,
        link.project_id.as_bytes(),
        link.label,
        link.reference,
        link.host_hint,
        idempotency_key,
        request.as_bytes(),
        link.linked_at.as_millis(),
    ];
    change(connection, sql::ADD_LINK, row)?;
    Ok(LinkedChat {
        link,
        replayed: false,
    })
}

pub(crate) fn chat_links(
    connection: &Connection,
    owner_id: OwnerId,
) -> Result<Vec<ChatRow>, Failure> {
    let key = [owner_id.as_bytes()];
    all(connection, sql::LINKS_OF_OWNER, key, rows::chat)
}

/// Whether the link is revoked; `None` when the owner never had it.
pub(crate) fn is_revoked(
    connection: &Connection,
    owner_id: OwnerId,
    link_id: ChatLinkId,
) -> Result<Option<bool>, Failure> {
    let key = params![owner_id.as_bytes(), link_id.as_bytes()];
    first(
        connection,
        sql::LINK_REVOKED,
        key,
        |cells| Ok(cells.take()?),
    )
}

pub(crate) fn revoke_chat_link(
    connection: &Connection,
    owner_id: OwnerId,
    link_id: ChatLinkId,
    now: Timestamp,
) -> Result<Option<Vec<TaskRow>>, Failure> {
    match is_revoked(connection, owner_id, link_id)? {
        None => Ok(None),
        Some(true) => Ok(Some(Vec::new())),
        Some(false) => revoke(connection, &[link_id], now).map(Some),
    }
}

/// Revokes all links of a connection.
pub(super) fn revoke_all(
    connection: &Connection,
    connection_id: ConnectionId,
    now: Timestamp,
) -> Result<Vec<TaskRow>, Failure> {
    let key = [connection_id.as_bytes()];
    let links = all(connection, sql::LINKS_OF_CONNECTION, key, |cells| {
        Ok(ChatLinkId::from_bytes(cells.take()?))
    })?;
    revoke(connection, &links, now)
}

/// Revokes `links` and gives the tasks that changed, in the order in which they were assigned, each
/// as it is in the end.
fn revoke(
    connection: &Connection,
    links: &[ChatLinkId],
    now: Timestamp,
) -> Result<Vec<TaskRow>, Failure> {
    let mut changed = BTreeMap::new();
    for &link_id in links {
        let row = params![link_id.as_bytes(), now.as_millis()];
        change(connection, sql::SET_LINK_REVOKED, row)?;
        changed.extend(tasks::remove_link(connection, link_id, now)?);
    }
    Ok(changed.into_values().collect())
}
