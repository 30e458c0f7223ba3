//! The token cap: checked before every try of every agent call.

use super::{CallId, Code, Fault, Scheduler};

impl Scheduler {
    /// Whether a call in flight may try once more. `used_tokens` is what its tries used so far,
    /// `reserve_tokens` what the next one may use at most; both count against the cap from now on.
    ///
    /// # Errors
    /// [`Code::BudgetExceeded`] at the cap; the run's own fault when it is being stopped.
    pub fn another_try(
        &mut self,
        id: CallId,
        used_tokens: u64,
        reserve_tokens: u64,
    ) -> Result<(), Fault> {
        if let Some(fault) = &self.fatal
            && fault.code != Code::ProviderLimit
        {
            return Err(fault.clone());
        }
        if self.end.is_some() || !self.in_flight.contains(&id) {
            return Err(Fault::new(Code::BudgetExceeded, "the run is over"));
        }
        self.reserve(id, used_tokens);
        if let Some(fault) = self.over_cap() {
            self.budget_refusals += 1;
            return Err(fault);
        }
        self.reserve(id, used_tokens.saturating_add(reserve_tokens));
        Ok(())
    }

    /// Sets what a call in flight counts for.
    fn reserve(&mut self, id: CallId, tokens: u64) {
        if let Some(call) = self.calls.get_mut(&id) {
            let before = std::mem::replace(&mut call.reserve_tokens, tokens);
            self.reserved = self.reserved.saturating_sub(before).saturating_add(tokens);
        }
    }

    /// The cap, checked at dispatch: 0 is a cap, and running calls are counted at their most.
    pub(super) fn over_cap(&self) -> Option<Fault> {
        let cap = self.limits.tokens?;
        let (used, reserved) = (self.used, self.reserved);
        if used.saturating_add(reserved) < cap {
            return None;
        }
        let message = if reserved == 0 {
            format!("the run's token cap of {cap} is reached: {used} used")
        } else {
            format!(
                "the run's token cap of {cap} is reached: {used} used, {reserved} used or \
                 reserved by calls that run"
            )
        };
        Some(Fault::new(Code::BudgetExceeded, message))
    }
}
