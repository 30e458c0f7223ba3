//! When calls come: wake-up calls of many desktops stay apart, and a hub that asks to be left alone
//! is, for a while.

use callboard_domain::graph_run::Status;
use callboard_relay::{Call, Failure, WakeUp};

use crate::facts::{count, waking};
use crate::world::World;

/// The most wake-up calls of any second that 100 desktops make which go through the same thing at
/// the same time. It says from when on they are counted, and lasts `for_ms` more.
fn wake_ups_in_a_second(for_ms: u64, happens: fn(&mut World) -> u64) -> u32 {
    let mut seconds = std::collections::BTreeMap::<u64, u32>::new();
    for seed in 0..100 {
        let mut world = World::started(waking(), seed * 104_729 + 1);
        let from_ms = happens(&mut world);
        world.pass(for_ms);
        for (at_ms, call) in &world.sent {
            if *at_ms > from_ms && matches!(call, Call::Wait(_)) {
                *seconds.entry(at_ms / 1_000).or_default() += 1;
            }
        }
    }
    let calls: u32 = seconds.values().sum();
    assert!(calls >= 300, "they keep watch: {calls}");
    seconds.into_values().max().unwrap_or(0)
}

#[test]
fn wake_ups_of_desktops_started_together_are_apart_from_the_first_renewal_on() {
    let most = wake_ups_in_a_second(200_000, |world| world.now_ms);
    assert!(most <= 15, "{most}");
}

#[test]
fn desktops_of_a_restarted_hub_reconnect_their_wake_up_apart_and_stay_apart() {
    let most = wake_ups_in_a_second(200_000, |world| {
        world.pass(40_000);
        world.break_wait();
        world.now_ms
    });
    assert!(most <= 15, "{most}");
}

#[test]
fn desktops_that_were_told_the_same_retry_after_come_back_apart_and_not_before() {
    for status in [429, 503] {
        for seed in 0..20 {
            let mut world = World::started(waking(), seed);
            world.pass(40_000);
            world.fail_wait(busy(status));
            let from_ms = world.now_ms;
            world.pass(49_999);
            assert_eq!(count(&world, from_ms + 1, |_| true), 0);
        }
    }
    let most = wake_ups_in_a_second(200_000, |world| {
        world.pass(40_000);
        world.fail_wait(busy(503));
        world.now_ms
    });
    assert!(most <= 15, "{most}");
}

fn busy(status: u16) -> Failure {
    Failure::Status {
        status,
        reason: "busy".into(),
        retry_after_ms: Some(50_000),
    }
}

#[test]
fn a_renewed_wake_up_leaves_no_moment_without_a_held_call() {
    for seed in 0..50 {
        let mut world = World::started(waking(), seed);
        for n in 1..=40 {
            world.pass(1_000);
            assert_eq!(
                world.relay.status(world.now_ms).wake_up,
                WakeUp::Held,
                "seed {seed}, second {n}"
            );
        }
    }
}

#[test]
fn an_absurd_retry_after_of_a_completion_holds_it_for_an_hour_at_most() {
    for retry_after_ms in [31_536_000_000, u64::MAX] {
        ABSURD_MS.store(retry_after_ms, std::sync::atomic::Ordering::Relaxed);
        let mut world = World::started(waking(), 31);
        world.run_ms = |_| 1_000;
        world.pass(1_000);
        world.instead = Some(|call| {
            matches!(call, Call::Complete(_)).then(|| Failure::Status {
                status: 503,
                reason: "busy".into(),
                retry_after_ms: Some(ABSURD_MS.load(std::sync::atomic::Ordering::Relaxed)),
            })
        });
        let id = world.queue(1, 1);
        world.pass(10_000);
        world.instead = None;
        assert_eq!(world.hub.status(id), Status::Running);
        world.pass(3_600_000 + 20_000);
        assert_eq!(world.hub.status(id), Status::Completed);
    }
}

static ABSURD_MS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
