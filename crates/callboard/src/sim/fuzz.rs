//! `callboard sim fuzz`: plays many seeds and says how to play a failing one again.

use std::io::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use callboard_ambient::Clock;
use callboard_sim::{Failed, Found, Plan, Search, Stage, ranges, search, shorten};
use serde_json::{Value, json};

use crate::args::FuzzArgs;
use crate::failure::Failure;
use crate::output::Output;

/// After so many failures nothing new is begun.
const FAILURES_MAX: usize = 5;
/// How often progress is told, in milliseconds.
const PROGRESS_MS: u64 = 1_000;

pub(super) fn fuzz(arguments: &FuzzArgs, output: &Output) -> Result<(), Failure> {
    let clock = Clock::system();
    let told_ms = Mutex::new(0);
    let progress = |done: u64, failed: u64| {
        let now_ms = clock.monotonic_ms();
        let Ok(mut told_ms) = told_ms.try_lock() else {
            return;
        };
        if output.is_live() && now_ms.saturating_sub(*told_ms) >= PROGRESS_MS {
            *told_ms = now_ms;
            let rate = rate(done, now_ms);
            let seeds = arguments.seeds;
            let mut stderr = std::io::stderr().lock();
            // Progress that cannot be shown is no failure.
            drop(write!(
                stderr,
                "\r{done} of {seeds} seeds, {rate}/s, {failed} failed "
            ));
        }
    };
    let found = search(
        Search {
            from: arguments.from,
            seeds: arguments.seeds,
            threads: arguments.threads.count(),
            failures_max: FAILURES_MAX,
            bug: arguments.bug,
        },
        progress,
    );
    let elapsed_ms = clock.monotonic_ms().max(1);
    if output.is_live() {
        drop(writeln!(std::io::stderr().lock()));
    }
    let failures: Vec<_> = found
        .failed
        .iter()
        .map(|failed| shortened(failed, arguments))
        .collect();
    output.data(&as_json(&found, elapsed_ms, &failures), || {
        lines(&found, elapsed_ms, &failures)
    });
    match found.failed.len() {
        0 => Ok(()),
        1 => Err(Failure::failed("one seed broke an invariant").told()),
        count => Err(Failure::failed(format!("{count} seeds broke an invariant")).told()),
    }
}

/// A failure and the shortest way found to play it again.
struct Shortened {
    failed: Failed,
    operations: usize,
    replay: String,
}

fn shortened(failed: &Failed, arguments: &FuzzArgs) -> Shortened {
    let plan = Plan::of(failed.seed);
    let invariant = failed.violation.invariant;
    let mut replay = format!("callboard sim replay {}", failed.seed);
    let mut operations = plan.ops.len();
    // Two histories that differ show nothing in one of them.
    if invariant != 'm' {
        let short = shorten(&plan, &failed.violation, Stage::Memory, arguments.bug);
        operations = short.ops.len();
        if operations < plan.ops.len() {
            replay.push_str(&format!(" --only {}", ranges(&short)));
        }
    }
    if let Some(bug) = arguments.bug {
        replay.push_str(&format!(" --bug {bug}"));
    }
    Shortened {
        failed: failed.clone(),
        operations,
        replay,
    }
}

fn as_json(found: &Found, elapsed_ms: u64, failures: &[Shortened]) -> Value {
    let failures: Vec<_> = failures
        .iter()
        .map(|failure| {
            json!({
                "seed": failure.failed.seed,
                "invariant": failure.failed.violation.invariant.to_string(),
                "what": failure.failed.violation.what,
                "at_ms": failure.failed.violation.at_ms,
                "operations": failure.operations,
                "replay": failure.replay,
            })
        })
        .collect();
    json!({
        "seeds": found.seeds,
        "histories": found.histories,
        "happenings": found.events,
        "virtual_hours": found.virtual_ms / 3_600_000,
        "elapsed_ms": elapsed_ms,
        "histories_per_second": rate(found.histories, elapsed_ms),
        "hash": format!("{:016x}", found.hash),
        "counts": found.counts,
        "failures": failures,
    })
}

fn lines(found: &Found, elapsed_ms: u64, failures: &[Shortened]) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{} seeds · {} histories · {} happenings · {} virtual hours",
            found.seeds,
            found.histories,
            found.events,
            found.virtual_ms / 3_600_000
        ),
        format!(
            "{:.1} s · {} histories/s · digest {:016x}",
            Duration::from_millis(elapsed_ms).as_secs_f64(),
            rate(found.histories, elapsed_ms),
            found.hash
        ),
    ];
    let counts = found.counts.iter();
    let counts: Vec<_> = counts
        .map(|(what, count)| format!("{what} {count}"))
        .collect();
    lines.push(counts.join(" · "));
    for failure in failures {
        let violation = &failure.failed.violation;
        lines.extend([
            String::new(),
            format!(
                "seed {} breaks invariant {}: {}",
                failure.failed.seed, violation.invariant, violation.what
            ),
            format!("  {} operations: {}", failure.operations, failure.replay),
        ]);
    }
    if failures.is_empty() {
        lines.push("every invariant held".to_owned());
    }
    lines
}

/// Things a second.
fn rate(count: u64, elapsed_ms: u64) -> u64 {
    count.saturating_mul(1_000) / elapsed_ms.max(1)
}
