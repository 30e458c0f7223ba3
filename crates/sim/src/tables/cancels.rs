//! A cancel at a random instant: what it meets, and how long until the run is over.

use callboard_domain::graph_run::Status;

use super::bench::{Bench, RUNS_PER_BENCH, Sample, ended_ms, put};
use super::{Figures, Mode};
use crate::Durations;
use crate::hub_side::Ask;

const RUNS: u32 = 2_000;
const LATEST_MS: u64 = 40_000;

pub(super) fn measure(seed: u64, mode: Mode, figures: &mut Figures) {
    let fresh = |run| {
        let name = format!("cancels {run}");
        Bench::new(seed, &name, mode, Durations::Published, None)
    };
    let mut bench = fresh(0);
    let (mut queued, mut running) = (Sample::default(), Sample::default());
    for run in 0..RUNS {
        if run % RUNS_PER_BENCH == 0 {
            bench = fresh(run);
        }
        let id = bench.queue();
        let pause_ms = bench.random.below(LATEST_MS);
        bench.pass(pause_ms);
        let facts = bench.world.witness.commands().get(&id);
        let status = facts.and_then(|facts| facts.row).map(|row| row.status);
        let cancelled_ms = bench.world.now_ms();
        let command = id.to_string();
        drop(bench.world.probe(bench.agent, &Ask::Cancel { command }));
        bench.until_over(&[id]);
        let over_ms = ended_ms(&bench.world, id).unwrap_or(0);
        let after_ms = over_ms.saturating_sub(cancelled_ms);
        match status {
            Some(Status::Queued) => queued.add_ms(after_ms),
            Some(Status::Running) => running.add_ms(after_ms),
            Some(Status::Completed | Status::Failed | Status::Cancelled | Status::Expired)
            | None => {}
        }
        bench.settle();
    }
    put(figures, "cancel.queued", queued.count());
    put(figures, "cancel.running", running.count());
    put(figures, "cancel.queued.max", queued.max());
    put(figures, "cancel.running.mean", running.mean());
    put(figures, "cancel.running.p95", running.percentile(95));
    put(figures, "cancel.running.max", running.max());
}
