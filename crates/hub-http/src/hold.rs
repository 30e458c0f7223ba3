//! Holds a call until its use case has an answer.

use std::future::Future;
use std::time::Duration;

use callboard_ambient::Clock;
use callboard_hub::{Hold, HubError, Patience, Reply, Signals};
use futures::future::select_all;
use tokio_util::sync::CancellationToken;

/// Asks `use_case` until it answers: again as soon as something that it watches moved, at its
/// deadline, and at once when one of `ends` is cancelled (the hub stops, or nobody listens any
/// more), where the present answer must do.
pub(crate) async fn until_done<T, Asking>(
    signals: &Signals,
    clock: &Clock,
    ends: &[&CancellationToken],
    mut use_case: impl FnMut(Option<Patience>) -> Asking,
) -> Result<T, HubError>
where
    Asking: Future<Output = Result<Reply<T>, HubError>>,
{
    let mut patience = None;
    loop {
        let hold = match use_case(patience.take()).await? {
            Reply::Done(answer) => return Ok(answer),
            Reply::Hold(hold) => hold,
        };
        let ended = wait(signals, clock, ends, &hold).await;
        let deadline_ms = if ended { 0 } else { hold.patience.deadline_ms };
        patience = Some(Patience {
            deadline_ms,
            ..hold.patience
        });
    }
}

/// Waits for the first of: a watched topic moved, the deadline, an end (then true).
async fn wait(signals: &Signals, clock: &Clock, ends: &[&CancellationToken], hold: &Hold) -> bool {
    let left_ms = hold
        .patience
        .deadline_ms
        .saturating_sub(clock.monotonic_ms());
    let changes = hold.watches.iter().map(|watch| signals.changed(*watch));
    tokio::select! {
        biased;
        () = any(ends.iter().map(|end| end.cancelled())) => true,
        () = any(changes) => false,
        () = tokio::time::sleep(Duration::from_millis(left_ms)) => false,
    }
}

/// Ends with the first of `futures`; never, when there is none.
async fn any<F: Future<Output = ()>>(futures: impl Iterator<Item = F>) {
    let pinned: Vec<_> = futures.map(Box::pin).collect();
    if pinned.is_empty() {
        return std::future::pending().await;
    }
    select_all(pinned).await;
}
