//! Replies that get lost, and agents that ask again: with a new key each time, or with the same.

use super::bench::{Bench, put};
use super::{Figures, Mode};
use crate::{Durations, Notice};

const RUNS: u32 = 200;
const LOST_PERCENT: u64 = 30;

pub(super) fn measure(seed: u64, mode: Mode, figures: &mut Figures) {
    let mut extra = 0.0;
    for repetition in 1..=3 {
        for (name, is_same) in [("new", false), ("same", true)] {
            let stream = format!("retries {name} {repetition}");
            let (calls, runs) = retry(seed, &stream, mode, is_same);
            let key = format!("retry.{name}.{repetition}");
            put(figures, format!("{key}.calls"), calls);
            if is_same {
                put(figures, format!("{key}.runs"), runs);
            } else {
                extra += calls - runs;
            }
        }
    }
    put(figures, "retry.new.extra", extra);
}

/// Calls that were made, and runs that they queued.
#[allow(clippy::cast_precision_loss, reason = "some hundreds")]
fn retry(seed: u64, stream: &str, mode: Mode, is_same: bool) -> (f64, f64) {
    let mut bench = Bench::new(seed, stream, mode, Durations::Published, None);
    let desktop = bench.desktop;
    bench
        .world
        .change_desktop(desktop, |machine| machine.is_offline = true);
    bench.world.faults.lose_answer = LOST_PERCENT;
    let mut calls = 0u64;
    for _ in 0..RUNS {
        let mut key = bench.key();
        loop {
            calls += 1;
            let ask = bench.start(key.clone());
            bench.world.ask(bench.agent, ask);
            let heard = std::cell::Cell::new(None);
            bench.until(
                |_, notice| {
                    if let Notice::Told { told, .. } = notice {
                        heard.set(Some(told.is_some()));
                    }
                },
                |_| heard.get().is_some(),
            );
            if heard.get() == Some(true) {
                break;
            }
            if !is_same {
                key = bench.key();
            }
        }
    }
    let runs = bench.world.witness.commands().len();
    (calls as f64, runs as f64)
}
