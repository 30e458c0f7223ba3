//! The rules of a task: one arm a state and event.

use super::{Claim, Event, Outcome, State, Status, Submission, Task, Verdict};
use crate::decision::decide_on_settled;
use crate::{ChatLinkId, ClaimId, Decision, Refusal, Timestamp};

/// Answers `event` at `now`. What time alone caused by then is applied first.
///
/// # Errors
/// [`Refusal::TaskKeyReused`] for another request under the same key; for a claim
/// [`Refusal::ClaimMissing`], [`Refusal::ClaimTaken`], [`Refusal::ClaimOver`]; for a submit
/// [`Refusal::SubmitMissing`], [`Refusal::SubmitOver`], [`Refusal::SubmitLapsed`],
/// [`Refusal::SubmitStale`], in the order of [`fence`].
pub fn decide(task: &Task, event: &Event, now: Timestamp) -> Result<Decision<Task>, Refusal> {
    let now = now.max(task.updated_at);
    decide_on_settled(task, settle(task, now), |task| {
        decide_settled(task, event, now)
    })
}

/// Applies what time alone caused: a task that was not finished in time expires, and before that a
/// claim lapses at the end of its lease. `None` when nothing changed.
pub fn settle(task: &Task, now: Timestamp) -> Option<Task> {
    let due = next_due(task).filter(|due| *due <= now)?;
    if now >= task.expires_at {
        let finished_at = task.expires_at;
        return Some(moved(task, State::Expired { finished_at }, finished_at));
    }
    Some(moved(task, State::Queued, due))
}

/// When time alone will next change the task. Every open task has such an instant and no finished
/// one does, so a store's `due_at` column also tells the two apart.
pub fn next_due(task: &Task) -> Option<Timestamp> {
    match &task.state {
        State::Queued => Some(task.expires_at),
        State::Claimed { lease_until, .. } => Some(task.expires_at.min(*lease_until)),
        State::Completed(..)
        | State::Failed(..)
        | State::Cancelled { .. }
        | State::Expired { .. } => None,
    }
}

fn decide_settled(task: &Task, event: &Event, now: Timestamp) -> Result<Decision<Task>, Refusal> {
    match event {
        Event::Assign { request } if *request == task.request => Ok(Decision::Replayed),
        Event::Assign { .. } => Err(Refusal::TaskKeyReused),
        Event::Claim {
            link_id,
            claim_id,
            lease_ms,
        } => claim(task, *link_id, *claim_id, *lease_ms, now),
        Event::Submit(submission) => submit(task, submission, now),
        Event::Cancel => Ok(cancel(task, now)),
        Event::RevokeLink { link_id } => Ok(revoke(task, *link_id, now)),
    }
}

fn claim(
    task: &Task,
    link_id: ChatLinkId,
    id: ClaimId,
    lease_ms: u64,
    now: Timestamp,
) -> Result<Decision<Task>, Refusal> {
    if !task.is_for(link_id) {
        return Err(Refusal::ClaimMissing);
    }
    match (&task.state, task.status()) {
        (State::Claimed { claim, .. }, _) if claim.link_id == link_id => Ok(Decision::Replayed),
        (_, Status::Claimed) => Err(Refusal::ClaimTaken),
        (_, Status::Over(ended)) => Err(Refusal::ClaimOver(ended)),
        (_, Status::Queued) => {
            let claim = Claim {
                id,
                link_id,
                claimed_at: now,
            };
            // Nobody else could take over, so a shorter lease would only cost the chat its work.
            let alone = task.candidates.len() == 1;
            let lease_until = if alone {
                task.expires_at
            } else {
                now.plus_ms(lease_ms).min(task.expires_at)
            };
            let state = State::Claimed { claim, lease_until };
            Ok(Decision::Moved(moved(task, state, now)))
        }
    }
}

/// Whether what comes under a claim may still change the task: the one order in which a submit and
/// an upload are refused (mission §4), after the replay.
pub(super) fn fence(task: &Task, link_id: ChatLinkId, claim_id: ClaimId) -> Result<Claim, Refusal> {
    match (task.claim(), task.status()) {
        (_, Status::Over(ended)) => Err(Refusal::SubmitOver(ended)),
        (_, Status::Queued) => Err(Refusal::SubmitLapsed),
        (Some(claim), Status::Claimed) if (claim.id, claim.link_id) == (claim_id, link_id) => {
            Ok(*claim)
        }
        (_, Status::Claimed) => Err(Refusal::SubmitStale),
    }
}

fn submit(task: &Task, submission: &Submission, now: Timestamp) -> Result<Decision<Task>, Refusal> {
    let (link_id, claim_id) = (submission.link_id, submission.claim_id);
    if !task.is_for(link_id) {
        return Err(Refusal::SubmitMissing);
    }
    let digest = submission.digest();
    if let (Some(claim), Some(outcome)) = (task.claim(), task.outcome())
        && (claim.id, claim.link_id, outcome.digest) == (claim_id, link_id, digest)
    {
        return Ok(Decision::Replayed);
    }
    let claim = fence(task, link_id, claim_id)?;
    let outcome = Outcome {
        finished_at: now,
        digest,
        result: submission.result.clone(),
    };
    let state = match submission.verdict {
        Verdict::Completed => State::Completed(claim, outcome),
        Verdict::Failed => State::Failed(claim, outcome),
    };
    Ok(Decision::Moved(moved(task, state, now)))
}

fn cancel(task: &Task, now: Timestamp) -> Decision<Task> {
    match &task.state {
        State::Queued | State::Claimed { .. } => {
            Decision::Moved(moved(task, State::Cancelled { finished_at: now }, now))
        }
        State::Cancelled { .. } => Decision::Replayed,
        State::Completed(..) | State::Failed(..) | State::Expired { .. } => Decision::Unchanged,
    }
}

/// Takes a link off an open task. Its claim goes back to the queue; without a candidate the task
/// is over.
fn revoke(task: &Task, link_id: ChatLinkId, now: Timestamp) -> Decision<Task> {
    if task.status().ended().is_some() || !task.is_for(link_id) {
        return Decision::Unchanged;
    }
    let left = |candidate: &&ChatLinkId| **candidate != link_id;
    let candidates: Vec<_> = task.candidates.iter().filter(left).copied().collect();
    if candidates.is_empty() {
        return Decision::Moved(moved(task, State::Cancelled { finished_at: now }, now));
    }
    let held = task.claim().is_some_and(|claim| claim.link_id == link_id);
    let state = if held {
        State::Queued
    } else {
        task.state.clone()
    };
    Decision::Moved(Task {
        candidates,
        ..moved(task, state, now)
    })
}

fn moved(task: &Task, state: State, now: Timestamp) -> Task {
    Task {
        updated_at: now,
        state,
        ..task.clone()
    }
}
