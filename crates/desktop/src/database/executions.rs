//! The history of runs, from the hub or from here, with everything the engine said.

use callboard_domain::limits::DESKTOP_RESTARTED;
use callboard_domain::{CommandId, ExecutionId, FinalStatus, GraphSessionId, ProjectId, Report};
use callboard_relay::Command;
use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use super::{Database, Result, parsed, parsed_or_null, signed, unsigned_or_null};

/// Most finished runs that the history keeps.
const HISTORY_MAX: i64 = 10_000;

/// What the engine left of a run: all of it, while the hub may get it cut.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) report: Report,
    pub(crate) phases: Vec<String>,
    pub(crate) logs: Vec<String>,
}

/// One run in the history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExecutionRow {
    pub(crate) execution_id: ExecutionId,
    pub(crate) command_id: Option<CommandId>,
    pub(crate) channel: String,
    pub(crate) project_id: Option<ProjectId>,
    pub(crate) slug: String,
    pub(crate) version: Option<u64>,
    pub(crate) arguments: String,
    pub(crate) state: String,
    pub(crate) started_at_ms: i64,
    pub(crate) finished_at_ms: Option<i64>,
    pub(crate) result: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) total_tokens: Option<u64>,
    pub(crate) reported_cost: Option<f64>,
    pub(crate) phases: Vec<String>,
    pub(crate) logs: Vec<String>,
}

/// A run that the owner starts here.
#[derive(Debug, Clone)]
pub(crate) struct NewLocalRun {
    pub(crate) execution_id: ExecutionId,
    pub(crate) graph_session_id: GraphSessionId,
    pub(crate) slug: String,
    pub(crate) version: u64,
    pub(crate) arguments: String,
}

const COLUMNS: &str = "execution_id, command_id, channel, project_id, slug, version, arguments,
    state, started_at_ms, finished_at_ms, result, error, total_tokens, reported_cost, phases, logs
    FROM executions";

fn execution(row: &Row<'_>) -> Result<ExecutionRow> {
    let texts = |index| -> Result<Vec<String>> {
        let json: String = row.get(index)?;
        Ok(serde_json::from_str(&json).unwrap_or_default())
    };
    Ok(ExecutionRow {
        execution_id: parsed(row, 0)?,
        command_id: parsed_or_null(row, 1)?,
        channel: row.get(2)?,
        project_id: parsed_or_null(row, 3)?,
        slug: row.get(4)?,
        version: unsigned_or_null(row, 5)?,
        arguments: row.get(6)?,
        state: row.get(7)?,
        started_at_ms: row.get(8)?,
        finished_at_ms: row.get(9)?,
        result: row.get(10)?,
        error: row.get(11)?,
        total_tokens: unsigned_or_null(row, 12)?,
        reported_cost: row.get(13)?,
        phases: texts(14)?,
        logs: texts(15)?,
    })
}

impl Database {
    /// The newest runs first.
    pub(crate) fn executions(&self, limit: usize) -> Result<Vec<ExecutionRow>> {
        self.connection
            .prepare_cached(&format!("SELECT {COLUMNS} ORDER BY sequence DESC LIMIT ?1"))?
            .query_map([i64::try_from(limit).unwrap_or(i64::MAX)], execution)?
            .collect()
    }

    /// One run, by its execution or its command.
    pub(crate) fn execution(&self, id: &str) -> Result<Option<ExecutionRow>> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} WHERE execution_id = ?1 OR command_id = ?1"
            ))?
            .query_row([id], execution)
            .optional()
    }

    /// Runs whose id begins with `prefix`, at most two: enough to tell that one is meant.
    pub(crate) fn executions_like(&self, prefix: &str) -> Result<Vec<ExecutionRow>> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {COLUMNS} WHERE substr(execution_id, 1, length(?1)) = ?1
                    OR substr(command_id, 1, length(?1)) = ?1 LIMIT 2"
            ))?
            .query_map([prefix], execution)?
            .collect()
    }

    /// Notes that a run was started here.
    pub(crate) fn begin_local_run(&self, run: &NewLocalRun, now_ms: i64) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO executions (execution_id, channel, graph_session_id, slug, version,
                                         arguments, state, started_at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'running', ?7)",
            )?
            .execute(params![
                run.execution_id.to_string(),
                format!("graph:local:{}", run.execution_id),
                run.graph_session_id.to_string(),
                run.slug,
                signed(run.version),
                run.arguments,
                now_ms
            ])?;
        Ok(())
    }

    /// Notes how it ended.
    pub(crate) fn end_local_run(
        &mut self,
        id: ExecutionId,
        status: FinalStatus,
        record: &Record,
        now_ms: i64,
    ) -> Result<()> {
        let transaction = self.connection.transaction()?;
        end_row(
            &transaction,
            id,
            status,
            &record.report,
            Some(record),
            now_ms,
        )?;
        transaction.commit()
    }

    /// Runs that were started here and were cut off by a crash; those of the hub are the relay's.
    pub(crate) fn fail_cut_off_local_runs(&self, now_ms: i64) -> Result<usize> {
        self.connection
            .prepare_cached(
                "UPDATE executions SET state = 'failed', error = ?1, finished_at_ms = ?2
                 WHERE state = 'running' AND command_id IS NULL",
            )?
            .execute(params![DESKTOP_RESTARTED, now_ms])
    }

    /// Drops the oldest finished runs beyond [`HISTORY_MAX`].
    pub(crate) fn prune_history(&self) -> Result<usize> {
        self.connection
            .prepare_cached(
                "DELETE FROM executions WHERE state <> 'running'
                   AND sequence <= (SELECT max(sequence) FROM executions) - ?1",
            )?
            .execute([HISTORY_MAX])
    }
}

/// The row of a run from outside. Its channel and project are written together, and only for a
/// command whose id is a UUID, which [`CommandId`] guarantees.
pub(super) fn begin_row(
    transaction: &Transaction<'_>,
    command: &Command,
    execution_id: ExecutionId,
    now_ms: i64,
) -> Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO executions (execution_id, command_id, channel, project_id,
                                     graph_session_id, slug, version, arguments, state,
                                     started_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6,
                     (SELECT version FROM graphs WHERE graph_session_id = ?5),
                     coalesce((SELECT arguments FROM seen_commands WHERE command_id = ?2), '{}'),
                     'running', ?7)",
        )?
        .execute(params![
            execution_id.to_string(),
            command.id.to_string(),
            format!("graph:external:{}", command.id),
            command.project_id.to_string(),
            command.graph_session_id.to_string(),
            command.slug,
            now_ms
        ])?;
    Ok(())
}

/// Ends a run in the history with the engine's whole record; without one, with what was reported.
pub(super) fn end_row(
    transaction: &Transaction<'_>,
    id: ExecutionId,
    status: FinalStatus,
    reported: &Report,
    record: Option<&Record>,
    now_ms: i64,
) -> Result<()> {
    let nothing = Record::default();
    let record_or_nothing = record.unwrap_or(&nothing);
    let report = record.map_or(reported, |record| &record.report);
    let json = |texts: &[String]| serde_json::to_string(texts).unwrap_or_else(|_| "[]".into());
    transaction
        .prepare_cached(
            "UPDATE executions
             SET state = ?2, finished_at_ms = ?3, result = ?4, error = ?5, total_tokens = ?6,
                 reported_cost = ?7, phases = ?8, logs = ?9
             WHERE execution_id = ?1",
        )?
        .execute(params![
            id.to_string(),
            status.as_str(),
            now_ms,
            report.result,
            report.error.as_ref().or(reported.error.as_ref()),
            report.total_tokens.map(signed),
            report.reported_cost,
            json(&record_or_nothing.phases),
            json(&record_or_nothing.logs)
        ])?;
    Ok(())
}
