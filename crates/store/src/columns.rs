//! A run as flat columns: the one mapping that every SQL dialect uses.

use callboard_domain::graph_run::{End, Execution, Run, State, Status};
use callboard_domain::{Digest, ExecutionId, Report, Timestamp};

/// The columns of a run. Times are epoch milliseconds; absent facts are `None`.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(
    missing_docs,
    reason = "each is the fact of its name in `graph_run::State`"
)]
pub struct RunColumns {
    pub request: [u8; 32],
    pub status: String,
    pub queued_at: i64,
    pub updated_at: i64,
    pub execution_id: Option<[u8; 16]>,
    pub started_at: Option<i64>,
    pub cancel_requested_at: Option<i64>,
    pub finished_at: Option<i64>,
    pub digest: Option<[u8; 32]>,
    pub result: Option<String>,
    pub result_truncated: bool,
    pub error: Option<String>,
    pub total_tokens: Option<i64>,
    pub reported_cost: Option<f64>,
}

/// Stored columns that are no state of their machine: the storage was changed by something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a stored {what} with status {status:?} lacks a fact of that status")]
pub struct ColumnError {
    what: &'static str,
    status: String,
}

impl ColumnError {
    pub(crate) fn new(what: &'static str, status: &str) -> Self {
        let status = status.to_owned();
        Self { what, status }
    }
}

impl From<&Run> for RunColumns {
    fn from(run: &Run) -> Self {
        let end = run.end();
        let report = end.map(|end| end.report.clone()).unwrap_or_default();
        Self {
            request: *run.request.as_bytes(),
            status: run.status().as_str().to_owned(),
            queued_at: run.queued_at.as_millis(),
            updated_at: run.updated_at.as_millis(),
            execution_id: run.execution().map(|execution| *execution.id.as_bytes()),
            started_at: run
                .execution()
                .map(|execution| execution.started_at.as_millis()),
            cancel_requested_at: run.cancel_requested_at().map(Timestamp::as_millis),
            finished_at: run.finished_at().map(Timestamp::as_millis),
            digest: end.map(|end| *end.digest.as_bytes()),
            result: report.result,
            result_truncated: report.result_truncated,
            error: report.error,
            total_tokens: report
                .total_tokens
                .map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX)),
            reported_cost: report.reported_cost,
        }
    }
}

impl TryFrom<RunColumns> for Run {
    type Error = ColumnError;

    fn try_from(columns: RunColumns) -> Result<Self, ColumnError> {
        let broken = ColumnError::new("run", &columns.status);
        let status = Status::from_word(&columns.status).ok_or_else(|| broken.clone())?;
        let execution = execution(&columns);
        let (request, queued_at, updated_at) = (
            Digest::from_bytes(columns.request),
            Timestamp::from_millis(columns.queued_at),
            Timestamp::from_millis(columns.updated_at),
        );
        let finished_at = columns.finished_at.map(Timestamp::from_millis);
        let cancel_requested_at = columns.cancel_requested_at.map(Timestamp::from_millis);
        let state = match (status, execution, finished_at, end(columns)) {
            (Status::Queued, _, _, _) => State::Queued,
            (Status::Expired, _, Some(finished_at), _) => State::Expired { finished_at },
            (Status::Running, Some(execution), _, _) => State::Running(execution),
            (Status::Completed, Some(execution), _, Some(end)) => State::Completed(execution, end),
            (Status::Failed, Some(execution), _, Some(end)) => State::Failed(execution, end),
            (Status::Cancelled, Some(execution), _, Some(end)) => State::Cancelled(execution, end),
            (Status::Cancelled, None, _, Some(end)) => State::Withdrawn {
                cancel_requested_at,
                end,
            },
            (
                Status::Running
                | Status::Completed
                | Status::Failed
                | Status::Cancelled
                | Status::Expired,
                _,
                _,
                _,
            ) => return Err(broken),
        };
        Ok(Self {
            request,
            queued_at,
            updated_at,
            state,
        })
    }
}

fn execution(columns: &RunColumns) -> Option<Execution> {
    Some(Execution {
        id: ExecutionId::from_bytes(columns.execution_id?),
        started_at: Timestamp::from_millis(columns.started_at?),
        cancel_requested_at: columns.cancel_requested_at.map(Timestamp::from_millis),
    })
}

fn end(columns: RunColumns) -> Option<End> {
    Some(End {
        finished_at: Timestamp::from_millis(columns.finished_at?),
        digest: Digest::from_bytes(columns.digest?),
        report: Report {
            result: columns.result,
            result_truncated: columns.result_truncated,
            error: columns.error,
            total_tokens: columns
                .total_tokens
                .and_then(|tokens| u64::try_from(tokens).ok()),
            reported_cost: columns.reported_cost,
        },
    })
}
