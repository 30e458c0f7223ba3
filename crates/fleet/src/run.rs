//! Drives one run: passes frames between the script and the scheduler, performs what the
//! scheduler says, and keeps the clocks that the scheduler does not have.

mod call;
mod end;
mod timer;

use std::collections::BTreeMap;
use std::time::Duration;

use callboard_agents::{Agents, Schema, Tools};
use callboard_ambient::Clock;
use callboard_domain::{cut_utf16, mend_surrogates};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::dispatch::{Payload, perform, read_call};
use crate::fleet::Event;
use crate::frame::{Act, Answer, FromScript, ToScript};
use crate::limits::{
    ANSWER_WALL_MS, CANCEL_GRACE_MS, FAILURE_UTF16_MAX, LABEL_UTF16_MAX, LOG_LINES_MAX,
    LOG_UTF16_MAX,
};
use crate::sandbox::Sandbox;
use crate::scheduler::{
    CallId, Code, Counts, Delivery, Fault, Input, Output, Scheduler, ScriptEnd, Summary, Swallowed,
};
use call::{Report, Reporter};
pub(crate) use end::{read as read_end, syntax_error};
use timer::Timer;

/// What a run needs from outside.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) agents: Agents,
    pub(crate) tools: Tools,
    pub(crate) clock: Clock,
    pub(crate) events: mpsc::UnboundedSender<Event>,
}

/// One run while it lasts.
pub(crate) struct Driver<S> {
    sandbox: S,
    scheduler: Scheduler,
    world: World,
    source: String,
    result_schema: Option<Schema>,
    payloads: BTreeMap<CallId, Payload>,
    running: BTreeMap<CallId, CancellationToken>,
    reports: mpsc::UnboundedSender<Report>,
    reported: mpsc::UnboundedReceiver<Report>,
    tasks: JoinSet<()>,
    /// Frames that the script has not answered yet.
    unanswered: u32,
    /// Runs while the script owes an answer.
    watchdog: Timer,
    /// Runs while a stopped script may still finish.
    grace: Timer,
    script_over: bool,
    log_lines: u64,
    shown: (Counts, u64),
    summary: Option<Summary>,
}

impl<S: Sandbox> Driver<S> {
    pub(crate) fn new(
        sandbox: S,
        scheduler: Scheduler,
        world: World,
        source: String,
        result_schema: Option<Schema>,
    ) -> Self {
        let (reports, reported) = mpsc::unbounded_channel();
        Self {
            sandbox,
            scheduler,
            world,
            source,
            result_schema,
            payloads: BTreeMap::new(),
            running: BTreeMap::new(),
            reports,
            reported,
            tasks: JoinSet::new(),
            unanswered: 0,
            watchdog: Timer::off(),
            grace: Timer::off(),
            script_over: false,
            log_lines: 0,
            shown: (Counts::default(), 0),
            summary: None,
        }
    }

    /// Runs to the end. Nothing of the run is alive afterwards.
    pub(crate) async fn run(
        mut self,
        start: ToScript,
        wall: Duration,
        cancel: CancellationToken,
    ) -> Summary {
        let mut wall = Timer::after(wall);
        let mut cancelled = false;
        self.send(&start);
        loop {
            if let Some(summary) = self.summary.take() {
                self.sandbox.kill().await;
                self.tasks.shutdown().await;
                return summary;
            }
            let due = self.scheduler.wake_at();
            let wake_ms = due.map(|due| due.millis_since(self.world.clock.now()));
            tokio::select! {
                biased;
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    self.stop(Input::Cancel);
                }
                frame = self.sandbox.receive(), if !self.script_over => match frame {
                    Ok(frame) => self.hear(frame),
                    Err(fault) => self.lose(fault),
                },
                Some(report) = self.reported.recv() => self.take_reports(report),
                () = wall.elapsed() => {
                    wall.stop();
                    let message = "the run took longer than its limit of real time";
                    self.stop(Input::Stop(Fault::new(Code::WallLimit, message)));
                }
                () = self.watchdog.elapsed() => self.lose(Fault::new(
                    Code::SandboxLost,
                    format!("the script's process gave no answer for {} s", ANSWER_WALL_MS / 1_000),
                )),
                () = self.grace.elapsed() => self.lose(Fault::new(
                    Code::Cancelled,
                    "the script did not end when it was stopped",
                )),
                () = timer::wait(wake_ms), if due.is_some() => {
                    let now = self.world.clock.now();
                    let now = due.map_or(now, |due| due.max(now));
                    let outputs = self.scheduler.step(now, Input::Tick);
                    self.perform(outputs);
                }
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    fn step(&mut self, input: Input) {
        let outputs = self.scheduler.step(self.world.clock.now(), input);
        self.perform(outputs);
    }

    /// Cancel or wall limit: the script is told first, so that its last slice counts.
    fn stop(&mut self, input: Input) {
        if !self.script_over {
            self.send(&ToScript::Stop);
            self.grace = Timer::after(Duration::from_millis(CANCEL_GRACE_MS));
        }
        self.step(input);
    }

    fn send(&mut self, frame: &ToScript) {
        if self.script_over {
            return;
        }
        match self.sandbox.send(frame) {
            Ok(()) => {
                self.unanswered += 1;
                self.watchdog = Timer::after(Duration::from_millis(ANSWER_WALL_MS));
            }
            Err(fault) => self.lose(fault),
        }
    }

    /// The script is over without having said so.
    fn lose(&mut self, fault: Fault) {
        tracing::debug!(code = fault.code.as_str(), "a script process was lost");
        self.finish_script(ScriptEnd::Failed {
            code: fault.code.as_str().to_owned(),
            error: fault.message,
        });
    }

    fn finish_script(&mut self, end: ScriptEnd) {
        self.script_over = true;
        self.watchdog = Timer::off();
        self.grace = Timer::off();
        self.step(Input::Ended(end));
    }

    /// Handles what the script did before it waited or ended.
    fn hear(&mut self, frame: FromScript) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.watchdog = if self.unanswered == 0 {
            Timer::off()
        } else {
            Timer::after(Duration::from_millis(ANSWER_WALL_MS))
        };
        let mut requests = Vec::new();
        let mut swallowed = Vec::new();
        for act in &frame.acts {
            let json = mend_surrogates(&act.json);
            match act.kind.as_str() {
                "call" => match read_call(&json) {
                    Ok((request, payload)) => {
                        if let Some(payload) = payload {
                            self.payloads.insert(request.id, payload);
                        }
                        requests.push(request);
                    }
                    Err(error) => return self.refuse_call(&error),
                },
                "swallow" => swallowed.extend(read_swallowed(&json)),
                _ => self.show(act, &json),
            }
        }
        for failure in swallowed {
            self.step(Input::Swallowed(failure));
        }
        if let Some(end) = frame.end {
            // Calls that nobody waits for any more are not made.
            let end = end::read(end, &self.source, self.result_schema.as_ref());
            return self.finish_script(end);
        }
        if !requests.is_empty() {
            self.step(Input::Requested(requests));
        }
    }

    fn refuse_call(&mut self, error: &serde_json::Error) {
        self.finish_script(ScriptEnd::Failed {
            code: Code::BadArguments.as_str().to_owned(),
            error: format!("a call's arguments cannot be read: {error}"),
        });
    }

    fn show(&mut self, act: &Act, json: &str) {
        #[derive(Deserialize)]
        struct Shown {
            title: Option<String>,
            message: Option<String>,
        }
        let Ok(Shown { title, message }) = serde_json::from_str(json) else {
            return;
        };
        match (act.kind.as_str(), title, message) {
            ("phase", Some(title), _) => {
                let title = cut_utf16(&title, LABEL_UTF16_MAX).to_owned();
                self.tell(Event::Phase { title });
            }
            ("log", _, Some(message)) => {
                self.log_lines += 1;
                let message = match self.log_lines {
                    ..LOG_LINES_MAX => cut_utf16(&message, LOG_UTF16_MAX).to_owned(),
                    LOG_LINES_MAX => format!("further log lines are dropped after {LOG_LINES_MAX}"),
                    _ => return,
                };
                self.tell(Event::Log { message });
            }
            _ => {}
        }
    }

    fn tell(&self, event: Event) {
        // Whoever does not listen any more does not want to know.
        drop(self.world.events.send(event));
    }

    fn take_reports(&mut self, first: Report) {
        let mut next = Some(first);
        // Answers that are ready together reach the script together.
        while let Some(report) = next {
            match report {
                Report::Settled(id, settled) => {
                    self.running.remove(&id);
                    self.step(Input::Completed(id, settled));
                }
                Report::Again {
                    id,
                    used_tokens,
                    reserve_tokens,
                    answer,
                } => {
                    let allowed = self.scheduler.another_try(id, used_tokens, reserve_tokens);
                    // A call that was aborted meanwhile does not listen any more.
                    drop(answer.send(allowed.map_err(|fault| fault.message)));
                }
            }
            next = self.reported.try_recv().ok();
        }
    }

    fn perform(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                // The durable journal comes with replay; its rows are made already.
                Output::Journal(rows) => tracing::trace!(rows = rows.len(), "journal"),
                Output::Dispatch(id) => self.dispatch(id),
                Output::Abort(id) => {
                    if let Some(token) = self.running.get(&id) {
                        token.cancel();
                    }
                }
                Output::Deliver(deliveries) => {
                    let answers = deliveries.into_iter().map(|delivery| {
                        self.payloads.remove(&delivery.id);
                        answer(delivery)
                    });
                    let frame = ToScript::Deliver {
                        answers: answers.collect(),
                    };
                    self.send(&frame);
                }
                Output::Finished(summary) => self.summary = Some(summary),
            }
        }
        self.show_progress();
    }

    fn dispatch(&mut self, id: CallId) {
        let Some(payload) = self.payloads.remove(&id) else {
            return;
        };
        let token = CancellationToken::new();
        if self.script_over {
            // The script was lost while this step was performed.
            token.cancel();
        }
        self.running.insert(id, token.clone());
        let reporter = Reporter::new(id, self.reports.clone());
        let (agents, tools) = (self.world.agents.clone(), self.world.tools.clone());
        self.tasks.spawn(async move {
            let settled = Box::pin(perform(payload, agents, tools, &reporter, token)).await;
            reporter.settle(settled);
        });
    }

    fn show_progress(&mut self) {
        let counts = self.scheduler.counts();
        let tokens = self.scheduler.used_tokens();
        if self.shown == (counts, tokens) {
            return;
        }
        self.shown = (counts, tokens);
        self.tell(Event::Progress {
            calls_started: counts.started,
            calls_done: counts.succeeded + counts.failed,
            tokens,
            tokens_cap: self.scheduler.tokens_cap(),
        });
    }
}

/// A delivery as the script is told it.
pub(crate) fn answer(delivery: Delivery) -> Answer {
    let Delivery {
        id,
        outcome,
        at,
        spent_tokens,
    } = delivery;
    let (ok, json) = match outcome {
        Ok(json) => (true, json),
        Err(fault) => {
            let error = serde_json::json!({
                "code": fault.code.as_str(),
                "message": fault.message,
                "fatal": fault.code.is_fatal(),
                "retryable": fault.code.is_retryable(),
            });
            (false, error.to_string())
        }
    };
    Answer {
        id: id.0,
        ok,
        json,
        now_ms: at.as_millis(),
        spent: spent_tokens,
    }
}

fn read_swallowed(json: &str) -> Option<Swallowed> {
    #[derive(Deserialize)]
    struct Wire {
        code: String,
        message: String,
        label: Option<String>,
        phase: Option<String>,
    }
    let cut = |text: String, max| cut_utf16(&text, max).to_owned();
    let wire: Wire = serde_json::from_str(json).ok()?;
    Some(Swallowed {
        code: cut(wire.code, LABEL_UTF16_MAX),
        message: cut(wire.message, FAILURE_UTF16_MAX),
        label: wire.label.map(|label| cut(label, LABEL_UTF16_MAX)),
        phase: wire.phase.map(|phase| cut(phase, LABEL_UTF16_MAX)),
    })
}
