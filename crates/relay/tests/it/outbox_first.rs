//! What a crash left in the outbox goes out before anything else, also without the wake-up.

use callboard_domain::graph_run::{Completion, Status};
use callboard_domain::{CommandId, ExecutionId, FinalStatus, Report};
use callboard_relay::{Call, Command, Config, Failure, Seen, View as _};

use crate::facts::{POLLING, count, syncs};
use crate::world::{PROJECT, World, session};

/// A polling desktop that crashed with one result in its outbox and one start asked for.
fn crashed_with_a_result_and_a_start(seed: u64) -> (World, CommandId, CommandId) {
    let mut world = World::started(POLLING, seed);
    world.run_ms = |_| 1_000;
    world.instead = Some(|call| matches!(call, Call::Complete(_)).then(|| busy_now(500)));
    let ended = world.queue(1, 1);
    while !world.disk.outbox.contains_key(&ended) {
        world.pass(100);
    }
    world.run_ms = |_| 600_000;
    world.instead = Some(|call| match call {
        Call::Complete(_) | Call::Start(..) => Some(Failure::NoAnswer {
            reason: "lost".into(),
        }),
        Call::WhoAmI | Call::Sync(_) | Call::Control(..) | Call::Wait(_) => None,
    });
    let asked = world.queue(2, 1);
    while world.disk.seen(asked).is_none() {
        world.pass(100);
    }
    world.crash();
    world.instead = None;
    assert!(world.disk.outbox.contains_key(&ended));
    assert!(matches!(world.disk.seen(asked), Some(Seen::Starting(_))));
    (world, ended, asked)
}

#[test]
fn a_polling_desktop_resends_its_outbox_before_it_asks_again_for_a_start() {
    for seed in 0..20 {
        let (mut world, ended, asked) = crashed_with_a_result_and_a_start(seed);
        let from_ms = world.now_ms;
        world.pass(2_100);
        let calls: Vec<_> = world
            .sent
            .iter()
            .filter(|(at_ms, _)| *at_ms > from_ms)
            .filter_map(|(_, call)| match call {
                Call::Start(id, _) | Call::Complete(id) => Some(*id),
                Call::WhoAmI | Call::Sync(_) | Call::Control(..) | Call::Wait(_) => None,
            })
            .collect();
        assert_eq!(calls, [ended, asked], "seed {seed}");
        assert_eq!(world.hub.status(ended), Status::Completed);
        assert_eq!(world.hub.status(asked), Status::Running);
    }
}

#[test]
fn a_run_that_a_crash_cut_off_does_not_let_a_start_overtake_the_outbox() {
    let mut world = World::started(
        Config {
            slots: 2,
            ..POLLING
        },
        32,
    );
    world.run_ms = |_| 600_000;
    let cut_off = world.queue(1, 1);
    world.pass(20_000);
    assert_eq!(world.hub.status(cut_off), Status::Running);
    let ended = CommandId::from_bytes([9; 16]);
    let row = |id, state: fn(ExecutionId) -> Seen| {
        let command = Command {
            id,
            project_id: PROJECT,
            graph_session_id: session(1),
            slug: "graph-1".into(),
        };
        (command, state(ExecutionId::from_bytes(*id.as_bytes())))
    };
    let completion = Completion {
        execution_id: None,
        status: FinalStatus::Cancelled,
        report: Report::default(),
    };
    world.crash();
    let asked = CommandId::from_bytes([8; 16]);
    world.disk.outbox.insert(ended, (completion, None));
    world.disk.seen.push(row(asked, Seen::Starting));
    let from_ms = world.now_ms;
    world.pass(30_000);
    let calls: Vec<_> = world
        .sent
        .iter()
        .filter(|(at_ms, _)| *at_ms > from_ms)
        .filter_map(|(_, call)| match call {
            Call::Start(id, _) | Call::Complete(id) => Some(*id),
            Call::WhoAmI | Call::Sync(_) | Call::Control(..) | Call::Wait(_) => None,
        })
        .collect();
    assert_eq!(calls, [cut_off, ended, asked]);
}

#[test]
fn a_start_that_keeps_failing_stops_neither_flush_nor_sync_of_a_polling_desktop() {
    let (mut world, ended, asked) = crashed_with_a_result_and_a_start(33);
    world.instead = Some(|call| matches!(call, Call::Start(..)).then(|| busy_now(502)));
    let from_ms = world.now_ms;
    world.pass(200_000);
    assert_eq!(world.hub.status(ended), Status::Completed);
    assert!(syncs(&world, from_ms).len() >= 9, "each turn syncs");
    assert!(!world.begun.contains_key(&asked));
    let starts = count(&world, from_ms, |call| matches!(call, Call::Start(..)));
    assert!((5..=12).contains(&starts), "once a turn: {starts}");
    world.instead = None;
    world.pass(20_000);
    assert_eq!(world.hub.status(asked), Status::Running);
}

fn busy_now(status: u16) -> Failure {
    Failure::Status {
        status,
        reason: "broken".into(),
        retry_after_ms: None,
    }
}
