//! What desktops share, and what waits for them.

use callboard_domain::graph_run::Status;
use callboard_domain::limits::COMMANDS_PER_SYNC_MAX;
use callboard_domain::{ConnectionId, DesktopId, ProjectId, Refusal, Timestamp};
use callboard_store::{Handout, RunRow, SessionRow, Synced, rules};
use callboard_wire::relay::SessionInfo;
use rusqlite::{Connection, params};

use super::runs::settled;
use crate::error::Failure;
use crate::rows::{self, all, any, change, row_count, some};
use crate::sql;

pub(crate) fn sessions(
    connection: &Connection,
    connection_id: ConnectionId,
    project_id: ProjectId,
    limit: usize,
) -> Result<Option<Vec<SessionRow>>, Failure> {
    let key = params![connection_id.as_bytes(), project_id.as_bytes()];
    if !any(connection, sql::PROJECT_ADDED, key)? {
        return Ok(None);
    }
    let key = params![project_id.as_bytes(), row_count(limit)];
    all(connection, sql::SESSIONS, key, rows::session_row).map(Some)
}

/// The answer of a sync whose list is the stored one, or `None` when it differs and must be stored.
pub(crate) fn unchanged(
    connection: &Connection,
    desktop_id: DesktopId,
    project_id: ProjectId,
    sessions: &[SessionInfo],
    now: Timestamp,
) -> Result<Option<Synced>, Failure> {
    let key = params![desktop_id.as_bytes(), project_id.as_bytes()];
    if !any(connection, sql::PROJECT_OF_DESKTOP, key)? {
        return Err(Refusal::ProjectNotFound.into());
    }
    let key = params![project_id.as_bytes(), desktop_id.as_bytes()];
    let shared = all(connection, sql::SHARED_SESSIONS, key, rows::session)?;
    if shared != sessions {
        return Ok(None);
    }
    Ok(Some(Synced {
        handout: hand_out(connection, desktop_id, project_id, now)?,
        changed: false,
    }))
}

pub(crate) fn sync(
    connection: &Connection,
    desktop_id: DesktopId,
    project_id: ProjectId,
    sessions: &[SessionInfo],
    now: Timestamp,
) -> Result<Synced, Failure> {
    if let Some(synced) = unchanged(connection, desktop_id, project_id, sessions, now)? {
        return Ok(synced);
    }
    let (desktop, project) = (desktop_id.as_bytes(), project_id.as_bytes());
    change(connection, sql::REMOVE_SESSIONS, params![project, desktop])?;
    for (position, session) in (0_i64..).zip(sessions) {
        let row = params![
            project,
            desktop,
            position,
            session.graph_session_id.to_bytes(),
            session.name,
            session.description,
            session.slug,
            session.version.cast_signed(),
            session.status,
        ];
        change(connection, sql::ADD_SESSION, row)?;
    }
    Ok(Synced {
        handout: hand_out(connection, desktop_id, project_id, now)?,
        changed: true,
    })
}

/// A chat can queue thousands of commands for a desktop that is away, so those are read only until
/// the hand-out is full; of started ones there are as many as the desktop asked for.
fn hand_out(
    connection: &Connection,
    desktop_id: DesktopId,
    project_id: ProjectId,
    now: Timestamp,
) -> Result<Handout, Failure> {
    let read = |cells: &mut rows::Cells<'_>| Ok(settled(rows::run(cells)?, now));
    let key = [desktop_id.as_bytes(), project_id.as_bytes()];
    let mut queued = 0;
    let room = |found: &[RunRow]| {
        let last = found.last().map(|row| row.run.status());
        queued += usize::from(last == Some(Status::Queued));
        queued < COMMANDS_PER_SYNC_MAX
    };
    let mut open = some(connection, sql::WAITING_RUNS, key, read, room)?;
    open.extend(all(connection, sql::STARTED_RUNS, key, read)?);
    Ok(rules::hand_out(&open)?)
}
