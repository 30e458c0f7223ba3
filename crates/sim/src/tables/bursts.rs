//! Several runs queued together on one desktop that runs one at a time.

use super::bench::{Bench, RUNS_PER_BENCH, Sample, ended_ms, put};
use super::{Figures, Mode};
use crate::Durations;

const REPETITIONS: u32 = 500;

pub(super) fn measure(seed: u64, mode: Mode, figures: &mut Figures) {
    for runs in [1usize, 3, 5] {
        let fresh = |repetition| {
            let name = format!("burst {runs} {repetition}");
            Bench::new(seed, &name, mode, Durations::Published, None)
        };
        let mut bench = fresh(0);
        let (mut first, mut last) = (Sample::default(), Sample::default());
        for repetition in 0..REPETITIONS {
            if repetition % RUNS_PER_BENCH == 0 {
                bench = fresh(repetition);
            }
            let queued_ms = bench.world.now_ms();
            let ids: Vec<_> = (0..runs).map(|_| bench.queue()).collect();
            bench.until_over(&ids);
            let ended = ids.iter().filter_map(|id| ended_ms(&bench.world, *id));
            let ended: Vec<_> = ended.map(|ended_ms| ended_ms - queued_ms).collect();
            first.add_ms(ended.iter().copied().min().unwrap_or(0));
            last.add_ms(ended.iter().copied().max().unwrap_or(0));
            bench.settle();
        }
        put(figures, format!("burst.{runs}.first"), first.percentile(50));
        put(figures, format!("burst.{runs}.last"), last.percentile(50));
        put(
            figures,
            format!("burst.{runs}.last_p95"),
            last.percentile(95),
        );
    }
}
