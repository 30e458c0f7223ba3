//! One run in each state, and one event of each kind.

use callboard_domain::graph_run::{Completion, Event, LostDesktop, Run, decide};
use callboard_domain::limits::{QUEUED_EXPIRY_MS, SILENT_DESKTOP_MS};
use callboard_domain::{Decision, Digest, ExecutionId, FinalStatus, Report, Timestamp};

pub(crate) const T0: Timestamp = Timestamp::from_millis(1_000_000);
pub(crate) const LATER: Timestamp = T0.plus_ms(5_000);
pub(crate) const OURS: ExecutionId = ExecutionId::from_bytes([1; 16]);
pub(crate) const OTHER: ExecutionId = ExecutionId::from_bytes([2; 16]);

pub(crate) fn request(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}

pub(crate) fn completion(
    execution_id: Option<ExecutionId>,
    status: FinalStatus,
    result: Option<&str>,
) -> Completion {
    let report = Report {
        result: result.map(str::to_owned),
        ..Report::default()
    };
    Completion {
        execution_id,
        status,
        report,
    }
}

fn after(run: &Run, event: &Event) -> Run {
    match decide(run, event, T0).unwrap() {
        Decision::Moved(next) => next,
        Decision::Replayed | Decision::Unchanged => panic!("{event:?} moves {run:?}"),
    }
}

pub(crate) fn states() -> Vec<(&'static str, Run)> {
    let queued = Run::queued(request(1), T0);
    let running = after(&queued, &Event::Start { execution_id: OURS });
    let ended = |status, result| {
        after(
            &running,
            &Event::Complete(completion(Some(OURS), status, result)),
        )
    };
    let expired = decide(&queued, &Event::RequestCancel, T0.plus_ms(QUEUED_EXPIRY_MS)).unwrap();
    vec![
        ("queued", queued.clone()),
        ("running", running.clone()),
        (
            "running, cancel asked",
            after(&running, &Event::RequestCancel),
        ),
        ("completed", ended(FinalStatus::Completed, Some("1"))),
        ("failed", ended(FinalStatus::Failed, None)),
        (
            "cancelled while running",
            ended(FinalStatus::Cancelled, None),
        ),
        (
            "cancelled while queued",
            after(&queued, &Event::RequestCancel),
        ),
        (
            "access removed while queued",
            after(&queued, &Event::RemoveAccess),
        ),
        ("expired", expired.moved().unwrap()),
    ]
}

pub(crate) fn events() -> Vec<(&'static str, Event)> {
    let complete = |id, status, result| Event::Complete(completion(id, status, result));
    let long_ago = Timestamp::from_millis(0);
    vec![
        (
            "queue, same request",
            Event::Queue {
                request: request(1),
            },
        ),
        (
            "queue, other request",
            Event::Queue {
                request: request(2),
            },
        ),
        ("start, ours", Event::Start { execution_id: OURS }),
        (
            "start, other",
            Event::Start {
                execution_id: OTHER,
            },
        ),
        ("request cancel", Event::RequestCancel),
        ("remove access", Event::RemoveAccess),
        (
            "complete ours, same",
            complete(Some(OURS), FinalStatus::Completed, Some("1")),
        ),
        (
            "complete ours, changed",
            complete(Some(OURS), FinalStatus::Completed, Some("2")),
        ),
        (
            "complete ours, failed",
            complete(Some(OURS), FinalStatus::Failed, None),
        ),
        (
            "complete ours, cancelled",
            complete(Some(OURS), FinalStatus::Cancelled, None),
        ),
        (
            "complete other",
            complete(Some(OTHER), FinalStatus::Completed, Some("1")),
        ),
        (
            "complete unstarted, cancelled",
            complete(None, FinalStatus::Cancelled, None),
        ),
        (
            "complete unstarted, consent gone",
            Event::Complete(Completion {
                execution_id: None,
                status: FinalStatus::Cancelled,
                report: Report::of_error(callboard_domain::limits::NO_LONGER_SHARED),
            }),
        ),
        (
            "complete unstarted, completed",
            complete(None, FinalStatus::Completed, Some("1")),
        ),
        (
            "silent for long",
            Event::GiveUp(LostDesktop::Silent {
                last_seen_at: long_ago,
            }),
        ),
        (
            "silent for a moment",
            Event::GiveUp(LostDesktop::Silent {
                last_seen_at: LATER,
            }),
        ),
        ("desktop revoked", Event::GiveUp(LostDesktop::Revoked)),
    ]
}

/// An instant at which a desktop last seen at [`T0`] or before is lost, and nothing expired yet.
pub(crate) const LOST: Timestamp = T0.plus_ms(SILENT_DESKTOP_MS);
