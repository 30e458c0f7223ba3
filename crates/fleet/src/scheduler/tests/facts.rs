//! What single steps do.

use super::*;

#[test]
fn calls_pass_the_gate_first_come_first_served() {
    let mut run = scheduler(None, 2);
    assert_eq!(dispatched(&run.step(at(1), agents(1..=4, 0))), [1, 2]);
    assert_eq!(dispatched(&run.step(at(2), done(2, 0))), [3]);
    let outputs = run.step(at(3), Input::Requested(vec![request(5, CallKind::Tool, 0)]));
    assert_eq!(dispatched(&outputs), [0_u64; 0]);
    assert_eq!(dispatched(&run.step(at(4), done(1, 0))), [4]);
    assert_eq!(dispatched(&run.step(at(5), done(3, 0))), [5]);
}

#[test]
fn outputs_of_a_step_are_rows_then_answers_then_dispatches() {
    let mut run = scheduler(None, 1);
    run.step(at(1), agents(1..=2, 0));
    let outputs = run.step(at(2), done(1, 7));
    let key = |id: u64| Key::of("test", &id.to_string());
    assert_eq!(
        outputs,
        [
            Output::Journal(vec![
                Row::Done {
                    key: key(1),
                    occurrence: 1,
                    at: at(2),
                    tokens: 7,
                    outcome: Ok("1".to_owned()),
                },
                Row::Start {
                    key: key(2),
                    occurrence: 1,
                    at: at(2)
                },
            ]),
            Output::Deliver(vec![Delivery {
                id: CallId(1),
                outcome: Ok("1".to_owned()),
                at: at(2),
                spent_tokens: 7,
            }]),
            Output::Dispatch(CallId(2)),
        ]
    );
}

#[test]
fn equal_calls_are_told_apart_by_their_occurrence() {
    let mut run = scheduler(None, 8);
    let same = |id| Request {
        key: Key([7; 16]),
        ..request(id, CallKind::Tool, 0)
    };
    let outputs = run.step(at(1), Input::Requested(vec![same(1), same(2)]));
    let Output::Journal(rows) = &outputs[0] else {
        panic!("{outputs:?}")
    };
    let occurrences: Vec<u32> = rows
        .iter()
        .map(|row| match row {
            Row::Start { occurrence, .. } | Row::Done { occurrence, .. } => *occurrence,
        })
        .collect();
    assert_eq!(occurrences, [1, 2]);
}

#[test]
fn the_cap_counts_what_runs_and_refuses_at_dispatch() {
    let mut run = scheduler(Some(1_000), 4);
    let outputs = run.step(at(1), agents(1..=6, 400));
    assert_eq!(
        dispatched(&outputs),
        [1, 2, 3],
        "1,200 reserved refuse the fourth"
    );
    let refused = [
        (4, "budget_exceeded"),
        (5, "budget_exceeded"),
        (6, "budget_exceeded"),
    ];
    assert_eq!(delivered(&outputs), refused);
    for id in 1..=3 {
        assert_eq!(
            delivered(&run.step(at(2), done(id, 300))),
            [(id, "ok")],
            "running ones finish"
        );
    }
    assert_eq!(
        dispatched(&run.step(at(3), agents(7..=7, 400))),
        [7],
        "900 of 1,000 are used"
    );
    run.step(at(4), failed(7, Code::AgentFailed, 300));
    let outputs = run.step(at(5), agents(8..=8, 1));
    assert_eq!(
        delivered(&outputs),
        [(8, "budget_exceeded")],
        "failed tries count"
    );
    let outputs = run.step(at(6), Input::Requested(vec![request(9, CallKind::Tool, 0)]));
    assert_eq!(dispatched(&outputs), [9], "tools cost no tokens");
}

#[test]
fn a_cap_of_zero_is_a_cap() {
    let mut run = scheduler(Some(0), 8);
    assert_eq!(
        delivered(&run.step(at(1), agents(1..=1, 0))),
        [(1, "budget_exceeded")]
    );
}

#[test]
fn the_agent_limit_refuses_the_next_call_and_no_tool() {
    let limits = RunLimits {
        agents: 2,
        ..RunLimits::default()
    };
    let mut run = Scheduler::new(limits, at(0));
    let outputs = run.step(at(1), agents(1..=3, 0));
    assert_eq!(
        (dispatched(&outputs), delivered(&outputs)),
        (vec![1, 2], vec![(3, "limit_exceeded")])
    );
    let outputs = run.step(at(2), Input::Requested(vec![request(4, CallKind::Tool, 0)]));
    assert_eq!(dispatched(&outputs), [4]);
}

#[test]
fn too_many_open_calls_are_refused() {
    let mut run = scheduler(None, 1);
    let many = u64::try_from(crate::limits::CALLS_OPEN_MAX).unwrap();
    run.step(at(1), agents(1..=1, 0));
    let tools = (2..=many + 1)
        .map(|id| request(id, CallKind::Tool, 0))
        .collect();
    assert_eq!(
        delivered(&run.step(at(1), Input::Requested(tools))),
        [(many + 1, "limit_exceeded")]
    );
}

#[test]
fn sleeps_end_in_order_of_their_ends_and_do_not_pass_the_gate() {
    let mut run = scheduler(None, 1);
    let sleep = |id, ms| request(id, CallKind::Sleep(ms), 0);
    let requests = vec![
        request(1, CallKind::Tool, 0),
        sleep(2, 30),
        sleep(3, 10),
        sleep(4, 10),
    ];
    run.step(at(100), Input::Requested(requests));
    assert_eq!(run.wake_at(), Some(at(110)));
    assert_eq!(delivered(&run.step(at(109), Input::Tick)), []);
    assert_eq!(
        delivered(&run.step(at(110), Input::Tick)),
        [(3, "ok"), (4, "ok")]
    );
    assert_eq!(delivered(&run.step(at(500), Input::Tick)), [(2, "ok")]);
    assert_eq!(run.wake_at(), None);
}

#[test]
fn a_clock_that_jumps_back_does_not_take_the_run_with_it() {
    let mut run = scheduler(None, 8);
    run.step(at(1_000), agents(1..=1, 0));
    let outputs = run.step(at(5), done(1, 0));
    let Output::Deliver(deliveries) = &outputs[1] else {
        panic!("{outputs:?}")
    };
    assert_eq!(deliveries[0].at, at(1_000));
}

#[test]
fn a_provider_limit_stops_dispatch_and_fails_the_run_but_lets_running_calls_finish() {
    let mut run = scheduler(None, 2);
    run.step(at(1), agents(1..=4, 0));
    let outputs = run.step(at(2), failed(1, Code::ProviderLimit, 0));
    let limited = [
        (1, "provider_limit"),
        (3, "provider_limit"),
        (4, "provider_limit"),
    ];
    assert_eq!(
        (delivered(&outputs), dispatched(&outputs)),
        (limited.to_vec(), vec![])
    );
    assert_eq!(delivered(&run.step(at(3), done(2, 9))), [(2, "ok")]);
    assert_eq!(
        delivered(&run.step(at(4), agents(5..=5, 0))),
        [(5, "provider_limit")]
    );
    let outputs = run.step(at(5), returned());
    let end = summary(&outputs).unwrap();
    assert_eq!(
        (end.outcome, end.code.as_deref(), end.tokens),
        (Outcome::Failed, Some("provider_limit"), 9)
    );
}

#[test]
fn a_cancel_answers_everything_aborts_what_runs_and_lets_nothing_start() {
    let mut run = scheduler(None, 2);
    run.step(at(1), agents(1..=3, 0));
    run.step(
        at(1),
        Input::Requested(vec![request(4, CallKind::Sleep(50), 0)]),
    );
    let outputs = run.step(at(2), Input::Cancel);
    let mut answers = delivered(&outputs);
    answers.sort_unstable();
    assert_eq!(
        answers,
        [
            (1, "cancelled"),
            (2, "cancelled"),
            (3, "cancelled"),
            (4, "cancelled")
        ]
    );
    let aborted = outputs
        .iter()
        .filter(|output| matches!(output, Output::Abort(_)))
        .count();
    assert_eq!((aborted, dispatched(&outputs)), (2, vec![]));
    assert_eq!(
        run.step(at(3), Input::Cancel),
        [],
        "a second cancel is harmless"
    );
    assert_eq!(
        delivered(&run.step(at(4), agents(5..=5, 0))),
        [(5, "cancelled")]
    );
    assert_eq!(
        summary(&run.step(at(5), returned())),
        None,
        "two calls are still alive"
    );
    assert_eq!(summary(&run.step(at(6), done(1, 40))), None);
    let outputs = run.step(at(7), failed(2, Code::Cancelled, 2));
    let end = summary(&outputs).unwrap();
    assert_eq!((end.outcome, end.tokens), (Outcome::Cancelled, 42));
}

#[test]
fn nothing_of_a_run_is_alive_when_it_is_reported() {
    let mut run = scheduler(None, 8);
    run.step(at(1), agents(1..=2, 0));
    run.step(at(2), done(1, 5));
    let outputs = run.step(at(3), returned());
    assert_eq!(outputs, [Output::Abort(CallId(2))], "the loser of a race");
    let outputs = run.step(at(4), failed(2, Code::Cancelled, 3));
    let end = summary(&outputs).unwrap();
    assert_eq!((end.outcome, end.tokens), (Outcome::Completed, 8));
    assert_eq!(
        run.step(at(5), Input::Tick),
        [],
        "a run that is over stays over"
    );
}

#[test]
fn a_script_that_returns_although_every_agent_failed_has_failed() {
    let mut run = scheduler(None, 8);
    run.step(at(1), agents(1..=1, 0));
    run.step(at(2), failed(1, Code::AgentFailed, 5));
    let outputs = run.step(at(3), returned());
    let end = summary(&outputs).unwrap();
    assert_eq!(
        (end.outcome, end.code.as_deref()),
        (Outcome::Failed, Some("all_agents_failed"))
    );
    assert_eq!(end.result.as_deref(), Some("1"), "what it returned is kept");
}

#[test]
fn a_cap_that_parallel_swallowed_fails_the_run_and_one_that_the_script_handled_does_not() {
    for swallowed in [true, false] {
        let mut run = scheduler(Some(10), 1);
        run.step(at(1), agents(1..=2, 5));
        run.step(at(2), done(1, 10));
        if swallowed {
            let failure = Swallowed {
                code: "budget_exceeded".to_owned(),
                message: "m".to_owned(),
                label: None,
                phase: None,
            };
            run.step(at(3), Input::Swallowed(failure));
        }
        let outputs = run.step(at(4), returned());
        let end = summary(&outputs).unwrap();
        if swallowed {
            assert_eq!((end.outcome, end.tokens), (Outcome::Failed, 10));
            let error = end.error.as_deref().unwrap();
            assert_eq!(
                error,
                "the run's token cap of 10 was reached: 1 agent calls were refused"
            );
        } else {
            assert_eq!(end.outcome, Outcome::Completed);
        }
    }
}

#[test]
fn the_list_of_failures_is_bounded() {
    let mut run = scheduler(None, 1);
    for _ in 0..2 * crate::limits::FAILURES_MAX {
        run.step(
            at(1),
            Input::Swallowed(Swallowed {
                code: "script_error".to_owned(),
                message: "m".to_owned(),
                label: None,
                phase: None,
            }),
        );
    }
    let outputs = run.step(at(2), returned());
    assert_eq!(
        summary(&outputs).unwrap().swallowed.len(),
        crate::limits::FAILURES_MAX
    );
}

#[test]
fn a_number_that_comes_twice_or_out_of_order_ends_the_run_and_loses_no_token() {
    for numbers in [vec![2], vec![1], vec![4, 3], vec![3, 3], vec![0]] {
        let mut run = scheduler(Some(1_000), 1);
        run.step(at(1), agents(1..=2, 100));
        let again = numbers.iter().map(|id| request(*id, CallKind::Agent, 1));
        let outputs = run.step(at(2), Input::Requested(again.collect()));
        assert_eq!(dispatched(&outputs), [0_u64; 0], "{numbers:?}");
        assert!(outputs.contains(&Output::Abort(CallId(1))), "{outputs:?}");
        assert_eq!(
            run.step(at(3), agents(9..=9, 1)),
            [],
            "nothing starts any more"
        );
        let outputs = run.step(at(4), failed(1, Code::Cancelled, 70));
        let end = summary(&outputs).unwrap();
        assert_eq!(
            (end.outcome, end.code.as_deref(), end.tokens),
            (Outcome::Failed, Some("sandbox_lost"), 70)
        );
    }
}

#[test]
fn what_calls_carry_is_bounded_one_by_one_and_while_they_wait() {
    use crate::limits::{CALL_BYTES_MAX, WAITING_BYTES_MAX};
    let large = |id, bytes| Request {
        payload_bytes: bytes,
        ..request(id, CallKind::Tool, 0)
    };
    let mut run = scheduler(None, 1);
    let outputs = run.step(
        at(1),
        Input::Requested(vec![large(1, CALL_BYTES_MAX + 1), large(2, CALL_BYTES_MAX)]),
    );
    assert_eq!(delivered(&outputs), [(1, "limit_exceeded")]);
    assert_eq!(dispatched(&outputs), [2], "what runs does not wait");
    let room = WAITING_BYTES_MAX / CALL_BYTES_MAX;
    let many = (3..3 + room + 1).map(|id| large(id, CALL_BYTES_MAX));
    let outputs = run.step(at(2), Input::Requested(many.collect()));
    assert_eq!(delivered(&outputs), [(3 + room, "limit_exceeded")]);
    assert_eq!(dispatched(&run.step(at(3), done(2, 0))), [3]);
    let next = 4 + room;
    let outputs = run.step(
        at(4),
        Input::Requested(vec![large(next, CALL_BYTES_MAX), large(next + 1, 1)]),
    );
    assert_eq!(delivered(&outputs), [(next + 1, "limit_exceeded")]);
}

#[test]
fn a_further_try_counts_like_a_call_and_stops_at_the_cap() {
    let mut run = scheduler(Some(1_000), 2);
    run.step(at(1), agents(1..=2, 300));
    assert_eq!(run.another_try(CallId(1), 250, 300), Ok(()));
    let refusal = run.another_try(CallId(2), 450, 300).unwrap_err();
    assert_eq!(refusal.code, Code::BudgetExceeded, "550 and 450 count");
    assert_eq!(
        refusal.message,
        "the run's token cap of 1000 is reached: 0 used, 1000 used or reserved by calls that run"
    );
    assert_eq!(run.another_try(CallId(1), 400, 300), Ok(()), "850 count");
    assert!(run.another_try(CallId(7), 0, 0).is_err(), "no such call");
    run.step(at(2), failed(2, Code::BudgetExceeded, 450));
    run.step(at(3), done(1, 500));
    assert_eq!(run.used_tokens(), 950);
    assert_eq!(
        dispatched(&run.step(at(4), agents(3..=3, 1))),
        [3],
        "nothing stays reserved"
    );
    run.step(at(5), Input::Cancel);
    assert_eq!(
        run.another_try(CallId(3), 0, 0).unwrap_err().code,
        Code::Cancelled
    );
}
