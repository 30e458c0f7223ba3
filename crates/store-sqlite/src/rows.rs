//! How rows are read: cells in the order of their statement, and two loops over a statement.

use callboard_domain::graph_run::Run;
use callboard_domain::linked_task::Task;
use callboard_domain::{
    ChatLinkId, ClaimId, CommandId, ConnectionId, DesktopId, Digest, GraphSessionId, OwnerId,
    ProjectId, SignInId, TaskId, Timestamp, WorkerId,
};
use callboard_store::{
    Artifact, Candidate, ChatLink, ChatRow, Connection, Desktop, OwnedRun, Project, RunColumns,
    RunRow, SessionRow, SignIn, TaskColumns,
};
use callboard_wire::relay::{Progress, SessionInfo};
use rusqlite::types::FromSql;
use rusqlite::{Params, Row};

use crate::error::Failure;

/// The cells of one row, taken from left to right.
pub(crate) struct Cells<'row> {
    row: &'row Row<'row>,
    next: usize,
}

impl Cells<'_> {
    pub(crate) fn take<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        let cell = self.row.get(self.next);
        self.next += 1;
        cell
    }

    pub(crate) fn time(&mut self) -> rusqlite::Result<Option<Timestamp>> {
        Ok(self.take::<Option<_>>()?.map(Timestamp::from_millis))
    }

    /// A count, which SQLite keeps as the signed number of the same bits.
    fn count(&mut self) -> rusqlite::Result<Option<u64>> {
        Ok(self.take::<Option<i64>>()?.map(i64::cast_unsigned))
    }
}

/// Runs a statement and reads its first row.
pub(crate) fn first<T>(
    connection: &rusqlite::Connection,
    sql: &str,
    parameters: impl Params,
    read: impl FnOnce(&mut Cells<'_>) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let row = rows.next()?;
    row.map(|row| read(&mut Cells { row, next: 0 })).transpose()
}

/// Runs a statement and reads its rows for as long as `wanted` says so of the ones before.
pub(crate) fn some<T>(
    connection: &rusqlite::Connection,
    sql: &str,
    parameters: impl Params,
    mut read: impl FnMut(&mut Cells<'_>) -> Result<T, Failure>,
    mut wanted: impl FnMut(&[T]) -> bool,
) -> Result<Vec<T>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut found = Vec::new();
    while wanted(&found)
        && let Some(row) = rows.next()?
    {
        found.push(read(&mut Cells { row, next: 0 })?);
    }
    Ok(found)
}

/// Runs a statement and reads all its rows.
pub(crate) fn all<T>(
    connection: &rusqlite::Connection,
    sql: &str,
    parameters: impl Params,
    read: impl FnMut(&mut Cells<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    some(connection, sql, parameters, read, |_| true)
}

/// Whether a statement finds anything.
pub(crate) fn any(
    connection: &rusqlite::Connection,
    sql: &str,
    parameters: impl Params,
) -> Result<bool, Failure> {
    Ok(connection.prepare_cached(sql)?.exists(parameters)?)
}

/// Runs a statement that changes rows and tells how many.
pub(crate) fn change(
    connection: &rusqlite::Connection,
    sql: &str,
    parameters: impl Params,
) -> Result<usize, Failure> {
    Ok(connection.prepare_cached(sql)?.execute(parameters)?)
}

/// A number of rows, as SQLite takes it.
pub(crate) fn row_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn project(cells: &mut Cells<'_>) -> Result<Project, Failure> {
    Ok(Project {
        id: ProjectId::from_bytes(cells.take()?),
        owner_id: OwnerId::from_bytes(cells.take()?),
        name: cells.take()?,
    })
}

pub(crate) fn desktop(cells: &mut Cells<'_>) -> Result<Desktop, Failure> {
    Ok(Desktop {
        id: DesktopId::from_bytes(cells.take()?),
        owner_id: OwnerId::from_bytes(cells.take()?),
        name: cells.take()?,
        worker_id: cells.take::<Option<_>>()?.map(WorkerId::from_bytes),
        last_seen_at: cells.time()?,
    })
}

/// Folds rows of one connection and one project each into connections.
pub(crate) fn connections(
    connection: &rusqlite::Connection,
    sql: &str,
    parameters: impl Params,
) -> Result<Vec<Connection>, Failure> {
    let rows = all(connection, sql, parameters, |cells| {
        let connection = Connection {
            id: ConnectionId::from_bytes(cells.take()?),
            owner_id: OwnerId::from_bytes(cells.take()?),
            name: cells.take()?,
            scopes: cells.take::<String>()?.parse()?,
            projects: Vec::new(),
        };
        let project = match cells.take::<Option<_>>()?.map(ProjectId::from_bytes) {
            Some(id) => Some(Project {
                id,
                owner_id: OwnerId::from_bytes(cells.take()?),
                name: cells.take()?,
            }),
            None => None,
        };
        Ok((connection, project))
    })?;
    let mut folded: Vec<Connection> = Vec::new();
    for (connection, project) in rows {
        match folded.last_mut().filter(|last| last.id == connection.id) {
            Some(last) => last.projects.extend(project),
            None => folded.push(Connection {
                projects: project.into_iter().collect(),
                ..connection
            }),
        }
    }
    Ok(folded)
}

pub(crate) fn session(cells: &mut Cells<'_>) -> Result<SessionInfo, Failure> {
    Ok(SessionInfo {
        graph_session_id: GraphSessionId::from_bytes(cells.take()?),
        name: cells.take()?,
        description: cells.take()?,
        slug: cells.take()?,
        version: cells.count()?.unwrap_or_default(),
        status: cells.take()?,
    })
}

pub(crate) fn session_row(cells: &mut Cells<'_>) -> Result<SessionRow, Failure> {
    Ok(SessionRow {
        session: session(cells)?,
        project_id: ProjectId::from_bytes(cells.take()?),
        desktop_id: DesktopId::from_bytes(cells.take()?),
        desktop_name: cells.take()?,
        desktop_last_seen_at: cells.time()?,
    })
}

/// A command as its owner sees it, not settled.
pub(crate) fn owned_run(cells: &mut Cells<'_>) -> Result<OwnedRun, Failure> {
    Ok(OwnedRun {
        row: run(cells)?,
        project_name: cells.take()?,
        connection_name: cells.take()?,
        desktop_name: cells.take()?,
        session_name: cells.take()?,
    })
}

pub(crate) fn sign_in(cells: &mut Cells<'_>) -> Result<SignIn, Failure> {
    Ok(SignIn {
        id: SignInId::from_bytes(cells.take()?),
        owner_id: OwnerId::from_bytes(cells.take()?),
        user_agent: cells.take()?,
        signed_in_at: Timestamp::from_millis(cells.take()?),
        expires_at: Timestamp::from_millis(cells.take()?),
    })
}

/// A command as it is stored, not settled.
pub(crate) fn run(cells: &mut Cells<'_>) -> Result<RunRow, Failure> {
    Ok(RunRow {
        command_id: CommandId::from_bytes(cells.take()?),
        connection_id: ConnectionId::from_bytes(cells.take()?),
        project_id: ProjectId::from_bytes(cells.take()?),
        desktop_id: DesktopId::from_bytes(cells.take()?),
        graph_session_id: GraphSessionId::from_bytes(cells.take()?),
        slug: cells.take()?,
        arguments: cells.take()?,
        run: Run::try_from(RunColumns {
            request: cells.take()?,
            status: cells.take()?,
            queued_at: cells.take()?,
            updated_at: cells.take()?,
            execution_id: cells.take()?,
            started_at: cells.take()?,
            cancel_requested_at: cells.take()?,
            finished_at: cells.take()?,
            digest: cells.take()?,
            result: cells.take()?,
            result_truncated: cells.take()?,
            error: cells.take()?,
            total_tokens: cells.take()?,
            reported_cost: cells.take()?,
        })?,
        phase: cells.take()?,
        progress: progress(cells)?,
        desktop_last_seen_at: cells.time()?,
    })
}

fn progress(cells: &mut Cells<'_>) -> Result<Option<Progress>, Failure> {
    let (calls_done, calls_started) = (cells.count()?, cells.count()?);
    let (tokens, tokens_cap) = (cells.count()?, cells.count()?);
    Ok(calls_done.map(|calls_done| Progress {
        calls_done,
        calls_started: calls_started.unwrap_or_default(),
        tokens: tokens.unwrap_or_default(),
        tokens_cap,
    }))
}

pub(crate) fn link(cells: &mut Cells<'_>) -> Result<ChatLink, Failure> {
    Ok(ChatLink {
        id: ChatLinkId::from_bytes(cells.take()?),
        connection_id: ConnectionId::from_bytes(cells.take()?),
        project_id: ProjectId::from_bytes(cells.take()?),
        label: cells.take()?,
        reference: cells.take()?,
        host_hint: cells.take()?,
        linked_at: Timestamp::from_millis(cells.take()?),
    })
}

pub(crate) fn chat(cells: &mut Cells<'_>) -> Result<ChatRow, Failure> {
    Ok(ChatRow {
        link: link(cells)?,
        connection_name: cells.take()?,
        project_name: cells.take()?,
    })
}

/// A task as it is stored, not settled, without its text and its candidates: those are rows of
/// their own.
#[derive(Debug)]
pub(crate) struct BareTask {
    pub(crate) seq: i64,
    pub(crate) task_id: TaskId,
    pub(crate) project_id: ProjectId,
    pub(crate) task: Task,
}

pub(crate) fn bare_task(cells: &mut Cells<'_>) -> Result<BareTask, Failure> {
    Ok(BareTask {
        seq: cells.take()?,
        task_id: TaskId::from_bytes(cells.take()?),
        project_id: ProjectId::from_bytes(cells.take()?),
        task: TaskColumns {
            request: cells.take()?,
            status: cells.take()?,
            assigned_at: cells.take()?,
            expires_at: cells.take()?,
            updated_at: cells.take()?,
            claim_id: cells.take()?,
            claim_link_id: cells.take()?,
            claimed_at: cells.take()?,
            lease_until: cells.take()?,
            finished_at: cells.take()?,
            digest: cells.take()?,
            result: cells.take()?,
        }
        .into_task(Vec::new())?,
    })
}

pub(crate) fn candidate(cells: &mut Cells<'_>) -> Result<Candidate, Failure> {
    Ok(Candidate {
        link_id: ChatLinkId::from_bytes(cells.take()?),
        label: cells.take()?,
        connection_name: cells.take()?,
    })
}

pub(crate) fn artifact(cells: &mut Cells<'_>) -> Result<Artifact, Failure> {
    Ok(Artifact {
        task_id: TaskId::from_bytes(cells.take()?),
        link_id: ChatLinkId::from_bytes(cells.take()?),
        claim_id: ClaimId::from_bytes(cells.take()?),
        artifact_id: cells.take()?,
        name: cells.take()?,
        media_type: cells.take()?,
        size_bytes: cells.count()?.unwrap_or_default(),
        content: Digest::from_bytes(cells.take()?),
        uploaded_at: Timestamp::from_millis(cells.take()?),
    })
}
