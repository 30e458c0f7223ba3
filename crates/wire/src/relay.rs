//! The relay API: what a desktop sends to the hub under `/api/v1`, and what it gets.

use callboard_domain::graph_run::Completion;
use callboard_domain::{
    CommandId, DesktopId, ExecutionId, FinalStatus, GraphSessionId, ProjectId, Report,
    mend_surrogates,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::as_text;
use crate::present::present;

/// `GET /desktop`: who the caller is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesktopInfo {
    /// The desktop's id.
    #[serde(with = "as_text")]
    pub desktop_id: DesktopId,
    /// The name its owner gave it.
    pub name: String,
    /// The owner's projects, oldest first.
    pub projects: Vec<ProjectInfo>,
}

/// A project, as desktops and connections see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectInfo {
    /// The project's id.
    #[serde(with = "as_text")]
    pub project_id: ProjectId,
    /// The name its owner gave it.
    pub name: String,
}

/// The metadata of one shared Graph session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// The session's permanent id.
    #[serde(with = "as_text")]
    pub graph_session_id: GraphSessionId,
    /// The Graph's name.
    pub name: String,
    /// What the Graph does.
    pub description: String,
    /// The short name it is called by on the desktop.
    pub slug: String,
    /// Counts the saved versions of the Graph, from 1.
    pub version: u64,
    /// `ready`, or why the Graph cannot run.
    pub status: String,
}

/// `POST …/sync`: what is shared with one project now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncRequest {
    /// The project.
    #[serde(with = "as_text")]
    pub project_id: ProjectId,
    /// All sessions shared with it, at most
    /// [`SESSIONS_PER_PROJECT_MAX`](callboard_domain::limits::SESSIONS_PER_PROJECT_MAX).
    pub sessions: Vec<SessionInfo>,
}

/// What waits for the desktop in one project.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SyncResponse {
    /// Opaque; differs from the given one of a wake-up call when something new may wait.
    pub revision: String,
    /// Queued commands, oldest first.
    pub commands: Vec<CommandInfo>,
    /// Running commands of this project that somebody asked to stop.
    pub control: Vec<ControlInfo>,
}

/// One queued command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandInfo {
    /// The command's id.
    #[serde(with = "as_text")]
    pub command_id: CommandId,
    /// The session to run.
    #[serde(with = "as_text")]
    pub graph_session_id: GraphSessionId,
    /// The session's slug when the command was queued; consent holds only while it is unchanged.
    pub slug: String,
    /// The Graph's arguments, a JSON object.
    pub arguments: Box<RawValue>,
}

/// The state of one running command that concerns its desktop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlInfo {
    /// The command's id.
    #[serde(with = "as_text")]
    pub command_id: CommandId,
    /// Somebody asked for it to stop.
    pub cancel_requested: bool,
}

/// `POST …/commands/{id}/start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartRequest {
    /// The desktop's id for the execution, stored on its disk before this call.
    #[serde(with = "as_text")]
    pub execution_id: ExecutionId,
}

/// The start is granted; a refusal is a [`crate::Problem`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartResponse {
    /// Somebody asked for the run to stop since it was granted.
    pub cancel_requested: bool,
}

/// `POST …/commands/{id}/control`: the 3 s poll.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ControlRequest {
    /// What the run is doing, in the Graph's or the desktop's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// How far the run is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Calls of agents and tools that ended.
    pub calls_done: u64,
    /// Calls of agents and tools that began.
    pub calls_started: u64,
    /// Tokens used so far.
    pub tokens: u64,
    /// The hard token cap, if the Graph or the owner set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_cap: Option<u64>,
}

/// The answer of the 3 s poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlResponse {
    /// Somebody asked for the run to stop.
    pub cancel_requested: bool,
}

/// `POST …/commands/{id}/complete`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CompleteRequest {
    /// The execution that ended; left out for a command that never began.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "as_text::option"
    )]
    pub execution_id: Option<ExecutionId>,
    /// How it ended.
    pub status: CompletionStatus,
    /// The result as the engine's own JSON text; a Graph can return null.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub result: Option<Box<RawValue>>,
    /// The result was too long to travel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub result_truncated: bool,
    /// Why the run failed or was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Tokens that the run used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// What the providers said the run cost, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_cost: Option<f64>,
}

/// [`FinalStatus`] on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionStatus {
    /// See [`FinalStatus::Completed`].
    Completed,
    /// See [`FinalStatus::Failed`].
    Failed,
    /// See [`FinalStatus::Cancelled`].
    Cancelled,
}

impl From<FinalStatus> for CompletionStatus {
    fn from(status: FinalStatus) -> Self {
        match status {
            FinalStatus::Completed => Self::Completed,
            FinalStatus::Failed => Self::Failed,
            FinalStatus::Cancelled => Self::Cancelled,
        }
    }
}

impl From<CompletionStatus> for FinalStatus {
    fn from(status: CompletionStatus) -> Self {
        match status {
            CompletionStatus::Completed => Self::Completed,
            CompletionStatus::Failed => Self::Failed,
            CompletionStatus::Cancelled => Self::Cancelled,
        }
    }
}

impl From<CompleteRequest> for Completion {
    /// A lone half of a surrogate pair in the result becomes U+FFFD: no reader takes it otherwise.
    fn from(request: CompleteRequest) -> Self {
        let report = Report {
            result: request
                .result
                .map(|raw| mend_surrogates(raw.get()).into_owned()),
            result_truncated: request.result_truncated,
            error: request.error,
            total_tokens: request.total_tokens,
            reported_cost: request.reported_cost,
        };
        Self {
            execution_id: request.execution_id,
            status: request.status.into(),
            report,
        }
    }
}

impl TryFrom<&Completion> for CompleteRequest {
    type Error = serde_json::Error;

    /// # Errors
    /// A result that is not JSON.
    fn try_from(completion: &Completion) -> Result<Self, serde_json::Error> {
        let report = &completion.report;
        Ok(Self {
            execution_id: completion.execution_id,
            status: completion.status.into(),
            result: report
                .result
                .clone()
                .map(RawValue::from_string)
                .transpose()?,
            result_truncated: report.result_truncated,
            error: report.error.clone(),
            total_tokens: report.total_tokens,
            reported_cost: report.reported_cost,
        })
    }
}

/// The completion is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteResponse {
    /// Always true; a refusal is a [`crate::Problem`].
    pub ok: bool,
    /// The same completion was stored before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// `POST …/wait`: hold this call until something new may wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitRequest {
    /// The projects to watch, with the revision of the last sync of each.
    pub projects: Vec<ProjectRevision>,
}

/// The answer of the wake-up call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitResponse {
    /// The projects to sync now, with their present revision; empty when the time was up.
    pub wake: Vec<ProjectRevision>,
}

/// A project and the revision of what waits in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProjectRevision {
    /// The project.
    #[serde(with = "as_text")]
    pub project_id: ProjectId,
    /// See [`SyncResponse::revision`].
    pub revision: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(result: &str) -> Completion {
        let json = format!(r#"{{"status":"completed","result":{result}}}"#);
        serde_json::from_str::<CompleteRequest>(&json)
            .expect("valid")
            .into()
    }

    #[test]
    fn a_null_result_is_a_result_and_a_missing_one_is_none() {
        assert_eq!(completion("null").report.result.as_deref(), Some("null"));
        let without: CompleteRequest =
            serde_json::from_str(r#"{"status":"failed"}"#).expect("valid");
        assert!(without.result.is_none());
    }

    #[test]
    fn the_text_of_a_result_is_kept_and_a_lone_surrogate_is_mended() {
        assert_eq!(
            completion(r#"{"b":1e+21, "a":1}"#).report.result.as_deref(),
            Some(r#"{"b":1e+21, "a":1}"#)
        );
        assert_eq!(
            completion(r#""a\ud83d""#).report.result.as_deref(),
            Some(r#""a\ufffd""#)
        );
    }
}
