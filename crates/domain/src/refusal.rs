//! Every way in which the rules say no.

use crate::limits;
use crate::linked_task::Ended;

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
    /// The same for a linked chat.
    ChatLinkNotFound,
    /// The idempotency key of a link belongs to a different request of this connection.
    LinkKeyReused,
    /// The connection has as many linked chats as it may.
    TooManyLinks,
    /// The owner has no such task.
    TaskNotFound,
    /// The idempotency key of an assignment belongs to a different one.
    TaskKeyReused,
    /// A linked chat has as many open tasks as it may.
    TooManyTasks,
    /// The candidates of one task belong to different projects.
    CandidatesApart,
    /// A claim of a task that is not this chat's.
    ClaimMissing,
    /// A claim of a task that another candidate has claimed.
    ClaimTaken,
    /// A claim of a task that is over.
    ClaimOver(Ended),
    /// A result or artifact for a task or link that is not the caller's.
    SubmitMissing,
    /// A result or artifact for a task that is over.
    SubmitOver(Ended),
    /// A result or artifact under a claim that lapsed; the task waits again.
    SubmitLapsed,
    /// A result or artifact under a claim that is not the present one.
    SubmitStale,
    /// The artifact id holds other content.
    ArtifactDiffers,
    /// The claim, or the task, has as many artifacts as it may.
    TooManyArtifacts,
    /// Not the caller's artifact, never existed, or no longer accessible.
    ArtifactNotFound,
}

impl Refusal {
    /// Every refusal.
    pub const ALL: [Self; 35] = [
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
        Self::ChatLinkNotFound,
        Self::LinkKeyReused,
        Self::TooManyLinks,
        Self::TaskNotFound,
        Self::TaskKeyReused,
        Self::TooManyTasks,
        Self::CandidatesApart,
        Self::ClaimMissing,
        Self::ClaimTaken,
        Self::ClaimOver(Ended::Completed),
        Self::ClaimOver(Ended::Failed),
        Self::ClaimOver(Ended::Cancelled),
        Self::ClaimOver(Ended::Expired),
        Self::SubmitMissing,
        Self::SubmitOver(Ended::Completed),
        Self::SubmitOver(Ended::Failed),
        Self::SubmitOver(Ended::Cancelled),
        Self::SubmitOver(Ended::Expired),
        Self::SubmitLapsed,
        Self::SubmitStale,
        Self::ArtifactDiffers,
        Self::TooManyArtifacts,
        Self::ArtifactNotFound,
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
            Self::ChatLinkNotFound => "chat_link_not_found",
            Self::LinkKeyReused => "link_key_reused",
            Self::TooManyLinks => "too_many_links",
            Self::TaskNotFound => "task_not_found",
            Self::TaskKeyReused => "task_key_reused",
            Self::TooManyTasks => "too_many_tasks",
            Self::CandidatesApart => "candidates_apart",
            Self::ClaimMissing => "claim_missing",
            Self::ClaimTaken => "claim_taken",
            Self::ClaimOver(Ended::Completed) => "claim_completed",
            Self::ClaimOver(Ended::Failed) => "claim_failed",
            Self::ClaimOver(Ended::Cancelled) => "claim_cancelled",
            Self::ClaimOver(Ended::Expired) => "claim_expired",
            Self::SubmitMissing => "submit_missing",
            Self::SubmitOver(Ended::Completed) => "submit_completed",
            Self::SubmitOver(Ended::Failed) => "submit_failed",
            Self::SubmitOver(Ended::Cancelled) => "submit_cancelled",
            Self::SubmitOver(Ended::Expired) => "submit_expired",
            Self::SubmitLapsed => "submit_lapsed",
            Self::SubmitStale => "submit_stale",
            Self::ArtifactDiffers => "artifact_differs",
            Self::TooManyArtifacts => "too_many_artifacts",
            Self::ArtifactNotFound => "artifact_not_found",
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
            Self::ChatLinkNotFound => limits::CHAT_LINK_NOT_FOUND,
            Self::LinkKeyReused => {
                "This idempotency_key already belongs to a different link, and no link was made. \
                 Repeat the first request unchanged to read its chat_link_id, or use a new key for \
                 a new link."
            }
            Self::TooManyLinks => {
                "This connection has 1,000 linked chats, which is the most. Use one that exists, or \
                 ask the owner to revoke some."
            }
            Self::TaskNotFound => "There is no such task.",
            Self::TaskKeyReused => {
                "This idempotency key already belongs to a different task, and nothing was \
                 assigned. Repeat the first assignment unchanged to read its task, or use a new key."
            }
            Self::TooManyTasks => {
                "One of these chats has 1,000 open tasks, which is the most. Cancel some, or wait \
                 until it has answered."
            }
            Self::CandidatesApart => "The chats of one task must belong to one project.",
            Self::ClaimMissing => "not claimable: missing",
            Self::ClaimTaken => "not claimable: claimed",
            Self::ClaimOver(Ended::Completed) => "not claimable: completed",
            Self::ClaimOver(Ended::Failed) => "not claimable: failed",
            Self::ClaimOver(Ended::Cancelled) => "not claimable: cancelled",
            Self::ClaimOver(Ended::Expired) => "not claimable: expired",
            Self::SubmitMissing => "rejected: missing",
            Self::SubmitOver(Ended::Completed) => "rejected: task is completed",
            Self::SubmitOver(Ended::Failed) => "rejected: task is failed",
            Self::SubmitOver(Ended::Cancelled) => "rejected: task is cancelled",
            Self::SubmitOver(Ended::Expired) => "rejected: task is expired",
            Self::SubmitLapsed => "rejected: claim lapsed, claim the task again",
            Self::SubmitStale => "rejected: stale claim, task was re-claimed",
            Self::ArtifactDiffers => {
                "rejected: this artifact_id holds other content, use a new artifact_id"
            }
            Self::TooManyArtifacts => {
                "rejected: a claim takes at most 20 artifacts, a task at most 100"
            }
            Self::ArtifactNotFound => "Artifact not found or access removed",
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
            | Self::TooManySessions
            | Self::ChatLinkNotFound
            | Self::LinkKeyReused
            | Self::TooManyLinks
            | Self::TaskNotFound
            | Self::TaskKeyReused
            | Self::TooManyTasks
            | Self::CandidatesApart
            | Self::ClaimMissing
            | Self::ClaimTaken
            | Self::ClaimOver(_)
            | Self::SubmitMissing
            | Self::SubmitOver(_)
            | Self::SubmitLapsed
            | Self::SubmitStale
            | Self::ArtifactDiffers
            | Self::TooManyArtifacts
            | Self::ArtifactNotFound => false,
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
    fn a_number_in_a_sentence_is_the_limit() {
        for (refusal, number) in [
            (Refusal::TooManySessions, limits::SESSIONS_PER_PROJECT_MAX),
            (Refusal::TooManyArtifacts, limits::ARTIFACTS_PER_CLAIM_MAX),
            (Refusal::TooManyArtifacts, limits::ARTIFACTS_PER_TASK_MAX),
        ] {
            assert!(refusal.public_text().contains(&number.to_string()));
        }
        assert_eq!(
            (
                limits::CHATS_PER_CONNECTION_MAX,
                limits::OPEN_TASKS_PER_CHAT_MAX
            ),
            (1_000, 1_000),
            "as the two sentences say"
        );
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
