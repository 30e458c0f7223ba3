//! The engine of a virtual desktop: the real scheduler of a run under scripts that are a list of
//! calls, or the program that such a list comes to, in the real JavaScript engine.

use std::collections::BTreeMap;

use callboard_domain::{ExecutionId, FinalStatus, Report, Timestamp};
use callboard_fleet::InlineScript;
use callboard_fleet::scheduler::{
    CallId, CallKind, Code, Delivery, Fault, Input, Key, Outcome as Ended, Output, Request,
    RunLimits, Scheduler, ScriptEnd, Settled, Summary,
};
use callboard_relay::Outcome;

/// How long a model call takes to end once it is aborted, in milliseconds. With the 3 s control
/// poll it gives the longest published cancel, 3.5 s.
pub(crate) const STOP_MS: u64 = 500;

/// What a Graph does: model calls one after another, then a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    /// How long each call takes, in milliseconds.
    pub(crate) calls_ms: Vec<u64>,
    /// Every call fails.
    pub(crate) fails: bool,
    /// JSON text.
    pub(crate) result: String,
}

impl Script {
    /// The script as a program in the JavaScript engine; `None` where the system gives no thread.
    fn in_engine(&self, now: Timestamp) -> Option<InlineScript> {
        let calls = self.calls_ms.len();
        let arguments = format!("{{\"calls\":{calls},\"result\":{}}}", self.result);
        InlineScript::begin(PROGRAM, &arguments, now).ok()
    }

    /// One call of this length.
    pub(crate) fn lasting(duration_ms: u64) -> Self {
        Self {
            calls_ms: vec![duration_ms],
            fails: false,
            result: "\"done\"".to_owned(),
        }
    }
}

/// What the world does for a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Call [`Engine::call_ended`] after this time.
    CallEndsAfter(CallId, u64),
    /// Call [`Engine::call_aborted`] after this time.
    AbortedAfter(CallId, u64),
    /// The run is over.
    Finished(Outcome),
}

/// The runs of one desktop process.
#[derive(Debug, Default)]
pub(crate) struct Engine {
    runs: BTreeMap<ExecutionId, Run>,
}

#[derive(Debug)]
struct Run {
    scheduler: Scheduler,
    script: Script,
    asked: u64,
    /// The script in the JavaScript engine, where it is played there.
    javascript: Option<InlineScript>,
}

/// The program that a [`Script`] stands for.
const PROGRAM: &str =
    "for (let call = 0; call < args.calls; call++) await agent('scripted'); return args.result;";

/// Tokens that each call costs.
const TOKENS: u64 = 100;

impl Engine {
    /// Begins a run; with `javascript` its script is a program in the real engine, otherwise the list
    /// that this program comes to.
    pub(crate) fn begin(
        &mut self,
        id: ExecutionId,
        script: Script,
        javascript: bool,
        now: Timestamp,
    ) -> Vec<Effect> {
        let javascript = javascript.then(|| script.in_engine(now));
        let run = Run {
            scheduler: Scheduler::new(RunLimits::default(), now),
            script,
            asked: 0,
            javascript: javascript.flatten(),
        };
        self.runs.insert(id, run);
        self.feed(id, now, |run| run.next_input())
    }

    /// A call answered.
    pub(crate) fn call_ended(
        &mut self,
        id: ExecutionId,
        call: CallId,
        now: Timestamp,
    ) -> Vec<Effect> {
        self.feed(id, now, |run| {
            let failed = || Fault::new(Code::AgentFailed, "the model failed");
            let answer = "\"answer\"".to_owned();
            let outcome = if run.script.fails {
                Err(failed())
            } else {
                Ok(answer)
            };
            Input::Completed(call, settled(outcome))
        })
    }

    /// An aborted call is gone.
    pub(crate) fn call_aborted(
        &mut self,
        id: ExecutionId,
        call: CallId,
        now: Timestamp,
    ) -> Vec<Effect> {
        let cancelled = Fault::new(Code::Cancelled, "the run was cancelled");
        self.feed(id, now, |_| Input::Completed(call, settled(Err(cancelled))))
    }

    /// Asks a run to stop.
    pub(crate) fn stop(&mut self, id: ExecutionId, now: Timestamp) -> Vec<Effect> {
        self.feed(id, now, |_| Input::Cancel)
    }

    /// Steps the scheduler of a run until it waits for the world, and plays its script meanwhile.
    fn feed(
        &mut self,
        id: ExecutionId,
        now: Timestamp,
        first: impl FnOnce(&mut Run) -> Input,
    ) -> Vec<Effect> {
        let mut effects = Vec::new();
        let Some(run) = self.runs.get_mut(&id) else {
            return effects;
        };
        let mut input = Some(first(run));
        let mut over = None;
        while let Some(given) = input.take() {
            for output in run.scheduler.step(now, given) {
                match output {
                    Output::Journal(_) => {}
                    Output::Dispatch(call) => {
                        let lasts_ms = run.lasts_ms(call);
                        effects.push(Effect::CallEndsAfter(call, lasts_ms));
                    }
                    Output::Abort(call) => effects.push(Effect::AbortedAfter(call, STOP_MS)),
                    Output::Deliver(deliveries) => input = Some(run.hear(deliveries)),
                    Output::Finished(summary) => over = Some(summary),
                }
            }
        }
        if let Some(summary) = over {
            self.runs.remove(&id);
            effects.push(Effect::Finished(outcome(summary)));
        }
        effects
    }
}

impl Run {
    /// What the script does once it has heard these answers. The first failure ends it.
    fn hear(&mut self, deliveries: Vec<Delivery>) -> Input {
        if let Some(script) = &mut self.javascript {
            script.deliver(deliveries);
            return self.next_input();
        }
        let failed = deliveries.into_iter().find_map(|told| told.outcome.err());
        match failed {
            Some(fault) => Input::Ended(ScriptEnd::Failed {
                code: fault.code.as_str().to_owned(),
                error: format!("GraphError: {}", fault.message),
            }),
            None => self.next_input(),
        }
    }

    /// What the script does next.
    fn next_input(&mut self) -> Input {
        if let Some(script) = &mut self.javascript {
            let said = script.said();
            return match said.end {
                Some(end) => Input::Ended(end),
                None => Input::Requested(said.requests),
            };
        }
        let asked = usize::try_from(self.asked).unwrap_or(usize::MAX);
        if asked >= self.script.calls_ms.len() {
            return Input::Ended(ScriptEnd::Returned(self.script.result.clone()));
        }
        self.asked += 1;
        Input::Requested(vec![Request {
            id: CallId(self.asked),
            kind: CallKind::Agent,
            key: Key::of("agent", "scripted"),
            reserve_tokens: TOKENS,
            payload_bytes: 8,
        }])
    }

    fn lasts_ms(&self, call: CallId) -> u64 {
        let index = usize::try_from(call.0.saturating_sub(1)).unwrap_or(usize::MAX);
        self.script.calls_ms.get(index).copied().unwrap_or(0)
    }
}

fn settled(outcome: Result<String, Fault>) -> Settled {
    Settled {
        outcome,
        tokens: TOKENS,
        cost: None,
    }
}

fn outcome(summary: Summary) -> Outcome {
    let status = match summary.outcome {
        Ended::Completed => FinalStatus::Completed,
        Ended::Failed => FinalStatus::Failed,
        Ended::Cancelled => FinalStatus::Cancelled,
    };
    let report = Report {
        result: summary.result,
        error: summary.error,
        total_tokens: Some(summary.tokens),
        ..Report::default()
    };
    Outcome { status, report }
}
