//! `callboard demo`: the main job for real, in a temporary folder, with a bad network in between.

mod chats;
mod folder;
mod link;
mod stage;

use std::time::Duration;

use callboard_wire::tools::{cancel_graph_run, run_graph_session};
use chrono::DateTime;
use serde_json::{Value, json};

use crate::args::DemoArgs;
use crate::client::{CallError, fresh_key};
use crate::failure::Failure;
use crate::output::Output;
use link::Fault;
use stage::Stage;

/// Longest that any one step may take; each takes a few seconds at most.
const STEP_MAX: Duration = Duration::from_secs(60);

/// Plays all steps; the first that does not hold ends the demo with exit 1.
pub(crate) async fn run(arguments: DemoArgs, output: &Output) -> Result<(), Failure> {
    let began_ms = stage::now_ms();
    output.line("A chat, a hub and a desktop, for real, in a temporary folder.");
    output.line("");
    let mut stage = Stage::set(arguments.model.as_deref()).await?;
    let played = play(&mut stage, arguments.model.is_some(), output).await;
    stage.strike().await;
    let steps = played?;
    let took_ms = stage::now_ms() - began_ms;
    output.line("");
    output.data(&json!({"held": steps, "took_ms": took_ms}), || {
        vec![format!(
            "All {steps} held. {}.{} s.      Now for yourself:  callboard up",
            took_ms / 1_000,
            took_ms % 1_000 / 100
        )]
    });
    Ok(())
}

async fn play(stage: &mut Stage, with_model: bool, output: &Output) -> Result<usize, Failure> {
    let mut steps = Steps { output, number: 0 };
    steps
        .step("The chat lists what the owner shares.", list(stage))
        .await?;
    let ticket = steps
        .value(
            "It starts a run and gets a ticket, not a result.",
            start(stage),
        )
        .await?;
    steps
        .step(
            "The desktop came for it by itself.",
            picked_up(stage, &ticket),
        )
        .await?;
    let summary = steps
        .value(
            "The chat waits for the result in one call.",
            result(stage, &ticket),
        )
        .await?;
    output.line(format!("       {summary}"));
    steps
        .step("A second run is cancelled half-way.", cancel(stage))
        .await?;
    steps
        .step(
            "The answer to a start gets lost; same key again.",
            lost_answer(stage),
        )
        .await?;
    steps
        .step(
            "The desktop dies with a result not yet delivered.",
            dead_desktop(stage),
        )
        .await?;
    chats::play(stage, &mut steps).await?;
    if with_model {
        steps
            .step("A Graph asks the model about two files.", ask_model(stage))
            .await?;
    }
    Ok(steps.number)
}

/// Numbers the steps and shows what each found.
struct Steps<'a> {
    output: &'a Output,
    number: usize,
}

impl Steps<'_> {
    async fn step(
        &mut self,
        title: &str,
        play: impl Future<Output = Result<String, Failure>>,
    ) -> Result<(), Failure> {
        let shown = async { Ok((play.await?, ())) };
        self.value(title, shown).await
    }

    /// The same for a step whose finding is used later: a line to show, and a value to keep.
    async fn value<T>(
        &mut self,
        title: &str,
        play: impl Future<Output = Result<(String, T), Failure>>,
    ) -> Result<T, Failure> {
        let (found, kept) = self.within(title, play).await?;
        self.output
            .line(format!("{:>2}  {title:<52} {found}", self.number));
        Ok(kept)
    }

    async fn within<T>(
        &mut self,
        title: &str,
        play: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.number += 1;
        let number = self.number;
        let played = tokio::time::timeout(STEP_MAX, play)
            .await
            .unwrap_or_else(|_| {
                Err(Failure::failed(format!(
                    "it took longer than {} s",
                    STEP_MAX.as_secs()
                )))
            });
        played.map_err(|failure| {
            let message = format!("step {number} does not hold ({title}): {}", failure.message);
            Failure { message, ..failure }
        })
    }
}

fn demand(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds {
        Ok(())
    } else {
        Err(Failure::failed(otherwise()))
    }
}

async fn list(stage: &Stage) -> Result<String, Failure> {
    let shared = stage.sessions().await?;
    let found = shared
        .iter()
        .find(|entry| entry.session.slug == "folder-report");
    let session = &found
        .ok_or_else(|| Failure::failed("folder-report is not listed"))?
        .session;
    Ok(format!(
        "{}  v{}  {}",
        session.slug, session.version, session.status
    ))
}

async fn start(stage: &Stage) -> Result<(String, String), Failure> {
    let ticket = stage
        .start("folder-report", stage.report_arguments(), &fresh_key())
        .await?;
    let command_id = ticket.command_id.to_string();
    Ok((
        format!("{}… {}", crate::desktop::short(&command_id), ticket.status),
        command_id,
    ))
}

async fn picked_up(stage: &Stage, command_id: &str) -> Result<String, Failure> {
    let run = stage
        .until(command_id, |run| run.started_at.is_some())
        .await?;
    let started = run.started_at.as_deref().unwrap_or_default();
    let wait = milliseconds_between(&run.queued_at, started)?;
    let ports = stage.listening_ports()?;
    demand(ports == 0, || {
        format!("the desktop listens on {ports} ports")
    })?;
    Ok(format!("picked up after {wait} ms, no port open"))
}

async fn result(stage: &Stage, command_id: &str) -> Result<(String, String), Failure> {
    let run = stage
        .until(command_id, |run| run.finished_at.is_some())
        .await?;
    demand(run.status == "completed", || {
        format!("it ended {}: {:?}", run.status, run.error)
    })?;
    let result = run.result.as_ref().map_or("null", |raw| raw.get());
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    let files = result["files"].as_u64();
    demand(files == Some(folder::FILES), || {
        format!("it counted {files:?} files")
    })?;
    let took = milliseconds_between(
        &run.queued_at,
        run.finished_at.as_deref().unwrap_or_default(),
    )?;
    let summary = result["summary"].as_str().unwrap_or_default().to_owned();
    Ok((format!("completed in {took} ms"), summary))
}

async fn cancel(stage: &Stage) -> Result<String, Failure> {
    let ticket = stage.start("slow", json!({}), &fresh_key()).await?;
    let command_id = ticket.command_id.to_string();
    stage
        .until(&command_id, |run| run.status == "running")
        .await?;
    let asked_ms = stage::now_ms();
    let arguments = json!({"command_id": command_id});
    let answer: cancel_graph_run::Answer = stage.chat().ask("cancel_graph_run", arguments).await?;
    demand(answer.cancel_requested, || {
        "the cancel was not noted".to_owned()
    })?;
    let run = stage
        .until(&command_id, |run| run.finished_at.is_some())
        .await?;
    demand(run.status == "cancelled", || {
        format!("it ended {}", run.status)
    })?;
    let took_ms = stage::now_ms() - asked_ms;
    Ok(format!("running, then cancelled after {took_ms} ms"))
}

async fn lost_answer(stage: &Stage) -> Result<String, Failure> {
    let (key, session) = (fresh_key(), stage.session_id("hello").await?);
    let arguments = json!({"graph_session_id": session, "idempotency_key": key});
    stage.link().lose(Fault::AnswerTo("run_graph_session"));
    match stage.chat().call("run_graph_session", arguments).await {
        Err(CallError::Lost(_)) => {}
        Err(CallError::Refused(sentence)) => return Err(Failure::failed(sentence)),
        Ok(_) => {
            return Err(Failure::failed(
                "the answer was meant to get lost and did not",
            ));
        }
    }
    stage.link().lost().await;
    let first: run_graph_session::Answer = stage.start("hello", json!({}), &key).await?;
    let again = stage.start("hello", json!({}), &key).await?;
    demand(first.command_id == again.command_id, || {
        "the same key gave two tickets".to_owned()
    })?;
    let run = stage
        .until(&first.command_id.to_string(), |run| {
            run.finished_at.is_some()
        })
        .await?;
    demand(run.status == "completed", || {
        format!("it ended {}", run.status)
    })?;
    let runs = stage.executions_of("hello").await?;
    demand(runs == 1, || format!("it ran {runs} times"))?;
    Ok("same ticket, 1 run".to_owned())
}

async fn dead_desktop(stage: &mut Stage) -> Result<String, Failure> {
    let before = stage.executions_of("folder-report").await?;
    stage.link().lose(Fault::CallsTo("/complete"));
    let ticket = stage
        .start("folder-report", stage.report_arguments(), &fresh_key())
        .await?;
    let command_id = ticket.command_id.to_string();
    // The completion is on its way, so it is in the outbox; the hub never gets it.
    stage.link().lost().await;
    stage.kill_desktop().await?;
    let run = stage.chat().read_run(&command_id).await?;
    demand(run.status == "running", || {
        format!("the hub says {}", run.status)
    })?;
    stage.link().heal();
    stage.start_desktop().await?;
    let run = stage
        .until(&command_id, |run| run.finished_at.is_some())
        .await?;
    demand(run.status == "completed", || {
        format!("it ended {}: {:?}", run.status, run.error)
    })?;
    let executions = stage.executions_of("folder-report").await? - before;
    demand(executions == 1, || format!("it ran {executions} times"))?;
    stage.outbox_empty().await?;
    Ok("restarted, delivered, 1 execution".to_owned())
}

async fn ask_model(stage: &Stage) -> Result<String, Failure> {
    let arguments = json!({"folder": stage.folder(), "files": 2});
    let ticket = stage.start("summarise", arguments, &fresh_key()).await?;
    let command_id = ticket.command_id.to_string();
    let run = stage
        .until(&command_id, |run| run.finished_at.is_some())
        .await?;
    demand(run.status == "completed", || {
        format!(
            "it ended {}: {}",
            run.status,
            run.error.clone().unwrap_or_default()
        )
    })?;
    Ok(format!(
        "completed, {} tokens",
        run.total_tokens.unwrap_or_default()
    ))
}

fn milliseconds_between(from: &str, to: &str) -> Result<i64, Failure> {
    let read = |text: &str| {
        DateTime::parse_from_rfc3339(text)
            .map_err(|error| Failure::failed(format!("the hub gave the time {text:?}: {error}")))
    };
    Ok((read(to)? - read(from)?).num_milliseconds())
}
