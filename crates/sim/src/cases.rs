//! Faults that people reported of systems like ours, as histories. The names are those of the
//! collected cases.

use callboard_domain::graph_run::Status;
use callboard_domain::limits::SYNC_INTERVAL_MS;
use callboard_domain::{CommandId, GraphSessionId, ProjectId};
use callboard_relay::{Config, View as _};
use callboard_store::{MemoryStore, Store};
use callboard_store_sqlite::SqliteStore;

use crate::disk::session_info;
use crate::hub_side::{Ask, Told};
use crate::{Durations, Plan, Search, Setup, Stage, World, play, search};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

fn session_id(desktop: usize) -> GraphSessionId {
    let mut bytes = [0x5e; 16];
    bytes[0] = u8::try_from(desktop).unwrap();
    GraphSessionId::from_bytes(bytes)
}

fn world<S: Store + Clone>(store: S, wake_up: bool, desktops: usize) -> (World<S>, ProjectId) {
    let setup = Setup {
        seed: 7,
        relay: Config {
            wake_up,
            ..Config::default()
        },
        durations: Durations::Fixed(30_000),
        task_lease_ms: MINUTE_MS,
        javascript: false,
        bug: None,
    };
    let mut world = World::new(store, setup);
    let project_id = world.add_project("Home");
    world.add_agent("agent", &["Home"]);
    for number in 0..desktops {
        world.add_desktop(&format!("desktop {number}"));
        world.change_desktop(number, |machine| {
            machine.disk.enable(project_id, true);
            let session = session_info(session_id(number), "graph");
            machine.disk.share(project_id, session);
        });
        world.boot(number);
    }
    (world, project_id)
}

fn start<S: Store + Clone>(world: &mut World<S>, desktop: usize, key: &str) -> CommandId {
    let ask = Ask::Run {
        session: session_id(desktop).to_string(),
        argument: 0,
        key: key.to_owned(),
    };
    match world.probe(0, &ask) {
        Some(Ok(Told::Run(answer))) => answer.command_id,
        other => panic!("no run was queued: {other:?}"),
    }
}

fn status<S: Store + Clone>(world: &World<S>, id: CommandId) -> Option<Status> {
    let facts = world.witness.commands().get(&id)?;
    facts.row.map(|row| row.status)
}

fn count_of<S: Store + Clone>(world: &World<S>, since_ms: u64, name: &str) -> usize {
    let sent = world.sent().iter();
    sent.filter(|(at_ms, _, call)| *at_ms >= since_ms && *call == name)
        .count()
}

/// B38: a laptop that slept two hours syncs once at once, and then keeps its rhythm.
#[test]
fn a_desktop_that_slept_syncs_once_and_then_in_its_rhythm() {
    for wake_up in [false, true] {
        let (mut world, _) = world(MemoryStore::default(), wake_up, 1);
        world.run(5 * MINUTE_MS);
        world.keep_sent();
        world.sleep(0, 2 * HOUR_MS);
        assert_eq!(count_of(&world, 0, "sync"), 1, "one at once, no burst");
        let woke_ms = world.now_ms();
        world.run(woke_ms + 10 * SYNC_INTERVAL_MS);
        let syncs = count_of(&world, woke_ms, "sync");
        assert!((10..=12).contains(&syncs), "{syncs} syncs in ten intervals");
    }
}

/// B38: what was fetched before the sleep is looked at again before it starts.
#[test]
fn what_was_withdrawn_while_the_desktop_slept_does_not_run() {
    let (mut world, project_id) = world(MemoryStore::default(), false, 1);
    world.run(MINUTE_MS);
    let long = start(&mut world, 0, "key-00001");
    let waits = start(&mut world, 0, "key-00002");
    let until_ms = world.now_ms() + SYNC_INTERVAL_MS + 1_000;
    world.run(until_ms);
    assert_eq!(status(&world, long), Some(Status::Running));
    world.change_desktop(0, |machine| machine.is_offline = true);
    let command = waits.to_string();
    drop(world.probe(0, &Ask::Cancel { command }));
    world.change_desktop(0, |machine| {
        machine.disk.unshare(project_id, session_id(0));
    });
    world.sleep(0, 3 * MINUTE_MS);
    world.change_desktop(0, |machine| machine.is_offline = false);
    let until_ms = world.now_ms() + 10 * MINUTE_MS;
    world.run(until_ms);
    assert!(
        !world.is_begun(waits),
        "cancelled and unshared while it waited"
    );
    assert_eq!(status(&world, waits), Some(Status::Cancelled));
    assert_eq!(world.witness.violation(), None);
}

/// B38: a wall clock that is set back changes no rhythm and makes no lease or expiry negative.
#[test]
fn a_clock_that_is_set_back_changes_no_rhythm() {
    let (mut world, _) = world(MemoryStore::default(), false, 1);
    world.run(5 * MINUTE_MS);
    world.keep_sent();
    world.set_skew(0, -3_600_000);
    world.jump_hub_clock(-3_600_000);
    let from_ms = world.now_ms();
    let id = start(&mut world, 0, "key-00001");
    world.run(from_ms + 10 * SYNC_INTERVAL_MS);
    // Two turns are left out while the run lasts.
    let syncs = count_of(&world, from_ms, "sync");
    assert!((8..=11).contains(&syncs), "{syncs} syncs in ten intervals");
    assert_eq!(status(&world, id), Some(Status::Completed));
}

/// B50: results that the disk refuses are kept, new work is not fetched, and all are delivered
/// once when there is room and the hub is back after days.
#[test]
fn a_full_disk_and_a_hub_away_for_days_lose_nothing() {
    let (mut world, _) = world(MemoryStore::default(), true, 1);
    world.run(MINUTE_MS);
    let ids: Vec<_> = (0..3)
        .map(|number| start(&mut world, 0, &format!("key-{number:05}")))
        .collect();
    let until_ms = world.now_ms() + 10_000;
    world.run(until_ms);
    world.is_hub_cut_off = true;
    world.change_desktop(0, |machine| machine.disk.is_full = true);
    let until_ms = world.now_ms() + 48 * HOUR_MS;
    world.run(until_ms);
    let machine = world.desktops().first().unwrap();
    assert_eq!(machine.disk.outbox(), [], "nothing could be stored");
    assert!(!machine.is_at_rest(), "it is not taken for done");
    assert!(!world.is_begun(ids[1]), "nothing new begins");
    world.heal();
    let until_ms = world.now_ms() + 10 * MINUTE_MS;
    world.run(until_ms);
    for id in ids {
        assert_eq!(status(&world, id), Some(Status::Completed));
    }
    assert!(world.desktops().first().unwrap().is_at_rest());
    assert_eq!(world.witness.violation(), None);
}

/// B54: the same seed gives the same bytes, again, on another store, with scripts in the
/// real engine, and on any number of threads.
#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in [3, 64, 1_000_003] {
        let plan = Plan::of(seed);
        let first = play(&plan, Stage::Memory, None, true);
        for stage in [Stage::Memory, Stage::Sqlite, Stage::JavaScript] {
            let again = play(&plan, stage, None, true);
            for (first, again) in first.log.iter().zip(&again.log) {
                assert_eq!(first, again, "{stage:?}");
            }
            assert_eq!((again.hash, again.log.len()), (first.hash, first.log.len()));
        }
    }
    let on = |threads| {
        let found = search(
            Search {
                from: 100,
                seeds: 6,
                threads,
                failures_max: 1,
                bug: None,
            },
            |_, _| {},
        );
        (found.hash, found.counts)
    };
    assert_eq!(on(1), on(4));
}

/// B59: a hundred desktops that were started together, and a hub that was away for a minute, do
/// not come in step.
#[test]
fn many_desktops_do_not_come_in_step_after_the_hub_was_away() {
    for wake_up in [false, true] {
        let (mut world, _) = world(MemoryStore::default(), wake_up, 100);
        world.run(2 * MINUTE_MS);
        world.is_hub_cut_off = true;
        let until_ms = world.now_ms() + MINUTE_MS;
        world.run(until_ms);
        world.is_hub_cut_off = false;
        // The calls that were under way time out first.
        let from_ms = world.now_ms() + SYNC_INTERVAL_MS;
        world.keep_sent();
        world.run(from_ms + 5 * MINUTE_MS);
        let mut in_second = vec![0; 300];
        for (at_ms, _, call) in world.sent() {
            if *call == "who am i" && *at_ms >= from_ms {
                let second = usize::try_from((at_ms - from_ms) / 1_000).unwrap();
                in_second[second.min(299)] += 1;
            }
        }
        let most = in_second.iter().max().copied().unwrap();
        assert!(most <= 15, "{most} of 100 desktops in one second");
        let mean = in_second.iter().sum::<usize>() / 100;
        assert_eq!(mean, 15, "turns of each in five minutes");
    }
}

/// The store on a file would behave as the one in memory; here it is the inline one.
#[test]
fn a_history_on_sqlite_runs_a_command_to_its_end() {
    let (mut world, _) = world(SqliteStore::inline_memory().unwrap(), true, 1);
    world.run(MINUTE_MS);
    let id = start(&mut world, 0, "key-00001");
    let until_ms = world.now_ms() + MINUTE_MS;
    world.run(until_ms);
    assert_eq!(status(&world, id), Some(Status::Completed));
}
