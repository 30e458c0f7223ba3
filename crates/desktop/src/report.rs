//! What the owner gets to read: rows turned into answers.

use std::collections::BTreeMap;

use callboard_domain::{ProjectId, Timestamp};
use callboard_relay::{HubState, WakeUp};
use callboard_wire::{RawValue, rfc3339};

use crate::activity::RunStatus;
use crate::control::{
    Delivery, DeliveryState, FolderInfo, GraphDetail, GraphInfo, HubReport, ProjectInfo, Refused,
    Response, RunDetail, RunSummary, StatusReport,
};
use crate::daemon::Daemon;
use crate::database::{GraphRow, OutboxRow, RunRow};

/// Most runs in one list.
const RUNS_MAX: usize = 1_000;
/// Shortest beginning or end of an id that names a run.
const PART_CHARS_MIN: usize = 4;

type Answer = Result<Response, Refused>;

/// The hub's state as one phrase.
pub(crate) fn hub_text(hub: &HubState) -> String {
    match hub {
        HubState::Unknown => "not called yet".to_owned(),
        HubState::Reachable => "reachable".to_owned(),
        HubState::Unreachable { reason } => reason.clone(),
        HubState::Unauthorized { reason } => {
            format!("the hub does not accept the device token: {reason}")
        }
        HubState::InUse => callboard_domain::Refusal::DesktopInUse
            .public_text()
            .to_owned(),
        HubState::Failing { status, reason } => {
            format!("the hub answers with HTTP status {status}: {reason}")
        }
    }
}

fn time(at_ms: i64) -> String {
    rfc3339(Timestamp::from_millis(at_ms))
}

impl Daemon {
    pub(crate) fn status(&self) -> Answer {
        let relay = self.relay.status(self.clock.monotonic_ms());
        let (outbox_waiting, outbox_parked) = self.database.outbox_counts()?;
        let projects = self.database.project_rows()?;
        let hub = HubReport {
            url: self.facts.hub_url.clone(),
            reachable: relay.hub == HubState::Reachable,
            state: hub_text(&relay.hub),
            held_ms: relay.held_ms,
        };
        let wake_up = match relay.wake_up {
            WakeUp::Off => "off",
            WakeUp::Held => "held",
            WakeUp::Idle => "idle",
            WakeUp::Reconnecting => "reconnecting",
        };
        let mode = if self.facts.poll_only {
            "poll-only"
        } else {
            "wake-up"
        };
        Ok(Response::Status(Box::new(StatusReport {
            name: self.database.setting("desktop_name")?,
            hub,
            mode: mode.to_owned(),
            wake_up: wake_up.to_owned(),
            slots: self.facts.slots,
            busy_slots: relay.busy_slots,
            waiting: relay.waiting,
            local_runs: self.local_runs.len(),
            graphs: self.database.graphs()?.len(),
            projects_enabled: projects.iter().filter(|project| project.enabled).count(),
            outbox_waiting,
            outbox_parked,
            unsaved_results: relay.disk.as_ref().map_or(0, |trouble| trouble.unsaved),
            disk: relay.disk.map(|trouble| trouble.reason),
            last_turn: relay.last_turn.map(rfc3339),
            data_dir: self.facts.data_dir.display().to_string(),
            worker_id: self.facts.worker_id.clone(),
            process: std::process::id(),
        })))
    }

    pub(crate) fn graph_list(&self) -> Answer {
        let names = self.project_names()?;
        let graphs = self.database.graphs()?;
        let infos: Result<_, Refused> = graphs
            .into_iter()
            .map(|graph| self.graph_info(&graph, &names))
            .collect();
        infos.map(Response::Graphs)
    }

    pub(crate) fn graph_show(&self, slug: &str) -> Answer {
        let graph = self.graph_called(slug)?;
        let info = self.graph_info(&graph, &self.project_names()?)?;
        let source = graph.source;
        Ok(Response::Graph(Box::new(GraphDetail { info, source })))
    }

    fn graph_info(
        &self,
        graph: &GraphRow,
        names: &BTreeMap<ProjectId, String>,
    ) -> Result<GraphInfo, Refused> {
        let shared = self.database.shares_of(graph.graph_session_id)?;
        let name = |id: &ProjectId| names.get(id).cloned().unwrap_or_else(|| id.to_string());
        Ok(GraphInfo {
            graph_session_id: graph.graph_session_id.to_string(),
            slug: graph.slug.clone(),
            name: graph.name.clone(),
            description: graph.description.clone(),
            version: graph.version,
            updated_at: time(graph.updated_at_ms),
            shared_with: shared.iter().map(name).collect(),
        })
    }

    fn project_names(&self) -> Result<BTreeMap<ProjectId, String>, Refused> {
        let projects = self.database.project_rows()?;
        let names = projects.into_iter().map(|row| (row.project_id, row.name));
        Ok(names.collect())
    }

    pub(crate) fn project_list(&self) -> Answer {
        let projects = self.database.project_rows()?;
        let infos: Result<_, Refused> = projects
            .into_iter()
            .map(|project| {
                Ok(ProjectInfo {
                    shared: self.database.shared_count(project.project_id)?,
                    project_id: project.project_id.to_string(),
                    name: project.name,
                    enabled: project.enabled,
                    listed: project.listed,
                    withdrawing: !project.enabled && !project.acknowledged,
                })
            })
            .collect();
        infos.map(Response::Projects)
    }

    pub(crate) fn folder_list(&self) -> Answer {
        let folders = self.database.folders()?;
        let infos = folders.into_iter().map(|(path, granted_at_ms)| FolderInfo {
            path,
            granted_at: time(granted_at_ms),
        });
        Ok(Response::Folders(infos.collect()))
    }

    /// The history, and completions of commands that never began, which only the outbox has.
    pub(crate) fn run_list(&self, limit: usize) -> Answer {
        let limit = limit.min(RUNS_MAX);
        let names = self.project_names()?;
        let outbox = self.database.outbox_rows()?;
        let owed: BTreeMap<_, _> = outbox.iter().map(|row| (row.command_id, row)).collect();
        let rows = self.database.runs(limit)?;
        let unbegun = outbox.iter().rev().filter(|row| row.execution_id.is_none());
        let mut runs: Vec<_> = unbegun.map(unbegun_summary).collect();
        runs.extend(rows.iter().map(|row| {
            let owed = row.command_id.and_then(|id| owed.get(&id).copied());
            summary(row, &names, owed)
        }));
        runs.sort_by(|a, b| b.started_at.cmp(&a.started_at));
        runs.truncate(limit);
        Ok(Response::Runs(runs))
    }

    pub(crate) fn run_show(&self, id: &str) -> Answer {
        let run = self.run_called(id)?;
        let row = self.database.execution(run.execution_id)?;
        let names = self.project_names()?;
        let owed = match run.command_id {
            Some(id) => self.database.outbox_row(id)?,
            None => None,
        };
        let raw = |text: String| RawValue::from_string(text).ok();
        let (phases, logs, progress) = match self.engine.live(run.execution_id) {
            Some(live) => (live.phases, live.logs, live.progress),
            None => (row.phases, row.logs, None),
        };
        Ok(Response::Run(Box::new(RunDetail {
            summary: summary(&run, &names, owed.as_ref()),
            channel: row.channel,
            arguments: raw(row.arguments),
            result: row.result.and_then(raw),
            reported_cost: row.reported_cost,
            phase: phases.last().cloned(),
            progress,
            phases,
            logs,
        })))
    }

    /// A run by its execution or command, or by the beginning or end of either: ids of one day
    /// begin alike, so an end is what is shown where there is little room.
    pub(crate) fn run_called(&self, id: &str) -> Result<RunRow, Refused> {
        let id = id.to_ascii_lowercase();
        let shown = callboard_domain::cut_utf16(&id, 100);
        if let Some(row) = self.database.run(&id)? {
            return Ok(row);
        }
        let mut rows = if id.len() < PART_CHARS_MIN {
            Vec::new()
        } else {
            self.database.runs_like(&id)?
        };
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(row),
            (Some(_), false) => {
                let message = format!("several runs begin or end with \"{shown}\"");
                Err(Refused::new(message).hint("give more of the id, see `callboard runs list`"))
            }
            (None, _) => Err(Refused::new(format!("no run here has the id \"{shown}\""))
                .hint("see `callboard runs list`")),
        }
    }
}

fn summary(
    row: &RunRow,
    names: &BTreeMap<ProjectId, String>,
    owed: Option<&OutboxRow>,
) -> RunSummary {
    let duration_ms = row
        .finished_at_ms
        .map(|finished_ms| u64::try_from(finished_ms - row.started_at_ms).unwrap_or(0));
    RunSummary {
        execution_id: Some(row.execution_id.to_string()),
        command_id: row.command_id.map(|id| id.to_string()),
        slug: row.slug.clone(),
        version: row.version,
        project: row
            .project_id
            .map(|id| names.get(&id).cloned().unwrap_or_else(|| id.to_string())),
        status: match row.state.as_str() {
            "running" => RunStatus::Running,
            "completed" => RunStatus::Completed,
            "cancelled" => RunStatus::Cancelled,
            _ => RunStatus::Failed,
        },
        started_at: time(row.started_at_ms),
        finished_at: row.finished_at_ms.map(time),
        duration_ms,
        total_tokens: row.total_tokens,
        error: row.error.clone(),
        delivery: owed.map(delivery),
    }
}

/// A command that ended before it began, because consent was gone.
fn unbegun_summary(row: &OutboxRow) -> RunSummary {
    let at = time(row.created_at_ms);
    RunSummary {
        execution_id: None,
        command_id: Some(row.command_id.to_string()),
        slug: row.slug.clone(),
        version: None,
        project: None,
        status: RunStatus::Cancelled,
        started_at: at.clone(),
        finished_at: Some(at),
        duration_ms: None,
        total_tokens: None,
        error: Some(callboard_domain::limits::NO_LONGER_SHARED.to_owned()),
        delivery: Some(delivery(row)),
    }
}

fn delivery(row: &OutboxRow) -> Delivery {
    let state = match row.parked_reason {
        Some(_) => DeliveryState::Parked,
        None => DeliveryState::Waiting,
    };
    Delivery {
        state,
        reason: row.parked_reason.clone(),
    }
}
