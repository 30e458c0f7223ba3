//! The rules of a run: one arm a state and event.

use super::{Completion, End, Event, Execution, LostDesktop, Run, State};
use crate::decision::decide_on_settled;
use crate::limits::{DESKTOP_SILENT, NO_LONGER_SHARED, QUEUED_EXPIRY_MS, SILENT_DESKTOP_MS};
use crate::{Decision, ExecutionId, FinalStatus, Refusal, Report, Timestamp};

/// Answers `event` at `now`. What time alone caused by then is applied first.
///
/// # Errors
/// [`Refusal::KeyReused`] for another request under the same key; [`Refusal::RunOver`],
/// [`Refusal::RunTaken`] for a start; [`Refusal::RunOver`], [`Refusal::StaleExecution`],
/// [`Refusal::CompletionDiffers`], [`Refusal::CompletionWithoutExecution`],
/// [`Refusal::ReportTooLong`] for a completion.
pub fn decide(run: &Run, event: &Event, now: Timestamp) -> Result<Decision<Run>, Refusal> {
    let now = now.max(run.updated_at);
    decide_on_settled(run, settle(run, now), |run| decide_settled(run, event, now))
}

/// Applies what time alone caused: a command that nobody started in
/// [`QUEUED_EXPIRY_MS`] expires. `None` when nothing changed.
pub fn settle(run: &Run, now: Timestamp) -> Option<Run> {
    let due = next_due(run)?;
    (now >= due).then(|| moved(run, State::Expired { finished_at: due }, due))
}

/// What a sweep at `now` makes of a run whose desktop was last seen at `last_seen_at`: it applies
/// what time caused, and gives up a run of a desktop that was silent for too long. `None` when
/// nothing changed.
pub fn sweep(run: &Run, last_seen_at: Timestamp, now: Timestamp) -> Option<Run> {
    let now = now.max(run.updated_at);
    settle(run, now).or_else(|| give_up(run, LostDesktop::Silent { last_seen_at }, now).moved())
}

/// When a sweep should look at the run next, for the store's indexed `due_at` column. Every open
/// run has one and no finished run does, so the column also tells the two apart.
pub fn next_sweep(run: &Run, last_seen_at: Timestamp) -> Option<Timestamp> {
    match &run.state {
        State::Running(execution) => Some(
            last_seen_at
                .max(execution.started_at)
                .plus_ms(SILENT_DESKTOP_MS),
        ),
        State::Queued
        | State::Completed(..)
        | State::Failed(..)
        | State::Cancelled(..)
        | State::Withdrawn { .. }
        | State::Expired { .. } => next_due(run),
    }
}

/// When time alone will next change the run.
pub fn next_due(run: &Run) -> Option<Timestamp> {
    match run.state {
        State::Queued => Some(run.queued_at.plus_ms(QUEUED_EXPIRY_MS)),
        State::Running(_)
        | State::Completed(..)
        | State::Failed(..)
        | State::Cancelled(..)
        | State::Withdrawn { .. }
        | State::Expired { .. } => None,
    }
}

fn decide_settled(run: &Run, event: &Event, now: Timestamp) -> Result<Decision<Run>, Refusal> {
    match event {
        Event::Queue { request } if *request == run.request => Ok(Decision::Replayed),
        Event::Queue { .. } => Err(Refusal::KeyReused),
        Event::Start { execution_id } => start(run, *execution_id, now),
        Event::RequestCancel => Ok(stop(run, Some(now), Report::default(), now)),
        Event::RemoveAccess => Ok(stop(run, None, Report::of_error(NO_LONGER_SHARED), now)),
        Event::Complete(completion) => complete(run, completion, now),
        Event::GiveUp(lost) => Ok(give_up(run, *lost, now)),
    }
}

fn start(run: &Run, id: ExecutionId, now: Timestamp) -> Result<Decision<Run>, Refusal> {
    match &run.state {
        State::Queued => {
            let execution = Execution {
                id,
                started_at: now,
                cancel_requested_at: None,
            };
            Ok(Decision::Moved(moved(run, State::Running(execution), now)))
        }
        State::Running(execution) if execution.id == id => Ok(Decision::Replayed),
        State::Running(_) => Err(Refusal::RunTaken),
        State::Completed(..)
        | State::Failed(..)
        | State::Cancelled(..)
        | State::Withdrawn { .. }
        | State::Expired { .. } => Err(Refusal::RunOver),
    }
}

/// Ends a queued run at once, for the reason in `report` or because it was asked for; asks a
/// running one to stop.
fn stop(
    run: &Run,
    cancel_requested_at: Option<Timestamp>,
    report: Report,
    now: Timestamp,
) -> Decision<Run> {
    match &run.state {
        State::Queued => Decision::Moved(withdrawn(run, cancel_requested_at, report, now)),
        State::Running(execution) if execution.cancel_requested_at.is_none() => {
            let asked = Execution {
                cancel_requested_at: Some(now),
                ..*execution
            };
            Decision::Moved(moved(run, State::Running(asked), now))
        }
        State::Running(_)
        | State::Completed(..)
        | State::Failed(..)
        | State::Cancelled(..)
        | State::Withdrawn { .. }
        | State::Expired { .. } => Decision::Unchanged,
    }
}

fn complete(run: &Run, completion: &Completion, now: Timestamp) -> Result<Decision<Run>, Refusal> {
    match completion.execution_id {
        Some(id) => complete_execution(run, id, completion, now),
        None => complete_unstarted(run, completion, now),
    }
}

fn complete_execution(
    run: &Run,
    id: ExecutionId,
    completion: &Completion,
    now: Timestamp,
) -> Result<Decision<Run>, Refusal> {
    match &run.state {
        State::Queued => Err(Refusal::StaleExecution),
        State::Running(execution) if execution.id != id => Err(Refusal::StaleExecution),
        State::Running(_) if !completion.report.is_within_bounds(completion.status) => {
            Err(Refusal::ReportTooLong)
        }
        State::Running(execution) => {
            let end = end(completion, now);
            let state = match completion.status {
                FinalStatus::Completed => State::Completed(*execution, end),
                FinalStatus::Failed => State::Failed(*execution, end),
                FinalStatus::Cancelled => State::Cancelled(*execution, end),
            };
            Ok(Decision::Moved(moved(run, state, now)))
        }
        State::Completed(execution, end)
        | State::Failed(execution, end)
        | State::Cancelled(execution, end) => {
            if execution.id != id {
                Err(Refusal::StaleExecution)
            } else if end.digest == completion.report.digest(Some(id), completion.status) {
                Ok(Decision::Replayed)
            } else {
                Err(Refusal::CompletionDiffers)
            }
        }
        State::Withdrawn { .. } | State::Expired { .. } => Err(Refusal::RunOver),
    }
}

/// A completion without an execution says only that the command will never begin. One that its
/// connection cancelled, or that expired, has ended so already.
fn complete_unstarted(
    run: &Run,
    completion: &Completion,
    now: Timestamp,
) -> Result<Decision<Run>, Refusal> {
    if completion.status != FinalStatus::Cancelled || completion.report.result.is_some() {
        return Err(Refusal::CompletionWithoutExecution);
    }
    if !completion.report.is_within_bounds(completion.status) {
        return Err(Refusal::ReportTooLong);
    }
    let report = Report {
        error: completion.report.error.clone(),
        ..Report::default()
    };
    match &run.state {
        State::Queued => Ok(Decision::Moved(withdrawn(run, None, report, now))),
        State::Withdrawn { end, .. }
            if end.digest == report.digest(None, FinalStatus::Cancelled) =>
        {
            Ok(Decision::Replayed)
        }
        State::Withdrawn {
            cancel_requested_at: Some(_),
            ..
        }
        | State::Expired { .. } => Ok(Decision::Unchanged),
        State::Withdrawn { .. } => Err(Refusal::CompletionDiffers),
        State::Running(_) | State::Completed(..) | State::Failed(..) | State::Cancelled(..) => {
            Err(Refusal::StaleExecution)
        }
    }
}

fn give_up(run: &Run, lost: LostDesktop, now: Timestamp) -> Decision<Run> {
    let lost = match lost {
        LostDesktop::Revoked => true,
        LostDesktop::Silent { last_seen_at } => run.execution().is_some_and(|execution| {
            now.millis_since(last_seen_at.max(execution.started_at)) >= SILENT_DESKTOP_MS
        }),
    };
    match &run.state {
        State::Running(execution) if lost => {
            let completion = Completion {
                execution_id: None,
                status: FinalStatus::Failed,
                report: Report::of_error(DESKTOP_SILENT),
            };
            let state = State::Failed(*execution, end(&completion, now));
            Decision::Moved(moved(run, state, now))
        }
        State::Queued
        | State::Running(_)
        | State::Completed(..)
        | State::Failed(..)
        | State::Cancelled(..)
        | State::Withdrawn { .. }
        | State::Expired { .. } => Decision::Unchanged,
    }
}

fn withdrawn(
    run: &Run,
    cancel_requested_at: Option<Timestamp>,
    report: Report,
    now: Timestamp,
) -> Run {
    let completion = Completion {
        execution_id: None,
        status: FinalStatus::Cancelled,
        report,
    };
    let end = end(&completion, now);
    let state = State::Withdrawn {
        cancel_requested_at,
        end,
    };
    moved(run, state, now)
}

fn end(completion: &Completion, now: Timestamp) -> End {
    let report = completion.report.clone();
    let digest = report.digest(completion.execution_id, completion.status);
    End {
        finished_at: now,
        digest,
        report,
    }
}

fn moved(run: &Run, state: State, now: Timestamp) -> Run {
    Run {
        request: run.request,
        queued_at: run.queued_at,
        updated_at: now,
        state,
    }
}
