//! What every store decides in the same way around the pure machines.

use callboard_domain::graph_run::{Event, Run, Status, decide, next_sweep, settle, sweep};
use callboard_domain::limits::COMMANDS_PER_SYNC_MAX;
use callboard_domain::{Decision, Digest, Refusal, Timestamp, WorkerId};
use callboard_wire::RawValue;
use callboard_wire::relay::{CommandInfo, ControlInfo, Progress};

use crate::{Handout, RunRow, StoreError};

/// Binds a desktop identity to `worker_id`; true when that is new and must be stored.
///
/// # Errors
/// [`Refusal::DesktopInUse`] when it is bound to another data folder.
pub fn bind_worker(bound: Option<WorkerId>, worker_id: WorkerId) -> Result<bool, Refusal> {
    match bound {
        None => Ok(true),
        Some(bound) if bound == worker_id => Ok(false),
        Some(_) => Err(Refusal::DesktopInUse),
    }
}

/// What a request with a known idempotency key gets: the run as it stands now.
///
/// # Errors
/// [`Refusal::KeyReused`] when the key belongs to a different request.
pub fn replay_queue(run: &Run, request: Digest, now: Timestamp) -> Result<Run, Refusal> {
    match decide(run, &Event::Queue { request }, now)? {
        Decision::Moved(settled) => Ok(settled),
        Decision::Replayed | Decision::Unchanged => Ok(settled_at(run, now)),
    }
}

/// The run as it stands at `now`, without storing anything.
pub fn settled_at(run: &Run, now: Timestamp) -> Run {
    settle(run, now).unwrap_or_else(|| run.clone())
}

/// Takes over what a running command says of itself; true when something differs and must be
/// stored. Whatever is said of a command that does not run is dropped: its story is over, or has
/// not begun.
pub fn note_progress(row: &mut RunRow, phase: Option<String>, progress: Option<Progress>) -> bool {
    if row.run.status() != Status::Running {
        return false;
    }
    let phase = phase.filter(|phase| row.phase.as_ref() != Some(phase));
    let progress = progress.filter(|progress| row.progress.as_ref() != Some(progress));
    let differs = phase.is_some() || progress.is_some();
    row.phase = phase.or(row.phase.take());
    row.progress = progress.or(row.progress);
    differs
}

/// When a sweep should look at the row next: the stored `due_at`. See [`next_sweep`].
pub fn due_at(row: &RunRow) -> Option<Timestamp> {
    next_sweep(&row.run, last_sign(row))
}

/// What a sweep at `now` makes of the row's run; `None` when nothing changes. See [`sweep`].
pub fn swept(row: &RunRow, now: Timestamp) -> Option<Run> {
    sweep(&row.run, last_sign(row), now)
}

fn last_sign(row: &RunRow) -> Timestamp {
    row.desktop_last_seen_at.unwrap_or(row.run.queued_at)
}

/// What a desktop gets of its open commands in one project: the queued ones, and those running
/// ones that somebody asked to stop. `rows` are settled and come oldest first.
///
/// # Errors
/// [`StoreError::Unavailable`] when stored arguments are not JSON.
pub fn hand_out(rows: &[RunRow]) -> Result<Handout, StoreError> {
    let mut handout = Handout::default();
    for row in rows {
        match row.run.status() {
            Status::Queued if handout.commands.len() < COMMANDS_PER_SYNC_MAX => {
                let arguments = RawValue::from_string(row.arguments.clone());
                handout.commands.push(CommandInfo {
                    command_id: row.command_id,
                    graph_session_id: row.graph_session_id,
                    slug: row.slug.clone(),
                    arguments: arguments.map_err(StoreError::unavailable)?,
                });
            }
            Status::Running if row.run.cancel_requested() => {
                let command_id = row.command_id;
                handout.control.push(ControlInfo {
                    command_id,
                    cancel_requested: true,
                });
            }
            Status::Queued
            | Status::Running
            | Status::Completed
            | Status::Failed
            | Status::Cancelled
            | Status::Expired => {}
        }
    }
    Ok(handout)
}
