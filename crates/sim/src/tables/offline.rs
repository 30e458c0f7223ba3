//! A desktop that is away, and a completion that gets lost.

use callboard_domain::CommandId;
use callboard_domain::graph_run::Status;
use callboard_store::MemoryStore;

use super::bench::{Bench, DAY_MS, ended_ms, left_queue_ms, put};
use super::{Figures, Mode};
use crate::world::seconds;
use crate::{Bug, Durations, World};

const AWAY_MS: u64 = 600_000;
const RUNS: usize = 5;
/// The published "+131 s" is next to impossible with the published durations (0.2 %); five runs of
/// this length after a start at +3 s give it.
const RUN_MS: u64 = 25_600;
/// A run that ends between two turns, so that the lost completion goes with the second.
const LOST_RUN_MS: u64 = 25_000;

pub(super) fn measure(seed: u64, mode: Mode, figures: &mut Figures) {
    away(seed, mode, figures);
    put(figures, "outbox.with", with_outbox(seed, mode));
    put(figures, "outbox.without", without_outbox(seed, mode));
}

#[allow(clippy::cast_precision_loss, reason = "five")]
fn away(seed: u64, mode: Mode, figures: &mut Figures) {
    let mut bench = Bench::new(seed, "offline", mode, Durations::Fixed(RUN_MS), None);
    let desktop = bench.desktop;
    bench
        .world
        .change_desktop(desktop, |machine| machine.is_offline = true);
    let ids: Vec<_> = (0..RUNS).map(|_| bench.queue()).collect();
    bench.pass(AWAY_MS);
    let queued = ids
        .iter()
        .filter(|id| status(&bench.world, **id) == Some(Status::Queued));
    put(figures, "offline.queued", queued.count() as f64);
    put(figures, "offline.executed", executed(&bench.world, &ids));
    bench
        .world
        .change_desktop(desktop, |machine| machine.is_offline = false);
    let back_ms = bench.world.now_ms();
    bench.until_over(&ids);
    let started = ids.iter().filter_map(|id| left_queue_ms(&bench.world, *id));
    let over = ids.iter().filter_map(|id| ended_ms(&bench.world, *id));
    let first_ms = started.min().unwrap_or(0).saturating_sub(back_ms);
    let last_ms = over.max().unwrap_or(0).saturating_sub(back_ms);
    put(figures, "offline.first", seconds(first_ms));
    put(figures, "offline.last", seconds(last_ms));
    put(
        figures,
        "offline.executed_after",
        executed(&bench.world, &ids),
    );
}

/// Seconds from the start of a run to the arrival of its completion, the first of which gets lost.
fn with_outbox(seed: u64, mode: Mode) -> f64 {
    let mut bench = Bench::new(seed, "outbox", mode, Durations::Fixed(LOST_RUN_MS), None);
    bench.world.lose_completions = 1;
    let id = bench.queue();
    bench.until_over(&[id]);
    let started_ms = left_queue_ms(&bench.world, id).unwrap_or(0);
    let over_ms = ended_ms(&bench.world, id).unwrap_or(0);
    seconds(over_ms.saturating_sub(started_ms))
}

/// Runs that ever end when a desktop keeps no outbox and the completion gets lost.
fn without_outbox(seed: u64, mode: Mode) -> f64 {
    let bug = Some(Bug::OutboxLost);
    let durations = Durations::Fixed(LOST_RUN_MS);
    let mut bench = Bench::new(seed, "no outbox", mode, durations, bug);
    bench.world.lose_completions = 1;
    let id = bench.queue();
    bench.pass(DAY_MS);
    let is_over = status(&bench.world, id).is_some_and(Status::is_terminal);
    f64::from(u8::from(is_over))
}

fn status(world: &World<MemoryStore>, id: CommandId) -> Option<Status> {
    let facts = world.witness.commands().get(&id)?;
    facts.row.map(|row| row.status)
}

#[allow(clippy::cast_precision_loss, reason = "five")]
fn executed(world: &World<MemoryStore>, ids: &[CommandId]) -> f64 {
    ids.iter().filter(|id| world.is_begun(**id)).count() as f64
}
