//! Files that chats attach to their tasks.

use callboard_domain::limits::{
    ARTIFACT_BYTES_MAX, ARTIFACTS_PER_CLAIM_MAX, ARTIFACTS_PER_TASK_MAX, TASK_EXPIRY_MS,
};
use callboard_domain::linked_task::{Claim, Ended};
use callboard_domain::{ChatLinkId, ClaimId, ConnectionId, Digest, OwnerId, Refusal, TaskId};
use callboard_store::{
    Artifact, ArtifactKey, ArtifactReader, LinkKey, NewArtifact, Store, TaskRow,
};

use crate::chat_world::{LEASE_MS, file};
use crate::world::{Workspace, World, at, refusal};

/// A workspace with two candidates of one task, which the first has claimed at the start.
struct Desk<S> {
    world: World<S>,
    workspace: Workspace,
    chats: [LinkKey; 2],
    row: TaskRow,
    claim: Claim,
}

impl<S: Store> Desk<S> {
    async fn new(world: World<S>) -> Self {
        let workspace = world.workspace().await;
        let first = world.chat(&workspace, "Tax").await;
        let chats = [first, world.chat_elsewhere(&workspace, "Codex").await];
        let row = world.assign(&workspace, &chats, "Sum it up").await;
        let (row, claim) = world.claimed(first, &row, 0).await;
        Self {
            world,
            workspace,
            chats,
            row,
            claim,
        }
    }

    /// Uploads as the first chat.
    async fn upload(&self, file: NewArtifact, after_ms: u64) -> (Artifact, bool) {
        let uploaded = self.world.upload(self.chats[0], &self.row, file, after_ms);
        uploaded.await.unwrap()
    }

    async fn refused(&self, chat: LinkKey, file: NewArtifact, after_ms: u64) -> Refusal {
        refusal(self.world.upload(chat, &self.row, file, after_ms).await)
    }

    async fn read(
        &self,
        reader: ArtifactReader,
        artifact: &Artifact,
    ) -> Option<(Artifact, Vec<u8>)> {
        let key = ArtifactKey {
            reader,
            task_id: artifact.task_id,
            claim_id: artifact.claim_id,
            artifact_id: artifact.artifact_id.clone(),
        };
        self.world.store.artifact(key).await.unwrap()
    }

    async fn read_as_owner(&self, artifact: &Artifact) -> Option<(Artifact, Vec<u8>)> {
        let owner = ArtifactReader::Owner(self.workspace.owner_id);
        self.read(owner, artifact).await
    }

    /// What the owner sees on the task.
    async fn listed(&self) -> Vec<Artifact> {
        let owned = self.world.owned(&self.workspace, &self.row, 1).await;
        owned.artifacts
    }
}

pub(super) async fn a_file_is_read_back_whole<S: Store>(world: World<S>) {
    let desk = Desk::new(world).await;
    let new = NewArtifact {
        claim_id: desk.claim.id,
        artifact_id: "<\u{1F600}> 'id'".to_owned(),
        name: "../../etc/\"<script>\".html\r\n".to_owned(),
        media_type: "text/html; charset=utf-8".to_owned(),
        content: b"<script>alert(1)</script>".to_vec(),
    };
    let expected = Artifact {
        task_id: desk.row.task_id,
        link_id: desk.chats[0].link_id,
        claim_id: desk.claim.id,
        artifact_id: new.artifact_id.clone(),
        name: new.name.clone(),
        media_type: new.media_type.clone(),
        size_bytes: 25,
        content: Digest::plain(b"<script>alert(1)</script>"),
        uploaded_at: at(5),
    };
    let uploaded = desk.upload(new.clone(), 5).await;
    assert_eq!(uploaded, (expected.clone(), false));
    let found = Some((expected.clone(), new.content));
    assert_eq!(desk.read_as_owner(&expected).await, found);
    let connection = ArtifactReader::Connection(desk.chats[0].connection_id);
    assert_eq!(desk.read(connection, &expected).await, found);
    assert_eq!(desk.listed().await, [expected]);
    let unchanged = desk.world.task(&desk.workspace, &desk.row, 6).await;
    assert_eq!(unchanged, desk.row, "a file does not move its task");
}

pub(super) async fn bytes_come_back_as_they_were<S: Store>(world: World<S>) {
    let desk = Desk::new(world).await;
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let largest: Vec<u8> = every_byte
        .iter()
        .copied()
        .cycle()
        .take(ARTIFACT_BYTES_MAX)
        .collect();
    let zeros = vec![0; 3];
    let mut expected = Vec::new();
    for (id, content) in [
        ("empty", vec![]),
        ("every byte", every_byte),
        ("zeros", zeros),
        ("largest", largest),
    ] {
        let (artifact, replayed) = desk.upload(file(desk.claim, id, &content), 1).await;
        assert!(!replayed);
        assert_eq!(artifact.size_bytes, content.len() as u64);
        let (found, bytes) = desk.read_as_owner(&artifact).await.unwrap();
        assert_eq!(found, artifact);
        assert!(bytes == content, "{id}");
        expected.push(artifact);
    }
    assert_eq!(desk.listed().await, expected, "oldest first");
}

pub(super) async fn the_same_file_again_is_a_replay_whatever_became_of_the_task<S: Store>(
    world: World<S>,
) {
    let desk = Desk::new(world).await;
    let (world, [first, second]) = (&desk.world, desk.chats);
    let new = file(desk.claim, "sums", b"1, 2");
    let (artifact, _) = desk.upload(new.clone(), 1).await;
    let renamed = NewArtifact {
        name: "other.csv".to_owned(),
        media_type: "text/csv".to_owned(),
        ..new.clone()
    };
    let replay = (artifact.clone(), true);
    for again in [new.clone(), renamed] {
        assert_eq!(desk.upload(again, 2).await, replay, "the first one counts");
    }
    assert_eq!(desk.upload(new.clone(), LEASE_MS).await, replay, "lapsed");
    let claim = world.claimed(second, &desk.row, LEASE_MS).await.1;
    assert_eq!(
        desk.upload(new.clone(), LEASE_MS).await,
        replay,
        "taken over"
    );
    let stored = world
        .submit(second, &desk.row, claim.id, "4", LEASE_MS + 1)
        .await;
    stored.unwrap();
    for after_ms in [LEASE_MS + 1, 9 * TASK_EXPIRY_MS] {
        assert_eq!(desk.upload(new.clone(), after_ms).await, replay, "over");
    }
    assert_eq!(desk.listed().await, [artifact]);
    assert_eq!(
        desk.refused(second, new, LEASE_MS + 1).await,
        Refusal::SubmitOver(Ended::Completed)
    );
    assert_eq!(first.link_id, desk.claim.link_id);
}

pub(super) async fn other_content_under_the_same_id_is_refused<S: Store>(world: World<S>) {
    let desk = Desk::new(world).await;
    let (artifact, _) = desk.upload(file(desk.claim, "sums", b"1, 2"), 1).await;
    for content in [&b"1, 3"[..], b"", b"1, 2\n"] {
        let other = file(desk.claim, "sums", content);
        let refused = desk.refused(desk.chats[0], other, 2).await;
        assert_eq!(refused, Refusal::ArtifactDiffers);
    }
    let found = Some((artifact.clone(), b"1, 2".to_vec()));
    assert_eq!(desk.read_as_owner(&artifact).await, found);
    let (beside, replayed) = desk.upload(file(desk.claim, "Sums", b"1, 2"), 3).await;
    assert!(!replayed, "an id is compared to the letter");
    assert_eq!(desk.listed().await, [artifact, beside]);
}

pub(super) async fn the_same_id_under_a_new_claim_is_a_new_file<S: Store>(world: World<S>) {
    let desk = Desk::new(world).await;
    let (first, _) = desk.upload(file(desk.claim, "sums", b"1, 2"), 1).await;
    let (row, claim) = desk.world.claimed(desk.chats[1], &desk.row, LEASE_MS).await;
    let new = file(claim, "sums", b"3, 4");
    let uploaded = desk
        .world
        .upload(desk.chats[1], &row, new, LEASE_MS + 1)
        .await;
    let (second, replayed) = uploaded.unwrap();
    assert!(!replayed);
    assert_eq!(
        (second.claim_id, second.link_id),
        (claim.id, desk.chats[1].link_id)
    );
    for (artifact, content) in [(&first, b"1, 2"), (&second, b"3, 4")] {
        let found = Some((artifact.clone(), content.to_vec()));
        assert_eq!(desk.read_as_owner(artifact).await, found);
    }
    assert_eq!(desk.listed().await, [first, second]);
}

pub(super) async fn an_upload_is_refused_in_the_order_of_a_submit<S: Store>(world: World<S>) {
    let desk = Desk::new(world).await;
    let [first, second] = desk.chats;
    let stranger = desk.world.chat(&desk.workspace, "Garden").await;
    let unknown = LinkKey {
        link_id: ChatLinkId::from_bytes([9; 16]),
        ..first
    };
    let new = file(desk.claim, "sums", b"1, 2");
    let never = NewArtifact {
        claim_id: ClaimId::from_bytes(desk.world.id()),
        ..new.clone()
    };
    for chat in [stranger, unknown] {
        let refused = desk.refused(chat, new.clone(), 1).await;
        assert_eq!(refused, Refusal::SubmitMissing);
    }
    let nowhere = TaskRow {
        task_id: TaskId::from_bytes([9; 16]),
        ..desk.row.clone()
    };
    let refused = desk.world.upload(first, &nowhere, new.clone(), 1).await;
    assert_eq!(refusal(refused), Refusal::SubmitMissing);
    for (chat, new) in [(first, &never), (second, &new)] {
        let refused = desk.refused(chat, new.clone(), 1).await;
        assert_eq!(refused, Refusal::SubmitStale);
    }
    let refused = desk.refused(first, new.clone(), LEASE_MS).await;
    assert_eq!(refused, Refusal::SubmitLapsed);
    assert_eq!(desk.listed().await, []);

    desk.upload(new.clone(), 2).await;
    let other = file(desk.claim, "sums", b"other");
    let more = file(desk.claim, "more", b"1, 2");
    let differs = desk.refused(first, other.clone(), 3).await;
    assert_eq!(differs, Refusal::ArtifactDiffers);
    for new in [&other, &more] {
        let lapsed = desk.refused(first, new.clone(), LEASE_MS).await;
        assert_eq!(lapsed, Refusal::SubmitLapsed);
    }
    desk.world.cancel(&desk.workspace, &desk.row, 3).await;
    let over = Refusal::SubmitOver(Ended::Cancelled);
    for new in [&other, &more, &never] {
        assert_eq!(desk.refused(first, new.clone(), 4).await, over);
    }
    assert_eq!(
        desk.refused(stranger, more, 4).await,
        Refusal::SubmitMissing
    );
    assert_eq!(desk.listed().await.len(), 1);
}

pub(super) async fn a_claim_takes_twenty_files<S: Store>(world: World<S>) {
    let desk = Desk::new(world).await;
    let [first, second] = desk.chats;
    let numbered = |claim, number: usize| file(claim, &format!("{number}"), b"1");
    for number in 0..ARTIFACTS_PER_CLAIM_MAX {
        assert!(!desk.upload(numbered(desk.claim, number), 1).await.1);
    }
    let more = numbered(desk.claim, ARTIFACTS_PER_CLAIM_MAX);
    let refused = desk.refused(first, more.clone(), 2).await;
    assert_eq!(refused, Refusal::TooManyArtifacts);
    assert!(desk.upload(numbered(desk.claim, 0), 2).await.1);
    let refused = desk.refused(first, more, LEASE_MS).await;
    assert_eq!(refused, Refusal::SubmitLapsed);
    let claim = desk.world.claimed(second, &desk.row, LEASE_MS).await.1;
    let fresh = numbered(claim, ARTIFACTS_PER_CLAIM_MAX);
    let uploaded = desk.world.upload(second, &desk.row, fresh, LEASE_MS).await;
    assert!(!uploaded.unwrap().1, "each claim has its own twenty");
    assert_eq!(desk.listed().await.len(), ARTIFACTS_PER_CLAIM_MAX + 1);
}

pub(super) async fn a_task_takes_a_hundred_files_over_all_its_claims<S: Store>(world: World<S>) {
    let desk = Desk::new(world).await;
    let (mut claim, mut turn) = (desk.claim, 0);
    for number in 0..ARTIFACTS_PER_TASK_MAX {
        if number > 0 && number % ARTIFACTS_PER_CLAIM_MAX == 0 {
            turn += 1;
            let chat = desk.chats[turn % 2];
            claim = desk
                .world
                .claimed(chat, &desk.row, turn as u64 * LEASE_MS)
                .await
                .1;
        }
        let (chat, at_ms) = (desk.chats[turn % 2], turn as u64 * LEASE_MS);
        let new = file(claim, &format!("{number}"), b"1");
        let uploaded = desk.world.upload(chat, &desk.row, new, at_ms).await;
        assert!(!uploaded.unwrap().1);
    }
    turn += 1;
    let (chat, at_ms) = (desk.chats[turn % 2], turn as u64 * LEASE_MS);
    let claim = desk.world.claimed(chat, &desk.row, at_ms).await.1;
    let refused = desk.refused(chat, file(claim, "more", b"1"), at_ms).await;
    assert_eq!(refused, Refusal::TooManyArtifacts);
    assert_eq!(desk.listed().await.len(), ARTIFACTS_PER_TASK_MAX);
}

pub(super) async fn a_file_is_its_owners_and_its_connections<S: Store>(world: World<S>) {
    let desk = Desk::new(world).await;
    let theirs = desk.world.workspace().await;
    let (artifact, _) = desk.upload(file(desk.claim, "sums", b"1, 2"), 1).await;
    let found = Some((artifact.clone(), b"1, 2".to_vec()));
    let owner = ArtifactReader::Owner(desk.workspace.owner_id);
    let uploader = ArtifactReader::Connection(desk.chats[0].connection_id);
    let sibling = desk.world.chat(&desk.workspace, "another chat").await;
    assert_eq!(sibling.connection_id, desk.chats[0].connection_id);
    for reader in [owner, uploader] {
        assert_eq!(desk.read(reader, &artifact).await, found);
        let (mut task, mut claim, mut id) = (artifact.clone(), artifact.clone(), artifact.clone());
        task.task_id = TaskId::from_bytes([9; 16]);
        claim.claim_id = ClaimId::from_bytes([9; 16]);
        id.artifact_id.push(' ');
        for unknown in [task, claim, id] {
            assert_eq!(desk.read(reader, &unknown).await, None);
        }
    }
    for stranger in [
        ArtifactReader::Owner(theirs.owner_id),
        ArtifactReader::Owner(OwnerId::from_bytes([9; 16])),
        ArtifactReader::Connection(theirs.connection.id),
        ArtifactReader::Connection(desk.chats[1].connection_id),
        ArtifactReader::Connection(ConnectionId::from_bytes([9; 16])),
    ] {
        assert_eq!(desk.read(stranger, &artifact).await, None);
    }
    let changed = desk
        .world
        .revoke_chat(&desk.workspace, desk.chats[0], 2)
        .await;
    assert_eq!(changed.len(), 1);
    assert_eq!(
        desk.read(uploader, &artifact).await,
        None,
        "its link is gone"
    );
    assert_eq!(desk.read(owner, &artifact).await, found);
    assert_eq!(desk.listed().await, [artifact]);
}

pub(super) async fn a_revoked_connection_reads_no_file<S: Store>(world: World<S>) {
    let desk = Desk::new(world).await;
    let (artifact, _) = desk.upload(file(desk.claim, "sums", b"1, 2"), 1).await;
    let (owner_id, name) = (desk.workspace.owner_id, "Claude".to_owned());
    let revoked = desk.world.store.revoke_connection(owner_id, name, at(2));
    revoked.await.unwrap().unwrap();
    let uploader = ArtifactReader::Connection(desk.chats[0].connection_id);
    assert_eq!(desk.read(uploader, &artifact).await, None);
    let again = file(desk.claim, "sums", b"1, 2");
    let refused = desk.refused(desk.chats[0], again, 3).await;
    assert_eq!(refused, Refusal::SubmitMissing);
    let found = Some((artifact.clone(), b"1, 2".to_vec()));
    assert_eq!(desk.read_as_owner(&artifact).await, found);
}
