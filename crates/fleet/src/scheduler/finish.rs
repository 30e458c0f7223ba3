//! The end of a run: what it came to, and why.

use super::{Code, Outcome, Scheduler, ScriptEnd, Summary};

impl Scheduler {
    pub(super) fn summary(&mut self, end: ScriptEnd) -> Summary {
        let (result, failure) = match end {
            ScriptEnd::Returned(json) => (Some(json), None),
            ScriptEnd::Failed { code, error } => (None, Some((code, error))),
        };
        let fatal = self
            .fatal
            .take()
            .map(|fault| (fault.code.as_str().to_owned(), fault.message));
        let outcome = match &fatal {
            Some((code, _)) if code == Code::Cancelled.as_str() => Outcome::Cancelled,
            Some(_) | None => Outcome::Failed,
        };
        let (outcome, reason) = match fatal.or(failure).or_else(|| self.hollow()) {
            Some(reason) => (outcome, Some(reason)),
            None => (Outcome::Completed, None),
        };
        let (code, error) = reason.unzip();
        Summary {
            outcome,
            result,
            code,
            error,
            tokens: self.used,
            cost: self.cost,
            counts: self.counts,
            swallowed: std::mem::take(&mut self.swallowed),
        }
    }

    /// Why a script that returned normally did not do its work.
    fn hollow(&self) -> Option<(String, String)> {
        let cap = self.limits.tokens.unwrap_or(0);
        if self.swallowed_budget {
            let refused = self.budget_refusals;
            let error = format!(
                "the run's token cap of {cap} was reached: {refused} agent calls were refused"
            );
            return Some((Code::BudgetExceeded.as_str().to_owned(), error));
        }
        if self.agents_requested > 0 && self.agents_succeeded == 0 {
            let requested = self.agents_requested;
            let first = self.swallowed.first().map_or(String::new(), |failure| {
                format!(" (the first: {})", failure.message)
            });
            let error = format!("all {requested} agent calls failed{first}");
            return Some((Code::AllAgentsFailed.as_str().to_owned(), error));
        }
        None
    }
}
