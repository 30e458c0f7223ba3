//! The thread that owns the database and drives the relay: one message at a time, each step's
//! outputs performed in order.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use callboard_ambient::{Clock, Entropy};
use callboard_domain::{CommandId, ExecutionId, FinalStatus, Timestamp};
use callboard_fleet::Finished;
use callboard_relay::{
    Answer, CallId, Draw, Failure, HubState, Input, Now, Outcome, Output, Relay,
};
use tokio::runtime::Handle;
use tokio::sync::{broadcast, oneshot};
use tokio::task::AbortHandle;

use crate::control::Response;
use crate::database::{Database, DiskView, Record};
use crate::engine::{self, Engine};
use crate::folder::Privacy;
use crate::hub_client::HubClient;
use crate::operations::Operation;
use crate::report::hub_text;
use crate::{Activity, Step};

/// The clocks are compared at least this often, so that a machine that slept goes on at once.
const LOOK_MS: u64 = 1_000;
/// Longest that stopped work is waited for once the grace is over.
const STOP_MS: u64 = 10_000;

/// The history is tidied at the start, and then once a day.
const TIDY_INTERVAL_MS: u64 = 24 * 3_600_000;

/// What the thread is told.
pub(crate) enum Message {
    /// A call to the hub ended.
    Answered {
        call: CallId,
        answer: Result<Answer, Failure>,
    },
    /// A run ended.
    Finished {
        execution_id: ExecutionId,
        finished: Box<Finished>,
    },
    /// The owner asks for something.
    Operate {
        operation: Box<Operation>,
        reply: oneshot::Sender<Response>,
    },
    /// Finish what runs, then stop.
    Stop,
    /// Stop now: nobody waits for this desktop any more.
    Abandon,
}

impl Message {
    pub(crate) fn finished(execution_id: ExecutionId, finished: Finished) -> Self {
        let finished = Box::new(finished);
        Self::Finished {
            execution_id,
            finished,
        }
    }
}

/// What does not change while a desktop runs.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) data_dir: PathBuf,
    pub(crate) privacy: Privacy,
    pub(crate) hub_url: String,
    pub(crate) worker_id: String,
    pub(crate) poll_only: bool,
    pub(crate) slots: usize,
    pub(crate) shutdown_grace_ms: u64,
    pub(crate) halt_before: Option<Step>,
}

/// The thread's state.
pub(crate) struct Daemon {
    pub(crate) facts: Facts,
    pub(crate) database: Database,
    pub(crate) relay: Relay,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) hub: HubClient,
    pub(crate) engine: Engine,
    pub(crate) handle: Handle,
    pub(crate) inbox: mpsc::Receiver<Message>,
    pub(crate) messages: mpsc::Sender<Message>,
    pub(crate) activity: broadcast::Sender<Activity>,
    pub(crate) calls: BTreeMap<CallId, AbortHandle>,
    /// When a command was handed out, and when an execution began, on the monotonic clock.
    pub(crate) accepted_ms: BTreeMap<CommandId, u64>,
    pub(crate) begun_ms: BTreeMap<ExecutionId, u64>,
    /// What the engine left of runs whose end is not on disk yet.
    pub(crate) records: BTreeMap<ExecutionId, Record>,
    /// Runs that the owner started here.
    pub(crate) local_runs: BTreeMap<ExecutionId, LocalRun>,
    pub(crate) announced: Announced,
    /// Nothing new begins any more.
    pub(crate) is_stopping: bool,
    pub(crate) tidied_at: Timestamp,
}

/// A run that the owner started here.
#[derive(Debug)]
pub(crate) struct LocalRun {
    pub(crate) slug: String,
    /// Its end, while the disk does not take it.
    pub(crate) ended: Option<FinalStatus>,
}

/// A desktop that was told to stop.
#[derive(Debug)]
struct Stopping {
    /// The next thing happens then, on the monotonic clock.
    until_ms: u64,
    grace_is_over: bool,
}

/// What watchers were told last.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    hub: HubState,
    disk: bool,
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daemon")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

struct Chance<'a>(&'a Entropy, Now);

impl Draw for Chance<'_> {
    fn execution_id(&mut self) -> ExecutionId {
        ExecutionId::from_bytes(self.0.uuid_v7(self.1.wall))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }
}

impl Daemon {
    /// Works until it is told to stop and everything is as settled as it can be.
    pub(crate) fn run(mut self) {
        self.recover_local_runs();
        self.tidy();
        self.feed(Input::Boot);
        let mut stopping = None;
        loop {
            let due_ms = self.relay.next_deadline_ms(self.clock.monotonic_ms());
            match self.next_message(due_ms) {
                Some(Message::Stop) if stopping.is_none() => {
                    let now_ms = self.clock.monotonic_ms();
                    stopping = Some(Stopping {
                        until_ms: now_ms + self.facts.shutdown_grace_ms,
                        grace_is_over: false,
                    });
                    self.is_stopping = true;
                    self.feed(Input::Drain);
                }
                Some(Message::Abandon) => return,
                Some(message) => {
                    self.take(message);
                    // A client that asks without a pause must not hold up what is due by time.
                    if self.clock.monotonic_ms() >= due_ms {
                        self.feed(Input::Tick);
                    }
                }
                None => self.feed(Input::Tick),
            }
            self.record_local_ends();
            self.tidy_if_due();
            if let Some(stopping) = &mut stopping
                && self.has_stopped(stopping)
            {
                return;
            }
        }
    }

    /// The next message; none when it is `due_ms` of the monotonic clock, or time to look at it.
    fn next_message(&self, due_ms: u64) -> Option<Message> {
        let left_ms = due_ms.saturating_sub(self.clock.monotonic_ms());
        let wait = Duration::from_millis(left_ms.min(LOOK_MS));
        self.inbox.recv_timeout(wait).ok()
    }

    /// Whether a stopping desktop may end: nothing runs and nothing is left to send now, or all
    /// patience is used up. What is not sent by then is in the outbox.
    fn has_stopped(&mut self, stopping: &mut Stopping) -> bool {
        if self.relay.is_quiet() && self.local_runs.is_empty() {
            return true;
        }
        let now_ms = self.clock.monotonic_ms();
        if now_ms < stopping.until_ms {
            return false;
        }
        if stopping.grace_is_over {
            return true;
        }
        *stopping = Stopping {
            until_ms: now_ms + STOP_MS,
            grace_is_over: true,
        };
        for id in self.local_runs.keys() {
            self.engine.stop(*id);
        }
        self.feed(Input::GraceOver);
        false
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Answered { call, answer } => {
                self.calls.remove(&call);
                self.feed(Input::Answered { call, answer });
            }
            Message::Finished {
                execution_id,
                finished,
            } => self.finished(execution_id, *finished),
            Message::Operate { operation, reply } => {
                let response = self.operate(*operation);
                // Whoever hung up does not want to know.
                drop(reply.send(response));
            }
            Message::Stop | Message::Abandon => {}
        }
    }

    fn finished(&mut self, execution_id: ExecutionId, finished: Finished) {
        let live = self.engine.forget(execution_id);
        let (status, record) = engine::record(finished, live);
        let report = record.report.clone();
        self.records.insert(execution_id, record);
        if let Some(run) = self.local_runs.get_mut(&execution_id) {
            run.ended = Some(status);
        } else {
            let outcome = Outcome { status, report };
            self.feed(Input::Finished {
                execution_id,
                outcome,
            });
        }
    }

    /// Tells the relay what happened, and performs what it answers.
    pub(crate) fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.now();
            let chance = &mut Chance(&self.entropy, now);
            let outputs = self
                .relay
                .step(now, input, &DiskView(&self.database), chance);
            let mut outputs = outputs.into_iter();
            while let Some(output) = outputs.next() {
                self.halt_if_told(&output);
                match self.perform(&output) {
                    Ok(None) => {}
                    Ok(Some(decided)) => inputs.push_back(decided),
                    Err(error) => {
                        let outputs = std::iter::once(output).chain(outputs).collect();
                        let reason = error.to_string();
                        inputs.push_back(Input::NotPerformed { outputs, reason });
                        break;
                    }
                }
            }
        }
        self.announce();
    }

    pub(crate) fn now(&self) -> Now {
        Now {
            wall: self.clock.now(),
            monotonic_ms: self.clock.monotonic_ms(),
        }
    }

    /// A test kills the process here. Waiting, not ending: a kill leaves nothing tidied up.
    fn halt_if_told(&self, output: &Output) {
        let step = Step::of(output);
        if step.is_none() || step != self.facts.halt_before {
            return;
        }
        if let Some(step) = step {
            tracing::warn!(%step, "halted, as configured");
            self.tell(Activity::Halted {
                step: step.to_string(),
            });
        }
        loop {
            std::thread::park();
        }
    }

    pub(crate) fn tell(&self, activity: Activity) {
        // Without watchers there is nobody to tell.
        drop(self.activity.send(activity));
    }

    fn announce(&mut self) {
        let status = self.relay.status(self.clock.monotonic_ms());
        if status.hub != self.announced.hub {
            let reachable = status.hub == HubState::Reachable;
            let state = hub_text(&status.hub);
            if reachable {
                tracing::info!("the hub is reachable");
            } else {
                tracing::warn!(%state, "the hub cannot be used");
            }
            self.announced.hub = status.hub;
            self.tell(Activity::Hub { reachable, state });
        }
        let reason = status.disk.map(|trouble| trouble.reason);
        if let Some(reason) = &reason
            && !self.announced.disk
        {
            tracing::error!(%reason, "the disk refused a write; no new work is fetched");
            self.tell(Activity::DiskTrouble {
                reason: reason.clone(),
            });
        }
        self.announced.disk = reason.is_some();
    }

    /// Rows that a crash left behind.
    fn recover_local_runs(&self) {
        let now_ms = self.clock.now().as_millis();
        if let Err(error) = self.database.fail_cut_off_local_runs(now_ms) {
            tracing::warn!(%error, "runs that were cut off could not be ended");
        }
    }

    /// By the wall clock, since a desktop may sleep for most of its life.
    fn tidy_if_due(&mut self) {
        let since_ms = self.clock.now().millis_since(self.tidied_at);
        if since_ms >= TIDY_INTERVAL_MS {
            self.tidy();
        }
    }

    /// Rows that nobody needs any more.
    fn tidy(&mut self) {
        self.tidied_at = self.clock.now();
        let steps = [
            self.database
                .forget_old_commands(self.tidied_at.as_millis()),
            self.database.prune_history(),
        ];
        for error in steps.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "the history could not be tidied");
        }
    }

    /// Writes the ends of the owner's own runs; what the disk refuses is tried again.
    fn record_local_ends(&mut self) {
        let ended: Vec<_> = self
            .local_runs
            .iter()
            .filter_map(|(id, run)| Some((*id, run.ended?, run.slug.clone())))
            .collect();
        for (id, status, slug) in ended {
            let Some(record) = self.records.get(&id) else {
                self.local_runs.remove(&id);
                continue;
            };
            let now_ms = self.clock.now().as_millis();
            if let Err(error) = self.database.end_local_run(id, status, record, now_ms) {
                tracing::error!(%error, execution.id = %id, "the end of a run is not stored yet");
                continue;
            }
            let report = record.report.clone();
            self.records.remove(&id);
            self.local_runs.remove(&id);
            self.tell_ended(Some(id), None, slug, status, &report);
        }
    }
}
