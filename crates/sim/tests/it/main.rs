//! Facts about the simulator from outside: it finds what is planted, and cuts it down.
#![allow(clippy::unwrap_used, clippy::panic)]

use callboard_sim::tables::{Bands, PUBLISHED};
use callboard_sim::{Bug, Failed, Plan, Search, Stage, play, ranges, search, shorten};

/// Seeds within which each planted fault must be found; the simulator's release check needs far
/// fewer than its 5,000.
const SEEDS: u64 = 600;

fn found(bug: Bug) -> Option<Failed> {
    let found = search(
        Search {
            from: 0,
            seeds: SEEDS,
            threads: 2,
            failures_max: 1,
            bug: Some(bug),
        },
        |_, _| {},
    );
    let mut failed = found.failed.into_iter();
    failed.find(|failed| failed.violation.invariant == bug.invariant())
}

#[test]
fn every_invariant_finds_its_planted_fault() {
    let blind: Vec<_> = Bug::ALL
        .into_iter()
        .filter(|bug| found(*bug).is_none())
        .collect();
    assert_eq!(blind, [], "these were not found");
}

#[test]
fn without_a_planted_fault_the_first_seeds_hold() {
    let search = search(
        Search {
            from: 0,
            seeds: 32,
            threads: 2,
            failures_max: 1,
            bug: None,
        },
        |_, _| {},
    );
    assert!(search.failed.is_empty(), "{:?}", search.failed);
    // Nothing that a history is made of is missing.
    for what in [
        "started",
        "completed",
        "failed",
        "cancelled",
        "claimed",
        "submitted",
        "submitted again",
        "assigned again",
        "refused",
        "unheard",
        "hub crash",
        "desktop crash",
    ] {
        assert!(search.counts.contains_key(what), "no history had: {what}");
    }
}

#[test]
fn a_failing_history_is_cut_down_to_what_it_takes() {
    let bug = Bug::KeyForgotten;
    let failed = found(bug).unwrap();
    let plan = Plan::of(failed.seed);
    let short = shorten(&plan, &failed.violation, Stage::Memory, Some(bug));
    assert!(short.ops.len() <= 4, "{}", ranges(&short));
    let again = play(&short, Stage::Memory, Some(bug), false);
    assert_eq!(again.violation.unwrap().invariant, 'a');
    assert_eq!(play(&short, Stage::Memory, None, false).violation, None);
}

#[test]
fn the_committed_bands_hold_every_published_figure() {
    let bands = Bands::committed().unwrap();
    assert_eq!(bands.misses(), []);
    assert_eq!(bands.seeds, 1_000);
    for key in bands.bands.keys() {
        assert!(PUBLISHED.iter().any(|figure| figure.key == key), "{key}");
    }
}

/// Seeds that once broke an invariant.
const KEPT: [u64; 4] = [18_102, 96_661, 172_816, 830_998];

#[test]
fn seeds_that_once_failed_hold() {
    for seed in KEPT {
        let outcome = play(&Plan::of(seed), Stage::Memory, None, false);
        assert_eq!(outcome.violation, None, "{seed}");
    }
}
