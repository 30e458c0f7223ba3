//! Chats that linked themselves.

use std::slice;

use callboard_domain::limits::CHATS_PER_CONNECTION_MAX;
use callboard_domain::{ChatLinkId, ConnectionId, OwnerId, ProjectId, Refusal};
use callboard_store::{ChatLink, ChatRow, LinkKey, LinkedChat, NewChatLink, Store};

use crate::all_at_once;
use crate::chat_world::file;
use crate::world::{Workspace, World, at, refusal, seen};

/// The links that `workspace`'s owner sees.
async fn links<S: Store>(world: &World<S>, workspace: &Workspace) -> Vec<ChatLink> {
    let rows = world.store.chat_links(workspace.owner_id).await.unwrap();
    rows.into_iter().map(|row| row.link).collect()
}

fn new_chat<S: Store>(world: &World<S>, workspace: &Workspace, label: &str) -> NewChatLink {
    world.new_chat(workspace.connection.id, workspace.project.id, label)
}

pub(super) async fn a_link_is_read_back_whole<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let none = world.store.chat_links(workspace.owner_id).await.unwrap();
    assert_eq!(none, []);
    let mut expected = Vec::new();
    for (label, reference, host_hint, after_ms) in [
        (
            "<b>Tax</b> \u{1F600}\r\n",
            Some("https://chat/1?a=b'\";--"),
            Some("v1/\u{1}"),
            5,
        ),
        ("tax", Some(""), None, 7),
        ("Tax", None, None, 7),
    ] {
        let mut new = new_chat(&world, &workspace, label);
        new.link.reference = reference.map(str::to_owned);
        new.link.host_hint = host_hint.map(str::to_owned);
        new.link.linked_at = at(after_ms);
        let link = new.link.clone();
        let linked = world.store.link_chat(new).await.unwrap();
        let fresh = LinkedChat {
            link: link.clone(),
            replayed: false,
        };
        assert_eq!(linked, fresh);
        expected.push(ChatRow {
            link,
            connection_name: "Claude".to_owned(),
            project_name: "Home".to_owned(),
        });
    }
    let rows = world.store.chat_links(workspace.owner_id).await.unwrap();
    assert_eq!(rows, expected);
}

pub(super) async fn the_same_key_is_the_same_link<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let first = new_chat(&world, &workspace, "Tax");
    world.store.link_chat(first.clone()).await.unwrap();
    let mut again = first.clone();
    again.link = ChatLink {
        id: ChatLinkId::from_bytes(world.id()),
        host_hint: Some("another window".to_owned()),
        linked_at: at(60_000),
        ..first.link.clone()
    };
    let replay = LinkedChat {
        link: first.link.clone(),
        replayed: true,
    };
    assert_eq!(world.store.link_chat(again).await.unwrap(), replay);
    assert_eq!(links(&world, &workspace).await, [first.link]);
}

pub(super) async fn the_key_of_a_link_is_refused_for_another_request<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let first = new_chat(&world, &workspace, "Tax");
    world.store.link_chat(first.clone()).await.unwrap();
    let other = NewChatLink {
        idempotency_key: first.idempotency_key.clone(),
        ..new_chat(&world, &workspace, "Garden")
    };
    let refused = world.store.link_chat(other).await;
    assert_eq!(refusal(refused), Refusal::LinkKeyReused);
    assert_eq!(links(&world, &workspace).await, [first.link]);
}

pub(super) async fn keys_of_links_belong_to_their_connection<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let added = [workspace.project.id];
    let (neighbour, _) = world.connection(workspace.owner_id, "Codex", &added).await;
    let ours = world.chat(&workspace, "Tax").await;
    let theirs = world.chat_of(neighbour.id, added[0], "Tax").await;
    assert_ne!(ours.link_id, theirs.link_id);
    let ids: Vec<_> = links(&world, &workspace)
        .await
        .into_iter()
        .map(|link| link.id)
        .collect();
    assert_eq!(ids, [ours.link_id, theirs.link_id]);
}

pub(super) async fn the_key_of_a_revoked_link_finds_nothing<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let first = new_chat(&world, &workspace, "Tax");
    let chat = world.chat(&workspace, "Tax").await;
    assert_eq!(world.revoke_chat(&workspace, chat, 1).await, []);
    let again = world.store.link_chat(first.clone()).await;
    assert_eq!(refusal(again), Refusal::ChatLinkNotFound);
    let other = NewChatLink {
        request: new_chat(&world, &workspace, "Garden").request,
        ..first
    };
    let other = world.store.link_chat(other).await;
    assert_eq!(refusal(other), Refusal::LinkKeyReused);
    assert_eq!(links(&world, &workspace).await, []);
    world.chat(&workspace, "Tax, once more").await;
    assert_eq!(links(&world, &workspace).await.len(), 1);
}

pub(super) async fn a_project_that_was_not_added_takes_no_link<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let not_added = world.project(ours.owner_id, "Work").await;
    let (gone, _) = world
        .connection(ours.owner_id, "Codex", &[ours.project.id])
        .await;
    let revoked = world
        .store
        .revoke_connection(ours.owner_id, "Codex".to_owned(), at(1));
    revoked.await.unwrap().unwrap();
    let unknown = world.new_chat(ours.connection.id, ProjectId::from_bytes([9; 16]), "Tax");
    let unknown = seen(&world.store.link_chat(unknown).await);
    let nobody = ConnectionId::from_bytes([9; 16]);
    for (connection_id, project_id) in [
        (ours.connection.id, not_added.id),
        (ours.connection.id, theirs.project.id),
        (gone.id, ours.project.id),
        (nobody, ours.project.id),
    ] {
        let new = world.new_chat(connection_id, project_id, "Tax");
        let refused = world.store.link_chat(new).await;
        assert_eq!(seen(&refused), unknown);
        assert_eq!(refusal(refused), Refusal::ProjectNotFound);
    }
    assert_eq!(links(&world, &ours).await, []);
    let chat = world.chat(&ours, "Tax").await;
    let link_ids = links(&world, &ours).await;
    assert_eq!(link_ids[0].id, chat.link_id, "the key was not used up");
}

pub(super) async fn links_come_oldest_first_and_only_to_their_owner<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let added = [ours.project.id];
    let (neighbour, _) = world.connection(ours.owner_id, "Codex", &added).await;
    let mut expected = Vec::new();
    // The wall clock is set back between the first and the second.
    for (label, connection_id, after_ms) in [
        ("zebra", ours.connection.id, 90_000),
        ("ant", neighbour.id, 10),
        ("Älg", ours.connection.id, 20),
        ("bee", neighbour.id, 15),
    ] {
        let mut new = world.new_chat(connection_id, ours.project.id, label);
        new.link.linked_at = at(after_ms);
        expected.push(new.link.clone());
        world.store.link_chat(new).await.unwrap();
    }
    let foreign = world.chat(&theirs, "zebra").await;
    assert_eq!(links(&world, &ours).await, expected);
    assert_eq!(links(&world, &theirs).await[0].id, foreign.link_id);
    let nobody = world.store.chat_links(OwnerId::from_bytes([9; 16])).await;
    assert_eq!(nobody.unwrap(), []);

    let second = expected.remove(1);
    let revoked = world
        .store
        .revoke_chat_link(ours.owner_id, second.id, at(1));
    assert_eq!(revoked.await.unwrap(), Some(vec![]));
    assert_eq!(links(&world, &ours).await, expected);
    let revoked = world
        .store
        .revoke_connection(ours.owner_id, "Codex".to_owned(), at(2));
    revoked.await.unwrap().unwrap();
    expected.retain(|link| link.connection_id != neighbour.id);
    assert_eq!(links(&world, &ours).await, expected);
}

pub(super) async fn a_connection_takes_a_thousand_links<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let labels = (0..CHATS_PER_CONNECTION_MAX).map(|number| format!("chat number {number}"));
    let chats = all_at_once(labels.map(async |label| world.chat(&workspace, &label).await)).await;
    let one_more = || new_chat(&world, &workspace, "one more");
    let refused = world.store.link_chat(one_more()).await;
    assert_eq!(refusal(refused), Refusal::TooManyLinks);
    let known = new_chat(&world, &workspace, "chat number 0");
    let known = world.store.link_chat(known).await.unwrap();
    assert!(known.replayed);
    assert_eq!(known.link.id, chats[0].link_id);
    world.chat_elsewhere(&workspace, "another connection").await;

    world.revoke_chat(&workspace, chats[1], 1).await;
    assert!(!world.store.link_chat(one_more()).await.unwrap().replayed);
    let refused = new_chat(&world, &workspace, "and one more");
    let refused = world.store.link_chat(refused).await;
    assert_eq!(refusal(refused), Refusal::TooManyLinks);
    let count = links(&world, &workspace).await.len();
    assert_eq!(count, CHATS_PER_CONNECTION_MAX + 1);
}

pub(super) async fn a_foreign_a_revoked_and_an_unknown_chat_are_one<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let (live, revoked) = (
        world.chat(&ours, "live").await,
        world.chat(&ours, "revoked").await,
    );
    world.revoke_chat(&ours, revoked, 1).await;
    let foreign = world.chat(&theirs, "foreign").await;
    let added = [ours.project.id];
    let (neighbour, _) = world.connection(ours.owner_id, "Codex", &added).await;
    let unknown = LinkKey {
        link_id: ChatLinkId::from_bytes([9; 16]),
        ..live
    };
    let through = |connection_id, chat: LinkKey| LinkKey {
        connection_id,
        ..chat
    };
    let keys = [
        unknown,
        revoked,
        through(neighbour.id, live),
        through(theirs.connection.id, live),
        through(ours.connection.id, foreign),
        through(ConnectionId::from_bytes([9; 16]), live),
    ];
    let row = world.assign(&ours, &[live], "a task of ours").await;
    let (claimed, claim) = world.claimed(live, &row, 1).await;
    for key in keys {
        let answers = [
            seen(&world.store.inbox(key, at(2)).await),
            seen(&world.claim(key, &row, 2).await),
            seen(&world.submit(key, &row, claim.id, "done", 2).await),
            seen(&world.upload(key, &row, file(claim, "file", b"1"), 2).await),
        ];
        let expected = [
            "Ok(None)",
            "Err(Refused(ChatLinkNotFound))",
            "Err(Refused(SubmitMissing))",
            "Err(Refused(SubmitMissing))",
        ];
        assert_eq!(answers, expected);
    }
    assert_eq!(world.inbox(live, 2).await, slice::from_ref(&claimed));
    assert_eq!(world.owned(&ours, &row, 2).await.artifacts, []);

    let revoke = |owner_id, link_id| world.store.revoke_chat_link(owner_id, link_id, at(2));
    for (owner_id, chat) in [
        (ours.owner_id, unknown),
        (theirs.owner_id, revoked),
        (ours.owner_id, foreign),
        (theirs.owner_id, live),
    ] {
        assert_eq!(revoke(owner_id, chat.link_id).await.unwrap(), None);
    }
    let again = revoke(ours.owner_id, revoked.link_id).await;
    assert_eq!(again.unwrap(), Some(vec![]), "its owner may ask twice");
    assert_eq!(world.inbox(live, 3).await, [claimed]);
    assert_eq!(world.inbox(foreign, 3).await, []);
}
