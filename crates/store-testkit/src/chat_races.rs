//! Eight callers at once on linked chats: one claim, one result, one row.

use std::collections::BTreeSet;
use std::slice;

use callboard_domain::linked_task::{Ended, State, Status, Verdict};
use callboard_domain::{ClaimId, Digest, Refusal};
use callboard_store::{AssignTask, LinkKey, NewArtifact, NewChatLink, Store, StoreError, TaskRow};

use crate::block_on;
use crate::chat_world::{Decided, cancelled, claim_of, file, moved, outcome};
use crate::races::{CALLERS, at_once};
use crate::world::{Workspace, World, at, refusal};

/// Contested tasks in each round.
const TASKS: usize = 10;

/// A world with as many chats of as many connections as there are callers.
#[derive(Debug)]
pub(crate) struct Contest<'a, S> {
    world: &'a World<S>,
    workspace: &'a Workspace,
    chats: Vec<LinkKey>,
}

impl<'a, S: Store> Contest<'a, S> {
    pub(crate) fn new(world: &'a World<S>, workspace: &'a Workspace) -> Self {
        let chat = |caller| {
            let label = format!("chat of caller {caller}");
            block_on(world.chat_elsewhere(workspace, &label))
        };
        Self {
            world,
            workspace,
            chats: (0..CALLERS).map(chat).collect(),
        }
    }

    pub(crate) fn play(&self, round: usize) {
        for number in 0..TASKS {
            self.one_chat_gets_the_claim(&format!("{round}, contest {number}"));
        }
        self.one_chat_gets_one_claim(round);
        self.a_repeated_submit_is_stored_once(round);
        self.one_of_several_results_is_stored(round);
        self.submit_and_cancel_agree_on_one_end(round);
        self.claim_cancel_and_revoke_agree_on_one_end(round);
        self.one_key_links_one_chat(round);
        self.one_key_assigns_one_task(round);
        self.one_artifact_id_stores_one_file(round);
    }

    fn assign(&self, chats: &[LinkKey], text: &str) -> TaskRow {
        block_on(self.world.assign(self.workspace, chats, text))
    }

    fn read(&self, row: &TaskRow) -> TaskRow {
        block_on(self.world.task(self.workspace, row, 1))
    }

    fn claim_ids(&self) -> Vec<ClaimId> {
        let ids = (0..CALLERS).map(|_| ClaimId::from_bytes(self.world.id()));
        ids.collect()
    }

    async fn claim(&self, chat: LinkKey, row: &TaskRow, claim_id: ClaimId) -> Decided {
        let (task_id, now) = (row.task_id, at(1));
        let claimed = self
            .world
            .store
            .claim_task(chat, task_id, claim_id, 60_000, now);
        claimed.await
    }

    fn one_chat_gets_the_claim(&self, text: &str) {
        let row = self.assign(&self.chats, text);
        let ids = self.claim_ids();
        let mut answers = at_once(async |caller| {
            let chat = self.chats[caller];
            self.claim(chat, &row, ids[caller]).await
        });
        let won: Vec<_> = (0..CALLERS)
            .filter(|caller| answers[*caller].is_ok())
            .collect();
        assert_eq!(won.len(), 1, "{answers:?}");
        let (winner, replayed) = answers.swap_remove(won[0]).unwrap();
        let claim = claim_of(&winner);
        let expected = (self.chats[won[0]].link_id, ids[won[0]]);
        assert_eq!((claim.link_id, claim.id), expected);
        assert!(!replayed);
        for lost in answers {
            assert_eq!(refusal(lost), Refusal::ClaimTaken);
        }
        assert_eq!(self.read(&row), winner);
    }

    fn one_chat_gets_one_claim(&self, round: usize) {
        let row = self.assign(&self.chats, &format!("{round}, one chat"));
        let ids = self.claim_ids();
        let answers = at_once(async |caller| {
            let claimed = self.claim(self.chats[0], &row, ids[caller]).await;
            claimed.unwrap()
        });
        let fresh = answers.iter().position(|(_, replayed)| !replayed);
        let fresh = fresh.expect("one of them was the first");
        let stored = self.read(&row);
        assert_eq!(claim_of(&stored).id, ids[fresh]);
        for (caller, answer) in answers.iter().enumerate() {
            assert_eq!(*answer, (stored.clone(), caller != fresh));
        }
    }

    fn a_repeated_submit_is_stored_once(&self, round: usize) {
        let text = format!("{round}, one result");
        let row = self.assign(&self.chats[..1], &text);
        let claim = block_on(self.world.claimed(self.chats[0], &row, 1)).1;
        let answers = at_once(async |_| {
            let submitted = self.world.submit(self.chats[0], &row, claim.id, "4", 1);
            submitted.await.unwrap()
        });
        let stored = self.read(&row);
        assert!(answers.iter().all(|(row, _)| *row == stored), "{answers:?}");
        let fresh = answers.iter().filter(|(_, replayed)| !replayed).count();
        assert_eq!(fresh, 1, "one caller stored it, the others found it");
    }

    /// Half of the callers submit one result, half of them another.
    fn one_of_several_results_is_stored(&self, round: usize) {
        let text = format!("{round}, two results");
        let row = self.assign(&self.chats[..1], &text);
        let claim = block_on(self.world.claimed(self.chats[0], &row, 1)).1;
        let results = ["4", "5"];
        let answers = at_once(async |caller| {
            let result = results[caller % 2];
            let submitted = self.world.submit(self.chats[0], &row, claim.id, result, 1);
            submitted.await
        });
        let stored = self.read(&row);
        let result = stored.task.outcome().expect("a result").result.clone();
        let mut fresh = 0;
        for (caller, answer) in answers.into_iter().enumerate() {
            if results[caller % 2] == result {
                let (row, replayed) = answer.unwrap();
                assert_eq!(row, stored);
                fresh += usize::from(!replayed);
            } else {
                let over = Refusal::SubmitOver(Ended::Completed);
                assert_eq!(refusal(answer), over);
            }
        }
        assert_eq!(fresh, 1);
    }

    fn submit_and_cancel_agree_on_one_end(&self, round: usize) {
        let text = format!("{round}, done or cancelled");
        let row = self.assign(&self.chats[..1], &text);
        let claim = block_on(self.world.claimed(self.chats[0], &row, 1)).1;
        let ended = outcome(claim, Verdict::Completed, "4", 2);
        let done = State::Completed(claim, ended);
        let (done, off) = (moved(&row, done, 2), moved(&row, cancelled(2), 2));
        let answers = at_once(async |caller| {
            if caller % 2 == 0 {
                let cancelled = self.world.cancel(self.workspace, &row, 2).await;
                return Ok(cancelled);
            }
            let submitted = self.world.submit(self.chats[0], &row, claim.id, "4", 2);
            submitted.await.map(|(row, _)| row)
        });
        let stored = self.read(&row);
        assert!(stored == done || stored == off, "{stored:?}");
        for (caller, answer) in answers.into_iter().enumerate() {
            if caller % 2 == 0 || stored == done {
                assert_eq!(answer.unwrap(), stored);
            } else {
                let over = Refusal::SubmitOver(Ended::Cancelled);
                assert_eq!(refusal(answer), over);
            }
        }
    }

    /// Two callers each claim for the one chat and for the other, cancel, and revoke the first.
    fn claim_cancel_and_revoke_agree_on_one_end(&self, round: usize) {
        let (world, workspace) = (self.world, self.workspace);
        let leaver = block_on(world.chat(workspace, &format!("leaves in round {round}")));
        let chats = [leaver, self.chats[0]];
        let row = self.assign(&chats, &format!("{round}, four ways"));
        let (ids, now) = (self.claim_ids(), at(1));
        let (owner_id, link_id) = (workspace.owner_id, leaver.link_id);
        let answers: Vec<Result<Vec<TaskRow>, StoreError>> = at_once(async |caller| match caller {
            0..4 => {
                let claimed = self.claim(chats[caller % 2], &row, ids[caller]).await;
                claimed.map(|(row, _)| vec![row])
            }
            4 | 5 => {
                let cancelled = world.store.cancel_task(owner_id, row.task_id, now).await;
                cancelled.map(|row| vec![row])
            }
            _ => {
                let revoked = world.store.revoke_chat_link(owner_id, link_id, now).await;
                revoked.map(|tasks| tasks.expect("the owner had it, whoever was first"))
            }
        });
        let stored = self.read(&row);
        assert_eq!(stored.task.status(), Status::Over(Ended::Cancelled));
        for pair in [[0, 2], [1, 3]] {
            let claims = pair
                .iter()
                .filter_map(|caller| answers[*caller].as_ref().ok());
            let ids: BTreeSet<_> = claims.map(|rows| claim_of(&rows[0]).id).collect();
            assert!(ids.len() <= 1, "a chat has one claim: {answers:?}");
        }
        for claim in &answers[..4] {
            match claim {
                Ok(rows) => assert_eq!(rows[0].task.status(), Status::Claimed),
                Err(StoreError::Refused(
                    Refusal::ClaimTaken
                    | Refusal::ClaimOver(Ended::Cancelled)
                    | Refusal::ChatLinkNotFound,
                )) => {}
                Err(_) => panic!("{answers:?}"),
            }
        }
        for cancel in &answers[4..6] {
            let cancelled = cancel.as_ref().unwrap();
            assert_eq!(*cancelled, slice::from_ref(&stored), "{answers:?}");
        }
        let changed = answers[6..].iter().map(|answer| answer.as_ref().unwrap());
        let changed: Vec<_> = changed.flatten().collect();
        assert!(changed.len() <= 1, "it changes once: {answers:?}");
    }

    fn one_key_links_one_chat(&self, round: usize) {
        let label = format!("one link in round {round}");
        let (connection_id, project_id) = (self.workspace.connection.id, self.workspace.project.id);
        let requests: Vec<NewChatLink> = (0..CALLERS)
            .map(|_| self.world.new_chat(connection_id, project_id, &label))
            .collect();
        let answers = at_once(async |caller| {
            let linked = self.world.store.link_chat(requests[caller].clone()).await;
            linked.unwrap()
        });
        assert!(answers.iter().all(|linked| linked.link == answers[0].link));
        let fresh = answers.iter().filter(|linked| !linked.replayed).count();
        assert_eq!(fresh, 1, "{answers:?}");
        let links = self.world.store.chat_links(self.workspace.owner_id);
        let links = block_on(links).unwrap();
        let of_label = links.into_iter().filter(|row| row.link.label == label);
        let stored: Vec<_> = of_label.map(|row| row.link).collect();
        assert_eq!(stored, slice::from_ref(&answers[0].link));
    }

    fn one_key_assigns_one_task(&self, round: usize) {
        let text = format!("one task in round {round}");
        let owner_id = self.workspace.owner_id;
        let requests: Vec<AssignTask> = (0..CALLERS)
            .map(|_| self.world.assignment(owner_id, &self.chats, &text))
            .collect();
        let answers = at_once(async |caller| {
            let assigned = self.world.store.assign_task(requests[caller].clone()).await;
            assigned.unwrap()
        });
        assert!(answers.iter().all(|task| task.row == answers[0].row));
        let fresh = answers.iter().filter(|task| !task.replayed).count();
        assert_eq!(fresh, 1, "{answers:?}");
        let latest = block_on(self.world.store.tasks(owner_id, 2, at(1))).unwrap();
        assert_eq!(latest[0].row, answers[0].row);
        assert_ne!(latest[1].row.text, text);
    }

    /// All upload under one id: the one half these bytes, the other half those.
    fn one_artifact_id_stores_one_file(&self, round: usize) {
        let row = self.assign(&self.chats[..1], &format!("{round}, one file"));
        let claim = block_on(self.world.claimed(self.chats[0], &row, 1)).1;
        for halves in [[b"1", b"1"], [b"2", b"3"]] {
            let id = format!("file {}", halves[0][0]);
            let files: Vec<NewArtifact> = (0..CALLERS)
                .map(|caller| file(claim, &id, halves[caller % 2]))
                .collect();
            let answers = at_once(async |caller| {
                let new = files[caller].clone();
                self.world.upload(self.chats[0], &row, new, 1).await
            });
            let owned = block_on(self.world.owned(self.workspace, &row, 1));
            let stored = owned.artifacts.last().unwrap();
            assert_eq!(stored.artifact_id, id);
            let mut fresh = 0;
            for (caller, answer) in answers.into_iter().enumerate() {
                let content = Digest::plain(halves[caller % 2]);
                if content == stored.content {
                    let (artifact, replayed) = answer.unwrap();
                    assert_eq!(artifact, *stored);
                    fresh += usize::from(!replayed);
                } else {
                    assert_eq!(refusal(answer), Refusal::ArtifactDiffers);
                }
            }
            assert_eq!(fresh, 1);
        }
        let owned = block_on(self.world.owned(self.workspace, &row, 1));
        assert_eq!(owned.artifacts.len(), 2);
    }
}
