//! The Graph tools: what a connection can list, start, read and cancel.

use callboard_domain::graph_run::Status;
use callboard_domain::limits::{
    FIRST_CHECK_SECONDS, LIST_LIMIT_MAX, NOBODY_STARTED, THEN_EVERY_SECONDS, WAIT_SECONDS_MAX,
};
use callboard_domain::{CommandId, Digest, GraphSessionId, ProjectId, Refusal};
use callboard_store::{Connection, QueueRun, RunKey, RunRow, SessionRow, Store};
use callboard_wire::relay::ProjectInfo;
use callboard_wire::tools::{
    cancel_graph_run, get_graph_run, list_graph_sessions, list_projects, run_graph_session,
};
use callboard_wire::{RawValue, canonical_json, rfc3339};
use serde_json::{Map, Value};

use crate::{Hold, Hub, HubError, Patience, Reply, Topic};

impl<S: Store> Hub<S> {
    /// `list_projects`: the projects that this connection was added to.
    pub fn list_projects(&self, caller: &Connection) -> list_projects::Answer {
        let info = |project: &callboard_store::Project| ProjectInfo {
            project_id: project.id,
            name: project.name.clone(),
        };
        list_projects::Answer {
            projects: caller.projects.iter().map(info).collect(),
        }
    }

    /// `list_graph_sessions`: what the last syncs uploaded for a project.
    ///
    /// # Errors
    /// [`Refusal::ProjectNotFound`] for a project that the connection may not see, a malformed id
    /// included.
    pub async fn list_graph_sessions(
        &self,
        caller: &Connection,
        project_id: &str,
        limit: Option<u64>,
    ) -> Result<list_graph_sessions::Answer, HubError> {
        let project_id = project_id.parse().unwrap_or(ProjectId::UNKNOWN);
        let limit = limit.unwrap_or(LIST_LIMIT_MAX).min(LIST_LIMIT_MAX);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let rows = self.store.sessions(caller.id, project_id, limit).await?;
        let rows = rows.ok_or(Refusal::ProjectNotFound)?;
        let sessions = rows.into_iter().map(|row| self.session(row)).collect();
        Ok(list_graph_sessions::Answer {
            project_id,
            sessions,
        })
    }

    fn session(&self, row: SessionRow) -> list_graph_sessions::Session {
        let stored = row.desktop_last_seen_at;
        let last_seen_at = self
            .presence
            .last_seen_at(row.desktop_id, stored)
            .map(rfc3339);
        let desktop = list_graph_sessions::Desktop {
            name: row.desktop_name,
            online: self.presence.is_online(row.desktop_id, stored),
            last_seen_at,
        };
        list_graph_sessions::Session {
            session: row.session,
            desktop,
        }
    }

    /// `run_graph_session`: queues a run, or finds the one of the same key.
    ///
    /// # Errors
    /// [`Refusal::KeyReused`]; [`Refusal::SessionNotFound`], for a malformed id too.
    pub async fn run_graph_session(
        &self,
        caller: &Connection,
        graph_session_id: &str,
        arguments: Map<String, Value>,
        idempotency_key: &str,
    ) -> Result<run_graph_session::Answer, HubError> {
        // The key comes first: a malformed session under a known key is another request, too.
        let asked_for = graph_session_id.as_bytes();
        let graph_session_id = graph_session_id.parse().unwrap_or(GraphSessionId::UNKNOWN);
        let (arguments, now) = (Value::Object(arguments), self.clock.now());
        let canonical = canonical_json(&arguments);
        let request = QueueRun {
            command_id: CommandId::from_bytes(self.entropy.uuid_v7(now)),
            connection_id: caller.id,
            graph_session_id,
            idempotency_key: idempotency_key.to_owned(),
            request: Digest::of(&[asked_for, canonical.as_bytes()]),
            arguments: arguments.to_string(),
            now,
        };
        let queued = self.store.queue_run(request).await?;
        let row = queued.row;
        // A replay signals, too: the first answer may have got lost before its signal.
        self.signals
            .moved(Topic::Work(row.desktop_id, row.project_id));
        if !queued.replayed {
            tracing::info!(command.id = %row.command_id, "queued");
        }
        let at_once = self.presence.is_woken_at_once(row.desktop_id);
        Ok(run_graph_session::Answer {
            command_id: row.command_id,
            status: row.run.status().to_string(),
            read_with: "get_graph_run".to_owned(),
            first_check_after_seconds: if at_once { 0 } else { FIRST_CHECK_SECONDS },
            then_every_seconds: THEN_EVERY_SECONDS,
        })
    }

    /// `get_graph_run`: how a run stands. With `wait_seconds`, holds until its status is another
    /// one than `seen_status`, or than at the beginning of the call; the shell hands back the
    /// `patience` of the last [`Hold`].
    ///
    /// # Errors
    /// [`Refusal::RunNotFound`] for whatever is not this connection's run.
    pub async fn get_graph_run(
        &self,
        caller: &Connection,
        command_id: &str,
        wait_seconds: u64,
        seen_status: Option<&str>,
        patience: Option<Patience>,
    ) -> Result<Reply<get_graph_run::Answer>, HubError> {
        let key = run_key(caller, command_id);
        let watch = self.signals.watch(Topic::Run(key.command_id));
        let row = self
            .store
            .run(key, self.clock.now())
            .await?
            .ok_or(Refusal::RunNotFound)?;
        let (status, now_ms) = (row.run.status(), self.clock.monotonic_ms());
        let wait_ms = wait_seconds.min(WAIT_SECONDS_MAX) * 1_000;
        let patience = patience.unwrap_or_else(|| Patience {
            deadline_ms: now_ms.saturating_add(wait_ms),
            first_seen: Some(seen_status.unwrap_or(status.as_str()).to_owned()),
        });
        let changed = patience.first_seen.as_deref() != Some(status.as_str());
        if changed || status.is_terminal() || now_ms >= patience.deadline_ms {
            return Ok(Reply::Done(self.run_answer(row)?));
        }
        Ok(Reply::Hold(Hold {
            watches: vec![watch],
            patience,
        }))
    }

    fn run_answer(&self, row: RunRow) -> Result<get_graph_run::Answer, HubError> {
        let (run, status) = (&row.run, row.run.status());
        let report = run.end().map(|end| end.report.clone()).unwrap_or_default();
        let expired = status == Status::Expired;
        let error = report
            .error
            .or_else(|| expired.then(|| NOBODY_STARTED.to_owned()));
        let result = report.result.map(RawValue::from_string).transpose().map_err(|error| {
            tracing::error!(command.id = %row.command_id, %error, "a stored result is not JSON");
            HubError::Unavailable
        })?;
        let running = status == Status::Running;
        let stored = row.desktop_last_seen_at;
        Ok(get_graph_run::Answer {
            command_id: row.command_id,
            status: status.to_string(),
            phase: row.phase.filter(|_| running),
            progress: row.progress.filter(|_| running),
            queued_at: rfc3339(run.queued_at),
            started_at: run
                .execution()
                .map(|execution| rfc3339(execution.started_at)),
            finished_at: run.finished_at().map(rfc3339),
            desktop: get_graph_run::Desktop {
                online: self.presence.is_online(row.desktop_id, stored),
                last_seen_at: self
                    .presence
                    .last_seen_at(row.desktop_id, stored)
                    .map(rfc3339),
            },
            cancel_requested: run.cancel_requested(),
            execution_id: run.execution().map(|execution| execution.id),
            result,
            result_truncated: report.result_truncated,
            error,
            total_tokens: report.total_tokens,
            reported_cost: report.reported_cost,
            next_check_after_seconds: (!status.is_terminal()).then_some(THEN_EVERY_SECONDS),
        })
    }

    /// `cancel_graph_run`: ends a queued run at once, asks a running one to stop; idempotent.
    ///
    /// # Errors
    /// [`Refusal::RunNotFound`] for whatever is not this connection's run.
    pub async fn cancel_graph_run(
        &self,
        caller: &Connection,
        command_id: &str,
    ) -> Result<cancel_graph_run::Answer, HubError> {
        let key = run_key(caller, command_id);
        let row = self.store.request_cancel(key, self.clock.now()).await?;
        self.signals.moved(Topic::Run(row.command_id));
        self.signals
            .moved(Topic::Work(row.desktop_id, row.project_id));
        Ok(cancel_graph_run::Answer {
            command_id: row.command_id,
            status: row.run.status().to_string(),
            cancel_requested: row.run.cancel_requested(),
        })
    }
}

fn run_key(caller: &Connection, command_id: &str) -> RunKey {
    RunKey {
        connection_id: caller.id,
        command_id: command_id.parse().unwrap_or(CommandId::UNKNOWN),
    }
}
