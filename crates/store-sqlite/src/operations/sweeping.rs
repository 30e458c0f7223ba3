//! Storing what time caused.

use callboard_domain::Timestamp;
use callboard_domain::limits::SWEEP_ROWS_MAX;
use callboard_store::{RunRow, Swept, rules};
use rusqlite::{Connection, params};

use super::runs::moved;
use super::tasks;
use crate::error::Failure;
use crate::rows::{self, all, any, change, row_count};
use crate::sql;

/// Whether a sweep would find anything. SQLite takes the write lock even when nothing matches, so
/// the shell asks this first.
pub(crate) fn is_due(connection: &Connection, now: Timestamp) -> Result<bool, Failure> {
    let at = [now.as_millis()];
    Ok(any(connection, sql::ANY_DUE, at)? || any(connection, sql::ANY_TASK_DUE, at)?)
}

/// See [`callboard_store::Store::sweep`].
pub(crate) fn sweep(
    connection: &Connection,
    now: Timestamp,
    rows_max: usize,
) -> Result<Swept, Failure> {
    let (runs, more_runs) = sweep_runs(connection, now, rows_max)?;
    let (tasks, more_tasks) = tasks::sweep(connection, now, rows_max)?;
    let more = more_runs || more_tasks;
    Ok(Swept { runs, tasks, more })
}

/// A sign of life of a desktop puts off the end of its running commands without touching their
/// rows. So a stored `due_at` may be too early, never too late; it is put right here.
fn sweep_runs(
    connection: &Connection,
    now: Timestamp,
    rows_max: usize,
) -> Result<(Vec<RunRow>, bool), Failure> {
    let window = rows_max.max(SWEEP_ROWS_MAX);
    let key = params![now.as_millis(), row_count(window).saturating_add(1)];
    let looked_at = all(connection, sql::DUE_RUNS, key, |cells| {
        let row = rows::run(cells)?;
        Ok((row, cells.time()?))
    })?;
    let unseen = looked_at.len() > window;
    let mut due = Vec::new();
    for (row, stored_due_at) in looked_at {
        let due_at = rules::due_at(&row);
        if due_at != stored_due_at {
            let values = params![row.command_id.as_bytes(), due_at.map(Timestamp::as_millis)];
            change(connection, sql::SET_DUE, values)?;
        }
        if let Some(due_at) = due_at.filter(|due_at| *due_at <= now) {
            due.push((due_at, row));
        }
    }
    due.sort_by_key(|(due_at, row)| (*due_at, row.command_id));
    let more = unseen || due.len() > rows_max;
    let mut swept = Vec::new();
    for (_, row) in due.into_iter().take(rows_max) {
        if let Some(run) = rules::swept(&row, now) {
            swept.push(moved(connection, RunRow { run, ..row })?);
        }
    }
    Ok((swept, more))
}
