//! Many histories: on all cores, some of them twice, some of them on SQLite; and cutting a failing
//! one down to what it takes.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Bug, Counts, Outcome, Plan, Stage, Violation, play};

/// One seed in so many is played a second time in memory.
const TWICE_EVERY: u64 = 16;
/// One seed in so many is played on SQLite, too.
const SQLITE_EVERY: u64 = 64;
/// One seed in so many is played with its scripts in the JavaScript engine, too: an engine and a thread
/// for each run take a few hundred microseconds.
const JAVASCRIPT_EVERY: u64 = 32;
/// Histories that shortening plays at most.
const SHORTEN_MAX: u32 = 600;

/// What to search.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// The first seed.
    pub from: u64,
    /// How many seeds.
    pub seeds: u64,
    /// How many at a time.
    pub threads: usize,
    /// Failures after which nothing new is begun.
    pub failures_max: usize,
    /// A planted fault.
    pub bug: Option<Bug>,
}

/// A seed that broke an invariant.
#[derive(Debug, Clone)]
pub struct Failed {
    /// The seed.
    pub seed: u64,
    /// What it broke.
    pub violation: Violation,
}

/// What a search came to.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Seeds that were played.
    pub seeds: u64,
    /// Histories, repetitions included.
    pub histories: u64,
    /// Happenings in all of them.
    pub events: u64,
    /// Virtual time of all of them, in milliseconds.
    pub virtual_ms: u64,
    /// How much happened.
    pub counts: Counts,
    /// A digest over the digests of all seeds.
    pub hash: u64,
    /// Seeds that broke an invariant, in their order.
    pub failed: Vec<Failed>,
}

impl Found {
    fn add(&mut self, outcome: &Outcome) {
        self.histories += 1;
        self.events += outcome.events;
        self.virtual_ms += outcome.virtual_ms;
        for (what, count) in &outcome.counts {
            *self.counts.entry(what).or_default() += count;
        }
    }

    fn merge(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.histories += other.histories;
        self.events += other.events;
        self.virtual_ms += other.virtual_ms;
        self.hash ^= other.hash;
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
        self.failed.extend(other.failed);
        self.failed.sort_by_key(|failed| failed.seed);
    }
}

/// Plays the seeds; `progress` hears how many are done and how many failed.
pub fn search(search: Search, progress: impl Fn(u64, u64) + Sync) -> Found {
    let next = AtomicU64::new(0);
    let (done, failures) = (AtomicU64::new(0), AtomicU64::new(0));
    let found = Mutex::new(Found::default());
    let failures_max = u64::try_from(search.failures_max).unwrap_or(u64::MAX);
    let work = || {
        let mut mine = Found::default();
        while failures.load(Ordering::Relaxed) < failures_max {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= search.seeds {
                break;
            }
            let seed = search.from.wrapping_add(index);
            if let Some(violation) = check(seed, search.bug, &mut mine) {
                failures.fetch_add(1, Ordering::Relaxed);
                mine.failed.push(Failed { seed, violation });
            }
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            progress(done, failures.load(Ordering::Relaxed));
        }
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.merge(mine);
    };
    std::thread::scope(|scope| {
        for _ in 0..search.threads.max(1) {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Plays one seed, some again.
fn check(seed: u64, bug: Option<Bug>, found: &mut Found) -> Option<Violation> {
    let plan = Plan::of(seed);
    let first = play(&plan, Stage::Memory, bug, false);
    found.seeds += 1;
    found.add(&first);
    found.hash ^= first
        .hash
        .rotate_left(u32::try_from(seed % 61).unwrap_or(0));
    if first.violation.is_some() {
        return first.violation;
    }
    let again = [
        (TWICE_EVERY, Stage::Memory, "played again"),
        (SQLITE_EVERY, Stage::Sqlite, "played on SQLite"),
        (
            JAVASCRIPT_EVERY,
            Stage::JavaScript,
            "its scripts ran in the engine",
        ),
    ];
    for (every, stage, how) in again {
        if !seed.is_multiple_of(every) {
            continue;
        }
        let second = play(&plan, stage, bug, false);
        found.add(&second);
        if second.violation.is_some() {
            return second.violation;
        }
        if second.hash != first.hash {
            return Some(Violation {
                invariant: 'm',
                what: format!("the history went another way when {how}"),
                at_ms: second.virtual_ms,
            });
        }
    }
    None
}

/// The shortest plan found that still breaks the invariant of `violation`.
pub fn shorten(plan: &Plan, violation: &Violation, stage: Stage, bug: Option<Bug>) -> Plan {
    let mut best = plan.clone();
    let mut tries = 0;
    let mut chunk = best.ops.len().div_ceil(2).max(1);
    while tries < SHORTEN_MAX {
        let mut index = 0;
        let mut is_shorter = false;
        while index < best.ops.len() && tries < SHORTEN_MAX {
            tries += 1;
            let mut shorter = best.clone();
            let end = (index + chunk).min(shorter.ops.len());
            shorter.ops.drain(index..end);
            let outcome = play(&shorter, stage, bug, false);
            let breaks = outcome
                .violation
                .is_some_and(|found| found.invariant == violation.invariant);
            if breaks {
                (best, is_shorter) = (shorter, true);
            } else {
                index = end;
            }
        }
        if chunk == 1 && !is_shorter {
            break;
        }
        chunk = (chunk / 2).max(1);
    }
    best
}

/// Numbers of operations as ranges: `3-5,9`.
pub fn ranges(plan: &Plan) -> String {
    let mut ranges: BTreeMap<usize, usize> = BTreeMap::new();
    for planned in &plan.ops {
        match ranges.last_entry() {
            Some(mut last) if *last.get() + 1 == planned.number => {
                last.insert(planned.number);
            }
            Some(_) | None => drop(ranges.insert(planned.number, planned.number)),
        }
    }
    let range = |(from, to): (&usize, &usize)| match from == to {
        true => from.to_string(),
        false => format!("{from}-{to}"),
    };
    let ranges: Vec<_> = ranges.iter().map(range).collect();
    ranges.join(",")
}
