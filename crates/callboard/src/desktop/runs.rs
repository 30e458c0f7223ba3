//! `callboard runs …`, `callboard graph run` and `callboard desktop status`.

use std::path::Path;

use callboard_desktop::control::{DeliveryState, Request, Response, RunDetail, RunSummary};
use callboard_desktop::{Activity, RunStatus};

use super::{ask, connect, tell};
use crate::args::RunsCommand;
use crate::failure::{Failure, chain};
use crate::output::{Output, table};

/// How many runs `callboard runs list` shows.
const LISTED_RUNS: usize = 50;

/// Runs one of the commands about runs.
pub(crate) async fn runs(
    data: &Path,
    command: RunsCommand,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        RunsCommand::List => {
            if let Response::Runs(runs) = ask(data, Request::RunList { limit: LISTED_RUNS }).await?
            {
                output.data(&runs, || table(&runs.iter().map(row).collect::<Vec<_>>()));
                if runs.is_empty() {
                    output.note("No runs yet.");
                }
            }
            Ok(())
        }
        RunsCommand::Show { id } => {
            if let Response::Run(run) = ask(data, Request::RunShow { id }).await? {
                output.data(&run, || detail(&run));
            }
            Ok(())
        }
        RunsCommand::Watch => watch(data, output).await,
        RunsCommand::Cancel { id } => {
            tell(
                data,
                Request::RunCancel { id },
                "the engine was told to stop",
                output,
            )
            .await
        }
    }
}

/// Runs a Graph here, shows what it does, and prints its result.
pub(super) async fn run_here(
    data: &Path,
    slug: String,
    arguments: String,
    output: &Output,
) -> Result<(), Failure> {
    let arguments = crate::client::read_arguments(&arguments)?;
    let watch = connect(data).await?.watch().await;
    let mut watch = watch.map_err(|error| Failure::cannot_start(chain(&error)))?;
    let arguments = Some(serde_json::Value::Object(arguments).to_string());
    let started = ask(data, Request::GraphRun { slug, arguments }).await?;
    let Response::Started { execution_id: ours } = started else {
        return Err(Failure::failed("the desktop did not start the run"));
    };
    output.note(format!("execution  {ours}"));
    loop {
        let event = watch
            .next()
            .await
            .map_err(|error| Failure::cannot_start(chain(&error)))?;
        let event = event.ok_or_else(|| Failure::cannot_start("the desktop stopped"))?;
        match &event {
            Activity::Phase {
                execution_id,
                title,
            } if *execution_id == ours => {
                output.note(format!("phase      {title}"));
            }
            Activity::Log {
                execution_id,
                message,
            } if *execution_id == ours => {
                output.note(format!("log        {message}"));
            }
            Activity::Ended {
                execution_id: Some(id),
                status,
                error,
                ..
            } if *id == ours => {
                return ended(data, ours, *status, error.as_deref(), output).await;
            }
            Activity::Hub { .. }
            | Activity::Accepted { .. }
            | Activity::Started { .. }
            | Activity::Phase { .. }
            | Activity::Log { .. }
            | Activity::Progress { .. }
            | Activity::Ended { .. }
            | Activity::Refused { .. }
            | Activity::Delivered { .. }
            | Activity::Parked { .. }
            | Activity::DiskTrouble { .. }
            | Activity::Halted { .. } => {}
        }
    }
}

async fn ended(
    data: &Path,
    execution_id: String,
    status: RunStatus,
    error: Option<&str>,
    output: &Output,
) -> Result<(), Failure> {
    if let Response::Run(run) = ask(data, Request::RunShow { id: execution_id }).await? {
        output.data(&run, || {
            run.result.iter().map(|raw| raw.get().to_owned()).collect()
        });
    }
    let failed = match (status, error) {
        (RunStatus::Completed, _) => return Ok(()),
        (RunStatus::Failed, Some(error)) => format!("the run failed: {error}"),
        (RunStatus::Cancelled, Some(error)) => format!("the run was cancelled: {error}"),
        (RunStatus::Failed | RunStatus::Running, _) => "the run failed".to_owned(),
        (RunStatus::Cancelled, None) => "the run was cancelled".to_owned(),
    };
    Err(Failure::failed(failed).told())
}

async fn watch(data: &Path, output: &Output) -> Result<(), Failure> {
    let watch = connect(data).await?.watch().await;
    let mut watch = watch.map_err(|error| Failure::cannot_start(chain(&error)))?;
    output.note("watching; ^C ends it");
    while let Some(event) = watch
        .next()
        .await
        .map_err(|error| Failure::failed(chain(&error)))?
    {
        let line = crate::up::line(&event);
        if output.is_json() {
            output.data(&event, Vec::new);
        } else if let Some(line) = line {
            output.line(line);
        }
    }
    Err(Failure::failed("the desktop stopped"))
}

/// `callboard desktop status`.
pub(super) async fn status(data: &Path, output: &Output) -> Result<(), Failure> {
    let Response::Status(status) = ask(data, Request::Status).await? else {
        return Err(Failure::failed("the desktop did not say how it is"));
    };
    output.data(&status, || {
        let name = status
            .name
            .clone()
            .unwrap_or_else(|| "(not known to the hub yet)".to_owned());
        let reach = if status.hub.reachable {
            "reachable"
        } else {
            status.hub.state.as_str()
        };
        let mut lines = vec![
            format!("desktop    {name} · process {}", status.process),
            format!("hub        {} · {reach}", status.hub.url),
            format!("mode       {} ({})", status.mode, status.wake_up),
            format!(
                "slots      {} of {} busy, {} waiting",
                status.busy_slots, status.slots, status.waiting
            ),
            format!(
                "graphs     {} · {} projects enabled",
                status.graphs, status.projects_enabled
            ),
            format!(
                "outbox     {} waiting, {} parked",
                status.outbox_waiting, status.outbox_parked
            ),
            format!(
                "last turn  {}",
                status
                    .last_turn
                    .clone()
                    .unwrap_or_else(|| "none yet".to_owned())
            ),
            format!("data       {}", status.data_dir),
        ];
        if let Some(disk) = &status.disk {
            lines.push(format!(
                "disk       {disk}; no new work is fetched until it is well"
            ));
        }
        lines
    });
    Ok(())
}

/// The first eight characters of an id, enough to tell runs apart.
pub(crate) fn short(id: &str) -> &str {
    // Ids of one minute share their beginning; their end is random.
    id.len()
        .checked_sub(8)
        .and_then(|from| id.get(from..))
        .unwrap_or(id)
}

fn word(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Running => "running",
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "cancelled",
    }
}

fn row(run: &RunSummary) -> Vec<String> {
    let delivery = match &run.delivery {
        None => String::new(),
        Some(delivery) => match (delivery.state, &delivery.reason) {
            (DeliveryState::Waiting, _) => "not delivered yet".to_owned(),
            (DeliveryState::Parked, Some(reason)) => format!("parked: {reason}"),
            (DeliveryState::Parked, None) => "parked".to_owned(),
        },
    };
    let duration = run.duration_ms.map_or_else(String::new, seconds);
    let id = run
        .execution_id
        .clone()
        .or_else(|| run.command_id.clone())
        .unwrap_or_default();
    let origin = run.project.clone().unwrap_or_else(|| "here".to_owned());
    vec![
        run.started_at.clone(),
        word(run.status).to_owned(),
        run.slug.clone(),
        origin,
        duration,
        id,
        delivery,
    ]
}

fn detail(run: &RunDetail) -> Vec<String> {
    let summary = &run.summary;
    let mut lines = vec![
        format!("graph      {}", summary.slug),
        format!("status     {}", word(summary.status)),
        format!("started    {}", summary.started_at),
    ];
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            lines.push(format!("{name:<10} {value}"));
        }
    };
    add("finished", summary.finished_at.clone());
    add("execution", summary.execution_id.clone());
    add("command", summary.command_id.clone());
    add("project", summary.project.clone());
    add(
        "tokens",
        summary.total_tokens.map(|tokens| tokens.to_string()),
    );
    add(
        "cost",
        run.reported_cost
            .map(|cost| format!("{cost} USD, as reported")),
    );
    add(
        "phases",
        (!run.phases.is_empty()).then(|| run.phases.join(" · ")),
    );
    add("error", summary.error.clone());
    add(
        "arguments",
        run.arguments.as_ref().map(|raw| raw.get().to_owned()),
    );
    for log in &run.logs {
        add("log", Some(log.clone()));
    }
    add(
        "result",
        run.result.as_ref().map(|raw| raw.get().to_owned()),
    );
    lines
}

fn seconds(duration_ms: u64) -> String {
    format!("{}.{} s", duration_ms / 1_000, duration_ms % 1_000 / 100)
}
