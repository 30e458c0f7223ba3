//! The rules: one step of a run.

use callboard_domain::Timestamp;

use super::{
    Call, CallId, CallKind, CallOutcome, Code, Delivery, Fault, Input, Output, Request, Row,
    Scheduler, ScriptEnd, Settled, Swallowed,
};
use crate::limits::{CALL_BYTES_MAX, CALLS_MAX, CALLS_OPEN_MAX, FAILURES_MAX, WAITING_BYTES_MAX};

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
            payload_bytes,
        } = request;
        // A number that comes twice would take the place of a call that runs, and its count.
        if Some(id) <= self.last_id {
            let end = ScriptEnd::Failed {
                code: Code::SandboxLost.as_str().to_owned(),
                error: format!(
                    "the script's process broke the rules: it gave the number {} twice or out of \
                     order",
                    id.0
                ),
            };
            self.end(end, step);
            return;
        }
        self.last_id = Some(id);
        let occurrence = self.occurrences.entry(key).or_insert(0);
        *occurrence += 1;
        let call = Call {
            kind,
            key,
            occurrence: *occurrence,
            reserve_tokens,
            payload_bytes,
            answered: false,
        };
        self.requested += 1;
        let refusal = self.refusal(kind, payload_bytes);
        if kind == CallKind::Agent {
            self.agents_requested = self.agents_requested.saturating_add(1);
        }
        self.calls.insert(id, call);
        if let Some(fault) = refusal {
            self.refuse(id, fault, step);
            return;
        }
        match kind {
            CallKind::Agent | CallKind::Tool => {
                self.queued_bytes = self.queued_bytes.saturating_add(payload_bytes);
                self.queue.push_back(id);
            }
            CallKind::Sleep(duration_ms) => {
                self.sleeping.insert((self.now.plus_ms(duration_ms), id));
                self.row_start(id, step);
            }
        }
    }

    /// Why a new call is refused before it even waits.
    fn refusal(&self, kind: CallKind, payload_bytes: u64) -> Option<Fault> {
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
        if payload_bytes > CALL_BYTES_MAX {
            let message =
                format!("the call has {payload_bytes} bytes; {CALL_BYTES_MAX} is the most");
            return Some(Fault::new(Code::LimitExceeded, message));
        }
        if self.queued_bytes.saturating_add(payload_bytes) > WAITING_BYTES_MAX {
            let message = format!(
                "the calls that wait have more than {WAITING_BYTES_MAX} bytes together: wait for \
                 some of them first"
            );
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
        self.queued_bytes = 0;
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
            let Some(call) = self.calls.get(&id) else {
                continue;
            };
            let (kind, reserve) = (call.kind, call.reserve_tokens);
            self.queued_bytes = self.queued_bytes.saturating_sub(call.payload_bytes);
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

    fn refuse_queue(&mut self, fault: &Fault, step: &mut Step) {
        self.queued_bytes = 0;
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
}
