//! What becomes of claims and tasks when a link or a connection is revoked.

use callboard_domain::Scope;

use crate::chat_world::{NO_LINK, Work, ended};
use crate::world::{START_SECONDS, World};

const MISSING: &str = "rejected: missing";

/// Asserts that every tool answers `work`'s chat as one that never was.
async fn assert_unknown(world: &World, work: &Work) {
    assert_eq!(world.read(&work.chat).await.tool_error(), NO_LINK);
    let claim = world.claim(&work.chat, &work.task_id).await.tool_error();
    assert_eq!(claim, NO_LINK);
    let submit = world.submit(work, "completed", "5").await.tool_error();
    assert_eq!(submit, MISSING);
    let upload = world.upload(work, "report", "5").await.tool_error();
    assert_eq!(upload, MISSING);
}

#[tokio::test]
async fn the_claim_of_a_revoked_link_goes_back_to_the_other_candidate() {
    let world = World::new().await;
    let first = world.link("conversation-1").await;
    let second = world.link("conversation-2").await;
    let task_id = world.assign(&[&first, &second], "What is 2 + 2?").await;
    let work = world.claimed(&first, &task_id).await;
    let changed = world.hub.revoke_chat_link(&first.link_id).await.unwrap();
    assert_eq!(changed.len(), 1);
    assert_unknown(&world, &work).await;
    assert_eq!(world.outcome(&task_id).await, ended("queued", None));
    let taken = world.claimed(&second, &task_id).await;
    assert_ne!(taken.claim_id, work.claim_id);
    assert_unknown(&world, &work).await;
    let claim = world.claim(&second, &task_id).await.tool();
    let expiry = world.owned(&task_id).await.row.task.expires_at;
    assert_eq!(
        claim["lease_until"],
        expiry.as_millis() / 1_000,
        "nobody else is left to take over"
    );
    world.submit(&taken, "completed", "4").await.tool();
    assert_eq!(world.outcome(&task_id).await, ended("completed", Some("4")));
}

#[tokio::test]
async fn a_task_without_a_candidate_left_is_cancelled() {
    let world = World::new().await;
    let chat = world.link("conversation-1").await;
    let work = world.work(&chat).await;
    let queued = world.assign(&[&chat], "Never opened").await;
    let changed = world.hub.revoke_chat_link(&chat.link_id).await.unwrap();
    assert_eq!(changed.len(), 2);
    assert_unknown(&world, &work).await;
    for task_id in [&work.task_id, &queued] {
        assert_eq!(world.outcome(task_id).await, ended("cancelled", None));
    }
    let again = world.hub.revoke_chat_link(&chat.link_id).await;
    assert_eq!(
        again.unwrap(),
        [],
        "as the first time, with nothing left to change"
    );
}

#[tokio::test]
async fn a_revoked_candidate_leaves_the_claim_of_another_alone() {
    let (world, hands) = World::timed(1_000).await;
    let first = world.link("conversation-1").await;
    let second = world.link("conversation-2").await;
    let task_id = world.assign(&[&first, &second], "What is 2 + 2?").await;
    let work = world.claimed(&first, &task_id).await;
    world.hub.revoke_chat_link(&second.link_id).await.unwrap();
    let claim = world.claim(&first, &task_id).await.tool();
    assert_eq!(claim["claim_id"], work.claim_id);
    assert_eq!(claim["lease_until"], START_SECONDS + 1, "as it was told");
    hands.advance_ms(1_000);
    let lapsed = world.submit(&work, "completed", "4").await.tool_error();
    assert_eq!(lapsed, "rejected: claim lapsed, claim the task again");
    let work = world.claimed(&first, &task_id).await;
    world.submit(&work, "completed", "4").await.tool();
}

#[tokio::test]
async fn what_a_revoked_link_answered_stays_and_is_not_told_again() {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    world.upload(&work, "report", "4").await.tool();
    world.submit(&work, "completed", "4").await.tool();
    let changed = world
        .hub
        .revoke_chat_link(&work.chat.link_id)
        .await
        .unwrap();
    assert!(changed.is_empty(), "its tasks were over");
    let replay = world.submit(&work, "completed", "4").await.tool_error();
    assert_eq!(replay, MISSING);
    let replay = world.upload(&work, "report", "4").await.tool_error();
    assert_eq!(replay, MISSING);
    let path = format!("{}/{}/report", work.task_id, work.claim_id);
    assert_eq!(world.download(&world.token, &path).await.status, 404);
    assert_eq!(
        world.outcome(&work.task_id).await,
        ended("completed", Some("4"))
    );
    let task = world.owned(&work.task_id).await;
    assert_eq!(task.artifacts.len(), 1, "the owner keeps the file");
}

#[tokio::test]
async fn a_revoked_connection_loses_its_claims_to_the_others() {
    let world = World::new().await;
    let token = world.connect("ChatGPT", &Scope::ALL).await;
    let first = world.link_as(&token, "conversation-1").await;
    let second = world.link("conversation-2").await;
    let shared = world.assign(&[&first, &second], "What is 2 + 2?").await;
    let held = world.claimed(&first, &shared).await;
    let alone = world.work(&first).await;
    let revoked = world.hub.revoke_connection("ChatGPT").await.unwrap();
    assert_eq!(revoked.tasks.len(), 2);
    for work in [&held, &alone] {
        for answer in [
            world.read(&work.chat).await,
            world.claim(&work.chat, &work.task_id).await,
            world.submit(work, "completed", "5").await,
            world.upload(work, "report", "5").await,
        ] {
            assert_eq!(answer.status.as_u16(), 401, "{}", answer.text);
        }
    }
    assert_eq!(world.outcome(&shared).await, ended("queued", None));
    assert_eq!(
        world.outcome(&alone.task_id).await,
        ended("cancelled", None)
    );
    let taken = world.claimed(&second, &shared).await;
    world.submit(&taken, "completed", "4").await.tool();
    let links = world.hub.chat_links().await.unwrap();
    assert_eq!(links.len(), 1, "its links went with it");
}

#[tokio::test]
async fn a_task_cannot_be_assigned_to_a_revoked_link() {
    let world = World::new().await;
    let first = world.link("conversation-1").await;
    let second = world.link("conversation-2").await;
    world.hub.revoke_chat_link(&first.link_id).await.unwrap();
    let both = [first.link_id.clone(), second.link_id.clone()];
    let refused = world.hub.assign_task(&both, "Go", "k-00000001").await;
    let not_found = callboard_domain::Refusal::ChatLinkNotFound;
    assert!(refused.unwrap_err().is(not_found));
    assert!(world.inbox(&second).await.is_empty());
}
