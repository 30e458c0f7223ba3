//! The engine as others see it: check a Graph, run a Graph.

use callboard_agents::{Agents, Schema, Tools};
use callboard_ambient::Clock;
use callboard_domain::{Digest, mend_surrogates};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::frame::{End, FromScript, RunStart, Start, ToScript};
use crate::limits::{
    AGENT_CALLS, AGENT_CALLS_HARD, ANSWER_WALL_MS, MAX_CONCURRENCY, MAX_CONCURRENCY_HARD, WALL_S,
    WALL_S_HARD,
};
use crate::meta::{Limits, Meta};
use crate::run::{Driver, World, syntax_error};
use crate::sandbox::{ChildSandbox, Sandbox as _};
use crate::scheduler::{Code, Outcome, RunLimits, Scheduler, Summary};
use crate::script::{Script, ScriptError};
use crate::spawn::{Launcher, Spawner};

/// The engine. Cheap to clone; the last clone ends the thread that starts script processes, and
/// with it every script that still runs.
#[derive(Debug, Clone)]
pub struct Fleet {
    spawner: Result<Spawner, String>,
    agents: Agents,
    tools: Tools,
    clock: Clock,
}

/// One run to make.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRequest {
    /// Identity of the run; seeds its random numbers.
    pub run_id: String,
    /// The Graph's slug, for logs.
    pub slug: String,
    /// The Graph's source.
    pub script: String,
    /// The arguments as JSON text; empty text means none.
    pub arguments: String,
    /// The owner's limits; the Graph's own may be tighter.
    pub limits: Limits,
}

/// What happens while a run lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The script's process is up and about to begin: the engine's `fleet_started`.
    Started {
        /// The run.
        run_id: String,
    },
    /// The script entered a phase.
    Phase {
        /// Its title, bounded.
        title: String,
    },
    /// The script logged a line.
    Log {
        /// The line, bounded.
        message: String,
    },
    /// A call started or ended.
    Progress {
        /// Agent and tool calls so far.
        calls_started: u64,
        /// Those that ended.
        calls_done: u64,
        /// Tokens used so far.
        tokens: u64,
        /// The token cap.
        tokens_cap: Option<u64>,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetStatus {
    /// The script returned a result.
    Completed,
    /// It did not, or none of its work was done.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// How it ended.
    pub status: FleetStatus,
    /// The result as the engine's own JSON text. Also present beside an error when the script
    /// returned normally but its run counts as failed.
    pub result: Option<String>,
    /// Why it failed or was cancelled, for people. Longer than what travels; the relay cuts it.
    pub error: Option<String>,
    /// The same as a stable word, see [`crate::scheduler::Code`], or the script's own.
    pub code: Option<String>,
    /// Tokens of all agent calls, failed tries included.
    pub total_tokens: u64,
    /// What the providers say it cost, in US dollars.
    pub reported_cost: Option<f64>,
    /// Agent and tool calls.
    pub calls: Calls,
    /// Failures that `parallel`, `pipeline` or `on_error` turned into `null`; the first 100.
    pub failures: Vec<Failure>,
}

/// Agent and tool calls of a run, counted.
pub type Calls = crate::scheduler::Counts;

/// One failure that became `null`.
pub type Failure = crate::scheduler::Swallowed;

impl Fleet {
    /// An engine that starts its script processes through `launcher`.
    pub fn new(launcher: Launcher, agents: Agents, tools: Tools, clock: Clock) -> Self {
        let spawner = Spawner::start(launcher).map_err(|error| error.to_string());
        Self {
            spawner,
            agents,
            tools,
            clock,
        }
    }

    /// Checks a Graph without running it: `meta`, its schemas, and the syntax of its body.
    ///
    /// # Errors
    /// The first mistake with line and column in the user's own numbering; line 0 when the check
    /// itself could not be made.
    pub async fn check(&self, source: &str) -> Result<Meta, ScriptError> {
        let Script { meta, body } = Script::parse(source)?;
        let mut sandbox = self.sandbox().await.map_err(ScriptError::whole)?;
        let start = Start {
            parent: std::process::id(),
            body,
            run: None,
        };
        let sent = sandbox.send(&ToScript::Start(Box::new(start)));
        let answer_in = std::time::Duration::from_millis(ANSWER_WALL_MS);
        let answer = match sent {
            Ok(()) => tokio::time::timeout(answer_in, sandbox.receive()).await,
            Err(fault) => Ok(Err(fault)),
        };
        sandbox.kill().await;
        match answer {
            Ok(Ok(FromScript {
                end: Some(End::Compiled),
                ..
            })) => Ok(meta),
            Ok(Ok(FromScript {
                end: Some(End::Syntax { message, stack }),
                ..
            })) => Err(syntax_error(source, &message, &stack)),
            Ok(Ok(_)) => Err(ScriptError::whole("the script could not be checked")),
            Ok(Err(fault)) => Err(ScriptError::whole(fault.message)),
            Err(_) => Err(ScriptError::whole("checking the script took too long")),
        }
    }

    /// Runs a Graph to its end. `cancel` stops it: no further call starts, calls in flight are
    /// aborted, and the script ends within seconds. Dropping the future ends everything at once.
    pub async fn run(
        &self,
        request: RunRequest,
        cancel: CancellationToken,
        events: mpsc::UnboundedSender<Event>,
    ) -> Finished {
        let prepared = match Prepared::new(&request) {
            Ok(prepared) => prepared,
            Err(finished) => return *finished,
        };
        let sandbox = match self.sandbox().await {
            Ok(sandbox) => sandbox,
            Err(reason) => return refused(Code::SandboxLost, reason),
        };
        let RunRequest {
            run_id,
            slug,
            script,
            ..
        } = request;
        tracing::debug!(run = %run_id, graph = %slug, "run started");
        let now = self.clock.now();
        let start = Start {
            parent: std::process::id(),
            body: prepared.body,
            run: Some(RunStart {
                arguments: prepared.arguments,
                seed: seed(&run_id),
                now_ms: now.as_millis(),
                tokens: prepared.limits.tokens,
            }),
        };
        // Whoever does not listen does not want to know.
        drop(events.send(Event::Started { run_id }));
        let world = World {
            agents: self.agents.clone(),
            tools: self.tools.clone(),
            clock: self.clock.clone(),
            events,
        };
        let scheduler = Scheduler::new(prepared.limits, now);
        let driver = Driver::new(sandbox, scheduler, world, script, prepared.result_schema);
        let start = ToScript::Start(Box::new(start));
        Box::pin(driver.run(start, prepared.wall, cancel))
            .await
            .into()
    }

    async fn sandbox(&self) -> Result<ChildSandbox, String> {
        let failed =
            |reason: String| format!("the script's process could not be started: {reason}");
        let spawner = self
            .spawner
            .as_ref()
            .map_err(|reason| failed(reason.clone()))?;
        let child = spawner
            .spawn()
            .await
            .map_err(|error| failed(error.to_string()))?;
        ChildSandbox::new(child).map_err(|error| failed(error.to_string()))
    }
}

/// Everything that is checked before a process starts.
struct Prepared {
    body: String,
    arguments: String,
    limits: RunLimits,
    wall: std::time::Duration,
    result_schema: Option<Schema>,
}

impl Prepared {
    fn new(request: &RunRequest) -> Result<Self, Box<Finished>> {
        let wrong_script = |error: ScriptError| {
            Box::new(refused(
                Code::ScriptError,
                format!("the script is wrong: {error}"),
            ))
        };
        let Script { meta, body } = Script::parse(&request.script).map_err(wrong_script)?;
        let compiled = |schema: &Value| {
            Schema::any(schema).map_err(|error| wrong_script(ScriptError::whole(error.to_string())))
        };
        let args_schema = meta.args.as_ref().map(compiled).transpose()?;
        let result_schema = meta.result.as_ref().map(compiled).transpose()?;
        let arguments = check_arguments(&request.arguments, args_schema.as_ref())
            .map_err(|message| Box::new(refused(Code::BadArguments, message)))?;
        let own = meta.limits.tightened_by(request.limits);
        Ok(Self {
            body,
            arguments,
            limits: RunLimits {
                tokens: own.tokens,
                max_concurrency: own
                    .max_concurrency
                    .unwrap_or(MAX_CONCURRENCY)
                    .clamp(1, MAX_CONCURRENCY_HARD),
                agents: own.agents.unwrap_or(AGENT_CALLS).min(AGENT_CALLS_HARD),
            },
            wall: std::time::Duration::from_secs(own.wall_s.unwrap_or(WALL_S).min(WALL_S_HARD)),
            result_schema,
        })
    }
}

/// The arguments as JSON text that matches the schema. Nothing starts before this.
fn check_arguments(text: &str, schema: Option<&Schema>) -> Result<String, String> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let text = mend_surrogates(text);
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| format!("the arguments are no JSON: {error}"))?;
    match &value {
        Value::Object(_) => {}
        Value::String(_) => {
            return Err(
                "the arguments are a string: give a JSON object, not text that holds \
                        one"
                .to_owned(),
            );
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return Err("the arguments must be a JSON object".to_owned());
        }
    }
    if let Some(schema) = schema {
        schema
            .check(&value)
            .map_err(|mistake| format!("the arguments do not match the Graph's: {mistake}"))?;
    }
    Ok(text.into_owned())
}

fn refused(code: Code, error: String) -> Finished {
    Finished {
        status: FleetStatus::Failed,
        result: None,
        error: Some(error),
        code: Some(code.as_str().to_owned()),
        total_tokens: 0,
        reported_cost: None,
        calls: Calls::default(),
        failures: Vec::new(),
    }
}

/// The run's own random numbers: the same run draws the same when it is replayed.
fn seed(run_id: &str) -> [u32; 4] {
    let digest = Digest::of(&[b"graph run", run_id.as_bytes()]);
    let mut seed = [0; 4];
    for (word, bytes) in seed.iter_mut().zip(digest.as_bytes().chunks_exact(4)) {
        *word = bytes
            .iter()
            .fold(0, |word, byte| (word << 8) | u32::from(*byte));
    }
    seed
}

impl From<Summary> for Finished {
    fn from(summary: Summary) -> Self {
        Self {
            status: match summary.outcome {
                Outcome::Completed => FleetStatus::Completed,
                Outcome::Failed => FleetStatus::Failed,
                Outcome::Cancelled => FleetStatus::Cancelled,
            },
            result: summary.result,
            error: summary.error,
            code: summary.code,
            total_tokens: summary.tokens,
            reported_cost: summary.cost,
            calls: summary.counts,
            failures: summary.swallowed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_can_move_between_threads() {
        fn is_send<T: Send>(_: &T) {}
        let launcher = Launcher {
            program: "/nowhere".into(),
            arguments: Vec::new(),
        };
        let fleet = Fleet::new(
            launcher,
            Agents::none(),
            Tools::new(Vec::new()),
            Clock::system(),
        );
        let request = RunRequest {
            run_id: "r".to_owned(),
            slug: "s".to_owned(),
            script: String::new(),
            arguments: String::new(),
            limits: Limits::default(),
        };
        let (events, _seen) = mpsc::unbounded_channel();
        is_send(&fleet.run(request, CancellationToken::new(), events));
        is_send(&fleet.check(""));
    }

    #[tokio::test]
    async fn a_process_that_cannot_be_started_is_named() {
        let launcher = Launcher {
            program: "/nowhere".into(),
            arguments: Vec::new(),
        };
        let fleet = Fleet::new(
            launcher,
            Agents::none(),
            Tools::new(Vec::new()),
            Clock::system(),
        );
        let error = fleet
            .check("export const meta = { name: 'n', description: 'd' }")
            .await;
        let message = error.unwrap_err().to_string();
        assert!(
            message.starts_with("the script's process could not be started: "),
            "{message}"
        );
    }
}
