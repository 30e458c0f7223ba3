//! What a dispatched call tells its run: that it wants another try, and how it ended.

use callboard_agents::{BoxFuture, Budget};
use tokio::sync::{mpsc, oneshot};

use crate::scheduler::{CallId, Code, Fault, Settled};

/// From a call to its run.
#[derive(Debug)]
pub(super) enum Report {
    /// The call ended.
    Settled(CallId, Settled),
    /// The call would try again.
    Again {
        id: CallId,
        used_tokens: u64,
        reserve_tokens: u64,
        answer: oneshot::Sender<Result<(), String>>,
    },
}

/// Reports the end of a call even when its task panicked.
#[derive(Debug)]
pub(super) struct Reporter {
    id: CallId,
    reports: mpsc::UnboundedSender<Report>,
    settled: Option<Settled>,
}

impl Reporter {
    pub(super) fn new(id: CallId, reports: mpsc::UnboundedSender<Report>) -> Self {
        Self {
            id,
            reports,
            settled: None,
        }
    }

    pub(super) fn settle(mut self, settled: Settled) {
        self.settled = Some(settled);
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        let settled = self.settled.take().unwrap_or_else(|| Settled {
            outcome: Err(Fault::new(
                Code::AgentFailed,
                "the call stopped unexpectedly",
            )),
            tokens: 0,
            cost: None,
        });
        // The run may be over; then nobody waits for this.
        drop(self.reports.send(Report::Settled(self.id, settled)));
    }
}

impl Budget for Reporter {
    fn another_try(
        &self,
        used_tokens: u64,
        reserve_tokens: u64,
    ) -> BoxFuture<'_, Result<(), String>> {
        let (answer, decision) = oneshot::channel();
        let asked = self.reports.send(Report::Again {
            id: self.id,
            used_tokens,
            reserve_tokens,
            answer,
        });
        Box::pin(async move {
            let over = || Err("the run is over".to_owned());
            if asked.is_err() {
                return over();
            }
            decision.await.unwrap_or_else(|_| over())
        })
    }
}
