//! Holds a call until its use case has an answer.

use std::future::Future;
use std::time::Duration;

use callboard_ambient::Clock;
use callboard_hub::{Hold, HubError, Patience, Reply, Signals};
use tokio_util::sync::CancellationToken;

/// Asks `use_case` until it answers: again as soon as something that it watches moved, at its
/// deadline, and at once when the hub stops, where the present answer must do.
pub(crate) async fn until_done<T, Asking>(
    signals: &Signals,
    clock: &Clock,
    shutdown: &CancellationToken,
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
        let stopped = wait(signals, clock, shutdown, &hold).await;
        let deadline_ms = if stopped {
            0
        } else {
            hold.patience.deadline_ms
        };
        patience = Some(Patience {
            deadline_ms,
            ..hold.patience
        });
    }
}

/// Waits for the first of: a watched topic moved, the deadline, the end of the hub (then true).
async fn wait(signals: &Signals, clock: &Clock, shutdown: &CancellationToken, hold: &Hold) -> bool {
    let left_ms = hold
        .patience
        .deadline_ms
        .saturating_sub(clock.monotonic_ms());
    let changes = hold
        .watches
        .iter()
        .map(|watch| Box::pin(signals.changed(*watch)));
    // Without a watch there is nothing to select from; the deadline alone decides.
    let changed = async {
        if hold.watches.is_empty() {
            std::future::pending::<()>().await;
        }
        futures::future::select_all(changes).await;
    };
    tokio::select! {
        biased;
        () = shutdown.cancelled() => true,
        () = changed => false,
        () = tokio::time::sleep(Duration::from_millis(left_ms)) => false,
    }
}
