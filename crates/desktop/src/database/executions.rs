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

/// One run in a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunRow {
    pub(crate) execution_id: ExecutionId,
    pub(crate) command_id: Option<CommandId>,
    pub(crate) project_id: Option<ProjectId>,
    pub(crate) slug: String,
    pub(crate) version: Option<u64>,
    pub(crate) state: String,
    pub(crate) started_at_ms: i64,
    pub(crate) finished_at_ms: Option<i64>,
    pub(crate) error: Option<String>,
    pub(crate) total_tokens: Option<u64>,
}

/// What a list leaves out, because it may be long.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExecutionRow {
    pub(crate) channel: String,
    pub(crate) arguments: String,
    pub(crate) result: Option<String>,
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

const RUN_COLUMNS: &str = "execution_id, command_id, project_id, slug, version, state,
    started_at_ms, finished_at_ms, error, total_tokens FROM executions";

fn run(row: &Row<'_>) -> Result<RunRow> {
    Ok(RunRow {
        execution_id: parsed(row, 0)?,
        command_id: parsed_or_null(row, 1)?,
        project_id: parsed_or_null(row, 2)?,
        slug: row.get(3)?,
        version: unsigned_or_null(row, 4)?,
        state: row.get(5)?,
        started_at_ms: row.get(6)?,
        finished_at_ms: row.get(7)?,
        error: row.get(8)?,
        total_tokens: unsigned_or_null(row, 9)?,
    })
}

fn execution(row: &Row<'_>) -> Result<ExecutionRow> {
    let texts = |index| -> Result<Vec<String>> {
        let json: String = row.get(index)?;
        Ok(serde_json::from_str(&json).unwrap_or_default())
    };
    Ok(ExecutionRow {
        channel: row.get(0)?,
        arguments: row.get(1)?,
        result: row.get(2)?,
        reported_cost: row.get(3)?,
        phases: texts(4)?,
        logs: texts(5)?,
    })
}

impl Database {
    /// The newest runs first.
    pub(crate) fn runs(&self, limit: usize) -> Result<Vec<RunRow>> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {RUN_COLUMNS} ORDER BY sequence DESC LIMIT ?1"
            ))?
            .query_map([i64::try_from(limit).unwrap_or(i64::MAX)], run)?
            .collect()
    }

    /// One run, by its execution or its command.
    pub(crate) fn run(&self, id: &str) -> Result<Option<RunRow>> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {RUN_COLUMNS} WHERE execution_id = ?1 OR command_id = ?1"
            ))?
            .query_row([id], run)
            .optional()
    }

    /// Runs whose id begins or ends with `part`, at most two: enough to tell that one is meant.
    pub(crate) fn runs_like(&self, part: &str) -> Result<Vec<RunRow>> {
        self.connection
            .prepare_cached(&format!(
                "SELECT {RUN_COLUMNS}
                 WHERE ?1 IN (substr(execution_id, 1, length(?1)),
                              substr(execution_id, -length(?1)),
                              substr(command_id, 1, length(?1)),
                              substr(command_id, -length(?1)))
                 LIMIT 2"
            ))?
            .query_map([part], run)?
            .collect()
    }

    /// The rest of one run.
    pub(crate) fn execution(&self, id: ExecutionId) -> Result<ExecutionRow> {
        self.connection
            .prepare_cached(
                "SELECT channel, arguments, result, reported_cost, phases, logs FROM executions
                 WHERE execution_id = ?1",
            )?
            .query_row([id.to_string()], execution)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(database: &Database, id: &str) -> ExecutionId {
        let run = NewLocalRun {
            execution_id: id.parse().unwrap(),
            graph_session_id: GraphSessionId::from_bytes([1; 16]),
            slug: "echo".into(),
            version: 1,
            arguments: "{}".into(),
        };
        database.begin_local_run(&run, 0).unwrap();
        run.execution_id
    }

    #[test]
    fn a_part_of_an_id_is_its_beginning_or_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("desktop.db")).unwrap();
        let first = stored(&database, "01890a5d-ac96-774b-bcce-b302099a8057");
        let second = stored(&database, "01890a5d-ac96-774b-bcce-0000099a8157");
        let like = |part: &str| -> Vec<_> {
            let rows = database.runs_like(part).unwrap();
            rows.into_iter().map(|row| row.execution_id).collect()
        };
        assert_eq!(like("099a8057"), [first]);
        assert_eq!(like("099a8157"), [second]);
        assert_eq!(like("01890a5d-ac96-774b-bcce-b"), [first]);
        assert_eq!(like("01890a5d").len(), 2);
        assert_eq!(like("774b"), [], "not from the middle");
    }

    #[test]
    fn a_list_of_runs_reads_nothing_that_may_be_long() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("desktop.db")).unwrap();
        let id = stored(&database, "01890a5d-ac96-774b-bcce-b302099a8057");
        // Text that cannot be read shows who reads it.
        database
            .connection
            .execute_batch(
                "UPDATE executions SET arguments = CAST(x'ff' AS TEXT),
                     result = CAST(x'ff' AS TEXT), phases = CAST(x'ff' AS TEXT),
                     logs = CAST(x'ff' AS TEXT);
                 INSERT INTO outbox (command_id, slug, body, created_at_ms)
                 VALUES ('01890a5d-ac96-774b-bcce-b302099a8057', 'echo', CAST(x'ff' AS TEXT), 0);",
            )
            .unwrap();
        assert_eq!(database.runs(10).unwrap().len(), 1);
        assert_eq!(database.runs_like("099a8057").unwrap().len(), 1);
        assert_eq!(database.outbox_rows().unwrap().len(), 1);
        assert!(database.execution(id).is_err());
    }
}
