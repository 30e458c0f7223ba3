//! What every store decides in the same way around the pure machines.

use callboard_domain::graph_run::{Event, Run, decide, settle};
use callboard_domain::limits::COMMANDS_PER_SYNC_MAX;
use callboard_domain::{Decision, Digest, Refusal, Timestamp, WorkerId};
use callboard_wire::RawValue;
use callboard_wire::relay::{CommandInfo, ControlInfo};

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

/// What a desktop gets of its open commands in one project: the queued ones, and those running
/// ones that somebody asked to stop. `rows` are settled and come oldest first.
///
/// # Errors
/// [`StoreError::Unavailable`] when stored arguments are not JSON.
pub fn hand_out(rows: &[RunRow]) -> Result<Handout, StoreError> {
    let mut handout = Handout::default();
    for row in rows {
        match row.run.execution() {
            None if row.run.status().is_terminal() => {}
            None if handout.commands.len() < COMMANDS_PER_SYNC_MAX => {
                let arguments = RawValue::from_string(row.arguments.clone());
                handout.commands.push(CommandInfo {
                    command_id: row.command_id,
                    graph_session_id: row.graph_session_id,
                    slug: row.slug.clone(),
                    arguments: arguments.map_err(StoreError::unavailable)?,
                });
            }
            Some(execution) if execution.cancel_requested_at.is_some() => {
                let command_id = row.command_id;
                handout.control.push(ControlInfo {
                    command_id,
                    cancel_requested: true,
                });
            }
            None | Some(_) => {}
        }
    }
    Ok(handout)
}
