//! The published tables: one file an experiment, run under the published behaviour and under
//! Callboard's defaults.

mod bands;
mod bench;
mod bursts;
mod cancels;
mod largest;
mod offline;
mod pickups;
mod polling;
mod published;
mod retries;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

pub use bands::{BandError, Bands, reseed};
pub use published::{Kind, PUBLISHED, Published, Unit};

/// The seed of the committed bands and of `sim tables`.
pub const SEED: u64 = 1_000;

/// How hub, desktop and agent behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// As published: a poll every 20 s, no held call.
    Parity,
    /// Callboard's defaults: the wake-up connection; an agent that uses `wait_seconds`.
    Defaults,
}

/// What an experiment measured, by the keys of [`PUBLISHED`].
pub type Figures = BTreeMap<String, f64>;

/// One experiment: the seed, the mode, and where its figures go.
type Experiment = fn(u64, Mode, &mut Figures);

/// The longest first, so that no core waits for it at the end.
const EXPERIMENTS: [Experiment; 7] = [
    polling::measure,
    bursts::measure,
    cancels::measure,
    pickups::measure,
    offline::measure,
    retries::measure,
    largest::measure,
];

/// Runs every experiment once.
pub fn measure(seed: u64, mode: Mode) -> Figures {
    let mut figures = Figures::new();
    for experiment in EXPERIMENTS {
        experiment(seed, mode, &mut figures);
    }
    figures
}

/// Runs every experiment once in each mode, so many at a time.
fn measure_both(seed: u64, threads: usize) -> [Figures; 2] {
    let jobs = EXPERIMENTS
        .into_iter()
        .flat_map(|experiment| [(Mode::Parity, experiment), (Mode::Defaults, experiment)]);
    let (jobs, figures) = (
        Mutex::new(jobs),
        Mutex::new([Figures::new(), Figures::new()]),
    );
    let next = || {
        let mut jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.next()
    };
    let work = || {
        while let Some((mode, experiment)) = next() {
            let mut found = Figures::new();
            experiment(seed, mode, &mut found);
            let mut figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
            let [parity, defaults] = &mut *figures;
            match mode {
                Mode::Parity => parity.extend(found),
                Mode::Defaults => defaults.extend(found),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    figures.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// How long each run of the pickup table waited for its desktop, in seconds.
pub fn pickup_waits(mode: Mode) -> Vec<f64> {
    pickups::waits(SEED, mode)
}

/// A published figure beside ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What was published.
    pub published: &'static Published,
    /// Ours under the published behaviour, to the published decimals.
    pub parity: Option<f64>,
    /// Ours under Callboard's defaults.
    pub defaults: Option<f64>,
    /// Where the parity figure must lie.
    pub band: Option<(f64, f64)>,
}

impl Line {
    /// Whether our parity figure is what it must be.
    pub fn holds(&self) -> bool {
        let Some(parity) = self.parity else {
            return self.published.value.is_none();
        };
        match (self.published.kind, self.published.value) {
            (Kind::Exact, Some(published)) => parity == published,
            (Kind::AtMost, Some(published)) => parity <= published,
            (Kind::Random, _) => self
                .band
                .is_some_and(|(low, high)| (low..=high).contains(&parity)),
            (Kind::Exact | Kind::AtMost, None) => true,
        }
    }
}

/// All lines, in the order of the published tables; `threads` experiments at a time.
pub fn lines(bands: &Bands, threads: usize) -> Vec<Line> {
    let [parity, defaults] = measure_both(SEED, threads);
    let line = |published: &'static Published| {
        let figure = |figures: &Figures| {
            let figure = figures.get(published.key).copied()?;
            Some(published.rounded(figure))
        };
        Line {
            published,
            parity: figure(&parity),
            defaults: figure(&defaults),
            band: bands.of(published.key),
        }
    };
    PUBLISHED.iter().map(line).collect()
}
