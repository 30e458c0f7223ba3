//! Commands: queueing, reading, and every event that moves one.

use callboard_domain::graph_run::{Event, Run, decide};
use callboard_domain::{
    CommandId, ConnectionId, Decision, DesktopId, OwnerId, ProjectId, Refusal, Timestamp,
};
use callboard_store::{QueueRun, QueuedRun, Revoked, RunColumns, RunKey, RunRow, rules};
use callboard_wire::relay::Progress;
use rusqlite::{Connection, params};

use super::chats;
use crate::error::Failure;
use crate::rows::{self, all, change, first};
use crate::sql;

/// Whose command it must be. It is part of the key of each look-up, so that what is not the
/// caller's is not there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Caller {
    Connection(ConnectionId),
    Desktop(DesktopId),
    Owner(OwnerId),
}

/// The command as it is stored.
pub(crate) fn stored(
    connection: &Connection,
    caller: Caller,
    command_id: CommandId,
) -> Result<Option<RunRow>, Failure> {
    let (sql, caller) = match caller {
        Caller::Connection(id) => (sql::RUN_OF_CONNECTION, *id.as_bytes()),
        Caller::Desktop(id) => (sql::RUN_OF_DESKTOP, *id.as_bytes()),
        Caller::Owner(id) => (sql::RUN_OF_OWNER, *id.as_bytes()),
    };
    let key = params![caller, command_id.as_bytes()];
    first(connection, sql, key, rows::run)
}

pub(crate) fn run(
    connection: &Connection,
    key: RunKey,
    now: Timestamp,
) -> Result<Option<RunRow>, Failure> {
    let caller = Caller::Connection(key.connection_id);
    let row = stored(connection, caller, key.command_id)?;
    Ok(row.map(|row| settled(row, now)))
}

pub(super) fn settled(row: RunRow, now: Timestamp) -> RunRow {
    let run = rules::settled_at(&row.run, now);
    RunRow { run, ..row }
}

pub(crate) fn queue_run(connection: &Connection, request: QueueRun) -> Result<QueuedRun, Failure> {
    let connection_id = request.connection_id.as_bytes();
    let key = params![connection_id, request.idempotency_key];
    if let Some(row) = first(connection, sql::RUN_BY_KEY, key, rows::run)? {
        let run = rules::replay_queue(&row.run, request.request, request.now)?;
        return Ok(QueuedRun {
            row: RunRow { run, ..row },
            replayed: true,
        });
    }
    let session = request.graph_session_id.to_bytes();
    let key = params![connection_id, session];
    let place = first(connection, sql::PLACE, key, |cells| {
        let project_id = ProjectId::from_bytes(cells.take()?);
        let desktop_id = DesktopId::from_bytes(cells.take()?);
        Ok((project_id, desktop_id, cells.take::<String>()?))
    })?;
    let (project_id, desktop_id, slug) = place.ok_or(Refusal::SessionNotFound)?;
    let run = Run::queued(request.request, request.now);
    let columns = RunColumns::from(&run);
    let row = RunRow {
        command_id: request.command_id,
        connection_id: request.connection_id,
        project_id,
        desktop_id,
        graph_session_id: request.graph_session_id,
        slug,
        arguments: request.arguments,
        run,
        phase: None,
        progress: None,
        desktop_last_seen_at: first(
            connection,
            sql::LAST_SEEN,
            [desktop_id.as_bytes()],
            |cells| Ok(cells.time()?),
        )?
        .flatten(),
    };
    let values = params![
        row.command_id.as_bytes(),
        connection_id,
        row.project_id.as_bytes(),
        row.desktop_id.as_bytes(),
        session,
        row.slug,
        request.idempotency_key,
        columns.request,
        columns.status,
        columns.queued_at,
        columns.updated_at,
        rules::due_at(&row).map(Timestamp::as_millis),
    ];
    change(connection, sql::ADD_RUN, values)?;
    let values = params![connection.last_insert_rowid(), row.arguments];
    change(connection, sql::ADD_ARGUMENTS, values)?;
    Ok(QueuedRun {
        row,
        replayed: false,
    })
}

/// Applies `event` to a command of `caller`; true when the event was a replay.
pub(crate) fn apply(
    connection: &Connection,
    caller: Caller,
    command_id: CommandId,
    event: &Event,
    now: Timestamp,
) -> Result<(RunRow, bool), Failure> {
    let row = stored(connection, caller, command_id)?.ok_or(Refusal::RunNotFound)?;
    match decide(&row.run, event, now)? {
        Decision::Moved(run) => Ok((moved(connection, RunRow { run, ..row })?, false)),
        Decision::Replayed => Ok((row, true)),
        Decision::Unchanged => Ok((row, false)),
    }
}

/// Stores a run that moved.
pub(super) fn moved(connection: &Connection, row: RunRow) -> Result<RunRow, Failure> {
    let columns = RunColumns::from(&row.run);
    let values = params![
        row.command_id.as_bytes(),
        columns.status,
        columns.updated_at,
        columns.execution_id,
        columns.started_at,
        columns.cancel_requested_at,
        columns.finished_at,
        columns.digest,
        columns.result,
        columns.result_truncated,
        columns.error,
        columns.total_tokens,
        columns.reported_cost,
        rules::due_at(&row).map(Timestamp::as_millis),
    ];
    change(connection, sql::SET_STATE, values)?;
    Ok(row)
}

/// What a desktop says of a command, taken over into the row that its caller gets; true when that
/// must be stored.
pub(crate) fn noted(
    connection: &Connection,
    desktop_id: DesktopId,
    command_id: CommandId,
    phase: Option<String>,
    progress: Option<Progress>,
    now: Timestamp,
) -> Result<(RunRow, bool), Failure> {
    let row = stored(connection, Caller::Desktop(desktop_id), command_id)?;
    let mut row = row.ok_or(Refusal::RunNotFound)?;
    let differs = rules::note_progress(&mut row, phase, progress);
    Ok((settled(row, now), differs))
}

pub(crate) fn report_progress(
    connection: &Connection,
    desktop_id: DesktopId,
    command_id: CommandId,
    phase: Option<String>,
    progress: Option<Progress>,
    now: Timestamp,
) -> Result<RunRow, Failure> {
    let (row, differs) = noted(connection, desktop_id, command_id, phase, progress, now)?;
    if differs {
        let progress = row.progress;
        let count = |read: fn(Progress) -> u64| progress.map(|is| read(is).cast_signed());
        let cap = progress.and_then(|is| is.tokens_cap);
        let values = params![
            command_id.as_bytes(),
            row.phase,
            count(|is| is.calls_done),
            count(|is| is.calls_started),
            count(|is| is.tokens),
            cap.map(u64::cast_signed),
        ];
        change(connection, sql::SET_PROGRESS, values)?;
    }
    Ok(row)
}

pub(crate) fn revoke_connection(
    connection: &Connection,
    owner_id: OwnerId,
    name: &str,
    now: Timestamp,
) -> Result<Option<Revoked>, Failure> {
    let key = params![owner_id.as_bytes(), name];
    let found = first(connection, sql::CONNECTION_NAMED, key, |cells| {
        Ok(ConnectionId::from_bytes(cells.take()?))
    })?;
    let Some(id) = found else {
        return Ok(None);
    };
    let row = params![id.as_bytes(), now.as_millis()];
    change(connection, sql::SET_REVOKED, row)?;
    let key = [id.as_bytes()];
    let open = all(connection, sql::OPEN_RUNS_OF_CONNECTION, key, rows::run)?;
    let mut runs = Vec::new();
    for row in open {
        if let Decision::Moved(run) = decide(&row.run, &Event::RemoveAccess, now)? {
            runs.push(moved(connection, RunRow { run, ..row })?);
        }
    }
    let tasks = chats::revoke_all(connection, id, now)?;
    Ok(Some(Revoked { runs, tasks }))
}
