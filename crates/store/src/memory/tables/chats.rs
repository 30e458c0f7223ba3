//! Linked chats, their tasks and artifacts.

use callboard_domain::limits::{CHATS_PER_CONNECTION_MAX, OPEN_TASKS_PER_CHAT_MAX};
use callboard_domain::linked_task::{Event, Task, Upload, decide, decide_upload, next_due, settle};
use callboard_domain::{
    ChatLinkId, ConnectionId, Decision, Digest, OwnerId, ProjectId, Refusal, TaskId, Timestamp,
};

use super::Tables;
use crate::rules::{self, Unknown, task_at};
use crate::{
    Artifact, ArtifactKey, ArtifactReader, AssignTask, AssignedTask, Candidate, ChatLink, ChatRow,
    LinkKey, LinkedChat, NewArtifact, NewChatLink, OwnedTask, StoreError, TaskRow,
};

/// Everything of linked chats, in the order in which it was made.
#[derive(Debug, Default)]
pub(super) struct Chats {
    links: Vec<LinkRecord>,
    tasks: Vec<TaskRecord>,
    artifacts: Vec<(Artifact, Vec<u8>)>,
}

#[derive(Debug)]
struct LinkRecord {
    link: ChatLink,
    idempotency_key: String,
    request: Digest,
    revoked: bool,
}

#[derive(Debug)]
struct TaskRecord {
    owner_id: OwnerId,
    idempotency_key: String,
    row: TaskRow,
}

impl Chats {
    /// Revokes the links that `whose` names and gives the tasks that changed.
    fn revoke(
        &mut self,
        whose: impl Fn(&ChatLink) -> bool,
        now: Timestamp,
    ) -> Result<Vec<TaskRow>, StoreError> {
        let mut changed: Vec<TaskId> = Vec::new();
        for record in &mut self.links {
            if record.revoked || !whose(&record.link) {
                continue;
            }
            record.revoked = true;
            let link_id = record.link.id;
            let event = Event::RevokeLink { link_id };
            for task in self.tasks.iter_mut().map(|record| &mut record.row) {
                if !task.task.is_for(link_id) {
                    continue;
                }
                if let Decision::Moved(next) = decide(&task.task, &event, now)? {
                    task.task = next;
                    if !changed.contains(&task.task_id) {
                        changed.push(task.task_id);
                    }
                }
            }
        }
        let moved = self.tasks.iter().map(|record| &record.row);
        Ok(moved
            .filter(|row| changed.contains(&row.task_id))
            .cloned()
            .collect())
    }

    pub(super) fn revoke_connection(
        &mut self,
        connection_id: ConnectionId,
        now: Timestamp,
    ) -> Result<Vec<TaskRow>, StoreError> {
        self.revoke(|link| link.connection_id == connection_id, now)
    }

    pub(super) fn sweep(&mut self, now: Timestamp, rows_max: usize) -> (Vec<TaskRow>, bool) {
        let mut due: Vec<_> = self
            .tasks
            .iter_mut()
            .map(|record| &mut record.row)
            .filter_map(|row| Some((next_due(&row.task).filter(|due| *due <= now)?, row)))
            .collect();
        due.sort_by_key(|(due, row)| (*due, row.task_id));
        let more = due.len() > rows_max;
        let mut moved = Vec::new();
        for (_, row) in due.into_iter().take(rows_max) {
            if let Some(next) = settle(&row.task, now) {
                row.task = next;
                moved.push(row.clone());
            }
        }
        (moved, more)
    }

    fn task_for(&self, link_id: ChatLinkId, task_id: TaskId) -> Option<&TaskRow> {
        let rows = self.tasks.iter().map(|record| &record.row);
        let mut theirs = rows.filter(|row| row.task.is_for(link_id));
        theirs.find(|row| row.task_id == task_id)
    }
}

impl Tables {
    /// The link, if it is `of` the caller and live.
    fn live_link(&self, link_id: ChatLinkId, of: impl Fn(&ChatLink) -> bool) -> Option<&ChatLink> {
        let found = self
            .chats
            .links
            .iter()
            .find(|record| record.link.id == link_id)?;
        (!found.revoked && self.has_access(&found.link) && of(&found.link)).then_some(&found.link)
    }

    /// Whether the link's connection still works in its project.
    fn has_access(&self, link: &ChatLink) -> bool {
        self.projects_of(link.connection_id)
            .contains(&link.project_id)
    }

    pub(super) fn owner_of(&self, connection_id: ConnectionId) -> Option<OwnerId> {
        let mut connections = self.connections.iter();
        let found = connections.find(|connection| connection.id == connection_id);
        found.map(|connection| connection.owner_id)
    }

    pub(super) fn connection_name(&self, connection_id: ConnectionId) -> String {
        let mut connections = self.connections.iter();
        let found = connections.find(|connection| connection.id == connection_id);
        found.map(|found| found.name.clone()).unwrap_or_default()
    }

    pub(super) fn project_name(&self, project_id: ProjectId) -> String {
        let found = self.projects.iter().find(|found| found.id == project_id);
        found.map(|found| found.name.clone()).unwrap_or_default()
    }

    pub(in super::super) fn link_chat(
        &mut self,
        new: NewChatLink,
    ) -> Result<LinkedChat, StoreError> {
        let known = self.chats.links.iter().find(|record| {
            record.link.connection_id == new.link.connection_id
                && record.idempotency_key == new.idempotency_key
        });
        if let Some(known) = known {
            let live = !known.revoked && self.has_access(&known.link);
            rules::replay_link(known.request, new.request, live)?;
            return Ok(LinkedChat {
                link: known.link.clone(),
                replayed: true,
            });
        }
        let theirs = |record: &&LinkRecord| {
            !record.revoked && record.link.connection_id == new.link.connection_id
        };
        let count = || self.chats.links.iter().filter(theirs).count();
        let is_full = || Ok::<_, Refusal>(count() >= CHATS_PER_CONNECTION_MAX);
        rules::admit_link(self.has_access(&new.link), is_full)?;
        self.chats.links.push(LinkRecord {
            link: new.link.clone(),
            idempotency_key: new.idempotency_key,
            request: new.request,
            revoked: false,
        });
        Ok(LinkedChat {
            link: new.link,
            replayed: false,
        })
    }

    pub(in super::super) fn chat_links(&self, owner_id: OwnerId) -> Vec<ChatRow> {
        let row = |link: &ChatLink| ChatRow {
            link: link.clone(),
            connection_name: self.connection_name(link.connection_id),
            project_name: self.project_name(link.project_id),
        };
        let owned = |link: &ChatLink| self.owner_of(link.connection_id) == Some(owner_id);
        let ids = self.chats.links.iter().map(|record| record.link.id);
        ids.filter_map(|id| self.live_link(id, owned))
            .map(row)
            .collect()
    }

    pub(in super::super) fn revoke_chat_link(
        &mut self,
        owner_id: OwnerId,
        link_id: ChatLinkId,
        now: Timestamp,
    ) -> Result<Option<Vec<TaskRow>>, StoreError> {
        let owned = |record: &&LinkRecord| {
            record.link.id == link_id && self.owner_of(record.link.connection_id) == Some(owner_id)
        };
        if !self.chats.links.iter().any(|record| owned(&record)) {
            return Ok(None);
        }
        self.chats.revoke(|link| link.id == link_id, now).map(Some)
    }

    pub(in super::super) fn assign_task(
        &mut self,
        request: AssignTask,
    ) -> Result<AssignedTask, StoreError> {
        let known = self.chats.tasks.iter().find(|record| {
            record.owner_id == request.owner_id && record.idempotency_key == request.idempotency_key
        });
        if let Some(known) = known {
            let task = rules::replay_assign(&known.row.task, request.request, request.now)?;
            return Ok(AssignedTask {
                row: TaskRow {
                    task,
                    ..known.row.clone()
                },
                replayed: true,
            });
        }
        let project_id = self.project_of(&request)?;
        let row = TaskRow {
            task_id: request.task_id,
            project_id,
            text: request.text,
            task: Task::assigned(request.request, request.candidates, request.now),
        };
        self.chats.tasks.push(TaskRecord {
            owner_id: request.owner_id,
            idempotency_key: request.idempotency_key,
            row: row.clone(),
        });
        Ok(AssignedTask {
            row,
            replayed: false,
        })
    }

    fn project_of(&self, request: &AssignTask) -> Result<ProjectId, Refusal> {
        let owned = |link: &ChatLink| self.owner_of(link.connection_id) == Some(request.owner_id);
        let project_of = |link_id| {
            let link = self.live_link(link_id, owned);
            Ok(link.map(|link| link.project_id))
        };
        let is_full = |link_id| {
            let open = self.chats.tasks.iter().filter(|record| {
                let task = &record.row.task;
                task.is_for(link_id) && next_due(task).is_some()
            });
            Ok(open.count() >= OPEN_TASKS_PER_CHAT_MAX)
        };
        rules::admit_task(&request.candidates, project_of, is_full)
    }

    pub(in super::super) fn tasks(
        &self,
        owner_id: OwnerId,
        limit: usize,
        now: Timestamp,
    ) -> Vec<OwnedTask> {
        let latest_first = self.chats.tasks.iter().rev();
        latest_first
            .filter(|record| record.owner_id == owner_id)
            .take(limit)
            .map(|record| self.owned_task(&record.row, now))
            .collect()
    }

    pub(in super::super) fn task(
        &self,
        owner_id: OwnerId,
        task_id: TaskId,
        now: Timestamp,
    ) -> Option<OwnedTask> {
        let mut owned = self
            .chats
            .tasks
            .iter()
            .filter(|record| record.owner_id == owner_id);
        let found = owned.find(|record| record.row.task_id == task_id);
        found.map(|record| self.owned_task(&record.row, now))
    }

    pub(in super::super) fn task_by_key(
        &self,
        owner_id: OwnerId,
        idempotency_key: &str,
        now: Timestamp,
    ) -> Option<OwnedTask> {
        let mut tasks = self.chats.tasks.iter();
        let found = tasks.find(|record| {
            record.owner_id == owner_id && record.idempotency_key == idempotency_key
        });
        found.map(|record| self.owned_task(&record.row, now))
    }

    fn owned_task(&self, row: &TaskRow, now: Timestamp) -> OwnedTask {
        let links = |link_id: &ChatLinkId| {
            let mut records = self.chats.links.iter();
            records.find(|record| record.link.id == *link_id)
        };
        let candidate = |record: &LinkRecord| Candidate {
            link_id: record.link.id,
            label: record.link.label.clone(),
            connection_name: self.connection_name(record.link.connection_id),
        };
        let candidates = row.task.candidates.iter().filter_map(links).map(candidate);
        let artifacts = self.chats.artifacts.iter().map(|(artifact, _)| artifact);
        OwnedTask {
            row: settled(row, now),
            project_name: self.project_name(row.project_id),
            candidates: candidates.collect(),
            artifacts: artifacts
                .filter(|artifact| artifact.task_id == row.task_id)
                .cloned()
                .collect(),
        }
    }

    pub(in super::super) fn cancel_task(
        &mut self,
        owner_id: OwnerId,
        task_id: TaskId,
        now: Timestamp,
    ) -> Result<TaskRow, StoreError> {
        let record = self
            .chats
            .tasks
            .iter_mut()
            .filter(|record| record.owner_id == owner_id)
            .find(|record| record.row.task_id == task_id);
        let row = &mut record.ok_or(Refusal::TaskNotFound)?.row;
        Ok(apply(row, &Event::Cancel, now)?.0)
    }

    pub(in super::super) fn inbox(&self, key: LinkKey, now: Timestamp) -> Option<Vec<TaskRow>> {
        self.live_link(key.link_id, |link| link.connection_id == key.connection_id)?;
        let theirs: Vec<_> = self
            .chats
            .tasks
            .iter()
            .map(|record| &record.row)
            .filter(|row| row.task.is_for(key.link_id))
            .map(|row| settled(row, now))
            .collect();
        Some(rules::inbox(key.link_id, theirs, |row| &row.task))
    }

    /// Applies what a chat does to one of its tasks; true when it was a replay.
    pub(in super::super) fn decide_task(
        &mut self,
        key: LinkKey,
        task_id: TaskId,
        event: &Event,
        now: Timestamp,
    ) -> Result<(TaskRow, bool), StoreError> {
        let unknown = Unknown::to(event);
        self.live_link(key.link_id, |link| link.connection_id == key.connection_id)
            .ok_or(unknown.link)?;
        let mut rows = self.chats.tasks.iter_mut().map(|record| &mut record.row);
        let row = rows.find(|row| row.task_id == task_id && row.task.is_for(key.link_id));
        Ok(apply(row.ok_or(unknown.task)?, event, now)?)
    }

    pub(in super::super) fn upload_artifact(
        &mut self,
        key: LinkKey,
        task_id: TaskId,
        new: NewArtifact,
        now: Timestamp,
    ) -> Result<(Artifact, bool), StoreError> {
        self.live_link(key.link_id, |link| link.connection_id == key.connection_id)
            .ok_or(Unknown::TO_UPLOAD.link)?;
        let row = self.chats.task_for(key.link_id, task_id);
        let row = row.ok_or(Unknown::TO_UPLOAD.task)?;
        let all = self.chats.artifacts.iter().map(|(artifact, _)| artifact);
        let of_task: Vec<_> = all.filter(|artifact| artifact.task_id == task_id).collect();
        let (uploaded, stored) =
            rules::uploaded(&of_task, key.link_id, new.claim_id, &new.artifact_id);
        let upload = Upload {
            link_id: key.link_id,
            claim_id: new.claim_id,
            content: Digest::plain(&new.content),
        };
        let decision = decide_upload(&row.task, &upload, uploaded, now)?;
        if let (Decision::Replayed | Decision::Unchanged, Some(stored)) = (&decision, stored) {
            return Ok((stored.clone(), true));
        }
        let artifact = rules::stored_artifact(key.link_id, task_id, &new, upload.content, now);
        self.chats.artifacts.push((artifact.clone(), new.content));
        Ok((artifact, false))
    }

    pub(in super::super) fn artifact(&self, key: &ArtifactKey) -> Option<(Artifact, Vec<u8>)> {
        let found = self.chats.artifacts.iter().find(|(artifact, _)| {
            (artifact.task_id, artifact.claim_id) == (key.task_id, key.claim_id)
                && artifact.artifact_id == key.artifact_id
        })?;
        let may = match key.reader {
            ArtifactReader::Owner(owner_id) => self
                .chats
                .tasks
                .iter()
                .any(|record| record.row.task_id == key.task_id && record.owner_id == owner_id),
            ArtifactReader::Connection(id) => self
                .live_link(found.0.link_id, |link| link.connection_id == id)
                .is_some(),
        };
        may.then(|| found.clone())
    }
}

fn settled(row: &TaskRow, now: Timestamp) -> TaskRow {
    TaskRow {
        task: task_at(&row.task, now),
        ..row.clone()
    }
}

fn apply(row: &mut TaskRow, event: &Event, now: Timestamp) -> Result<(TaskRow, bool), Refusal> {
    let decision = decide(&row.task, event, now)?;
    let replayed = decision == Decision::Replayed;
    if let Decision::Moved(next) = decision {
        row.task = next;
    }
    Ok((row.clone(), replayed))
}
