//! How long a run waits for its desktop.

use super::bench::{Bench, RUNS_PER_BENCH, Sample, left_queue_ms, put};
use super::{Figures, Mode};
use crate::Durations;

const RUNS: u32 = 2_000;

pub(super) fn measure(seed: u64, mode: Mode, figures: &mut Figures) {
    let waits = sample(seed, mode);
    put(figures, "pickup.mean", waits.mean());
    put(figures, "pickup.median", waits.percentile(50));
    put(figures, "pickup.p95", waits.percentile(95));
    put(figures, "pickup.max", waits.max());
}

/// The waits of all runs, in seconds.
pub(super) fn waits(seed: u64, mode: Mode) -> Vec<f64> {
    sample(seed, mode).into_values()
}

/// The waits of all runs. They last 5 s: what comes after the start does not matter here.
fn sample(seed: u64, mode: Mode) -> Sample {
    let fresh = |run| {
        let name = format!("pickups {run}");
        Bench::new(seed, &name, mode, Durations::Fixed(5_000), None)
    };
    let mut waits = Sample::default();
    let mut bench = fresh(0);
    for run in 0..RUNS {
        if run % RUNS_PER_BENCH == 0 {
            bench = fresh(run);
        }
        let queued_ms = bench.world.now_ms();
        let id = bench.queue();
        bench.until_over(&[id]);
        if let Some(started_ms) = left_queue_ms(&bench.world, id) {
            waits.add_ms(started_ms - queued_ms);
        }
        bench.settle();
    }
    waits
}
