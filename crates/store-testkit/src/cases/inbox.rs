//! What a linked chat reads.

use std::slice;

use callboard_domain::limits::{INBOX_CLAIMED_MAX, INBOX_RECENT_MAX, INBOX_WAITING_MAX};
use callboard_store::{AssignTask, LinkKey, Store, TaskRow};

use crate::chat_world::LEASE_MS;
use crate::world::{Workspace, World, at};

/// Assigns so many tasks to `chats`; they come back oldest first.
async fn assigned<S: Store>(
    world: &World<S>,
    workspace: &Workspace,
    chats: &[LinkKey],
    count: usize,
) -> Vec<TaskRow> {
    let mut rows = Vec::new();
    for number in 0..count {
        let request = AssignTask {
            // The wall clock runs backwards: the order of assignment counts, not the time.
            now: at(1_000 - number as u64),
            ..world.assignment(workspace.owner_id, chats, &format!("task {number}"))
        };
        rows.push(world.store.assign_task(request).await.unwrap().row);
    }
    rows
}

pub(super) async fn an_inbox_begins_empty_and_shows_only_what_is_for_its_chat<S: Store>(
    world: World<S>,
) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let (first, second) = (
        world.chat(&ours, "Tax").await,
        world.chat(&ours, "Garden").await,
    );
    let foreign = world.chat(&theirs, "Tax").await;
    assert_eq!(world.inbox(first, 0).await, []);
    let both = world.assign(&ours, &[second, first], "for both").await;
    let one = world.assign(&ours, &[second], "for the second").await;
    let other = world.assign(&theirs, &[foreign], "for a stranger").await;
    assert_eq!(world.inbox(first, 1).await, slice::from_ref(&both));
    assert_eq!(world.inbox(second, 1).await, [both, one]);
    assert_eq!(world.inbox(foreign, 1).await, [other]);
}

pub(super) async fn own_claims_come_first_then_what_waits_then_what_is_over_lately<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let (chat, other) = (
        world.chat(&workspace, "Tax").await,
        world.chat(&workspace, "Garden").await,
    );
    let rows = assigned(&world, &workspace, &[chat, other], 8).await;
    let claimed_late = world.claimed(chat, &rows[2], 2_001).await.0;
    let claimed_early = world.claimed(chat, &rows[5], 2_000).await.0;
    let hidden = world.claimed(other, &rows[1], 2_000).await.0;
    let cancelled = world.cancel(&workspace, &rows[0], 2_003).await;
    let claim = world.claimed(other, &rows[7], 2_001).await.1;
    let stored = world.submit(other, &rows[7], claim.id, "4", 2_002).await;
    let done = stored.unwrap().0;
    let at_once = world.cancel(&workspace, &rows[3], 2_003).await;
    let (fourth, sixth) = (rows[4].clone(), rows[6].clone());
    let over = [at_once, cancelled, done];
    let inbox = |mut before: Vec<TaskRow>| {
        before.extend(over.clone());
        before
    };
    let (early, late) = (claimed_early.clone(), claimed_late.clone());
    let expected = inbox(vec![late, early, fourth.clone(), sixth.clone()]);
    assert_eq!(
        world.inbox(chat, 2_004).await,
        expected,
        "in the order of assignment, but what is over: latest first"
    );
    let expected = inbox(vec![hidden, fourth, sixth]);
    assert_eq!(world.inbox(other, 2_004).await, expected);

    // At the end of the first leases their tasks wait again, for everybody.
    let lapsed_ids: Vec<_> = [&rows[1], &rows[4], &rows[5], &rows[6]]
        .map(|row| row.task_id)
        .to_vec();
    let ids = async |chat| -> Vec<_> {
        let inbox = world.inbox(chat, 2_000 + LEASE_MS).await;
        inbox.into_iter().map(|row| row.task_id).collect()
    };
    let over_ids = over.clone().map(|row| row.task_id);
    let own = [
        vec![claimed_late.task_id],
        lapsed_ids.clone(),
        over_ids.to_vec(),
    ];
    assert_eq!(ids(chat).await, own.concat());
    assert_eq!(ids(other).await, [lapsed_ids, over_ids.to_vec()].concat());
}

pub(super) async fn an_inbox_is_short<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chat = world.chat(&workspace, "Tax").await;
    let (waiting, claimed, over) = (
        INBOX_WAITING_MAX + 1,
        INBOX_CLAIMED_MAX + 1,
        INBOX_RECENT_MAX + 1,
    );
    let rows = assigned(&world, &workspace, &[chat], waiting + claimed + over).await;
    let mut expected = Vec::new();
    for row in &rows[over..over + claimed] {
        expected.push(world.claimed(chat, row, 3_000).await.0);
    }
    expected.truncate(INBOX_CLAIMED_MAX);
    expected.extend_from_slice(&rows[over + claimed..over + claimed + INBOX_WAITING_MAX]);
    let mut ended = Vec::new();
    for (row, after_ms) in rows[..over].iter().zip([9, 4, 8, 5, 7, 6]) {
        ended.push(world.cancel(&workspace, row, 3_000 + after_ms).await);
    }
    ended.sort_by_key(|row| std::cmp::Reverse(row.task.finished_at()));
    expected.extend_from_slice(&ended[..INBOX_RECENT_MAX]);
    assert_eq!(world.inbox(chat, 4_000).await, expected);
}
