//! What becomes of tasks when a chat is gone.

use std::slice;

use callboard_domain::limits::TASK_EXPIRY_MS;
use callboard_domain::linked_task::{State, Task};
use callboard_domain::{ChatLinkId, Refusal};
use callboard_store::{LinkKey, Revoked, Store, TaskRow};

use crate::chat_world::{LEASE_MS, cancelled, moved};
use crate::world::{Workspace, World, at, refusal};

/// `row` with these candidates left.
fn left(row: TaskRow, candidates: &[LinkKey]) -> TaskRow {
    let candidates: Vec<ChatLinkId> = candidates.iter().map(|chat| chat.link_id).collect();
    let task = Task {
        candidates,
        ..row.task
    };
    TaskRow { task, ..row }
}

/// Asserts that each task reads as it was told, for its owner.
async fn are_stored<S: Store>(world: &World<S>, workspace: &Workspace, rows: &[TaskRow]) {
    for row in rows {
        let after_ms = row.task.updated_at.millis_since(at(0));
        assert_eq!(world.task(workspace, row, after_ms).await, *row);
    }
}

pub(super) async fn a_revoked_link_leaves_its_open_tasks<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let gone = world.chat(&workspace, "gone").await;
    let stays = world.chat(&workspace, "stays").await;
    let both = [gone, stays];
    let assign = async |chats: &[LinkKey], text| world.assign(&workspace, chats, text).await;
    let shared = assign(&both, "both wait").await;
    let alone = assign(&both[..1], "it waits alone").await;
    let held = assign(&both, "it holds").await;
    let held_alone = assign(&both[..1], "it holds alone").await;
    let held_by_other = assign(&both, "the other holds").await;
    let over = assign(&both, "it was done").await;
    let apart = assign(&both[1..], "it is none of its business").await;
    let lost = world.claimed(gone, &held, 1).await.1;
    world.claimed(gone, &held_alone, 1).await;
    let (held_by_other, kept) = world.claimed(stays, &held_by_other, 1).await;
    let claim = world.claimed(gone, &over, 1).await.1;
    let over = world.submit(gone, &over, claim.id, "4", 2).await.unwrap().0;

    let lease_until = at(1).plus_ms(LEASE_MS);
    let claim = kept;
    let expected = [
        left(moved(&shared, State::Queued, 3), &both[1..]),
        moved(&alone, cancelled(3), 3),
        left(moved(&held, State::Queued, 3), &both[1..]),
        moved(&held_alone, cancelled(3), 3),
        left(
            moved(&held_by_other, State::Claimed { claim, lease_until }, 3),
            &both[1..],
        ),
    ];
    let changed = world.revoke_chat(&workspace, gone, 3).await;
    assert_eq!(changed, expected, "in the order of assignment");
    are_stored(&world, &workspace, &expected).await;
    are_stored(&world, &workspace, &[over, apart]).await;

    let (owner_id, link_id) = (workspace.owner_id, gone.link_id);
    let again = world.store.revoke_chat_link(owner_id, link_id, at(4)).await;
    assert_eq!(again.unwrap(), Some(vec![]));
    let late = world.submit(gone, &held, lost.id, "4", 4).await;
    assert_eq!(refusal(late), Refusal::SubmitMissing);
    let late = world.claim(gone, &held, 4).await;
    assert_eq!(refusal(late), Refusal::ChatLinkNotFound);
    assert_eq!(world.store.inbox(gone, at(4)).await.unwrap(), None);
    let late = world.submit(stays, &held, lost.id, "4", 4).await;
    assert_eq!(refusal(late), Refusal::SubmitLapsed);
    let taken = world.claimed(stays, &held, 4).await.0;
    let lease_until = taken.task.lease_until();
    assert_eq!(
        lease_until,
        Some(at(TASK_EXPIRY_MS)),
        "it is alone with the task now"
    );
    let stored = world.submit(stays, &held_by_other, kept.id, "5", 5).await;
    assert!(
        !stored.unwrap().1,
        "what another chat holds, it still holds"
    );
}

pub(super) async fn a_task_over_by_then_is_not_cancelled<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chats = [
        world.chat(&workspace, "gone").await,
        world.chat(&workspace, "stays").await,
    ];
    let alone = world.assign(&workspace, &chats[..1], "expires").await;
    let finished_at = at(TASK_EXPIRY_MS);
    let expired = moved(&alone, State::Expired { finished_at }, TASK_EXPIRY_MS);
    let changed = world
        .revoke_chat(&workspace, chats[0], TASK_EXPIRY_MS)
        .await;
    assert_eq!(changed, slice::from_ref(&expired), "time came first");
    are_stored(&world, &workspace, &[expired]).await;
}

pub(super) async fn a_claim_lapsed_by_then_waits_again<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (gone, holds) = (
        world.chat(&workspace, "gone").await,
        world.chat(&workspace, "holds").await,
    );
    let row = world.assign(&workspace, &[gone, holds], "Sum it up").await;
    world.claimed(holds, &row, 0).await;
    let changed = world.revoke_chat(&workspace, gone, LEASE_MS + 5).await;
    let expected = left(moved(&row, State::Queued, LEASE_MS + 5), &[holds]);
    assert_eq!(changed, [expected]);
}

pub(super) async fn a_revoked_connection_takes_all_its_links_along<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (first, second) = (
        world.chat(&workspace, "first").await,
        world.chat(&workspace, "second").await,
    );
    let stays = world.chat_elsewhere(&workspace, "Codex").await;
    let assign = async |chats: &[LinkKey], text| world.assign(&workspace, chats, text).await;
    let for_second = assign(&[second], "for the second").await;
    let apart = assign(&[stays], "none of its business").await;
    let for_all = assign(&[second, stays, first], "for all").await;
    let for_first = assign(&[first], "for the first").await;
    let for_both = assign(&[first, second], "for both").await;
    let held = assign(&[first, stays], "held").await;
    let lost = world.claimed(first, &held, 1).await.1;
    world.claimed(second, &for_both, 1).await;
    let run = world.queue(&workspace, "a-run-beside").await;

    let (owner_id, name) = (workspace.owner_id, "Claude".to_owned());
    let revoked = world.store.revoke_connection(owner_id, name, at(3)).await;
    let Revoked { runs, tasks } = revoked.unwrap().unwrap();
    let run_ids: Vec<_> = runs.iter().map(|row| row.command_id).collect();
    assert_eq!(run_ids, [run.command_id]);
    // The first of its links leaves first, the last one ends what nobody is left for.
    let last_of_both = left(moved(&for_both, cancelled(3), 3), &[second]);
    let expected = [
        moved(&for_second, cancelled(3), 3),
        left(moved(&for_all, State::Queued, 3), &[stays]),
        moved(&for_first, cancelled(3), 3),
        last_of_both,
        left(moved(&held, State::Queued, 3), &[stays]),
    ];
    assert_eq!(tasks, expected, "in the order of assignment, each once");
    are_stored(&world, &workspace, &expected).await;
    are_stored(&world, &workspace, slice::from_ref(&apart)).await;

    for chat in [first, second] {
        assert_eq!(world.store.inbox(chat, at(4)).await.unwrap(), None);
        let link_id = chat.link_id;
        let again = world.store.revoke_chat_link(owner_id, link_id, at(4)).await;
        assert_eq!(again.unwrap(), Some(vec![]));
    }
    let late = world.submit(first, &held, lost.id, "4", 4).await;
    assert_eq!(refusal(late), Refusal::SubmitMissing);
    let waiting = [apart, expected[1].clone(), expected[4].clone()];
    assert_eq!(world.inbox(stays, 4).await, waiting);
}

pub(super) async fn a_task_that_is_over_keeps_the_names_of_its_chats<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (chat, other) = (
        world.chat(&workspace, "Tax").await,
        world.chat_elsewhere(&workspace, "Codex").await,
    );
    let row = world.assign(&workspace, &[chat, other], "Sum it up").await;
    let claim = world.claimed(chat, &row, 1).await.1;
    world.submit(chat, &row, claim.id, "4", 2).await.unwrap();
    let before = world.owned(&workspace, &row, 3).await;
    assert_eq!(world.revoke_chat(&workspace, other, 3).await, []);
    let name = workspace.connection.name.clone();
    let revoked = world
        .store
        .revoke_connection(workspace.owner_id, name, at(3));
    assert_eq!(revoked.await.unwrap(), Some(Revoked::default()));
    assert_eq!(world.owned(&workspace, &row, 4).await, before);
    assert_eq!(before.candidates.len(), 2);
}
