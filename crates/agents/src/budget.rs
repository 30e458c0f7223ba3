//! The budget that a call asks before each further try of its own: repairs and retries cost tokens
//! that the call did not reserve when it began.

use crate::BoxFuture;

/// Decides whether a call that has begun may try again.
pub trait Budget: Send + Sync {
    /// Asked before every try but the first. `used_tokens` is what the call used so far,
    /// `reserve_tokens` what the next try may use at most.
    ///
    /// # Errors
    /// One sentence that says why no further try starts; the call then fails with
    /// [`crate::AgentErrorCode::BudgetExceeded`].
    fn another_try(
        &self,
        used_tokens: u64,
        reserve_tokens: u64,
    ) -> BoxFuture<'_, Result<(), String>>;
}

/// No cap.
pub(crate) struct Uncapped;

impl Budget for Uncapped {
    fn another_try(&self, _: u64, _: u64) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
