//! Single facts of the published loop and of ours.

use callboard_domain::graph_run::{State, Status};
use callboard_domain::limits::{DESKTOP_RESTARTED, LATE_SYNC_MS, NO_LONGER_SHARED};
use callboard_domain::{CommandId, Consent, FinalStatus, ProjectId, Timestamp};
use callboard_domain::{Refusal, Report};
use callboard_relay::{
    Answer, Call, Command, Config, DESKTOP_STOPPED, Draw as _, Failure, HubState, Input, Now,
    Output, ProjectView, Relay, Seen, Unfinished, View as _, WakeUp,
};

use callboard_wire::relay::{SyncResponse, WaitResponse};

use crate::world::{PROJECT, World, session};

pub(crate) const POLLING: Config = Config {
    wake_up: false,
    slots: 1,
    sync_interval_ms: 20_000,
    control_interval_ms: 3_000,
};

pub(crate) fn waking() -> Config {
    Config::default()
}

pub(crate) fn syncs(world: &World, from_ms: u64) -> Vec<u64> {
    let calls = world.sent.iter().filter(|(at_ms, _)| *at_ms >= from_ms);
    calls
        .filter(|(_, call)| matches!(call, Call::Sync(_)))
        .map(|(at_ms, _)| *at_ms)
        .collect()
}

pub(crate) fn count(world: &World, from_ms: u64, wanted: fn(&Call) -> bool) -> usize {
    let calls = world.sent.iter().filter(|(at_ms, _)| *at_ms >= from_ms);
    calls.filter(|(_, call)| wanted(call)).count()
}

fn error_of(world: &World, id: callboard_domain::CommandId) -> Option<String> {
    let end = world.hub.commands[&id].run.end();
    end.and_then(|end| end.report.error.clone())
}

#[test]
fn with_the_wake_up_a_run_starts_in_the_instant_it_is_queued() {
    let mut world = World::started(waking(), 1);
    world.pass(60_000);
    let id = world.queue(1, 1);
    world.pass(0);
    assert_eq!(world.hub.status(id), Status::Running);
    assert_eq!(world.relay.status(world.now_ms).wake_up, WakeUp::Held);
}

#[test]
fn a_polling_desktop_picks_up_within_one_interval() {
    for seed in 0..200 {
        let mut world = World::started(POLLING, seed);
        world.pass(30_000 + seed * 97);
        let id = world.queue(1, 1);
        world.pass(20_000);
        assert_ne!(world.hub.status(id), Status::Queued, "seed {seed}");
    }
}

#[test]
fn turns_keep_a_grid_of_twenty_seconds_whatever_happens_between() {
    let mut world = World::started(POLLING, 3);
    world.run_ms = |_| 7_000;
    world.pass(21_000);
    let grid = *syncs(&world, 1).first().unwrap();
    world.queue(1, 1);
    world.pass(200_000);
    for at_ms in syncs(&world, 1) {
        assert_eq!((at_ms - grid) % 20_000, 0);
    }
}

#[test]
fn a_polling_turn_is_skipped_while_the_previous_one_is_busy() {
    let mut world = World::started(POLLING, 3);
    world.run_ms = |_| 65_000;
    world.queue(1, 1);
    world.pass(20_001);
    let begun_ms = world.now_ms;
    assert_eq!(world.begun.len(), 1);
    world.pass(60_000 - 20_001);
    assert!(syncs(&world, begun_ms).is_empty());
    world.pass(40_000);
    assert!(!syncs(&world, begun_ms).is_empty());
}

#[test]
fn with_the_wake_up_results_and_withdrawn_shares_never_wait_behind_a_long_run() {
    let mut world = World::started(waking(), 3);
    world.run_ms = |_| 600_000;
    world.pass(1_000);
    let long = world.queue(1, 1);
    world.pass(1_000);
    let behind = world.queue(2, 2);
    world.pass(1_000);
    assert_eq!(world.hub.status(behind), Status::Queued);
    world.disk.shared.remove(&session(2));
    world.input(Input::SharingChanged);
    world.pass(0);
    assert_eq!(world.hub.status(long), Status::Running);
    assert_eq!(world.hub.status(behind), Status::Cancelled);
    assert_eq!(error_of(&world, behind).as_deref(), Some(NO_LONGER_SHARED));
    assert_eq!(world.hub.synced[&PROJECT], 2);
}

#[test]
fn a_changed_slug_or_a_disabled_project_withdraws_consent_too() {
    for change in [
        (|world: &mut World| {
            world.disk.shared.insert(session(1), "renamed".into());
        }) as fn(&mut World),
        |world| {
            world.disk.enabled = false;
            world.disk.acknowledged = false;
        },
    ] {
        let mut world = World::started(waking(), 4);
        world.pass(1_000);
        world.hub_is_down = true;
        world.pass(60_000);
        change(&mut world);
        world.input(Input::SharingChanged);
        let id = world.queue(1, 1);
        world.hub_is_down = false;
        world.pass(60_000);
        assert_eq!(error_of(&world, id).as_deref(), Some(NO_LONGER_SHARED));
        assert!(world.begun.is_empty());
    }
}

#[test]
fn a_disabled_project_is_synced_empty_until_the_hub_acknowledged_it() {
    let mut world = World::started(waking(), 5);
    world.pass(1_000);
    world.hub_is_down = true;
    world.disk.enabled = false;
    world.disk.acknowledged = false;
    world.input(Input::SharingChanged);
    world.pass(60_000);
    assert_eq!(world.hub.synced[&PROJECT], 3);
    world.hub_is_down = false;
    world.pass(40_000);
    assert_eq!(world.hub.synced[&PROJECT], 0);
    world.pass(LATE_SYNC_MS);
    assert!(world.disk.acknowledged);
    let quiet_from_ms = world.now_ms;
    world.pass(100_000);
    assert!(syncs(&world, quiet_from_ms).is_empty());
}

#[test]
fn a_sync_that_arrives_after_it_was_given_up_lists_nothing_for_long() {
    let by_time = |world: &mut World| world.pass(10_000);
    let by_sleep = |world: &mut World| {
        world.slept_ms += 3_600_000;
        world.input(Input::Tick);
    };
    for give_up in [by_time as fn(&mut World), by_sleep] {
        for config in [POLLING, waking()] {
            let mut world = World::started(config, 5);
            world.pass(1_000);
            world.hub_is_down = true;
            while syncs(&world, 1_001).is_empty() {
                world.pass(1_000);
            }
            let Some((_, Call::Sync(late))) = world.sent.last().cloned() else {
                panic!("a sync is under way");
            };
            give_up(&mut world);
            world.hub_is_down = false;
            world.disk.enabled = false;
            world.disk.acknowledged = false;
            world.input(Input::SharingChanged);
            world.pass(40_000);
            assert_eq!(world.hub.synced[&PROJECT], 0);
            world.hub.sync(&late);
            assert_eq!(world.hub.synced[&PROJECT], 3);
            world.pass(20_000);
            assert_eq!(world.hub.synced[&PROJECT], 0);
            world.pass(LATE_SYNC_MS);
            assert!(world.disk.acknowledged);
        }
    }
}

#[test]
fn a_cancel_is_read_at_the_control_poll_and_sent_once() {
    let mut world = World::started(POLLING, 6);
    world.run_ms = |_| 600_000;
    let id = world.queue(1, 1);
    world.pass(20_000);
    let State::Running(execution) = world.hub.commands[&id].run.state else {
        panic!("running");
    };
    world.cancel(id);
    world.pass(3_500);
    assert_eq!(world.hub.status(id), Status::Cancelled);
    assert_eq!(world.begun[&id], [execution.id]);
}

#[test]
fn a_graph_that_finished_between_the_flag_and_the_stop_is_still_cancelled() {
    let mut world = World::started(waking(), 7);
    world.run_ms = |_| 10_000;
    world.pass(1_000);
    let id = world.queue(1, 1);
    world.pass(9_700);
    world.cancel(id);
    world.pass(400);
    assert_eq!(world.hub.status(id), Status::Cancelled);
    let report = &world.hub.commands[&id].run.end().unwrap().report;
    assert!(report.result.is_some(), "what there was is kept");
}

#[test]
fn a_cancel_that_came_before_the_grant_was_heard_of_spends_nothing() {
    let mut world = World::started(waking(), 28);
    world.pass(1_000);
    let id = world.queue_whose_grant_is_lost(1, 1);
    assert_eq!(world.hub.status(id), Status::Running);
    world.cancel(id);
    world.pass(60_000);
    assert_eq!(world.hub.status(id), Status::Cancelled);
    assert!(world.begun.is_empty());
}

#[test]
fn a_command_cancelled_before_the_desktop_came_never_reaches_it() {
    let mut world = World::started(POLLING, 8);
    world.pass(25_000);
    let id = world.queue(1, 1);
    world.cancel(id);
    world.pass(60_000);
    assert_eq!(world.hub.status(id), Status::Cancelled);
    assert_eq!(world.disk.seen(id), None);
}

#[test]
fn the_order_on_disk_and_wire_is_starting_start_running_engine_done_complete() {
    let mut world = World::started(waking(), 9);
    world.pass(1_000);
    let id = world.queue(1, 1);
    world.crash_after = None;
    world.pass(120_000);
    assert_eq!(world.hub.status(id), Status::Completed);
    let calls: Vec<_> = world
        .sent
        .iter()
        .filter_map(|(_, call)| match call {
            Call::Start(..) => Some("start"),
            Call::Complete(_) => Some("complete"),
            Call::WhoAmI | Call::Sync(_) | Call::Control(..) | Call::Wait(_) => None,
        })
        .collect();
    assert_eq!(calls, ["start", "complete"]);
    assert_eq!(world.disk.seen(id), Some(Seen::Done));
}

#[test]
fn a_killed_desktop_fails_what_ran_and_runs_what_only_was_asked_for() {
    let mut world = World::started(waking(), 10);
    world.pass(1_000);
    let ran = world.queue(1, 1);
    world.pass(500);
    world.crash();
    world.pass(60_000);
    assert_eq!(world.hub.status(ran), Status::Failed);
    assert_eq!(error_of(&world, ran).as_deref(), Some(DESKTOP_RESTARTED));

    // The row `starting` is written, the start call is not sent.
    let asked = world.queue(2, 1);
    while world.disk.seen(asked).is_none() {
        world.crash_after = Some(3);
        world.input(Input::Tick);
        world.pass(500);
    }
    world.crash_after = None;
    world.pass(200_000);
    assert_eq!(world.hub.status(asked), Status::Completed);
    assert_eq!(world.begun[&asked].len(), 1);
}

#[test]
fn a_lost_completion_arrives_with_the_next_turn() {
    let mut world = World::started(POLLING, 11);
    world.run_ms = |_| 25_000;
    let id = world.queue(1, 1);
    world.pass(20_001);
    world.instead = Some(|call| {
        matches!(call, Call::Complete(_)).then(|| Failure::NoAnswer {
            reason: "lost".into(),
        })
    });
    world.pass(25_000);
    assert_eq!(world.hub.status(id), Status::Running);
    world.instead = None;
    world.pass(20_000);
    assert_eq!(world.hub.status(id), Status::Completed);
    assert!(world.disk.outbox.is_empty());
}

#[test]
fn a_refused_completion_is_parked_and_a_page_of_a_proxy_is_not_a_refusal() {
    let mut world = World::started(waking(), 12);
    world.pass(1_000);
    world.run_ms = |_| 1_000;
    let refused = world.queue(1, 1);
    let not_found = world.queue(2, 1);
    world.instead = Some(|call| match call {
        Call::Complete(id) if id.as_bytes()[0] == 1 => Some(Failure::Refused(Refusal::RunOver)),
        Call::Complete(_) => Some(Failure::Status {
            status: 404,
            reason: "<html>".into(),
            retry_after_ms: None,
        }),
        Call::WhoAmI | Call::Sync(_) | Call::Start(..) | Call::Control(..) | Call::Wait(_) => None,
    });
    world.pass(30_000);
    let (_, parked) = &world.disk.outbox[&refused];
    assert_eq!(parked.as_deref(), Some("run_over"));
    let (_, waits) = &world.disk.outbox[&not_found];
    assert_eq!(*waits, None);
    world.instead = None;
    let good = world.queue(3, 1);
    world.pass(30_000);
    assert_eq!(world.hub.status(not_found), Status::Completed);
    assert_eq!(world.hub.status(good), Status::Completed);
    assert_eq!(world.disk.outbox.len(), 1, "only the parked one is left");
}

#[test]
fn an_entry_that_always_times_out_delays_nobody_for_more_than_one_turn() {
    let mut world = World::started(waking(), 13);
    world.run_ms = |_| 1_000;
    world.pass(1_000);
    world.instead = Some(|call| match call {
        Call::Complete(_) => Some(Failure::NoAnswer {
            reason: "timed out".into(),
        }),
        Call::WhoAmI | Call::Sync(_) | Call::Start(..) | Call::Control(..) | Call::Wait(_) => None,
    });
    for n in 1..=4 {
        world.queue(n, 1);
    }
    world.pass(10_000);
    world.crash();
    world.pass(2_100);
    world.instead = Some(|call| match call {
        Call::Complete(id) if id.as_bytes()[0] == 1 => Some(Failure::NoAnswer {
            reason: "timed out".into(),
        }),
        Call::Complete(_) | Call::WhoAmI | Call::Sync(_) | Call::Start(..) => None,
        Call::Control(..) | Call::Wait(_) => None,
    });
    world.pass(41_000);
    assert_eq!(world.disk.outbox.len(), 1);
}

#[test]
fn a_refusal_that_is_not_about_the_completion_parks_nothing() {
    let mut world = World::started(waking(), 25);
    world.run_ms = |_| 1_000;
    world.pass(1_000);
    let id = world.queue(1, 1);
    world.instead = Some(|call| match call {
        Call::Complete(_) => Some(Failure::Refused(Refusal::DesktopInUse)),
        Call::WhoAmI | Call::Sync(_) | Call::Start(..) | Call::Control(..) | Call::Wait(_) => None,
    });
    world.pass(60_000);
    let (_, parked) = &world.disk.outbox[&id];
    assert_eq!(*parked, None);
    world.instead = None;
    world.pass(20_000);
    assert_eq!(world.hub.status(id), Status::Completed);
}

#[test]
fn a_silent_hub_delays_a_sync_by_one_time_out_however_full_the_outbox_is() {
    let mut world = World::started(waking(), 26);
    world.run_ms = |_| 100;
    world.pass(1_000);
    world.instead = Some(|call| match call {
        Call::Complete(_) => Some(Failure::Status {
            status: 500,
            reason: "broken".into(),
            retry_after_ms: None,
        }),
        Call::WhoAmI | Call::Sync(_) | Call::Start(..) | Call::Control(..) | Call::Wait(_) => None,
    });
    for n in 1..=5 {
        world.queue(n, 1);
    }
    world.pass(20_000);
    assert_eq!(world.disk.outbox.len(), 5);
    world.instead = None;
    world.hub_is_down = true;
    world.pass(60_000);
    let from_ms = world.now_ms;
    world.pass(60_000);
    // Each turn of the grid begins with this call.
    let begins = |(at_ms, call): &&(u64, Call)| *at_ms > from_ms && *call == Call::WhoAmI;
    let turn_ms = world.sent.iter().find(begins).unwrap().0;
    assert_eq!(syncs(&world, turn_ms).first(), Some(&(turn_ms + 10_000)));
}

#[test]
fn a_turn_from_before_the_sleep_is_dropped_for_a_new_one() {
    let mut world = World::started(POLLING, 27);
    world.pass(65_000);
    world.hub_is_down = true;
    while syncs(&world, 65_001).is_empty() {
        world.pass(1_000);
    }
    world.hub_is_down = false;
    let woke_ms = world.now_ms;
    world.slept_ms += 3_600_000;
    let id = world.queue(1, 1);
    world.input(Input::Tick);
    world.pass(0);
    assert_eq!(syncs(&world, woke_ms), [woke_ms]);
    assert_eq!(world.hub.status(id), Status::Running);
}

#[test]
fn sleep_is_followed_by_one_turn_at_once_and_no_burst() {
    let mut world = World::started(POLLING, 14);
    world.pass(65_000);
    let woke_ms = world.now_ms;
    world.slept_ms += 2 * 3_600_000;
    world.input(Input::Tick);
    assert_eq!(syncs(&world, woke_ms), [woke_ms]);
    world.pass(60_000);
    assert_eq!(syncs(&world, woke_ms).len(), 4);
}

#[test]
fn a_wall_clock_that_is_set_back_changes_nothing() {
    let mut world = World::started(POLLING, 15);
    world.slept_ms = 3_600_000;
    world.pass(65_000);
    let from_ms = world.now_ms;
    world.slept_ms = 0;
    world.pass(60_000);
    assert_eq!(syncs(&world, from_ms).len(), 3);
}

#[test]
fn retry_after_is_obeyed_and_the_grid_is_kept() {
    let mut world = World::started(waking(), 16);
    world.pass(1_000);
    world.instead = Some(|_| {
        Some(Failure::Status {
            status: 503,
            reason: "busy".into(),
            retry_after_ms: Some(50_000),
        })
    });
    world.queue(1, 1);
    world.pass(0);
    let held_from_ms = world.now_ms;
    world.pass(49_000);
    assert_eq!(count(&world, held_from_ms + 1, |_| true), 0);
    world.instead = None;
    world.pass(40_000);
    assert_eq!(world.begun.len(), 1);
}

#[test]
fn a_busy_answer_to_one_completion_holds_up_only_that_one() {
    let mut world = World::started(waking(), 29);
    world.run_ms = |_| 1_000;
    world.pass(1_000);
    world.instead = Some(|call| match call {
        Call::Complete(id) if id.as_bytes()[0] == 1 => Some(Failure::Status {
            status: 503,
            reason: "busy".into(),
            retry_after_ms: Some(100_000),
        }),
        Call::Complete(_) | Call::WhoAmI | Call::Sync(_) | Call::Start(..) => None,
        Call::Control(..) | Call::Wait(_) => None,
    });
    let held = world.queue(1, 1);
    world.pass(1_000);
    let told_ms = world.now_ms;
    let other = world.queue(2, 1);
    world.pass(5_000);
    assert_eq!(world.hub.status(other), Status::Completed);
    world.pass(90_000);
    let again = |call: &Call| matches!(call, Call::Complete(id) if id.as_bytes()[0] == 1);
    assert_eq!(
        count(&world, told_ms + 1, again),
        0,
        "its Retry-After is obeyed"
    );
    world.instead = None;
    world.pass(30_000);
    assert_eq!(world.hub.status(held), Status::Completed);
}

#[test]
fn a_full_disk_keeps_the_result_in_memory_and_fetches_nothing() {
    let mut world = World::started(waking(), 17);
    world.run_ms = |_| 5_000;
    world.pass(1_000);
    let first = world.queue(1, 1);
    world.pass(1_000);
    world.disk.full = true;
    let second = world.queue(2, 1);
    world.pass(60_000);
    let trouble = world.relay.status(world.now_ms).disk.unwrap();
    assert_eq!(
        (trouble.unsaved, trouble.reason.as_str()),
        (1, "no space left on device")
    );
    assert_eq!(world.hub.status(first), Status::Running);
    assert_eq!(world.hub.status(second), Status::Queued);
    world.disk.full = false;
    world.pass(60_000);
    assert_eq!(world.hub.status(first), Status::Completed);
    assert_eq!(world.hub.status(second), Status::Completed);
}

#[test]
fn an_unknown_token_and_a_second_data_folder_are_stated() {
    let mut world = World::started(waking(), 18);
    world.instead = Some(|_| {
        Some(Failure::Status {
            status: 401,
            reason: "Unauthorized".into(),
            retry_after_ms: None,
        })
    });
    world.pass(30_000);
    let hub = world.relay.status(world.now_ms).hub;
    assert_eq!(
        hub,
        HubState::Unauthorized {
            reason: "Unauthorized".into()
        }
    );
    world.instead = Some(|_| Some(Failure::Refused(Refusal::DesktopInUse)));
    let from_ms = world.now_ms;
    world.pass(60_000);
    assert_eq!(world.relay.status(world.now_ms).hub, HubState::InUse);
    assert!(
        count(&world, from_ms, |_| true) < 30,
        "no faster than the rhythm"
    );
    world.instead = None;
    world.pass(30_000);
    assert_eq!(world.relay.status(world.now_ms).hub, HubState::Reachable);
}

#[test]
fn a_hub_that_answers_the_wake_up_at_once_with_nothing_is_not_asked_in_a_loop() {
    let mut world = World::started(waking(), 19);
    world.pass(1_000);
    let from_ms = world.now_ms;
    for _ in 0..1_000 {
        let waits = world
            .sent
            .iter()
            .rev()
            .find(|(_, call)| matches!(call, Call::Wait(_)));
        assert!(waits.is_some());
        world.answer_wait_empty();
        world.pass(10);
    }
    assert!(count(&world, from_ms, |call| matches!(call, Call::Wait(_))) < 20);
}

#[test]
fn a_stopping_desktop_lets_its_run_finish_and_after_the_grace_says_why_not() {
    let mut world = World::started(waking(), 20);
    world.run_ms = |_| 10_000;
    world.pass(1_000);
    let short = world.queue(1, 1);
    world.pass(1_000);
    let never = world.queue(2, 1);
    world.input(Input::Drain);
    world.pass(15_000);
    assert_eq!(world.hub.status(short), Status::Completed);
    assert_eq!(world.hub.status(never), Status::Queued);
    assert!(world.relay.is_quiet());

    let mut world = World::started(waking(), 21);
    world.run_ms = |_| 600_000;
    world.pass(1_000);
    let long = world.queue(1, 1);
    world.pass(1_000);
    world.input(Input::Drain);
    world.pass(30_000);
    world.input(Input::GraceOver);
    world.pass(1_000);
    assert_eq!(world.hub.status(long), Status::Failed);
    assert_eq!(error_of(&world, long).as_deref(), Some(DESKTOP_STOPPED));
}

#[test]
fn a_result_over_the_limit_travels_as_truncated_and_lone_surrogates_are_mended() {
    let mut world = World::started(waking(), 22);
    world.run_ms = |_| 600_000;
    world.pass(1_000);
    let long = world.queue(1, 1);
    world.pass(1_000);
    let finish = |world: &mut World, id, result: String| {
        let execution_id = world.begun[&id][0];
        let report = Report {
            result: Some(result),
            ..Report::default()
        };
        let status = FinalStatus::Completed;
        let outcome = callboard_relay::Outcome { status, report };
        world.input(Input::Finished {
            execution_id,
            outcome,
        });
        world.pass(0);
        world.hub.commands[&id].run.end().unwrap().report.clone()
    };
    let report = finish(&mut world, long, format!("\"{}\"", "a".repeat(100_000)));
    assert_eq!((report.result, report.result_truncated), (None, true));
}

#[test]
fn desktops_started_together_spread_over_the_interval_and_stay_apart() {
    let desktops = 100;
    let mut seconds = [0_u32; 20];
    for seed in 0..desktops {
        let mut world = World::started(POLLING, seed * 7_919 + 1);
        world.hub_is_down = true;
        world.pass(60_000);
        world.hub_is_down = false;
        world.pass(300_000);
        let turns = syncs(&world, 100_000);
        assert!(turns.windows(2).all(|pair| pair[1] - pair[0] == 20_000));
        seconds[usize::try_from(turns[0] % 20_000 / 1_000).unwrap()] += 1;
    }
    assert!(
        seconds.iter().all(|arrivals| *arrivals <= 15),
        "{seconds:?}"
    );
}

#[test]
fn a_sync_answer_that_is_replayed_after_the_run_begins_nothing() {
    let mut world = World::started(waking(), 23);
    world.run_ms = |_| 1_000;
    world.pass(1_000);
    let id = world.queue(1, 1);
    world.pass(10_000);
    assert_eq!(world.hub.status(id), Status::Completed);
    // The hub forgets that it is over, as one restored from a backup would.
    let queued = world.hub.commands.get_mut(&id).unwrap();
    queued.run.state = State::Queued;
    world.pass(60_000);
    assert_eq!(world.begun[&id].len(), 1);
}

#[test]
fn outputs_of_a_hand_out_are_row_first_call_second() {
    let mut world = World::new(waking(), 24);
    let mut random = crate::world::Random::new(24);
    let _ = random.below(10);
    world
        .hub
        .queue(world.wall(), 1, PROJECT, session(1), "graph-1");
    let now = callboard_relay::Now {
        wall: world.wall(),
        monotonic_ms: 0,
    };
    let boot = world.relay.step(now, Input::Boot, &world.disk, &mut random);
    let sync = boot.iter().find_map(|output| {
        if let Output::Send {
            call,
            request: Call::Sync(request),
        } = output
        {
            Some((*call, request.clone()))
        } else {
            None
        }
    });
    let (call, request) = sync.expect("the first turn syncs");
    let answer = Ok(callboard_relay::Answer::Sync(world.hub.sync(&request)));
    let input = Input::Answered { call, answer };
    let outputs = world.relay.step(now, input, &world.disk, &mut random);
    assert!(
        matches!(outputs[0], Output::RecordStarting { .. }),
        "{outputs:?}"
    );
    assert!(matches!(
        outputs[1],
        Output::Send {
            request: Call::Start(..),
            ..
        }
    ));
}

/// A desktop with two projects and nothing shared.
struct TwoProjects;

const PROJECTS: [ProjectId; 2] = [
    ProjectId::from_bytes([1; 16]),
    ProjectId::from_bytes([2; 16]),
];

impl callboard_relay::View for TwoProjects {
    fn seen(&self, _: CommandId) -> Option<Seen> {
        None
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        Vec::new()
    }

    fn outbox(&self) -> Vec<CommandId> {
        Vec::new()
    }

    fn projects(&self) -> Vec<ProjectView> {
        let project = |project_id| ProjectView {
            project_id,
            enabled: true,
            sessions: Vec::new(),
        };
        PROJECTS.map(project).into()
    }

    fn consent(&self, _: &Command) -> Consent {
        Consent::NONE
    }
}

#[test]
fn the_project_that_woke_the_desktop_is_synced_first() {
    let mut relay = Relay::new(waking());
    let mut random = crate::world::Random::new(30);
    let now = Now {
        wall: Timestamp::from_millis(0),
        monotonic_ms: 0,
    };
    let mut synced = Vec::new();
    let mut woken = false;
    let mut outputs = relay.step(now, Input::Boot, &TwoProjects, &mut random);
    while synced.len() < 3 {
        let call = outputs.iter().find_map(|output| match output {
            Output::Send { call, request } if *request != Call::WhoAmI => {
                Some((*call, request.clone()))
            }
            _ => None,
        });
        let (call, request) = call.expect("the relay goes on");
        let answer = match request {
            Call::Sync(request) => {
                synced.push(request.project_id);
                Answer::Sync(SyncResponse {
                    revision: "1".into(),
                    commands: Vec::new(),
                    control: Vec::new(),
                })
            }
            Call::Wait(request) => {
                assert!(!std::mem::replace(&mut woken, true));
                let wake = request.projects.into_iter().skip(1).collect();
                Answer::Wait(WaitResponse { wake })
            }
            other => panic!("{other:?}"),
        };
        let answer = Ok(answer);
        outputs = relay.step(
            now,
            Input::Answered { call, answer },
            &TwoProjects,
            &mut random,
        );
    }
    assert_eq!(synced, [PROJECTS[0], PROJECTS[1], PROJECTS[1]]);
}
