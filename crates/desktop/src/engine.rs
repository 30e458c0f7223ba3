//! The engine as the daemon uses it: begin a run, watch it, hear of its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc as std_mpsc};

use callboard_agents::{Agents, Tools};
use callboard_ambient::Clock;
use callboard_domain::limits::PHASE_UTF16_MAX;
use callboard_domain::{ExecutionId, FinalStatus, Report, cut_utf16};
use callboard_fleet::{Event, Finished, Fleet, FleetStatus, Launcher, Limits, RunRequest};
use callboard_wire::relay::Progress;
use tokio::runtime::Handle;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use crate::Activity;
use crate::daemon::Message;
use crate::database::Record;

/// Most log lines and phases that the history keeps of a run: the last ones.
const LINES_MAX: usize = 500;

/// Starts runs and remembers those that last.
#[derive(Debug)]
pub(crate) struct Engine {
    limits: Limits,
    tools: Tools,
    fleet: Fleet,
    handle: Handle,
    messages: std_mpsc::Sender<Message>,
    activity: broadcast::Sender<Activity>,
    runs: BTreeMap<ExecutionId, Run>,
}

#[derive(Debug)]
struct Run {
    cancel: CancellationToken,
    live: Arc<Mutex<Live>>,
}

/// What a run is doing now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    pub(crate) phase: Option<String>,
    pub(crate) progress: Option<Progress>,
    pub(crate) phases: Vec<String>,
    pub(crate) logs: Vec<String>,
}

/// A script and what it is run with.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) execution_id: ExecutionId,
    pub(crate) slug: String,
    pub(crate) source: String,
    pub(crate) arguments: String,
}

/// What an engine is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) launcher: Launcher,
    pub(crate) agents: Agents,
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    pub(crate) handle: Handle,
    pub(crate) messages: std_mpsc::Sender<Message>,
    pub(crate) activity: broadcast::Sender<Activity>,
}

impl Engine {
    pub(crate) fn new(parts: Parts, tools: Tools) -> Self {
        let Parts {
            launcher,
            agents,
            limits,
            clock,
            handle,
            messages,
            activity,
        } = parts;
        Self {
            limits,
            fleet: Fleet::new(launcher, agents, tools.clone(), clock),
            tools,
            handle,
            messages,
            activity,
            runs: BTreeMap::new(),
        }
    }

    /// Changes the granted folders, for runs under way too.
    pub(crate) fn grant(&self, folders: Vec<PathBuf>) {
        self.tools.set_folders(folders);
    }

    /// Begins a run. Its end arrives as [`Message::Finished`], exactly once.
    pub(crate) fn begin(&mut self, work: Work) {
        let id = work.execution_id;
        let cancel = CancellationToken::new();
        let live = Arc::new(Mutex::new(Live::default()));
        let run = Run {
            cancel: cancel.clone(),
            live: Arc::clone(&live),
        };
        self.runs.insert(id, run);
        let request = RunRequest {
            run_id: id.to_string(),
            slug: work.slug,
            script: work.source,
            arguments: work.arguments,
            limits: self.limits,
        };
        let (events, inbox) = mpsc::unbounded_channel();
        let fleet = self.fleet.clone();
        let watcher = Watcher {
            id,
            live,
            activity: self.activity.clone(),
        };
        let messages = self.messages.clone();
        self.handle.spawn(async move {
            let run = Box::pin(fleet.run(request, cancel, events));
            let (finished, ()) = tokio::join!(run, watcher.watch(inbox));
            // Without a daemon nobody wants to know.
            drop(messages.send(Message::finished(id, finished)));
        });
    }

    /// Asks a run to stop.
    pub(crate) fn stop(&self, id: ExecutionId) {
        if let Some(run) = self.runs.get(&id) {
            run.cancel.cancel();
        }
    }

    /// Forgets a run that is over, and gives back what it did.
    pub(crate) fn forget(&mut self, id: ExecutionId) -> Live {
        let run = self.runs.remove(&id);
        run.map_or_else(Live::default, |run| run.read())
    }

    /// What a run is doing.
    pub(crate) fn live(&self, id: ExecutionId) -> Option<Live> {
        self.runs.get(&id).map(Run::read)
    }

    /// What a run is doing, without its history.
    pub(crate) fn now(&self, id: ExecutionId) -> (Option<String>, Option<Progress>) {
        let Some(run) = self.runs.get(&id) else {
            return (None, None);
        };
        let live = run.live.lock().unwrap_or_else(PoisonError::into_inner);
        (live.phase.clone(), live.progress)
    }
}

impl Run {
    fn read(&self) -> Live {
        self.live
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

struct Watcher {
    id: ExecutionId,
    live: Arc<Mutex<Live>>,
    activity: broadcast::Sender<Activity>,
}

impl Watcher {
    async fn watch(self, mut events: mpsc::UnboundedReceiver<Event>) {
        while let Some(event) = events.recv().await {
            self.note(event);
        }
    }

    fn note(&self, event: Event) {
        let execution_id = self.id.to_string();
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let activity = match event {
            Event::Started { .. } => return,
            Event::Phase { title } => {
                let title = cut_utf16(&title, PHASE_UTF16_MAX).to_owned();
                live.phase = Some(title.clone());
                push_bounded(&mut live.phases, title.clone());
                Activity::Phase {
                    execution_id,
                    title,
                }
            }
            Event::Log { message } => {
                push_bounded(&mut live.logs, message.clone());
                Activity::Log {
                    execution_id,
                    message,
                }
            }
            Event::Progress {
                calls_started,
                calls_done,
                tokens,
                tokens_cap,
            } => {
                let progress = Progress {
                    calls_done,
                    calls_started,
                    tokens,
                    tokens_cap,
                };
                live.progress = Some(progress);
                Activity::Progress {
                    execution_id,
                    progress,
                }
            }
        };
        drop(live);
        // Whoever does not watch does not want to know.
        drop(self.activity.send(activity));
    }
}

fn push_bounded(lines: &mut Vec<String>, line: String) {
    if lines.len() == LINES_MAX {
        lines.remove(0);
    }
    lines.push(line);
}

/// The whole of what the engine said, and how it ended.
pub(crate) fn record(finished: Finished, live: Live) -> (FinalStatus, Record) {
    let status = match finished.status {
        FleetStatus::Completed => FinalStatus::Completed,
        FleetStatus::Failed => FinalStatus::Failed,
        FleetStatus::Cancelled => FinalStatus::Cancelled,
    };
    let report = Report {
        result: finished.result,
        result_truncated: false,
        error: finished.error,
        total_tokens: Some(finished.total_tokens),
        reported_cost: finished.reported_cost,
    };
    let record = Record {
        report,
        phases: live.phases,
        logs: live.logs,
    };
    (status, record)
}
