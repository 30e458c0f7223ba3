//! The pure run scheduler: what a script asks for and what became of it go in, ordered outputs
//! come out. It owns the token cap, the gate, the timers, the counters and the run's end. It has
//! no clock, no task and no hash map, so that a history can be replayed and searched.
//!
//! Outputs of one step are performed in order: rows first, then what they allow.

mod budget;
mod decide;
mod finish;
mod words;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use callboard_domain::Timestamp;

pub use words::{
    CallId, CallKind, CallOutcome, Code, Counts, Delivery, Fault, Input, Key, Outcome, Output,
    Request, Row, RunLimits, ScriptEnd, Settled, Summary, Swallowed,
};

/// One run.
#[derive(Debug, Clone)]
pub struct Scheduler {
    limits: RunLimits,
    now: Timestamp,
    /// The newest call's number.
    last_id: Option<CallId>,
    calls: BTreeMap<CallId, Call>,
    /// Agent and tool calls that wait for the gate, in the order of their requests.
    queue: VecDeque<CallId>,
    /// Payloads of the calls in the queue, in bytes.
    queued_bytes: u64,
    in_flight: BTreeSet<CallId>,
    sleeping: BTreeSet<(Timestamp, CallId)>,
    occurrences: BTreeMap<Key, u32>,
    /// Tokens of settled calls.
    used: u64,
    /// Tokens that calls in flight used and may still use.
    reserved: u64,
    /// Tokens of calls that the script has seen settled: what `budget.spent()` says.
    spent: u64,
    cost: Option<f64>,
    counts: Counts,
    requested: u64,
    agents_requested: u32,
    agents_succeeded: u32,
    budget_refusals: u64,
    swallowed: Vec<Swallowed>,
    swallowed_budget: bool,
    /// Once set, no call starts any more and every one is answered with it.
    fatal: Option<Fault>,
    end: Option<ScriptEnd>,
    finished: bool,
}

/// A call that is not settled yet.
#[derive(Debug, Clone)]
struct Call {
    kind: CallKind,
    key: Key,
    occurrence: u32,
    /// What it counts for in `reserved`: its finished tries and the one that runs.
    reserve_tokens: u64,
    payload_bytes: u64,
    /// The script has its answer already, because of a cancel.
    answered: bool,
}

impl Scheduler {
    /// A run that has not asked for anything yet.
    pub fn new(limits: RunLimits, now: Timestamp) -> Self {
        Self {
            limits,
            now,
            last_id: None,
            calls: BTreeMap::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            in_flight: BTreeSet::new(),
            sleeping: BTreeSet::new(),
            occurrences: BTreeMap::new(),
            used: 0,
            reserved: 0,
            spent: 0,
            cost: None,
            counts: Counts::default(),
            requested: 0,
            agents_requested: 0,
            agents_succeeded: 0,
            budget_refusals: 0,
            swallowed: Vec::new(),
            swallowed_budget: false,
            fatal: None,
            end: None,
            finished: false,
        }
    }

    /// Agent and tool calls so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Tokens used by settled calls.
    pub fn used_tokens(&self) -> u64 {
        self.used
    }

    /// The token cap.
    pub fn tokens_cap(&self) -> Option<u64> {
        self.limits.tokens
    }

    /// When the next `sleep` ends.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.sleeping.first().map(|(due, _)| *due)
    }
}

#[cfg(test)]
mod tests;
