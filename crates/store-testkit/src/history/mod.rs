//! Random histories, played against the in-memory store and compared as whole values.
//!
//! Every failure is a seed: `CALLBOARD_SEED=17` plays that one again. Seeds that once failed are
//! kept in [`KEPT_SEEDS`] for ever.

mod answer;
mod operation;
mod player;

use std::ops::Range;

use callboard_store::{MemoryStore, Store};

use crate::block_on;
use answer::Answer;
use player::Player;

/// Operations of one history.
const OPERATIONS: usize = 80;
/// Longest line of a failed history.
const LINE_CHARS_MAX: usize = 600;
/// Seeds that once found a fault.
const KEPT_SEEDS: &[u64] = &[];
/// Names the one seed to play.
const SEED_VARIABLE: &str = "CALLBOARD_SEED";

/// Plays the histories of `seeds`, and the kept ones, each on a fresh store.
///
/// # Panics
/// When an answer differs from that of the in-memory store; the seed is the last one named on
/// standard error.
pub fn histories<S: Store>(factory: impl Fn() -> S, seeds: Range<u64>) {
    let only = std::env::var(SEED_VARIABLE).ok();
    let seeds: Vec<u64> = match only {
        Some(seed) => vec![seed.parse().expect("CALLBOARD_SEED is a number")],
        None => KEPT_SEEDS.iter().copied().chain(seeds).collect(),
    };
    for seed in seeds {
        block_on(history(&factory(), seed));
    }
}

/// Plays the history of `seed` on `store`, which is empty.
///
/// # Panics
/// As [`histories`].
pub async fn history<S: Store>(store: &S, seed: u64) {
    eprintln!("history with {SEED_VARIABLE}={seed}");
    let (model, mut player) = (MemoryStore::default(), Player::new(seed));
    let mut played = Vec::new();
    for _ in 0..OPERATIONS {
        let operation = player.next();
        let line = format!("{:?} {operation:?}", player.now);
        played.push(line.chars().take(LINE_CHARS_MAX).collect::<String>());
        let expected = operation.play(&model, player.now).await;
        let found = operation.play(store, player.now).await;
        let history = || played.join("\n");
        assert_eq!(
            found,
            expected,
            "{SEED_VARIABLE}={seed}, after\n{}",
            history()
        );
        player.learn(&expected);
        for look in player.looks() {
            let expected: Answer = look.play(&model, player.now).await;
            let found = look.play(store, player.now).await;
            assert_eq!(
                found,
                expected,
                "{SEED_VARIABLE}={seed}, {look:?} after\n{}",
                history()
            );
        }
    }
}
