//! Random histories, played against the in-memory store and compared as whole values.
//!
//! Every failure is a seed: `CALLBOARD_SEED=17` plays that one again. Seeds that once failed are
//! kept in [`KEPT_SEEDS`] for ever.

mod answer;
mod chat_operation;
mod chat_player;
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
    for number in 1..=OPERATIONS {
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
        let mut looks = player.looks();
        if number == OPERATIONS {
            looks.extend(player.last_looks());
        }
        for look in looks {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use callboard_domain::Refusal;
    use callboard_domain::linked_task::{Ended, Status};

    use super::chat_operation::ChatAnswer;
    use super::*;

    /// The answers of one history.
    fn answers(seed: u64) -> Vec<Answer> {
        let (model, mut player) = (MemoryStore::default(), Player::new(seed));
        let mut answers = Vec::new();
        for _ in 0..OPERATIONS {
            let answer = block_on(player.next().play(&model, player.now));
            player.learn(&answer);
            answers.push(answer);
        }
        answers
    }

    #[test]
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "it looks for a few answers among all"
    )]
    fn histories_reach_every_end_and_every_refusal_of_a_task() {
        let (mut refusals, mut statuses) = (BTreeSet::new(), BTreeSet::new());
        let (mut replays, mut swept) = (BTreeSet::new(), BTreeSet::new());
        for answer in (0..80).flat_map(answers) {
            match answer {
                Answer::Refused(refusal) => {
                    refusals.insert(refusal);
                }
                Answer::Swept(rows) => swept.extend(rows.tasks.iter().map(|row| row.task.status())),
                Answer::Chat(ChatAnswer::Linked(linked)) => {
                    replays.insert(("link", linked.replayed));
                }
                Answer::Chat(ChatAnswer::Assigned(assigned)) => {
                    replays.insert(("assign", assigned.replayed));
                    statuses.insert(assigned.row.task.status());
                }
                Answer::Chat(ChatAnswer::Claimed(row, replayed)) => {
                    replays.insert(("claim", replayed));
                    statuses.insert(row.task.status());
                }
                Answer::Chat(ChatAnswer::Submitted(row, replayed)) => {
                    replays.insert(("submit", replayed));
                    statuses.insert(row.task.status());
                }
                Answer::Chat(ChatAnswer::Cancelled(row)) => {
                    statuses.insert(row.task.status());
                }
                Answer::Chat(ChatAnswer::Uploaded(_, replayed)) => {
                    replays.insert(("upload", replayed));
                }
                _ => {}
            }
        }
        let of_chats = [
            Refusal::ProjectNotFound,
            Refusal::ChatLinkNotFound,
            Refusal::LinkKeyReused,
            Refusal::TaskNotFound,
            Refusal::TaskKeyReused,
            Refusal::CandidatesApart,
            Refusal::ClaimMissing,
            Refusal::ClaimTaken,
            Refusal::ClaimOver(Ended::Completed),
            Refusal::ClaimOver(Ended::Failed),
            Refusal::ClaimOver(Ended::Cancelled),
            Refusal::ClaimOver(Ended::Expired),
            Refusal::SubmitMissing,
            Refusal::SubmitOver(Ended::Completed),
            Refusal::SubmitOver(Ended::Failed),
            Refusal::SubmitOver(Ended::Cancelled),
            Refusal::SubmitOver(Ended::Expired),
            Refusal::SubmitLapsed,
            Refusal::SubmitStale,
            Refusal::ArtifactDiffers,
        ];
        let missed: Vec<_> = of_chats
            .iter()
            .filter(|it| !refusals.contains(it))
            .collect();
        assert_eq!(missed, [&Refusal::RunOver; 0]);
        assert!(statuses.iter().eq(&Status::ALL), "{statuses:?}");
        assert_eq!(replays.len(), 5 * 2, "{replays:?}");
        let by_time = [Status::Queued, Status::Over(Ended::Expired)];
        assert!(swept.iter().eq(&by_time), "{swept:?}");
    }
}
