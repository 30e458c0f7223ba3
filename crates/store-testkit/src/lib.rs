//! One conformance suite for every store; never shipped.
//!
//! [`exercise`] is what the operations mean, a case a fact. [`races`] starts eight callers at once.
//! [`histories`] plays random operations against the in-memory store and compares whole values.
//! A new behaviour starts here, fails in every store, then gets written.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "it is all test code: it fails by panicking and says where it is"
)]

pub mod chat_world;
pub mod world;

mod cases;
mod chat_races;
mod history;
mod races;

pub use history::{histories, history};
pub use races::{CALLERS, at_once, races};

use std::future::poll_fn;
use std::task::Poll;

use callboard_store::Store;

/// Plays every case, each on a store of its own.
///
/// # Panics
/// When the store does not do what a case says; the case is the last one named on standard error.
pub fn exercise<S: Store>(factory: impl Fn() -> S) {
    cases::all(&factory);
}

/// Runs `future` to its end on this thread.
///
/// # Panics
/// When no runtime can be made.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}

/// Waits for all of `futures` together, so that a store can group what they write.
async fn all_at_once<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    let mut answers: Vec<_> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        let waiting = futures.iter_mut().zip(&mut answers);
        for (future, answer) in waiting.filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(found) = future.as_mut().poll(context) {
                *answer = Some(found);
            }
        }
        if answers.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    answers.into_iter().flatten().collect()
}
