//! Draws what happens to linked chats: a few links, a few open tasks, claims old and new, so that
//! most of it meets what is there.

use callboard_ambient::Entropy;
use callboard_domain::limits::{TASK_LEASE_MS_DEFAULT, TASKS_LISTED_MAX};
use callboard_domain::linked_task::{Verdict, next_due};
use callboard_domain::{
    ChatLinkId, ClaimId, ConnectionId, Digest, OwnerId, ProjectId, TaskId, Timestamp,
};
use callboard_store::{
    ArtifactKey, ArtifactReader, AssignTask, ChatLink, LinkKey, NewArtifact, NewChatLink, TaskRow,
};

use super::chat_operation::{ChatAnswer, ChatOperation};

/// Links that are drawn from: the latest ones.
const LINKS: usize = 5;
/// Tasks that are mostly drawn from: the latest ones.
const TASKS: usize = 4;
/// How seldom everything is read.
const LOOKS: u64 = 16;

#[derive(Debug, Default)]
pub(super) struct ChatPlayer {
    links: Vec<(LinkKey, ProjectId)>,
    tasks: Vec<(TaskId, OwnerId)>,
    /// Who may claim which task, as far as was seen.
    candidates: Vec<(TaskId, LinkKey)>,
    /// Every claim that was granted, also those that lapsed.
    claims: Vec<(LinkKey, TaskId, ClaimId)>,
    files: Vec<ArtifactKey>,
    /// When time alone will move a task that was seen.
    dues: Vec<Timestamp>,
    submit: Option<ChatOperation>,
    assigned_by: Option<OwnerId>,
}

/// What the rest of the history knows.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) entropy: Entropy,
    pub(super) now: Timestamp,
    pub(super) owner_id: OwnerId,
    pub(super) connection_id: ConnectionId,
    pub(super) project_id: ProjectId,
}

impl Scene {
    fn once_in(&self, times: u64) -> bool {
        self.entropy.below(times) == 0
    }

    fn one<T: Clone>(&self, of: &[T]) -> T {
        let drawn = self.entropy.below(of.len() as u64);
        of[usize::try_from(drawn).unwrap()].clone()
    }

    /// One of the last `latest`, or once in six of all; `None` once in twenty.
    fn some<T: Clone>(&self, of: &[T], latest: usize) -> Option<T> {
        if of.is_empty() || self.once_in(20) {
            return None;
        }
        let from = if self.once_in(6) {
            0
        } else {
            of.len().saturating_sub(latest)
        };
        Some(self.one(&of[from..]))
    }

    fn id(&self) -> [u8; 16] {
        self.entropy.uuid_v7(self.now)
    }
}

impl ChatPlayer {
    pub(super) fn next(&mut self, scene: &Scene) -> ChatOperation {
        match scene.entropy.below(100) {
            0..=9 => Self::link(scene),
            10 => ChatOperation::Revoke(scene.owner_id, self.key(scene).link_id),
            11..=27 => self.assign(scene),
            28..=32 => {
                let (task_id, owner_id) = self.task(scene);
                ChatOperation::Cancel(owner_id, task_id)
            }
            _ if self.tasks.is_empty() => self.assign(scene),
            33..=64 => self.claim(scene),
            _ if self.claims.is_empty() => self.claim(scene),
            65..=84 => self.submit(scene),
            _ => self.upload(scene),
        }
    }

    /// A link as its connection finds it; now and then a strange pair.
    fn key(&self, scene: &Scene) -> LinkKey {
        let known = scene.some(&self.links, LINKS).map(|(key, _)| key);
        let mut key = known.unwrap_or(LinkKey {
            connection_id: scene.connection_id,
            link_id: ChatLinkId::from_bytes([9; 16]),
        });
        if scene.once_in(20) {
            key.connection_id = scene.connection_id;
        }
        key
    }

    fn task(&self, scene: &Scene) -> (TaskId, OwnerId) {
        let nobodys = (TaskId::from_bytes([9; 16]), scene.owner_id);
        let (task_id, owner_id) = scene.some(&self.tasks, TASKS).unwrap_or(nobodys);
        let owner_id = if scene.once_in(20) {
            scene.owner_id
        } else {
            owner_id
        };
        (task_id, owner_id)
    }

    pub(super) fn link(scene: &Scene) -> ChatOperation {
        let number = scene.entropy.below(20);
        let label = format!("chat {}", u8::from(scene.once_in(8)));
        ChatOperation::Link(NewChatLink {
            request: Digest::of(&[scene.project_id.as_bytes(), label.as_bytes()]),
            link: ChatLink {
                id: ChatLinkId::from_bytes(scene.id()),
                connection_id: scene.connection_id,
                project_id: scene.project_id,
                label,
                reference: scene.one(&[None, Some(String::new()), Some("\u{1F600}".to_owned())]),
                host_hint: scene.one(&[None, Some("v1/1".to_owned())]),
                linked_at: scene.now,
            },
            idempotency_key: format!("key-number-{number}"),
        })
    }

    fn assign(&mut self, scene: &Scene) -> ChatOperation {
        let mut candidates: Vec<ChatLinkId> = Vec::new();
        let first = scene.some(&self.links, LINKS);
        for _ in 0..scene.one(&[1, 3, 3, 4]) {
            let recent = self.links.len().saturating_sub(LINKS);
            let neighbours = self.links[recent..].iter().filter(|(_, project_id)| {
                scene.once_in(15) || first.is_some_and(|(_, of_first)| of_first == *project_id)
            });
            let neighbours: Vec<_> = neighbours.map(|(key, _)| key.link_id).collect();
            let drawn = scene.some(&neighbours, LINKS);
            let link_id = drawn.unwrap_or(self.key(scene).link_id);
            if !candidates.contains(&link_id) {
                candidates.push(link_id);
            }
        }
        let text = format!("text {}", u8::from(scene.once_in(4)));
        let mut parts: Vec<&[u8]> = vec![text.as_bytes()];
        // One digest for all lists of the same length makes replays likely.
        let count = [u8::try_from(candidates.len()).unwrap()];
        parts.push(&count);
        self.assigned_by = Some(scene.owner_id);
        ChatOperation::Assign(AssignTask {
            task_id: TaskId::from_bytes(scene.id()),
            owner_id: scene.owner_id,
            candidates,
            request: Digest::of(&parts),
            text,
            idempotency_key: format!("key-number-{}", scene.entropy.below(40)),
            now: scene.now,
        })
    }

    fn claim(&self, scene: &Scene) -> ChatOperation {
        let (mut key, mut task_id) = (self.key(scene), self.task(scene).0);
        if let Some((of_task, candidate)) = scene.some(&self.candidates, 5) {
            task_id = of_task;
            key = if scene.once_in(8) { key } else { candidate };
        }
        let leases = [1_000, 20_000, TASK_LEASE_MS_DEFAULT, u64::MAX];
        ChatOperation::Claim {
            key,
            task_id,
            claim_id: ClaimId::from_bytes(scene.id()),
            lease_ms: if scene.once_in(12) {
                0
            } else {
                scene.one(&leases)
            },
        }
    }

    /// A claim with its link and task, mostly a recent one; one of them wrong once in
    /// eight, and as often the task's first claim, which may be stale.
    fn claimed(&self, scene: &Scene) -> (LinkKey, TaskId, ClaimId) {
        let never = ClaimId::from_bytes([9; 16]);
        let known = scene.some(&self.claims, 3);
        let (mut key, mut task_id, mut claim_id) =
            known.unwrap_or_else(|| (self.key(scene), self.task(scene).0, never));
        match scene.entropy.below(24) {
            0 => key = self.key(scene),
            1 => task_id = self.task(scene).0,
            2 => claim_id = never,
            3..=5 => {
                let first = self
                    .claims
                    .iter()
                    .find(|(_, of_task, _)| *of_task == task_id);
                (key, _, claim_id) = first.copied().unwrap_or((key, task_id, claim_id));
            }
            _ => {}
        }
        (key, task_id, claim_id)
    }

    fn submit(&mut self, scene: &Scene) -> ChatOperation {
        if let Some(again) = self.submit.take_if(|_| scene.once_in(3)) {
            return again;
        }
        let (key, task_id, claim_id) = self.claimed(scene);
        let submit = ChatOperation::Submit {
            key,
            task_id,
            claim_id,
            verdict: scene.one(&[Verdict::Completed, Verdict::Completed, Verdict::Failed]),
            result: scene.one(&["4", "4", "5", "", "\u{1F600}\u{1}"]).to_owned(),
        };
        self.submit = Some(submit.clone());
        submit
    }

    fn upload(&self, scene: &Scene) -> ChatOperation {
        let (key, task_id, claim_id) = self.claimed(scene);
        let new = NewArtifact {
            claim_id,
            artifact_id: scene.one(&["one", "One", "\u{1F600}"]).to_owned(),
            name: scene.one(&["a.txt", "b.txt"]).to_owned(),
            media_type: "text/plain".to_owned(),
            content: scene.one(&[vec![], b"1".to_vec(), vec![0, 255]]),
        };
        ChatOperation::Upload(key, task_id, new)
    }

    /// An instant at which time alone moves a task, or one millisecond beside it: mostly the end
    /// of a lease, for at an expiry most of what is open ends.
    pub(super) fn due(&self, scene: &Scene) -> Option<Timestamp> {
        let recent = self.dues.len().saturating_sub(6);
        let ahead = self.dues[recent..].iter().filter(|due| **due > scene.now);
        let due = ahead.min()?;
        if due.millis_since(scene.now) > TASK_LEASE_MS_DEFAULT && !scene.once_in(8) {
            return None;
        }
        let beside_ms = scene.one(&[-1, 0, 0, 1]);
        Some(Timestamp::from_millis(due.as_millis() + beside_ms))
    }

    /// Remembers what now exists.
    pub(super) fn learn(&mut self, answer: &ChatAnswer) {
        match answer {
            ChatAnswer::Linked(linked) => {
                let link = &linked.link;
                let key = LinkKey {
                    connection_id: link.connection_id,
                    link_id: link.id,
                };
                if !linked.replayed {
                    self.links.push((key, link.project_id));
                }
            }
            ChatAnswer::Assigned(assigned) if !assigned.replayed => {
                self.learn_due(&assigned.row);
                let (task_id, task) = (assigned.row.task_id, &assigned.row.task);
                let candidates = self
                    .links
                    .iter()
                    .filter(|(key, _)| task.is_for(key.link_id));
                self.candidates
                    .extend(candidates.map(|(key, _)| (task_id, *key)));
                self.tasks.extend(
                    self.assigned_by
                        .map(|owner_id| (assigned.row.task_id, owner_id)),
                );
            }
            ChatAnswer::Claimed(row, false) => {
                self.learn_due(row);
                let claim = row.task.claim().expect("it was just claimed");
                let whose = self
                    .links
                    .iter()
                    .find(|(key, _)| key.link_id == claim.link_id);
                let (key, _) = whose.expect("its link is known");
                self.claims.push((*key, row.task_id, claim.id));
            }
            ChatAnswer::Uploaded(artifact, false) => {
                let uploader = self
                    .links
                    .iter()
                    .find(|(key, _)| key.link_id == artifact.link_id);
                let (key, _) = uploader.expect("its link is known");
                self.files.push(ArtifactKey {
                    reader: ArtifactReader::Connection(key.connection_id),
                    task_id: artifact.task_id,
                    claim_id: artifact.claim_id,
                    artifact_id: artifact.artifact_id.clone(),
                });
            }
            ChatAnswer::Assigned(_)
            | ChatAnswer::Tasks(_)
            | ChatAnswer::Links(_)
            | ChatAnswer::Revoked(_)
            | ChatAnswer::Task(_)
            | ChatAnswer::Cancelled(_)
            | ChatAnswer::Inbox(_)
            | ChatAnswer::Claimed(_, true)
            | ChatAnswer::Submitted(..)
            | ChatAnswer::Uploaded(_, true)
            | ChatAnswer::Artifact(_) => {}
        }
    }

    fn learn_due(&mut self, row: &TaskRow) {
        self.dues.extend(next_due(&row.task));
    }

    /// What is read after each operation: all that there is once in [`LOOKS`], otherwise
    /// a few of it.
    pub(super) fn looks(&self, scene: &Scene, owners: &[OwnerId]) -> Vec<ChatOperation> {
        let (task_id, owner_id) = self.task(scene);
        let mut looks = vec![
            ChatOperation::Inbox(self.key(scene)),
            ChatOperation::Task(owner_id, task_id),
        ];
        if let Some(mut key) = scene.some(&self.files, 3).filter(|_| scene.once_in(2)) {
            looks.push(ChatOperation::Artifact(key.clone()));
            key.reader = scene.one(&[
                ArtifactReader::Owner(scene.owner_id),
                ArtifactReader::Connection(scene.connection_id),
            ]);
            looks.push(ChatOperation::Artifact(key));
        }
        if scene.once_in(LOOKS) {
            looks.extend(self.whole(owners));
        }
        looks
    }

    /// Everything that can be read, as operations.
    pub(super) fn whole(&self, owners: &[OwnerId]) -> Vec<ChatOperation> {
        let links = owners.iter().map(|owner| ChatOperation::Links(*owner));
        let tasks = owners.iter().flat_map(|owner| {
            let limits = [2, TASKS_LISTED_MAX];
            limits.map(|limit| ChatOperation::Tasks(*owner, limit))
        });
        let inboxes = self.links.iter().map(|(key, _)| ChatOperation::Inbox(*key));
        links.chain(tasks).chain(inboxes).collect()
    }
}
