//! The rules: one step of a run.

use callboard_domain::Timestamp;

use super::{
    Call, CallId, CallKind, CallOutcome, Code, Delivery, Fault, Input, Outcome, Output, Request,
    Row, Scheduler, ScriptEnd, Settled, Summary, Swallowed,
};
use crate::limits::{CALLS_MAX, CALLS_OPEN_MAX, FAILURES_MAX};

/// What one step collects before it is put in order.
#[derive(Default)]
struct Step {
    done: Vec<Row>,
    started: Vec<Row>,
    dispatches: Vec<CallId>,
    aborts: Vec<CallId>,
    deliveries: Vec<Delivery>,
}

impl Scheduler {
    /// Moves the run. `now` may jump back; the run's own clock does not.
    pub fn step(&mut self, now: Timestamp, input: Input) -> Vec<Output> {
        if self.finished {
            return Vec::new();
        }
        self.now = self.now.max(now);
        let mut step = Step::default();
        match input {
            Input::Requested(requests) => {
                for request in requests {
                    self.request(request, &mut step);
                }
            }
            Input::Completed(id, settled) => self.complete(id, settled, &mut step),
            Input::Swallowed(failure) => self.note(failure),
            Input::Tick => {}
            Input::Cancel => {
                let fault = Fault::new(Code::Cancelled, "the run was cancelled");
                self.stop(&fault, &mut step);
            }
            Input::Stop(fault) => self.stop(&fault, &mut step),
            Input::Ended(end) => self.end(end, &mut step),
        }
        self.wake(&mut step);
        self.open_gate(&mut step);
        self.outputs(step)
    }

    fn request(&mut self, request: Request, step: &mut Step) {
        if self.end.is_some() {
            return;
        }
        let Request {
            id,
            kind,
            key,
            reserve_tokens,
        } = request;
        let occurrence = self.occurrences.entry(key).or_insert(0);
        *occurrence += 1;
        let call = Call {
            kind,
            key,
            occurrence: *occurrence,
            reserve_tokens,
            answered: false,
        };
        self.requested += 1;
        let refusal = self.refusal(kind);
        if kind == CallKind::Agent {
            self.agents_requested = self.agents_requested.saturating_add(1);
        }
        self.calls.insert(id, call);
        if let Some(fault) = refusal {
            self.refuse(id, fault, step);
            return;
        }
        match kind {
            CallKind::Agent | CallKind::Tool => self.queue.push_back(id),
            CallKind::Sleep(duration_ms) => {
                self.sleeping.insert((self.now.plus_ms(duration_ms), id));
                self.row_start(id, step);
            }
        }
    }

    /// Why a new call is refused before it even waits.
    fn refusal(&self, kind: CallKind) -> Option<Fault> {
        if let Some(fault) = &self.fatal {
            return Some(fault.clone());
        }
        let agents_max = self.limits.agents;
        if kind == CallKind::Agent && self.agents_requested >= agents_max {
            let message = format!("the run's limit of {agents_max} agent calls is reached");
            return Some(Fault::new(Code::LimitExceeded, message));
        }
        if self.requested > CALLS_MAX {
            let message = format!("the run's limit of {CALLS_MAX} calls is reached");
            return Some(Fault::new(Code::LimitExceeded, message));
        }
        if self.calls.len() >= CALLS_OPEN_MAX {
            let message = format!("more than {CALLS_OPEN_MAX} calls wait at the same time");
            return Some(Fault::new(Code::LimitExceeded, message));
        }
        None
    }

    fn complete(&mut self, id: CallId, settled: Settled, step: &mut Step) {
        if !self.in_flight.remove(&id) {
            return;
        }
        let Settled {
            outcome,
            tokens,
            cost,
        } = settled;
        if let Some(call) = self.calls.get(&id) {
            self.reserved = self.reserved.saturating_sub(call.reserve_tokens);
            match (&outcome, call.kind) {
                (Ok(_), CallKind::Agent) => {
                    self.agents_succeeded = self.agents_succeeded.saturating_add(1);
                    self.counts.succeeded += 1;
                }
                (Ok(_), CallKind::Tool | CallKind::Sleep(_)) => self.counts.succeeded += 1,
                (Err(_), _) => self.counts.failed += 1,
            }
        }
        self.used = self.used.saturating_add(tokens);
        if let Some(cost) = cost {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
        let breaks_circuit = match &outcome {
            Err(fault) if fault.code == Code::ProviderLimit => Some(fault.clone()),
            Err(_) | Ok(_) => None,
        };
        self.settle(id, outcome, tokens, step);
        if let Some(fault) = breaks_circuit
            && self.fatal.is_none()
        {
            // Calls in flight may still succeed and are paid for; nothing new starts.
            self.refuse_queue(&fault, step);
            self.fatal = Some(fault);
        }
    }

    /// Cancel and the wall limit: every open call is answered now, those in flight are aborted.
    fn stop(&mut self, fault: &Fault, step: &mut Step) {
        if self
            .fatal
            .as_ref()
            .is_some_and(|old| old.code != Code::ProviderLimit)
        {
            return;
        }
        self.fatal = Some(fault.clone());
        if self.end.is_some() {
            return;
        }
        self.refuse_queue(fault, step);
        for (_, id) in std::mem::take(&mut self.sleeping) {
            self.settle(id, Err(fault.clone()), 0, step);
        }
        for id in self.in_flight.clone() {
            self.answer(id, Err(fault.clone()), 0, step);
            step.aborts.push(id);
        }
    }

    fn end(&mut self, end: ScriptEnd, step: &mut Step) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(end);
        self.counts.refused += u64::try_from(self.queue.len()).unwrap_or(u64::MAX);
        self.queue.clear();
        self.sleeping.clear();
        // Nothing of a run is alive after it is reported.
        step.aborts.extend(self.in_flight.iter().copied());
    }

    fn note(&mut self, failure: Swallowed) {
        if failure.code == Code::BudgetExceeded.as_str() {
            self.swallowed_budget = true;
        }
        if self.swallowed.len() < FAILURES_MAX {
            self.swallowed.push(failure);
        }
    }

    /// Ends the sleeps that are due, earliest first.
    fn wake(&mut self, step: &mut Step) {
        while let Some((due, id)) = self.sleeping.first().copied() {
            if due > self.now {
                break;
            }
            self.sleeping.remove(&(due, id));
            self.settle(id, Ok("null".to_owned()), 0, step);
        }
    }

    /// Dispatches what the gate and the cap allow, first come first served.
    fn open_gate(&mut self, step: &mut Step) {
        let width = usize::try_from(self.limits.max_concurrency).unwrap_or(usize::MAX);
        while self.in_flight.len() < width {
            let Some(id) = self.queue.pop_front() else {
                return;
            };
            let Some((kind, reserve)) = self
                .calls
                .get(&id)
                .map(|call| (call.kind, call.reserve_tokens))
            else {
                continue;
            };
            if kind == CallKind::Agent
                && let Some(fault) = self.over_cap()
            {
                self.budget_refusals += 1;
                self.refuse(id, fault, step);
                continue;
            }
            self.reserved = self.reserved.saturating_add(reserve);
            self.counts.started += 1;
            self.in_flight.insert(id);
            self.row_start(id, step);
            step.dispatches.push(id);
        }
    }

    /// The cap, checked at dispatch: 0 is a cap, and running calls are counted at their most.
    fn over_cap(&self) -> Option<Fault> {
        let cap = self.limits.tokens?;
        let (used, reserved) = (self.used, self.reserved);
        if used.saturating_add(reserved) < cap {
            return None;
        }
        let message = if reserved == 0 {
            format!("the run's token cap of {cap} is reached: {used} used")
        } else {
            format!(
                "the run's token cap of {cap} is reached: {used} used, {reserved} reserved by \
                 calls that run"
            )
        };
        Some(Fault::new(Code::BudgetExceeded, message))
    }

    fn refuse_queue(&mut self, fault: &Fault, step: &mut Step) {
        for id in std::mem::take(&mut self.queue) {
            self.refuse(id, fault.clone(), step);
        }
    }

    fn refuse(&mut self, id: CallId, fault: Fault, step: &mut Step) {
        self.counts.refused += 1;
        self.settle(id, Err(fault), 0, step);
    }

    /// Journals the end of a call, answers it if nobody did, and forgets it.
    fn settle(&mut self, id: CallId, outcome: CallOutcome, tokens: u64, step: &mut Step) {
        self.answer(id, outcome.clone(), tokens, step);
        if let Some(call) = self.calls.remove(&id) {
            step.done.push(Row::Done {
                key: call.key,
                occurrence: call.occurrence,
                at: self.now,
                tokens,
                outcome,
            });
        }
    }

    fn answer(&mut self, id: CallId, outcome: CallOutcome, tokens: u64, step: &mut Step) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        if std::mem::replace(&mut call.answered, true) || self.end.is_some() {
            return;
        }
        self.spent = self.spent.saturating_add(tokens);
        step.deliveries.push(Delivery {
            id,
            outcome,
            at: self.now,
            spent_tokens: self.spent,
        });
    }

    fn row_start(&self, id: CallId, step: &mut Step) {
        if let Some(call) = self.calls.get(&id) {
            step.started.push(Row::Start {
                key: call.key,
                occurrence: call.occurrence,
                at: self.now,
            });
        }
    }

    fn outputs(&mut self, step: Step) -> Vec<Output> {
        let mut outputs = Vec::new();
        let rows: Vec<Row> = step.done.into_iter().chain(step.started).collect();
        if !rows.is_empty() {
            outputs.push(Output::Journal(rows));
        }
        outputs.extend(step.aborts.into_iter().map(Output::Abort));
        if !step.deliveries.is_empty() {
            outputs.push(Output::Deliver(step.deliveries));
        }
        outputs.extend(step.dispatches.into_iter().map(Output::Dispatch));
        if self.in_flight.is_empty()
            && let Some(end) = self.end.take()
        {
            self.finished = true;
            outputs.push(Output::Finished(self.summary(end)));
        }
        outputs
    }

    fn summary(&mut self, end: ScriptEnd) -> Summary {
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
