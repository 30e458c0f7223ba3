//! Tasks of linked chats: assigning, reading, and every event that moves one.

use callboard_domain::limits::{INBOX_RECENT_MAX, OPEN_TASKS_PER_CHAT_MAX};
use callboard_domain::linked_task::{Event, Task, decide, next_due, settle};
use callboard_domain::{ChatLinkId, Decision, OwnerId, ProjectId, TaskId, Timestamp};
use callboard_store::rules::{self, Unknown, task_at};
use callboard_store::{AssignTask, AssignedTask, LinkKey, OwnedTask, TaskColumns, TaskRow};
use rusqlite::{Connection, params};

use super::chats;
use crate::error::Failure;
use crate::rows::{self, BareTask, all, any, change, first, row_count};
use crate::sql;

/// Whose task it must be. It is part of the key of each look-up, so that what is not the caller's
/// is not there.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Caller {
    Link(LinkKey),
    Owner(OwnerId),
}

/// A whole task as it is stored, and its place in the order in which they were assigned.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) seq: i64,
    pub(super) row: TaskRow,
}

/// Adds what is in other tables.
fn whole(connection: &Connection, bare: BareTask) -> Result<Stored, Failure> {
    let BareTask { seq, task, .. } = bare;
    let text = first(connection, sql::TASK_TEXT, [seq], |cells| Ok(cells.take()?))?;
    let candidates = all(connection, sql::CANDIDATES, [seq], |cells| {
        Ok(ChatLinkId::from_bytes(cells.take()?))
    })?;
    let row = TaskRow {
        task_id: bare.task_id,
        project_id: bare.project_id,
        text: text.ok_or(rusqlite::Error::QueryReturnedNoRows)?,
        task: Task { candidates, ..task },
    };
    Ok(Stored { seq, row })
}

fn settled(row: TaskRow, now: Timestamp) -> TaskRow {
    let task = task_at(&row.task, now);
    TaskRow { task, ..row }
}

/// The task of `caller` as it is stored; otherwise the refusals of `unknown`.
pub(super) fn stored(
    connection: &Connection,
    caller: Caller,
    task_id: TaskId,
    unknown: Unknown,
) -> Result<Stored, Failure> {
    let (sql, caller) = match caller {
        Caller::Link(key) if !chats::is_live(connection, key)? => return Err(unknown.link.into()),
        Caller::Link(key) => (sql::TASK_OF_LINK, *key.link_id.as_bytes()),
        Caller::Owner(id) => (sql::TASK_OF_OWNER, *id.as_bytes()),
    };
    let key = params![caller, task_id.as_bytes()];
    let bare = first(connection, sql, key, rows::bare_task)?;
    whole(connection, bare.ok_or(unknown.task)?)
}

/// The answer to `event` where there is nothing to store, or `None`; true when it was a replay.
pub(crate) fn answered(
    connection: &Connection,
    caller: Caller,
    task_id: TaskId,
    event: &Event,
    now: Timestamp,
) -> Result<Option<(TaskRow, bool)>, Failure> {
    let task = stored(connection, caller, task_id, Unknown::to(event))?;
    Ok(match decide(&task.row.task, event, now)? {
        Decision::Moved(_) => None,
        Decision::Replayed => Some((task.row, true)),
        Decision::Unchanged => Some((task.row, false)),
    })
}

/// Applies `event` to a task of `caller`; true when it was a replay.
pub(crate) fn apply(
    connection: &Connection,
    caller: Caller,
    task_id: TaskId,
    event: &Event,
    now: Timestamp,
) -> Result<(TaskRow, bool), Failure> {
    let task = stored(connection, caller, task_id, Unknown::to(event))?;
    match decide(&task.row.task, event, now)? {
        Decision::Moved(next) => Ok((moved(connection, task, next)?, false)),
        Decision::Replayed => Ok((task.row, true)),
        Decision::Unchanged => Ok((task.row, false)),
    }
}

/// Takes a link that is gone off its open tasks and gives those that changed, oldest first.
pub(super) fn remove_link(
    connection: &Connection,
    link_id: ChatLinkId,
    now: Timestamp,
) -> Result<Vec<(i64, TaskRow)>, Failure> {
    let key = [link_id.as_bytes()];
    let mut changed = Vec::new();
    for bare in all(connection, sql::OPEN_TASKS_OF_LINK, key, rows::bare_task)? {
        let task = whole(connection, bare)?;
        if let Decision::Moved(next) = decide(&task.row.task, &Event::RevokeLink { link_id }, now)?
        {
            changed.push((task.seq, moved(connection, task, next)?));
        }
    }
    Ok(changed)
}

/// Stores what became of a task.
fn moved(connection: &Connection, task: Stored, next: Task) -> Result<TaskRow, Failure> {
    let Stored { seq, row } = task;
    let columns = TaskColumns::from(&next);
    let values = params![
        seq,
        columns.status,
        columns.updated_at,
        columns.claim_id,
        columns.claim_link_id,
        columns.claimed_at,
        columns.lease_until,
        columns.finished_at,
        columns.digest,
        columns.result,
        next_due(&next).map(Timestamp::as_millis),
    ];
    change(connection, sql::SET_TASK, values)?;
    for link_id in &row.task.candidates {
        if !next.is_for(*link_id) {
            let key = params![seq, link_id.as_bytes()];
            change(connection, sql::REMOVE_CANDIDATE, key)?;
        }
    }
    if next.finished_at() != row.task.finished_at() {
        let values = params![seq, columns.finished_at];
        change(connection, sql::SET_CANDIDATES_FINISHED, values)?;
    }
    Ok(TaskRow { task: next, ..row })
}

/// The task that was assigned under the key of `request`, if there is one.
pub(crate) fn assigned(
    connection: &Connection,
    request: &AssignTask,
) -> Result<Option<AssignedTask>, Failure> {
    let key = params![request.owner_id.as_bytes(), request.idempotency_key];
    let Some(bare) = first(connection, sql::TASK_BY_KEY, key, rows::bare_task)? else {
        return Ok(None);
    };
    let row = whole(connection, bare)?.row;
    let task = rules::replay_assign(&row.task, request.request, request.now)?;
    Ok(Some(AssignedTask {
        row: TaskRow { task, ..row },
        replayed: true,
    }))
}

pub(crate) fn assign_task(
    connection: &Connection,
    request: AssignTask,
) -> Result<AssignedTask, Failure> {
    if let Some(assigned) = assigned(connection, &request)? {
        return Ok(assigned);
    }
    let row = TaskRow {
        task_id: request.task_id,
        project_id: project_of(connection, request.owner_id, &request.candidates)?,
        text: request.text,
        task: Task::assigned(request.request, request.candidates, request.now),
    };
    let columns = TaskColumns::from(&row.task);
    let values = params![
        row.task_id.as_bytes(),
        request.owner_id.as_bytes(),
        row.project_id.as_bytes(),
        request.idempotency_key,
        columns.request,
        columns.status,
        columns.assigned_at,
        columns.expires_at,
        columns.updated_at,
        next_due(&row.task).map(Timestamp::as_millis),
    ];
    change(connection, sql::ADD_TASK, values)?;
    let seq = connection.last_insert_rowid();
    change(connection, sql::ADD_TASK_TEXT, params![seq, row.text])?;
    for (position, link_id) in (0_i64..).zip(&row.task.candidates) {
        let values = params![seq, position, link_id.as_bytes()];
        change(connection, sql::ADD_CANDIDATE, values)?;
    }
    Ok(AssignedTask {
        row,
        replayed: false,
    })
}

fn project_of(
    connection: &Connection,
    owner_id: OwnerId,
    candidates: &[ChatLinkId],
) -> Result<ProjectId, Failure> {
    let last = row_count(OPEN_TASKS_PER_CHAT_MAX - 1);
    rules::admit_task(
        candidates,
        |link_id| chats::project_of(connection, owner_id, link_id),
        |link_id| {
            any(
                connection,
                sql::MORE_OPEN_TASKS,
                params![link_id.as_bytes(), last],
            )
        },
    )
}

/// See [`callboard_store::Store::inbox`]. Old tasks stay untouched, however many there are: the
/// open ones are bounded, and of the finished ones the last few stand first in their index.
pub(crate) fn inbox(
    connection: &Connection,
    key: LinkKey,
    now: Timestamp,
) -> Result<Option<Vec<TaskRow>>, Failure> {
    if !chats::is_live(connection, key)? {
        return Ok(None);
    }
    let read = |cells: &mut rows::Cells<'_>| {
        let bare = rows::bare_task(cells)?;
        let task = task_at(&bare.task, now);
        Ok(BareTask { task, ..bare })
    };
    let link = key.link_id.as_bytes();
    let mut theirs = all(connection, sql::OPEN_TASKS_OF_LINK, [link], read)?;
    let last = params![link, row_count(INBOX_RECENT_MAX)];
    theirs.extend(all(connection, sql::LAST_TASKS_OF_LINK, last, read)?);
    theirs.sort_by_key(|bare| bare.seq);
    let chosen = rules::inbox(key.link_id, theirs, |bare| &bare.task);
    let rows = chosen
        .into_iter()
        .map(|bare| Ok(whole(connection, bare)?.row));
    rows.collect::<Result<_, _>>().map(Some)
}

pub(crate) fn tasks(
    connection: &Connection,
    owner_id: OwnerId,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<OwnedTask>, Failure> {
    let key = params![owner_id.as_bytes(), row_count(limit)];
    let found = all(connection, sql::TASKS_OF_OWNER, key, named)?;
    let owned = found.into_iter().map(|found| owned(connection, found, now));
    owned.collect()
}

pub(crate) fn task(
    connection: &Connection,
    owner_id: OwnerId,
    task_id: TaskId,
    now: Timestamp,
) -> Result<Option<OwnedTask>, Failure> {
    let key = params![owner_id.as_bytes(), task_id.as_bytes()];
    let found = first(connection, sql::TASK_OF_OWNER, key, named)?;
    found.map(|found| owned(connection, found, now)).transpose()
}

pub(crate) fn task_by_key(
    connection: &Connection,
    owner_id: OwnerId,
    idempotency_key: &str,
    now: Timestamp,
) -> Result<Option<OwnedTask>, Failure> {
    let key = params![owner_id.as_bytes(), idempotency_key];
    let found = first(connection, sql::TASK_BY_KEY, key, named)?;
    found.map(|found| owned(connection, found, now)).transpose()
}

/// A task and the name of its project.
fn named(cells: &mut rows::Cells<'_>) -> Result<(BareTask, String), Failure> {
    Ok((rows::bare_task(cells)?, cells.take()?))
}

fn owned(
    connection: &Connection,
    (bare, project_name): (BareTask, String),
    now: Timestamp,
) -> Result<OwnedTask, Failure> {
    let Stored { seq, row } = whole(connection, bare)?;
    Ok(OwnedTask {
        row: settled(row, now),
        project_name,
        candidates: all(connection, sql::NAMED_CANDIDATES, [seq], rows::candidate)?,
        artifacts: all(connection, sql::ARTIFACTS_OF_TASK, [seq], rows::artifact)?,
    })
}

/// The task's part of [`callboard_store::Store::sweep`]. Its row is all that it depends on, so a
/// stored `due_at` is exact.
pub(super) fn sweep(
    connection: &Connection,
    now: Timestamp,
    rows_max: usize,
) -> Result<(Vec<TaskRow>, bool), Failure> {
    let key = params![now.as_millis(), row_count(rows_max).saturating_add(1)];
    let due = all(connection, sql::DUE_TASKS, key, rows::bare_task)?;
    let more = due.len() > rows_max;
    let mut swept = Vec::new();
    for bare in due.into_iter().take(rows_max) {
        let task = whole(connection, bare)?;
        if let Some(next) = settle(&task.row.task, now) {
            swept.push(moved(connection, task, next)?);
        }
    }
    Ok((swept, more))
}
