//! What holds for every history of a run.

use callboard_domain::graph_run::{
    Completion, Event, LostDesktop, Run, State, decide, next_due, next_sweep, settle, sweep,
};
use callboard_domain::limits::{ERROR_UTF16_MAX, QUEUED_EXPIRY_MS, RESULT_UTF16_MAX};
use callboard_domain::{Decision, ExecutionId, FinalStatus, Refusal, Report, Timestamp};
use proptest::prelude::*;

use crate::graph_run_samples::{OURS, T0, completion, request, states};

fn any_event() -> impl Strategy<Value = Event> {
    let execution = prop_oneof![Just([1u8; 16]), Just([2u8; 16])].prop_map(ExecutionId::from_bytes);
    let status = prop_oneof![
        Just(FinalStatus::Completed),
        Just(FinalStatus::Failed),
        Just(FinalStatus::Cancelled)
    ];
    let report = prop_oneof![
        Just(Report::default()),
        Just(Report {
            result: Some("1".into()),
            ..Report::default()
        }),
        Just(Report::of_error("broke")),
    ];
    prop_oneof![
        (1u8..3).prop_map(|byte| Event::Queue {
            request: request(byte)
        }),
        execution
            .clone()
            .prop_map(|execution_id| Event::Start { execution_id }),
        Just(Event::RequestCancel),
        Just(Event::RemoveAccess),
        (proptest::option::of(execution), status, report).prop_map(
            |(execution_id, status, report)| Event::Complete(Completion {
                execution_id,
                status,
                report
            })
        ),
        Just(Event::GiveUp(LostDesktop::Revoked)),
        (0u64..2_000_000_000).prop_map(|ms| Event::GiveUp(LostDesktop::Silent {
            last_seen_at: T0.plus_ms(ms)
        })),
    ]
}

fn history() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let step = prop_oneof![9 => 0u64..60_000, 1 => 0u64..(2 * QUEUED_EXPIRY_MS)];
    proptest::collection::vec((step, any_event()), 0..30)
}

fn play(history: &[(u64, Event)], mut check: impl FnMut(&Run, &Event, Timestamp, &Run)) -> Run {
    let mut run = Run::queued(request(1), T0);
    let mut now = T0;
    for (step_ms, event) in history {
        now = now.plus_ms(*step_ms);
        if let Ok(Decision::Moved(next)) = decide(&run, event, now) {
            check(&run, event, now, &next);
            run = next;
        }
    }
    run
}

proptest! {
    #[test]
    fn a_terminal_state_never_changes(history in history()) {
        play(&history, |before, _, _, _| assert!(!before.status().is_terminal()));
    }

    #[test]
    fn a_run_has_at_most_one_execution_and_keeps_it(history in history()) {
        play(&history, |before, _, _, after| {
            if let Some(execution) = before.execution() {
                let kept = after.execution().expect("an execution never disappears");
                assert_eq!((execution.id, execution.started_at), (kept.id, kept.started_at));
            }
        });
    }

    #[test]
    fn time_on_a_run_never_runs_backwards(history in history(), skew in 0i64..10_000_000) {
        let run = play(&history, |before, _, _, after| assert!(after.updated_at >= before.updated_at));
        let earlier = Timestamp::from_millis(run.updated_at.as_millis() - skew);
        if let Ok(Decision::Moved(next)) = decide(&run, &Event::RequestCancel, earlier) {
            prop_assert!(next.updated_at >= run.updated_at);
        }
    }

    #[test]
    fn settling_twice_is_settling_once(history in history(), later in 0u64..(2 * QUEUED_EXPIRY_MS)) {
        let run = play(&history, |_, _, _, _| {});
        let now = run.updated_at.plus_ms(later);
        if let Some(settled) = settle(&run, now) {
            prop_assert_eq!(settle(&settled, now), None);
            prop_assert!(next_due(&run).is_some_and(|due| due <= now));
        } else {
            prop_assert!(next_due(&run).is_none_or(|due| due > now));
        }
    }

    #[test]
    fn a_sweep_moves_a_run_exactly_from_the_instant_it_was_due(
        history in history(), seen in 0u64..(2 * QUEUED_EXPIRY_MS), later in 0u64..(3 * QUEUED_EXPIRY_MS),
    ) {
        let run = play(&history, |_, _, _, _| {});
        let (last_seen_at, now) = (T0.plus_ms(seen), run.updated_at.plus_ms(later));
        let due = next_sweep(&run, last_seen_at);
        prop_assert_eq!(sweep(&run, last_seen_at, now).is_some(), due.is_some_and(|due| due <= now));
        prop_assert_eq!(due.is_none(), run.status().is_terminal());
    }

    #[test]
    fn an_event_after_a_late_settlement_equals_the_event_on_the_settled_run(
        history in history(), event in any_event(), later in 0u64..(2 * QUEUED_EXPIRY_MS),
    ) {
        let run = play(&history, |_, _, _, _| {});
        let now = run.updated_at.plus_ms(later);
        let settled = settle(&run, now).unwrap_or_else(|| run.clone());
        let apply = |run: &Run| match decide(run, &event, now) {
            Ok(Decision::Moved(next)) => Ok(next),
            Ok(Decision::Replayed | Decision::Unchanged) => Ok(settled.clone()),
            Err(refusal) => Err(refusal),
        };
        prop_assert_eq!(apply(&run), apply(&settled));
    }

    #[test]
    fn an_accepted_completion_is_a_replay_when_it_comes_again(history in history()) {
        play(&history, |_, event, now, after| {
            if let Event::Complete(completion) = event
                && after.end().is_some()
            {
                let again = decide(after, &Event::Complete(completion.clone()), now);
                assert_eq!(again, Ok(Decision::Replayed));
            }
        });
    }

    #[test]
    fn the_first_start_of_a_running_execution_is_granted_again(history in history()) {
        let run = play(&history, |_, _, _, _| {});
        if let State::Running(execution) = &run.state {
            let again = decide(&run, &Event::Start { execution_id: execution.id }, run.updated_at);
            prop_assert_eq!(again, Ok(Decision::Replayed));
        }
    }
}

#[test]
fn a_command_cancelled_while_queued_can_never_start() {
    let (_, run) = states().remove(6);
    assert_eq!(
        decide(&run, &Event::Start { execution_id: OURS }, T0),
        Err(Refusal::RunOver)
    );
}

#[test]
fn a_report_beyond_its_bounds_is_refused_and_the_run_goes_on() {
    let (_, running) = states().remove(1);
    let long = "a".repeat(RESULT_UTF16_MAX);
    let too_long = Event::Complete(completion(Some(OURS), FinalStatus::Completed, Some(&long)));
    assert_eq!(decide(&running, &too_long, T0), Err(Refusal::ReportTooLong));
    for execution_id in [Some(OURS), None] {
        let (_, run) = states().remove(if execution_id.is_some() { 1 } else { 0 });
        let report = Report {
            error: Some("e".repeat(ERROR_UTF16_MAX + 1)),
            ..Report::default()
        };
        let event = Event::Complete(Completion {
            execution_id,
            status: FinalStatus::Cancelled,
            report,
        });
        assert_eq!(decide(&run, &event, T0), Err(Refusal::ReportTooLong));
    }
}

#[test]
fn a_command_expires_exactly_seven_days_after_it_was_queued() {
    let run = Run::queued(request(1), T0);
    assert_eq!(settle(&run, T0.plus_ms(QUEUED_EXPIRY_MS - 1)), None);
    let late = settle(&run, T0.plus_ms(QUEUED_EXPIRY_MS + 99)).unwrap();
    assert_eq!(late.finished_at(), Some(T0.plus_ms(QUEUED_EXPIRY_MS)));
}
