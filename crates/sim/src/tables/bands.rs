//! Where a drawn figure must lie: the extremes of a thousand reseedings.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Kind, Mode, PUBLISHED, measure};

/// The committed bands.
const COMMITTED: &str = include_str!("../../bands.json");

/// Bands of all drawn figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bands {
    /// The first of the seeds.
    pub from_seed: u64,
    /// How many seeds.
    pub seeds: u64,
    /// Smallest and largest figure, to the published decimals, by key.
    pub bands: BTreeMap<String, (f64, f64)>,
}

/// A band without its published figure: the simulator does not do what was published.
#[derive(Debug, Clone, PartialEq)]
pub struct BandError {
    /// The figure.
    pub key: &'static str,
    /// What was published.
    pub published: f64,
    /// The band that misses it.
    pub band: Option<(f64, f64)>,
}

impl Bands {
    /// The committed bands.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn committed() -> Result<Self, serde_json::Error> {
        serde_json::from_str(COMMITTED)
    }

    /// The band of a figure.
    pub fn of(&self, key: &str) -> Option<(f64, f64)> {
        self.bands.get(key).copied()
    }

    /// Published figures that lie outside of their band.
    pub fn misses(&self) -> Vec<BandError> {
        let random = PUBLISHED
            .iter()
            .filter(|figure| figure.kind == Kind::Random);
        random
            .filter_map(|figure| {
                let published = figure.value?;
                let band = self.of(figure.key);
                let holds = band.is_some_and(|(low, high)| (low..=high).contains(&published));
                (!holds).then_some(BandError {
                    key: figure.key,
                    published,
                    band,
                })
            })
            .collect()
    }
}

/// Runs all experiments under the published behaviour with `seeds` seeds; `progress` hears how many
/// are done.
pub fn reseed(from_seed: u64, seeds: u64, threads: usize, progress: impl Fn(u64) + Sync) -> Bands {
    let bands: Mutex<BTreeMap<String, (f64, f64)>> = Mutex::default();
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= seeds {
            break;
        }
        let figures = measure(from_seed.wrapping_add(index), Mode::Parity);
        {
            let mut bands = bands.lock().unwrap_or_else(PoisonError::into_inner);
            for published in PUBLISHED
                .iter()
                .filter(|figure| figure.kind == Kind::Random)
            {
                let Some(figure) = figures.get(published.key) else {
                    continue;
                };
                let figure = published.rounded(*figure);
                let key = published.key.to_owned();
                let band = bands.entry(key).or_insert((figure, figure));
                *band = (band.0.min(figure), band.1.max(figure));
            }
        }
        progress(1 + done.fetch_add(1, Ordering::Relaxed));
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(work);
        }
    });
    Bands {
        from_seed,
        seeds,
        bands: bands.into_inner().unwrap_or_else(PoisonError::into_inner),
    }
}
