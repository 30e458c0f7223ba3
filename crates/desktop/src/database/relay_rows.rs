//! What the relay must find again after a crash: commands it took up, completions it owes.

use callboard_domain::graph_run::Completion;
use callboard_domain::{CommandId, Consent, ExecutionId, Grant, GraphSessionId, Refusal};
use callboard_relay::{Command, Seen, Unfinished};
use callboard_wire::relay::CompleteRequest;
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::executions::{Record, begin_row, end_row};
use super::{Database, Result, parsed, parsed_or_null, unsigned};

/// Rows of `seen_commands` that are over and older than this are forgotten: the hub lets a queued
/// command expire after 7 days, so it cannot hand out one from then.
const FORGET_AFTER_MS: i64 = 60 * 24 * 3_600_000;

/// A completion that the hub has not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutboxRow {
    pub(crate) command_id: CommandId,
    pub(crate) execution_id: Option<ExecutionId>,
    pub(crate) slug: String,
    pub(crate) created_at_ms: i64,
    pub(crate) parked_reason: Option<String>,
}

const OUTBOX_COLUMNS: &str =
    "command_id, execution_id, slug, created_at_ms, parked_reason FROM outbox";

fn outbox_row(row: &rusqlite::Row<'_>) -> Result<OutboxRow> {
    Ok(OutboxRow {
        command_id: parsed(row, 0)?,
        execution_id: parsed_or_null(row, 1)?,
        slug: row.get(2)?,
        created_at_ms: row.get(3)?,
        parked_reason: row.get(4)?,
    })
}

impl Database {
    /// See [`callboard_relay::Output::RecordStarting`]. A command that is known is an error.
    pub(crate) fn record_starting(
        &self,
        command: &Command,
        arguments: &str,
        execution_id: ExecutionId,
        now_ms: i64,
    ) -> Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO seen_commands (command_id, project_id, graph_session_id, slug,
                                            arguments, state, execution_id, updated_at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, 'starting', ?6, ?7)",
            )?
            .execute(params![
                command.id.to_string(),
                command.project_id.to_string(),
                command.graph_session_id.to_string(),
                command.slug,
                arguments,
                execution_id.to_string(),
                now_ms
            ])?;
        Ok(())
    }

    /// See [`callboard_relay::Output::RecordRunning`]: consent is read and used in one
    /// transaction, by the thread through which every change of it goes.
    pub(crate) fn record_running(
        &mut self,
        command: &Command,
        execution_id: ExecutionId,
        now_ms: i64,
    ) -> Result<Grant> {
        let transaction = self.connection.transaction()?;
        let grant = consent(&transaction, command)?.grant();
        if grant == Grant::Withdrawn {
            return Ok(grant);
        }
        transaction
            .prepare_cached(
                "UPDATE seen_commands SET state = 'running', updated_at_ms = ?2
                 WHERE command_id = ?1",
            )?
            .execute(params![command.id.to_string(), now_ms])?;
        begin_row(&transaction, command, execution_id, now_ms)?;
        transaction.commit()?;
        Ok(grant)
    }

    /// See [`callboard_relay::Output::RecordDone`]. `record` is what the engine left of it.
    pub(crate) fn record_done(
        &mut self,
        command: &Command,
        completion: &Completion,
        record: Option<&Record>,
        now_ms: i64,
    ) -> Result<()> {
        let body = CompleteRequest::try_from(completion)
            .and_then(|request| serde_json::to_string(&request))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let execution_id = completion.execution_id.map(|id| id.to_string());
        let transaction = self.connection.transaction()?;
        if completion.execution_id.is_some() {
            begin_row_if_none(&transaction, command, completion, now_ms)?;
        }
        set_done(&transaction, command, execution_id.as_deref(), now_ms)?;
        transaction
            .prepare_cached(
                "INSERT INTO outbox (command_id, execution_id, slug, body, created_at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                command.id.to_string(),
                execution_id,
                command.slug,
                body,
                now_ms
            ])?;
        if let Some(id) = completion.execution_id {
            end_row(
                &transaction,
                id,
                completion.status,
                &completion.report,
                record,
                now_ms,
            )?;
        }
        transaction.commit()
    }

    /// See [`callboard_relay::Output::RecordRefused`].
    pub(crate) fn record_refused(&mut self, command: &Command, now_ms: i64) -> Result<()> {
        let transaction = self.connection.transaction()?;
        set_done(&transaction, command, None, now_ms)?;
        transaction.commit()
    }

    /// See [`callboard_relay::Output::DeleteCompletion`].
    pub(crate) fn delete_completion(&self, id: CommandId) -> Result<()> {
        self.connection
            .prepare_cached("DELETE FROM outbox WHERE command_id = ?1")?
            .execute([id.to_string()])?;
        Ok(())
    }

    /// See [`callboard_relay::Output::ParkCompletion`].
    pub(crate) fn park_completion(&self, id: CommandId, refusal: Refusal) -> Result<()> {
        self.connection
            .prepare_cached("UPDATE outbox SET parked_reason = ?2 WHERE command_id = ?1")?
            .execute(params![id.to_string(), refusal.public_text()])?;
        Ok(())
    }

    /// Forgets commands that can never come again.
    pub(crate) fn forget_old_commands(&self, now_ms: i64) -> Result<usize> {
        self.connection
            .prepare_cached(
                "DELETE FROM seen_commands
                 WHERE state = 'done' AND updated_at_ms < ?1
                   AND command_id NOT IN (SELECT command_id FROM outbox)",
            )?
            .execute([now_ms - FORGET_AFTER_MS])
    }

    pub(super) fn seen_row(&self, id: CommandId) -> Result<Option<Seen>> {
        let row = self
            .connection
            .prepare_cached("SELECT state, execution_id FROM seen_commands WHERE command_id = ?1")?
            .query_row([id.to_string()], |row| {
                Ok((row.get::<_, String>(0)?, parsed_or_null(row, 1)?))
            })
            .optional()?;
        Ok(row.map(
            |(state, execution_id)| match (state.as_str(), execution_id) {
                ("starting", Some(id)) => Seen::Starting(id),
                ("running", Some(id)) => Seen::Running(id),
                (_, _) => Seen::Done,
            },
        ))
    }

    /// All commands that are not over, oldest first.
    pub(crate) fn unfinished_rows(&self) -> Result<Vec<Unfinished>> {
        self.connection
            .prepare_cached(
                "SELECT command_id, project_id, graph_session_id, slug, execution_id, state
                 FROM seen_commands WHERE state <> 'done' ORDER BY sequence",
            )?
            .query_map([], |row| {
                let command = Command {
                    id: parsed(row, 0)?,
                    project_id: parsed(row, 1)?,
                    graph_session_id: parsed(row, 2)?,
                    slug: row.get(3)?,
                };
                Ok(Unfinished {
                    command,
                    execution_id: parsed(row, 4)?,
                    running: row.get::<_, String>(5)? == "running",
                })
            })?
            .collect()
    }

    /// The session and arguments of a command that is about to run.
    pub(crate) fn work_of(&self, id: CommandId) -> Result<Option<(GraphSessionId, String)>> {
        self.connection
            .prepare_cached(
                "SELECT graph_session_id, coalesce(arguments, '') FROM seen_commands
                 WHERE command_id = ?1",
            )?
            .query_row([id.to_string()], |row| Ok((parsed(row, 0)?, row.get(1)?)))
            .optional()
    }

    pub(super) fn outbox_ids(&self) -> Result<Vec<CommandId>> {
        self.connection
            .prepare_cached(
                "SELECT command_id FROM outbox WHERE parked_reason IS NULL ORDER BY sequence",
            )?
            .query_map([], |row| parsed(row, 0))?
            .collect()
    }

    /// The whole outbox without its bodies, oldest first.
    pub(crate) fn outbox_rows(&self) -> Result<Vec<OutboxRow>> {
        self.connection
            .prepare_cached(&format!("SELECT {OUTBOX_COLUMNS} ORDER BY sequence"))?
            .query_map([], outbox_row)?
            .collect()
    }

    /// The entry of one command, without its body.
    pub(crate) fn outbox_row(&self, id: CommandId) -> Result<Option<OutboxRow>> {
        self.connection
            .prepare_cached(&format!("SELECT {OUTBOX_COLUMNS} WHERE command_id = ?1"))?
            .query_row([id.to_string()], outbox_row)
            .optional()
    }

    /// The body that the outbox holds for a command.
    pub(crate) fn outbox_body(&self, id: CommandId) -> Result<Option<String>> {
        self.connection
            .prepare_cached("SELECT body FROM outbox WHERE command_id = ?1")?
            .query_row([id.to_string()], |row| row.get(0))
            .optional()
    }

    pub(super) fn consent_of(&self, command: &Command) -> Result<Consent> {
        consent(&self.connection, command)
    }

    /// Entries that wait for the hub, and parked ones.
    pub(crate) fn outbox_counts(&self) -> Result<(u64, u64)> {
        self.connection
            .prepare_cached(
                "SELECT count(*) FILTER (WHERE parked_reason IS NULL),
                        count(*) FILTER (WHERE parked_reason IS NOT NULL) FROM outbox",
            )?
            .query_row([], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?)))
    }
}

/// What the owner agrees to, read where the caller's transaction is.
fn consent(connection: &rusqlite::Connection, command: &Command) -> Result<Consent> {
    let project_id = command.project_id.to_string();
    let session_id = command.graph_session_id.to_string();
    let project_enabled = connection
        .prepare_cached("SELECT enabled FROM projects WHERE project_id = ?1")?
        .query_row([&project_id], |row| row.get(0))
        .optional()?
        .unwrap_or(false);
    let session_shared = connection
        .prepare_cached("SELECT 1 FROM shares WHERE project_id = ?1 AND graph_session_id = ?2")?
        .exists(params![project_id, session_id])?;
    let slug: Option<String> = connection
        .prepare_cached("SELECT slug FROM graphs WHERE graph_session_id = ?1")?
        .query_row([&session_id], |row| row.get(0))
        .optional()?;
    Ok(Consent {
        project_enabled,
        session_shared,
        slug_unchanged: slug.as_deref() == Some(command.slug.as_str()),
    })
}

fn set_done(
    transaction: &Transaction<'_>,
    command: &Command,
    execution_id: Option<&str>,
    now_ms: i64,
) -> Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO seen_commands (command_id, project_id, graph_session_id, slug, state,
                                        execution_id, updated_at_ms)
             VALUES (?1, ?2, ?3, ?4, 'done', ?5, ?6)
             ON CONFLICT (command_id) DO UPDATE
             SET state = 'done', arguments = NULL, updated_at_ms = excluded.updated_at_ms",
        )?
        .execute(params![
            command.id.to_string(),
            command.project_id.to_string(),
            command.graph_session_id.to_string(),
            command.slug,
            execution_id,
            now_ms
        ])?;
    Ok(())
}

/// A command that was granted but never reached the engine still appears in the history.
fn begin_row_if_none(
    transaction: &Transaction<'_>,
    command: &Command,
    completion: &Completion,
    now_ms: i64,
) -> Result<()> {
    let Some(id) = completion.execution_id else {
        return Ok(());
    };
    let begun = transaction
        .prepare_cached("SELECT 1 FROM executions WHERE execution_id = ?1")?
        .exists([id.to_string()])?;
    if begun {
        return Ok(());
    }
    begin_row(transaction, command, id, now_ms)
}

#[cfg(test)]
mod tests {
    use callboard_domain::{FinalStatus, ProjectId, Report};

    use super::*;

    const EXECUTION: ExecutionId = ExecutionId::from_bytes([2; 16]);

    fn command() -> Command {
        Command {
            id: CommandId::from_bytes([1; 16]),
            project_id: ProjectId::from_bytes([3; 16]),
            graph_session_id: GraphSessionId::from_bytes([4; 16]),
            slug: "echo".into(),
        }
    }

    #[test]
    fn on_a_full_disk_nothing_of_a_completion_is_stored_and_later_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut database = Database::open(&folder.path().join("desktop.db")).unwrap();
        let command = command();
        database
            .record_starting(&command, "{}", EXECUTION, 0)
            .unwrap();
        let completion = Completion {
            execution_id: Some(EXECUTION),
            status: FinalStatus::Completed,
            report: Report {
                result: Some(format!("\"{}\"", "x".repeat(90_000))),
                ..Report::default()
            },
        };
        database.set_full(true);
        let refused = database
            .record_done(&command, &completion, None, 1)
            .unwrap_err();
        assert_eq!(
            refused.sqlite_error_code(),
            Some(rusqlite::ErrorCode::DiskFull)
        );
        assert_eq!(
            database.seen_row(command.id),
            Ok(Some(Seen::Starting(EXECUTION)))
        );
        assert_eq!(database.outbox_ids(), Ok(vec![]));

        database.set_full(false);
        database
            .record_done(&command, &completion, None, 2)
            .unwrap();
        assert_eq!(database.seen_row(command.id), Ok(Some(Seen::Done)));
        assert_eq!(database.outbox_ids(), Ok(vec![command.id]));
    }

    #[test]
    fn a_command_without_shares_does_not_become_running() {
        let folder = tempfile::tempdir().unwrap();
        let mut database = Database::open(&folder.path().join("desktop.db")).unwrap();
        let command = command();
        database
            .record_starting(&command, "{}", EXECUTION, 0)
            .unwrap();
        let grant = database.record_running(&command, EXECUTION, 1);
        assert_eq!(grant, Ok(Grant::Withdrawn));
        assert_eq!(
            database.seen_row(command.id),
            Ok(Some(Seen::Starting(EXECUTION)))
        );
        let again = database.record_starting(&command, "{}", EXECUTION, 2);
        assert!(again.is_err(), "a known command is not begun again");
    }
}
