//! Every way in which the rules say no.

use crate::limits;

/// A request that the rules refuse. Closed: a new one is added when a caller would act
/// differently on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{}", self.public_text())]
pub enum Refusal {
    /// Not the caller's run, never existed, or no longer accessible.
    RunNotFound,
    /// The same for a Graph session.
    SessionNotFound,
    /// The same for a project.
    ProjectNotFound,
    /// The idempotency key belongs to a different request of this connection.
    KeyReused,
    /// The run has ended; nothing about it can change.
    RunOver,
    /// Another execution was granted this command.
    RunTaken,
    /// The execution id is not the one that was granted.
    StaleExecution,
    /// A different completion of this execution is already stored.
    CompletionDiffers,
    /// Without an execution id only a queued command can be completed, and only as cancelled.
    CompletionWithoutExecution,
    /// The report exceeds the bounds that the relay applies.
    ReportTooLong,
    /// The desktop identity is bound to another data folder.
    DesktopInUse,
    /// More sessions than one project takes.
    TooManySessions,
}

impl Refusal {
    /// Every refusal.
    pub const ALL: [Self; 12] = [
        Self::RunNotFound,
        Self::SessionNotFound,
        Self::ProjectNotFound,
        Self::KeyReused,
        Self::RunOver,
        Self::RunTaken,
        Self::StaleExecution,
        Self::CompletionDiffers,
        Self::CompletionWithoutExecution,
        Self::ReportTooLong,
        Self::DesktopInUse,
        Self::TooManySessions,
    ];

    /// A stable name for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::RunNotFound => "run_not_found",
            Self::SessionNotFound => "session_not_found",
            Self::ProjectNotFound => "project_not_found",
            Self::KeyReused => "idempotency_key_reused",
            Self::RunOver => "run_over",
            Self::RunTaken => "run_taken",
            Self::StaleExecution => "stale_execution",
            Self::CompletionDiffers => "completion_differs",
            Self::CompletionWithoutExecution => "completion_without_execution",
            Self::ReportTooLong => "report_too_long",
            Self::DesktopInUse => "desktop_in_use",
            Self::TooManySessions => "too_many_sessions",
        }
    }

    /// The refusal that `code` names.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.code() == code)
    }

    /// One sentence for the caller: what is so, and what to do where something can be done.
    pub const fn public_text(self) -> &'static str {
        match self {
            Self::RunNotFound => limits::RUN_NOT_FOUND,
            Self::SessionNotFound => limits::SESSION_NOT_FOUND,
            Self::ProjectNotFound => limits::PROJECT_NOT_FOUND,
            Self::KeyReused => {
                "This idempotency_key already belongs to a different request, and nothing was \
                 queued. Repeat the first request unchanged to read its command, or use a new key \
                 for a new run."
            }
            Self::RunOver => "This run is over. Do not resend: its outcome cannot change.",
            Self::RunTaken => "Another execution already runs this command.",
            Self::StaleExecution => "This execution was not granted for the command.",
            Self::CompletionDiffers => {
                "A different completion of this execution is already stored. Do not resend."
            }
            Self::CompletionWithoutExecution => {
                "Without execution_id only a queued command can be completed, and only as cancelled."
            }
            Self::ReportTooLong => {
                "The report exceeds 100,000 characters, or its error 2,000. Send \
                 result_truncated instead."
            }
            Self::DesktopInUse => {
                "This desktop identity is in use by another data folder. Run `callboard hub \
                 desktop rebind NAME` on the hub to move it here."
            }
            Self::TooManySessions => "At most 100 sessions can be shared with one project.",
        }
    }

    /// Whether sending the same completion again can never succeed, so that an outbox entry is
    /// parked instead of retried.
    pub const fn is_final_for_a_completion(self) -> bool {
        match self {
            Self::RunNotFound
            | Self::RunOver
            | Self::RunTaken
            | Self::StaleExecution
            | Self::CompletionDiffers
            | Self::CompletionWithoutExecution
            | Self::ReportTooLong => true,
            Self::SessionNotFound
            | Self::ProjectNotFound
            | Self::KeyReused
            | Self::DesktopInUse
            | Self::TooManySessions => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_lead_back_to_their_refusal() {
        for refusal in Refusal::ALL {
            assert_eq!(Refusal::from_code(refusal.code()), Some(refusal));
        }
        assert_eq!(Refusal::from_code("no_such_code"), None);
    }

    #[test]
    fn the_published_sentences_are_given_to_the_letter() {
        assert_eq!(
            Refusal::RunNotFound.to_string(),
            "Graph run not found or access removed",
            "mission §2"
        );
        assert_eq!(
            Refusal::SessionNotFound.to_string(),
            "Graph session not found or access removed"
        );
        assert_eq!(
            Refusal::ProjectNotFound.to_string(),
            "Project not found or access removed"
        );
    }
}
