//! Claiming a task and answering it: leases and the fence.

use std::slice;

use callboard_domain::limits::TASK_EXPIRY_MS;
use callboard_domain::linked_task::{Claim, Ended, State, Verdict};
use callboard_domain::{ChatLinkId, ClaimId, Refusal, TaskId};
use callboard_store::{LinkKey, Store, TaskRow};

use crate::chat_world::{Decided, LEASE_MS, claim_of, moved, outcome};
use crate::world::{Workspace, World, at, refusal};

async fn two_chats<S: Store>(world: &World<S>, workspace: &Workspace) -> [LinkKey; 2] {
    let first = world.chat(workspace, "Tax").await;
    [first, world.chat_elsewhere(workspace, "Codex").await]
}

fn unknown(chat: LinkKey) -> LinkKey {
    LinkKey {
        link_id: ChatLinkId::from_bytes([9; 16]),
        ..chat
    }
}

async fn submit<S: Store>(
    world: &World<S>,
    chat: LinkKey,
    row: &TaskRow,
    claim_id: ClaimId,
    (verdict, result): (Verdict, &str),
    after_ms: u64,
) -> Decided {
    let (task_id, result) = (row.task_id, result.to_owned());
    let stored = world
        .store
        .submit_task(chat, task_id, claim_id, verdict, result, at(after_ms));
    stored.await
}

pub(super) async fn a_claim_is_answered_whole_and_kept_until_its_lease_ends<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let chats = two_chats(&world, &workspace).await;
    let row = world.assign(&workspace, &chats, "Sum it up").await;
    let claim = Claim {
        id: ClaimId::from_bytes(world.id()),
        link_id: chats[1].link_id,
        claimed_at: at(5),
    };
    let lease_until = at(5).plus_ms(LEASE_MS);
    let expected = moved(&row, State::Claimed { claim, lease_until }, 5);
    let (task_id, now) = (row.task_id, at(5));
    let claimed = world
        .store
        .claim_task(chats[1], task_id, claim.id, LEASE_MS, now);
    assert_eq!(claimed.await.unwrap(), (expected.clone(), false));
    for after_ms in [5, 6, 5 + LEASE_MS - 1] {
        let again = world.claim(chats[1], &row, after_ms).await.unwrap();
        assert_eq!(again, (expected.clone(), true), "same claim, same lease");
    }
    assert_eq!(world.task(&workspace, &row, 6).await, expected);
}

pub(super) async fn a_claim_is_refused_with_its_reason<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chats = two_chats(&world, &workspace).await;
    let stranger = world.chat(&workspace, "Garden").await;
    let row = world.assign(&workspace, &chats, "Sum it up").await;
    let claimed = world.claimed(chats[0], &row, 1).await.0;
    let refused = async |chat, row: &TaskRow| refusal(world.claim(chat, row, 2).await);
    assert_eq!(refused(chats[1], &row).await, Refusal::ClaimTaken);
    assert_eq!(refused(stranger, &row).await, Refusal::ClaimMissing);
    let link = unknown(chats[0]);
    assert_eq!(refused(link, &row).await, Refusal::ChatLinkNotFound);
    let missing = TaskRow {
        task_id: TaskId::from_bytes([9; 16]),
        ..row.clone()
    };
    assert_eq!(refused(chats[0], &missing).await, Refusal::ClaimMissing);
    assert_eq!(refused(link, &missing).await, Refusal::ChatLinkNotFound);
    assert_eq!(world.task(&workspace, &row, 2).await, claimed);

    for (verdict, ended) in [
        (Verdict::Completed, Ended::Completed),
        (Verdict::Failed, Ended::Failed),
    ] {
        let row = world.assign(&workspace, &chats, verdict.as_str()).await;
        let claim = world.claimed(chats[0], &row, 1).await.1;
        let stored = submit(&world, chats[0], &row, claim.id, (verdict, "4"), 2).await;
        stored.unwrap();
        for chat in chats {
            assert_eq!(refused(chat, &row).await, Refusal::ClaimOver(ended));
        }
        assert_eq!(refused(stranger, &row).await, Refusal::ClaimMissing);
    }
}

pub(super) async fn a_sole_candidate_holds_its_claim_until_the_task_expires<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let chats = two_chats(&world, &workspace).await;
    let row = world.assign(&workspace, &chats[..1], "Sum it up").await;
    let (claimed, claim) = world.claimed(chats[0], &row, 7).await;
    let lease_until = at(TASK_EXPIRY_MS);
    assert_eq!(
        claimed,
        moved(&row, State::Claimed { claim, lease_until }, 7)
    );
    let again = world.claim(chats[0], &row, TASK_EXPIRY_MS - 1).await;
    assert_eq!(again.unwrap(), (claimed, true));
    let stored = world.submit(chats[0], &row, claim.id, "4", TASK_EXPIRY_MS - 1);
    assert!(!stored.await.unwrap().1);
}

pub(super) async fn a_lease_never_outlasts_the_task<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chats = two_chats(&world, &workspace).await;
    let late = TASK_EXPIRY_MS - LEASE_MS + 1;
    let capped = world.assign(&workspace, &chats, "late").await;
    let (capped, _) = world.claimed(chats[0], &capped, late).await;
    assert_eq!(capped.task.lease_until(), Some(at(TASK_EXPIRY_MS)));
    let row = world.assign(&workspace, &chats, "for ever").await;
    let (id, for_ever) = (ClaimId::from_bytes(world.id()), u64::MAX);
    let claimed = world
        .store
        .claim_task(chats[0], row.task_id, id, for_ever, at(1));
    let lease_until = claimed.await.unwrap().0.task.lease_until();
    assert_eq!(lease_until, Some(at(TASK_EXPIRY_MS)));
}

pub(super) async fn a_lapsed_claim_is_taken_over_and_its_late_submit_is_stale<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let [first, second] = two_chats(&world, &workspace).await;
    let row = world
        .assign(&workspace, &[first, second], "Sum it up")
        .await;
    let lost = world.claimed(first, &row, 0).await.1;
    let early = world.claim(second, &row, LEASE_MS - 1).await;
    assert_eq!(refusal(early), Refusal::ClaimTaken);
    let (taken, claim) = world.claimed(second, &row, LEASE_MS).await;
    assert_eq!(
        (claim.link_id, claim.claimed_at),
        (second.link_id, at(LEASE_MS))
    );
    assert_ne!(claim.id, lost.id);
    let late = world.submit(first, &row, lost.id, "4", LEASE_MS + 1).await;
    assert_eq!(refusal(late), Refusal::SubmitStale);
    let again = world.claim(first, &row, LEASE_MS + 1).await;
    assert_eq!(refusal(again), Refusal::ClaimTaken);
    let stolen = world.submit(first, &row, claim.id, "4", LEASE_MS + 1).await;
    assert_eq!(
        refusal(stolen),
        Refusal::SubmitStale,
        "a claim is good for the chat that made it"
    );
    assert_eq!(world.task(&workspace, &row, LEASE_MS + 1).await, taken);
    let stored = world
        .submit(second, &row, claim.id, "5", LEASE_MS + 2)
        .await;
    let ended = outcome(claim, Verdict::Completed, "5", LEASE_MS + 2);
    let completed = moved(&row, State::Completed(claim, ended), LEASE_MS + 2);
    assert_eq!(stored.unwrap(), (completed, false));
}

pub(super) async fn a_lapsed_claim_that_nobody_took_over_is_to_be_claimed_again<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let [first, second] = two_chats(&world, &workspace).await;
    let row = world
        .assign(&workspace, &[first, second], "Sum it up")
        .await;
    let lost = world.claimed(first, &row, 0).await.1;
    let waiting = moved(&row, State::Queued, LEASE_MS);
    assert_eq!(world.task(&workspace, &row, LEASE_MS).await, waiting);
    for chat in [first, second] {
        assert_eq!(world.inbox(chat, LEASE_MS).await, slice::from_ref(&waiting));
        let late = world.submit(chat, &row, lost.id, "4", LEASE_MS).await;
        assert_eq!(refusal(late), Refusal::SubmitLapsed);
    }
    let claim = world.claimed(first, &row, LEASE_MS).await.1;
    assert_ne!(claim.id, lost.id);
    let late = world.submit(first, &row, lost.id, "4", LEASE_MS).await;
    assert_eq!(refusal(late), Refusal::SubmitStale);
    let stored = world.submit(first, &row, claim.id, "4", LEASE_MS).await;
    assert!(!stored.unwrap().1);
}

pub(super) async fn time_never_runs_backwards_on_a_task<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let [first, second] = two_chats(&world, &workspace).await;
    let row = world
        .assign(&workspace, &[first, second], "Sum it up")
        .await;
    world.claimed(first, &row, 9_000).await;
    let (taken, claim) = world.claimed(second, &row, 9_000 + LEASE_MS).await;
    // The wall clock is set back by almost a minute.
    let stored = world.submit(second, &row, claim.id, "4", 10_000).await;
    let ended = outcome(claim, Verdict::Completed, "4", 9_000 + LEASE_MS);
    let completed = moved(&taken, State::Completed(claim, ended), 9_000 + LEASE_MS);
    assert_eq!(stored.unwrap(), (completed, false));
}

pub(super) async fn a_result_is_stored_once_and_replayed_for_ever<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chats = two_chats(&world, &workspace).await;
    for verdict in [Verdict::Completed, Verdict::Failed] {
        let row = world.assign(&workspace, &chats, verdict.as_str()).await;
        let claim = world.claimed(chats[0], &row, 1).await.1;
        let ended = outcome(claim, verdict, "4", 2);
        let state = match verdict {
            Verdict::Completed => State::Completed(claim, ended),
            Verdict::Failed => State::Failed(claim, ended),
        };
        let over = moved(&row, state, 2);
        let four = (verdict, "4");
        let stored = submit(&world, chats[0], &row, claim.id, four, 2).await;
        assert_eq!(stored.unwrap(), (over.clone(), false));
        for after_ms in [2, 3 + LEASE_MS, 9 * TASK_EXPIRY_MS] {
            let again = submit(&world, chats[0], &row, claim.id, four, after_ms).await;
            assert_eq!(again.unwrap(), (over.clone(), true));
        }
        let ended = over.task.status().ended().unwrap();
        let other_verdict = match verdict {
            Verdict::Completed => Verdict::Failed,
            Verdict::Failed => Verdict::Completed,
        };
        let fresh = ClaimId::from_bytes(world.id());
        for (chat, claim_id, verdict, result) in [
            (chats[0], claim.id, verdict, "5"),
            (chats[0], claim.id, verdict, ""),
            (chats[0], claim.id, other_verdict, "4"),
            (chats[0], fresh, verdict, "4"),
            (chats[1], claim.id, verdict, "4"),
        ] {
            let changed = submit(&world, chat, &row, claim_id, (verdict, result), 4).await;
            assert_eq!(refusal(changed), Refusal::SubmitOver(ended));
        }
        assert_eq!(world.task(&workspace, &row, 5).await, over);
    }
}

/// One task a row, each refused for what comes first in the published order although all that
/// comes later holds, too.
pub(super) async fn a_submit_is_refused_in_the_published_order<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let [first, second] = two_chats(&world, &workspace).await;
    let stranger = world.chat(&workspace, "Garden").await;
    let row = world
        .assign(&workspace, &[first, second], "Sum it up")
        .await;
    let never = ClaimId::from_bytes(world.id());
    let refused = async |chat, claim_id, after_ms| {
        refusal(world.submit(chat, &row, claim_id, "other", after_ms).await)
    };
    assert_eq!(refused(first, never, 0).await, Refusal::SubmitLapsed);
    let lapsed = world.claimed(first, &row, 0).await.1;
    let claim = world.claimed(second, &row, LEASE_MS).await.1;
    let now = LEASE_MS + 1;
    assert_eq!(
        refused(stranger, claim.id, now).await,
        Refusal::SubmitMissing
    );
    assert_eq!(
        refused(unknown(second), claim.id, now).await,
        Refusal::SubmitMissing
    );
    for (chat, claim_id) in [(first, lapsed.id), (second, never), (second, lapsed.id)] {
        assert_eq!(refused(chat, claim_id, now).await, Refusal::SubmitStale);
    }
    for (chat, claim_id) in [(first, lapsed.id), (second, claim.id), (second, never)] {
        let end = 2 * LEASE_MS;
        assert_eq!(refused(chat, claim_id, end).await, Refusal::SubmitLapsed);
    }
    let stored = world
        .submit(second, &row, claim.id, "4", now)
        .await
        .unwrap();
    assert_eq!(claim_of(&stored.0), claim);
    let over = Refusal::SubmitOver(Ended::Completed);
    for (chat, claim_id) in [(first, lapsed.id), (second, claim.id), (second, never)] {
        assert_eq!(refused(chat, claim_id, 9 * TASK_EXPIRY_MS).await, over);
    }
    assert_eq!(
        refused(stranger, claim.id, now).await,
        Refusal::SubmitMissing
    );
    assert_eq!(world.task(&workspace, &row, now).await, stored.0);
}
