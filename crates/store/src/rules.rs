//! What every store decides in the same way around the pure machines.

use callboard_domain::graph_run::{Event, Run, State, Status, decide, next_sweep, settle, sweep};
use callboard_domain::limits::{
    COMMANDS_PER_SYNC_MAX, INBOX_CLAIMED_MAX, INBOX_RECENT_MAX, INBOX_WAITING_MAX,
};
use callboard_domain::linked_task::{self, Task};
use callboard_domain::{
    ChatLinkId, ClaimId, Decision, Digest, ProjectId, Refusal, TaskId, Timestamp, WorkerId,
};
use callboard_wire::RawValue;
use callboard_wire::relay::{CommandInfo, ControlInfo, Progress};

use crate::{Artifact, Handout, NewArtifact, RunRow, StoreError};

/// Binds a desktop identity to `worker_id`; true when that is new and must be stored.
///
/// # Errors
/// [`Refusal::DesktopInUse`] when it is bound to another data folder.
pub fn bind_worker(bound: Option<WorkerId>, worker_id: WorkerId) -> Result<bool, Refusal> {
    match bound {
        None => Ok(true),
        Some(bound) if bound == worker_id => Ok(false),
        Some(_) => Err(Refusal::DesktopInUse),
    }
}

/// What a request with a known idempotency key gets: the run as it stands now.
///
/// # Errors
/// [`Refusal::KeyReused`] when the key belongs to a different request.
pub fn replay_queue(run: &Run, request: Digest, now: Timestamp) -> Result<Run, Refusal> {
    match decide(run, &Event::Queue { request }, now)? {
        Decision::Moved(settled) => Ok(settled),
        Decision::Replayed | Decision::Unchanged => Ok(settled_at(run, now)),
    }
}

/// The run as it stands at `now`, without storing anything.
pub fn settled_at(run: &Run, now: Timestamp) -> Run {
    settle(run, now).unwrap_or_else(|| run.clone())
}

/// The row as a list shows it: without arguments and result, which can have 100,000 characters each.
pub fn listed(mut row: RunRow) -> RunRow {
    row.arguments.clear();
    if let State::Completed(_, end)
    | State::Failed(_, end)
    | State::Cancelled(_, end)
    | State::Withdrawn { end, .. } = &mut row.run.state
    {
        end.report.result = None;
    }
    row
}

/// Takes over what a running command says of itself; true when something differs and must be
/// stored. Whatever is said of a command that does not run is dropped: its story is over, or has
/// not begun.
pub fn note_progress(row: &mut RunRow, phase: Option<String>, progress: Option<Progress>) -> bool {
    if row.run.status() != Status::Running {
        return false;
    }
    let phase = phase.filter(|phase| row.phase.as_ref() != Some(phase));
    let progress = progress.filter(|progress| row.progress.as_ref() != Some(progress));
    let differs = phase.is_some() || progress.is_some();
    row.phase = phase.or(row.phase.take());
    row.progress = progress.or(row.progress);
    differs
}

/// When a sweep should look at the row next: the stored `due_at`. See [`next_sweep`].
pub fn due_at(row: &RunRow) -> Option<Timestamp> {
    next_sweep(&row.run, last_sign(row))
}

/// What a sweep at `now` makes of the row's run; `None` when nothing changes. See [`sweep`].
pub fn swept(row: &RunRow, now: Timestamp) -> Option<Run> {
    sweep(&row.run, last_sign(row), now)
}

fn last_sign(row: &RunRow) -> Timestamp {
    row.desktop_last_seen_at.unwrap_or(row.run.queued_at)
}

/// What a desktop gets of its open commands in one project: the queued ones, and those running
/// ones that somebody asked to stop. `rows` are settled and come oldest first.
///
/// # Errors
/// [`StoreError::Unavailable`] when stored arguments are not JSON.
pub fn hand_out(rows: &[RunRow]) -> Result<Handout, StoreError> {
    let mut handout = Handout::default();
    for row in rows {
        match row.run.status() {
            Status::Queued if handout.commands.len() < COMMANDS_PER_SYNC_MAX => {
                let arguments = RawValue::from_string(row.arguments.clone());
                handout.commands.push(CommandInfo {
                    command_id: row.command_id,
                    graph_session_id: row.graph_session_id,
                    slug: row.slug.clone(),
                    arguments: arguments.map_err(StoreError::unavailable)?,
                });
            }
            Status::Running if row.run.cancel_requested() => {
                let command_id = row.command_id;
                handout.control.push(ControlInfo {
                    command_id,
                    cancel_requested: true,
                });
            }
            Status::Queued
            | Status::Running
            | Status::Completed
            | Status::Failed
            | Status::Cancelled
            | Status::Expired => {}
        }
    }
    Ok(handout)
}

/// What a request with the key of an existing link gets: that link, if it is `live`.
///
/// # Errors
/// [`Refusal::LinkKeyReused`] when the key belongs to a different request;
/// [`Refusal::ChatLinkNotFound`] when the link is gone.
pub fn replay_link(stored: Digest, request: Digest, live: bool) -> Result<(), Refusal> {
    if stored != request {
        return Err(Refusal::LinkKeyReused);
    }
    if live {
        Ok(())
    } else {
        Err(Refusal::ChatLinkNotFound)
    }
}

/// What an assignment with a known idempotency key gets: the task as it stands now.
///
/// # Errors
/// [`Refusal::TaskKeyReused`] when the key belongs to a different assignment.
pub fn replay_assign(task: &Task, request: Digest, now: Timestamp) -> Result<Task, Refusal> {
    linked_task::decide(task, &linked_task::Event::Assign { request }, now)?;
    Ok(task_at(task, now))
}

/// How whatever is not the caller's is refused, so that "not yours" and "does not exist" are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown {
    /// For a link.
    pub link: Refusal,
    /// For a task of a known link.
    pub task: Refusal,
}

impl Unknown {
    /// The refusals of an upload.
    pub const TO_UPLOAD: Self = Self {
        link: Refusal::SubmitMissing,
        task: Refusal::SubmitMissing,
    };

    /// The refusals of `event`. One that only the owner causes names no link.
    pub const fn to(event: &linked_task::Event) -> Self {
        match event {
            linked_task::Event::Claim { .. } => Self {
                link: Refusal::ChatLinkNotFound,
                task: Refusal::ClaimMissing,
            },
            linked_task::Event::Submit(_) => Self {
                link: Refusal::SubmitMissing,
                task: Refusal::SubmitMissing,
            },
            linked_task::Event::Assign { .. }
            | linked_task::Event::Cancel
            | linked_task::Event::RevokeLink { .. } => Self {
                link: Refusal::ChatLinkNotFound,
                task: Refusal::TaskNotFound,
            },
        }
    }
}

/// Whether a connection may make a new link.
///
/// # Errors
/// [`Refusal::ProjectNotFound`] where the connection does not work in the project; then, where it
/// is full, [`Refusal::TooManyLinks`]; and what the questions fail with.
pub fn admit_link<E: From<Refusal>>(
    has_access: bool,
    is_full: impl FnOnce() -> Result<bool, E>,
) -> Result<(), E> {
    if !has_access {
        return Err(Refusal::ProjectNotFound.into());
    }
    if is_full()? {
        return Err(Refusal::TooManyLinks.into());
    }
    Ok(())
}

/// The one project that all candidates of a new task belong to, each of which must be a live link of
/// the owner, which `project_of` finds, and able to take one more task, which `is_full` denies.
///
/// # Errors
/// In this order: [`Refusal::ChatLinkNotFound`], also for no candidate;
/// [`Refusal::CandidatesApart`]; [`Refusal::TooManyTasks`]; and what the questions fail with.
pub fn admit_task<E: From<Refusal>>(
    candidates: &[ChatLinkId],
    mut project_of: impl FnMut(ChatLinkId) -> Result<Option<ProjectId>, E>,
    mut is_full: impl FnMut(ChatLinkId) -> Result<bool, E>,
) -> Result<ProjectId, E> {
    let mut projects = Vec::new();
    for link_id in candidates {
        projects.push(project_of(*link_id)?.ok_or(Refusal::ChatLinkNotFound)?);
    }
    let first = projects.first().ok_or(Refusal::ChatLinkNotFound)?;
    if projects.iter().any(|project| project != first) {
        return Err(Refusal::CandidatesApart.into());
    }
    for link_id in candidates {
        if is_full(*link_id)? {
            return Err(Refusal::TooManyTasks.into());
        }
    }
    Ok(*first)
}

/// What was uploaded for a task before, out of `all` its artifacts, and the stored one of the same
/// link, claim and `artifact_id` as `artifact`.
pub fn uploaded<'a>(
    all: &[&'a Artifact],
    link_id: ChatLinkId,
    claim_id: ClaimId,
    artifact_id: &str,
) -> (linked_task::Uploaded, Option<&'a Artifact>) {
    let theirs = |stored: &&&Artifact| (stored.link_id, stored.claim_id) == (link_id, claim_id);
    let mut of_claim = all.iter().filter(theirs);
    let uploaded = linked_task::Uploaded {
        same_id: None,
        of_claim: of_claim.clone().count(),
        of_task: all.len(),
    };
    let same = of_claim.find(|stored| stored.artifact_id == artifact_id);
    let same_id = same.map(|stored| stored.content);
    (
        linked_task::Uploaded {
            same_id,
            ..uploaded
        },
        same.copied(),
    )
}

/// The row of an artifact that is new.
pub fn stored_artifact(
    link_id: ChatLinkId,
    task_id: TaskId,
    new: &NewArtifact,
    content: Digest,
    now: Timestamp,
) -> Artifact {
    Artifact {
        task_id,
        link_id,
        claim_id: new.claim_id,
        artifact_id: new.artifact_id.clone(),
        name: new.name.clone(),
        media_type: new.media_type.clone(),
        size_bytes: new.content.len() as u64,
        content,
        uploaded_at: now,
    }
}

/// The task as it stands at `now`, without storing anything.
pub fn task_at(task: &Task, now: Timestamp) -> Task {
    linked_task::settle(task, now.max(task.updated_at)).unwrap_or_else(|| task.clone())
}

/// What a linked chat sees of its tasks, which come settled and oldest first: its own claims, then
/// what waits, then the last ones that are over, latest first. What another candidate has claimed
/// is not shown: nothing can be done about it.
pub fn inbox<T>(link_id: ChatLinkId, tasks: Vec<T>, task: impl Fn(&T) -> &Task) -> Vec<T> {
    let (mut claimed, mut waiting, mut over) = (Vec::new(), Vec::new(), Vec::new());
    for item in tasks {
        let task = task(&item);
        match (task.status(), task.claim()) {
            (linked_task::Status::Queued, _) => waiting.push(item),
            (linked_task::Status::Claimed, Some(claim)) if claim.link_id == link_id => {
                claimed.push(item);
            }
            (linked_task::Status::Claimed, _) => {}
            (linked_task::Status::Over(_), _) => over.push(item),
        }
    }
    claimed.truncate(INBOX_CLAIMED_MAX);
    waiting.truncate(INBOX_WAITING_MAX);
    over.reverse();
    over.sort_by_key(|item| std::cmp::Reverse(task(item).finished_at()));
    over.truncate(INBOX_RECENT_MAX);
    claimed.into_iter().chain(waiting).chain(over).collect()
}
