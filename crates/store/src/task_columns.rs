//! A task as flat columns: the one mapping that every SQL dialect uses.

use callboard_domain::linked_task::{Claim, Ended, Outcome, State, Status, Task};
use callboard_domain::{ChatLinkId, ClaimId, Digest, Timestamp};

use crate::ColumnError;

/// The columns of a task; its candidates are rows of their own. Times are epoch milliseconds;
/// absent facts are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(
    missing_docs,
    reason = "each is the fact of its name in `linked_task::State`"
)]
pub struct TaskColumns {
    pub request: [u8; 32],
    pub status: String,
    pub assigned_at: i64,
    pub expires_at: i64,
    pub updated_at: i64,
    pub claim_id: Option<[u8; 16]>,
    pub claim_link_id: Option<[u8; 16]>,
    pub claimed_at: Option<i64>,
    pub lease_until: Option<i64>,
    pub finished_at: Option<i64>,
    pub digest: Option<[u8; 32]>,
    pub result: Option<String>,
}

impl From<&Task> for TaskColumns {
    fn from(task: &Task) -> Self {
        let (claim, outcome) = (task.claim(), task.outcome());
        Self {
            request: *task.request.as_bytes(),
            status: task.status().as_str().to_owned(),
            assigned_at: task.assigned_at.as_millis(),
            expires_at: task.expires_at.as_millis(),
            updated_at: task.updated_at.as_millis(),
            claim_id: claim.map(|claim| *claim.id.as_bytes()),
            claim_link_id: claim.map(|claim| *claim.link_id.as_bytes()),
            claimed_at: claim.map(|claim| claim.claimed_at.as_millis()),
            lease_until: task.lease_until().map(Timestamp::as_millis),
            finished_at: task.finished_at().map(Timestamp::as_millis),
            digest: outcome.map(|outcome| *outcome.digest.as_bytes()),
            result: outcome.map(|outcome| outcome.result.clone()),
        }
    }
}

impl TaskColumns {
    /// The task of these columns and candidates.
    ///
    /// # Errors
    /// [`ColumnError`] when a fact of the status is missing.
    pub fn into_task(self, candidates: Vec<ChatLinkId>) -> Result<Task, ColumnError> {
        let broken = ColumnError::new("task", &self.status);
        let status = Status::from_word(&self.status).ok_or_else(|| broken.clone())?;
        let (request, assigned_at) = (self.request, self.assigned_at);
        let (expires_at, updated_at) = (self.expires_at, self.updated_at);
        let state = self.state(status).ok_or(broken)?;
        Ok(Task {
            request: Digest::from_bytes(request),
            assigned_at: Timestamp::from_millis(assigned_at),
            expires_at: Timestamp::from_millis(expires_at),
            updated_at: Timestamp::from_millis(updated_at),
            candidates,
            state,
        })
    }

    fn state(self, status: Status) -> Option<State> {
        let finished_at = self.finished_at.map(Timestamp::from_millis);
        Some(match status {
            Status::Queued => State::Queued,
            Status::Claimed => State::Claimed {
                claim: self.claim()?,
                lease_until: Timestamp::from_millis(self.lease_until?),
            },
            Status::Over(Ended::Completed) => State::Completed(self.claim()?, self.outcome()?),
            Status::Over(Ended::Failed) => State::Failed(self.claim()?, self.outcome()?),
            Status::Over(Ended::Cancelled) => State::Cancelled {
                finished_at: finished_at?,
            },
            Status::Over(Ended::Expired) => State::Expired {
                finished_at: finished_at?,
            },
        })
    }

    fn claim(&self) -> Option<Claim> {
        Some(Claim {
            id: ClaimId::from_bytes(self.claim_id?),
            link_id: ChatLinkId::from_bytes(self.claim_link_id?),
            claimed_at: Timestamp::from_millis(self.claimed_at?),
        })
    }

    fn outcome(self) -> Option<Outcome> {
        Some(Outcome {
            finished_at: Timestamp::from_millis(self.finished_at?),
            digest: Digest::from_bytes(self.digest?),
            result: self.result?,
        })
    }
}
