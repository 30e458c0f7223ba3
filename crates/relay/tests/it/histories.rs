//! Random histories: loss, duplicates, delays, a crash after any output, a full disk, changing
//! consent. What must always hold is asserted in `world`; what must hold at rest, here.

use callboard_domain::graph_run::Status;
use callboard_relay::{Config, Input};
use proptest::prelude::*;

use crate::world::{Faults, SESSIONS, World, session};

#[derive(Debug, Clone)]
enum Op {
    Queue { session: u8 },
    Cancel { nth: u8 },
    CrashAfter { outputs: usize },
    HubDown(bool),
    DiskFull(bool),
    ToggleShare { session: u8 },
    ToggleProject,
    OwnerCancel { nth: u8 },
    Sleep { ms: u64 },
    Stop,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1..=SESSIONS).prop_map(|session| Op::Queue { session }),
        2 => any::<u8>().prop_map(|nth| Op::Cancel { nth }),
        5 => (0usize..12).prop_map(|outputs| Op::CrashAfter { outputs }),
        2 => any::<bool>().prop_map(Op::HubDown),
        2 => any::<bool>().prop_map(Op::DiskFull),
        3 => (1..=SESSIONS).prop_map(|session| Op::ToggleShare { session }),
        1 => Just(Op::ToggleProject),
        1 => any::<u8>().prop_map(|nth| Op::OwnerCancel { nth }),
        1 => (0u64..7_200_000).prop_map(|ms| Op::Sleep { ms }),
        1 => Just(Op::Stop),
    ]
}

fn play(world: &mut World, op: &Op, queued: &mut Vec<callboard_domain::CommandId>) {
    let pick = |nth: u8, len: usize| usize::from(nth) % len.max(1);
    match op {
        // The hub takes a run only while its last sync listed sessions.
        Op::Queue { session } if world.hub.synced.values().sum::<usize>() > 0 => {
            let n = u8::try_from(queued.len() + 1).unwrap();
            queued.push(world.queue(n, *session));
        }
        Op::Queue { .. } => {}
        Op::Cancel { nth } => {
            if let Some(id) = queued.get(pick(*nth, queued.len())) {
                world.cancel(*id);
            }
        }
        Op::CrashAfter { outputs } => world.crash_after = Some(*outputs),
        Op::HubDown(down) => world.hub_is_down = *down,
        Op::DiskFull(full) => world.disk.full = *full,
        Op::ToggleShare { session: n } => {
            if world.disk.shared.remove(&session(*n)).is_none() {
                world.disk.shared.insert(session(*n), format!("graph-{n}"));
            }
            world.input(Input::SharingChanged);
        }
        Op::ToggleProject => {
            world.disk.enabled = !world.disk.enabled;
            world.disk.acknowledged = false;
            world.input(Input::SharingChanged);
        }
        Op::OwnerCancel { nth } => {
            let begun: Vec<_> = world.begun.values().flatten().copied().collect();
            if let Some(execution_id) = begun.get(pick(*nth, begun.len())) {
                world.input(Input::OwnerCancel {
                    execution_id: *execution_id,
                });
            }
        }
        Op::Sleep { ms } => world.slept_ms += ms,
        Op::Stop => {
            world.input(Input::Drain);
            world.pass(30_000);
            world.input(Input::GraceOver);
            world.pass(1_000);
            if world.is_up {
                world.crash();
            }
        }
    }
}

fn heal(world: &mut World) {
    world.hub_is_down = false;
    world.faults = Faults::default();
    world.crash_after = None;
    world.disk.full = false;
    world.pass(3_600_000);
}

fn check_at_rest(world: &World) {
    assert!(
        world.disk.outbox.is_empty(),
        "the outbox ends empty: {:?}",
        world.disk.outbox
    );
    for (id, queued) in &world.hub.commands {
        let status = queued.run.status();
        assert!(status.is_terminal(), "every command ends: {id} is {status}");
        let begun = world.begun.get(id).map_or(&[][..], Vec::as_slice);
        match (queued.run.execution(), queued.run.end()) {
            (Some(execution), Some(end)) => {
                if status == Status::Completed {
                    let result = format!("\"{}\"", execution.id);
                    assert_eq!(end.report.result, Some(result), "the result of its own run");
                }
                assert!(begun.iter().all(|begun| *begun == execution.id));
                let told = world.finished.get(id).map(|status| status.as_str());
                assert_eq!(
                    told,
                    Some(status.as_str()),
                    "the hub knows what the desktop knows"
                );
            }
            (None, _) => assert!(begun.is_empty(), "cancelled while queued never executes"),
            (Some(_), None) => unreachable!("an execution that is over has an end"),
        }
        if !begun.is_empty() {
            assert!(
                queued.run.execution().is_some(),
                "every execution reaches the hub"
            );
        }
    }
}

/// Takes a few seconds; the simulator's fuzz is the long run.
const CASES: u32 = 400;

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn every_history_heals(
        seed in any::<u64>(),
        wake_up in any::<bool>(),
        slots in 1usize..4,
        (lose_request, lose_answer, duplicate) in (0u8..30, 0u8..30, 0u8..30),
        delay_ms in prop_oneof![Just(1u64), Just(400), Just(15_000)],
        ops in proptest::collection::vec((op(), 0u64..40_000), 1..60),
    ) {
        let config = Config { wake_up, slots, ..Config::default() };
        let mut world = World::started(config, seed);
        world.faults = Faults { lose_request, lose_answer, duplicate, delay_ms };
        let mut queued = Vec::new();
        for (op, pause_ms) in &ops {
            play(&mut world, op, &mut queued);
            world.pass(*pause_ms);
        }
        heal(&mut world);
        check_at_rest(&world);
    }

    #[test]
    fn a_crash_after_any_output_of_a_run_leaves_one_execution_and_an_empty_outbox(
        seed in any::<u64>(), wake_up in any::<bool>(), after in 0usize..40,
    ) {
        let mut world = World::started(Config { wake_up, ..Config::default() }, seed);
        world.crash_after = Some(after);
        let id = world.queue(1, 1);
        world.pass(3_600_000);
        check_at_rest(&world);
        let fate = world.hub.status(id);
        prop_assert!(matches!(fate, Status::Completed | Status::Failed), "{fate}");
    }
}
