//! What time does to claims and tasks, on a clock that only moves when told.

use crate::chat_world::{Chat, Work, ended};
use crate::world::{START_SECONDS, World};
use callboard_ambient::ManualClock;

const LAPSED: &str = "rejected: claim lapsed, claim the task again";
const STALE: &str = "rejected: stale claim, task was re-claimed";
const HOUR_MS: u64 = 3_600_000;
const EXPIRY_SECONDS: i64 = START_SECONDS + 24 * 3_600;

/// Two chats of one project that may claim the same tasks.
struct Pair {
    world: World,
    hands: ManualClock,
    first: Chat,
    second: Chat,
}

impl Pair {
    /// Whether the second chat is of another connection or only another conversation of the same.
    async fn new(other_connection: bool) -> Self {
        let (world, hands) = World::timed(1_000).await;
        let first = world.link("conversation-1").await;
        let token = if other_connection {
            let scopes = callboard_domain::Scope::ALL;
            world.connect("ChatGPT", &scopes).await
        } else {
            world.token.clone()
        };
        let second = world.link_as(&token, "conversation-2").await;
        Self {
            world,
            hands,
            first,
            second,
        }
    }

    async fn assign(&self) -> String {
        let both = [&self.first, &self.second];
        self.world.assign(&both, "What is 2 + 2?").await
    }

    /// `lease_until` of a claim, in epoch seconds.
    async fn lease(&self, chat: &Chat, task_id: &str) -> i64 {
        let claim = self.world.claim(chat, task_id).await.tool();
        claim["lease_until"].as_i64().unwrap()
    }

    /// Stores what time caused, as a hub does that has been awake for a minute.
    async fn sweep(&self) {
        for _ in 0..2 {
            while self.world.hub.sweep().await.unwrap() {}
            self.hands.advance_ms(60_000);
        }
    }
}

/// The published take-over: a lease of 1 s, and a second chat that tries every 100 ms.
async fn take_over(other_connection: bool) {
    let pair = Pair::new(other_connection).await;
    let world = &pair.world;
    let task_id = pair.assign().await;
    let late = world.claimed(&pair.first, &task_id).await;
    let mut failed = 0;
    while failed < 10 {
        let refused = world.claim(&pair.second, &task_id).await.tool_error();
        assert_eq!(refused, "not claimable: claimed");
        assert!(world.inbox(&pair.second).await.is_empty());
        failed += 1;
        pair.hands.advance_ms(100);
    }
    let current = world.claimed(&pair.second, &task_id).await;
    assert_ne!(current.claim_id, late.claim_id);
    assert!(world.inbox(&pair.first).await.is_empty());
    let refused = world.submit(&late, "completed", "5").await.tool_error();
    assert_eq!(refused, STALE);
    let refused = world.upload(&late, "report", "5").await.tool_error();
    assert_eq!(refused, STALE);
    let refused = world.claim(&pair.first, &task_id).await.tool_error();
    assert_eq!(refused, "not claimable: claimed");
    // A claim id that leaked to the other candidate is of no use to it.
    let borrowed = Work {
        chat: pair.first.clone(),
        ..current.clone()
    };
    let refused = world.submit(&borrowed, "completed", "5").await.tool_error();
    assert_eq!(refused, STALE);
    world.submit(&current, "completed", "4").await.tool();
    for work in [&late, &borrowed] {
        let refused = world.submit(work, "completed", "4").await.tool_error();
        assert_eq!(refused, "rejected: task is completed");
    }
    let stored = world.outcome(&task_id).await;
    assert_eq!(stored, ended("completed", Some("4")));
}

#[tokio::test]
async fn a_second_connection_takes_over_when_the_lease_of_a_second_ends() {
    take_over(true).await;
}

#[tokio::test]
async fn a_second_conversation_takes_over_when_the_lease_of_a_second_ends() {
    take_over(false).await;
}

#[tokio::test]
async fn a_lapsed_claim_that_nobody_took_over_is_claimed_again() {
    for swept in [false, true] {
        let pair = Pair::new(true).await;
        let world = &pair.world;
        let task_id = pair.assign().await;
        let lapsed = world.claimed(&pair.first, &task_id).await;
        pair.hands.advance_ms(1_000);
        if swept {
            pair.sweep().await;
        }
        for (chat, seen) in [(&pair.first, 1), (&pair.second, 1)] {
            let inbox = world.inbox(chat).await;
            assert_eq!(inbox.len(), seen, "it waits again, for both");
            assert_eq!(inbox[0]["status"], "queued");
            assert_eq!(inbox[0].get("claim_id"), None);
            assert_eq!(inbox[0].get("lease_until"), None);
        }
        let refused = world.submit(&lapsed, "completed", "4").await.tool_error();
        assert_eq!(refused, LAPSED);
        let refused = world.upload(&lapsed, "report", "4").await.tool_error();
        assert_eq!(refused, LAPSED);
        let fresh = world.claimed(&pair.first, &task_id).await;
        assert_ne!(fresh.claim_id, lapsed.claim_id);
        let refused = world.submit(&lapsed, "completed", "4").await.tool_error();
        assert_eq!(refused, STALE, "even of the same chat");
        world.submit(&fresh, "completed", "4").await.tool();
    }
}

#[tokio::test]
async fn a_repeated_claim_keeps_its_lease() {
    let pair = Pair::new(true).await;
    let task_id = pair.assign().await;
    let first = pair.world.claimed(&pair.first, &task_id).await;
    let lease = pair.lease(&pair.first, &task_id).await;
    assert_eq!(lease, START_SECONDS + 1);
    pair.hands.advance_ms(999);
    assert_eq!(pair.lease(&pair.first, &task_id).await, lease);
    let again = pair.world.claimed(&pair.first, &task_id).await;
    assert_eq!(again.claim_id, first.claim_id);
    pair.hands.advance_ms(1);
    let later = pair.lease(&pair.first, &task_id).await;
    assert_eq!(later, START_SECONDS + 2, "a new claim");
}

#[tokio::test]
async fn a_lease_is_told_in_whole_seconds_and_never_longer_than_it_is() {
    let pair = Pair::new(true).await;
    pair.hands.advance_ms(999);
    let task_id = pair.assign().await;
    assert_eq!(pair.lease(&pair.first, &task_id).await, START_SECONDS + 1);
    pair.hands.advance_ms(999);
    let refused = pair.world.claim(&pair.second, &task_id).await.tool_error();
    assert_eq!(refused, "not claimable: claimed");
}

#[tokio::test]
async fn the_only_candidate_has_until_the_task_expires() {
    for swept in [false, true] {
        let (world, hands) = World::timed(1_000).await;
        let chat = world.link("conversation-1").await;
        let work = world.work(&chat).await;
        let late = world.work(&chat).await;
        let queued = world.assign(&[&chat], "Never opened").await;
        hands.advance_ms(24 * HOUR_MS - 1);
        let claim = world.claim(&chat, &work.task_id).await.tool();
        assert_eq!(claim["claim_id"], work.claim_id);
        assert_eq!(claim["lease_until"], EXPIRY_SECONDS);
        world.submit(&work, "completed", "4").await.tool();
        hands.advance_ms(1);
        if swept {
            for _ in 0..2 {
                while world.hub.sweep().await.unwrap() {}
                hands.advance_ms(60_000);
            }
        }
        for (tool, refused) in [
            ("submit", world.submit(&late, "completed", "4").await),
            ("upload", world.upload(&late, "report", "4").await),
        ] {
            assert_eq!(refused.tool_error(), "rejected: task is expired", "{tool}");
        }
        for task_id in [&late.task_id, &queued] {
            let refused = world.claim(&chat, task_id).await.tool_error();
            assert_eq!(refused, "not claimable: expired");
            assert_eq!(world.outcome(task_id).await, ended("expired", None));
        }
        let again = world.submit(&work, "completed", "4").await.tool();
        assert_eq!(again["replayed"], true, "also after its day");
        let cancelled = world.hub.cancel_task(&queued).await.unwrap();
        assert_eq!(cancelled.task.status().as_str(), "expired");
        let inbox = world.inbox(&chat).await;
        let statuses: Vec<_> = inbox.iter().map(|task| &task["status"]).collect();
        assert_eq!(statuses, ["expired", "expired", "completed"]);
    }
}

#[tokio::test]
async fn a_lease_never_outlives_its_task() {
    let pair = Pair::new(false).await;
    let task_id = pair.assign().await;
    pair.hands.advance_ms(24 * HOUR_MS - 500);
    let work = pair.world.claimed(&pair.first, &task_id).await;
    assert_eq!(pair.lease(&pair.first, &task_id).await, EXPIRY_SECONDS);
    pair.hands.advance_ms(500);
    let refused = pair.world.submit(&work, "completed", "4").await;
    assert_eq!(refused.tool_error(), "rejected: task is expired");
    let refused = pair.world.claim(&pair.second, &task_id).await;
    assert_eq!(refused.tool_error(), "not claimable: expired");
}

#[tokio::test]
async fn the_default_lease_is_half_an_hour() {
    let (world, hands) = World::timed(callboard_domain::limits::TASK_LEASE_MS_DEFAULT).await;
    let first = world.link("conversation-1").await;
    let second = world.link("conversation-2").await;
    let task_id = world.assign(&[&first, &second], "What is 2 + 2?").await;
    let claim = world.claim(&first, &task_id).await.tool();
    assert_eq!(claim["lease_until"], START_SECONDS + 1_800);
    hands.advance_ms(1_800_000 - 1);
    let refused = world.claim(&second, &task_id).await.tool_error();
    assert_eq!(refused, "not claimable: claimed");
    hands.advance_ms(1);
    world.claim(&second, &task_id).await.tool();
}

#[tokio::test]
async fn a_clock_set_back_ends_no_claim_and_gives_none_away() {
    let pair = Pair::new(true).await;
    let task_id = pair.assign().await;
    let work = pair.world.claimed(&pair.first, &task_id).await;
    let back = callboard_domain::Timestamp::from_millis((START_SECONDS - 3_600) * 1_000);
    pair.hands.set_wall(back);
    let refused = pair.world.claim(&pair.second, &task_id).await.tool_error();
    assert_eq!(refused, "not claimable: claimed");
    assert_eq!(pair.lease(&pair.first, &task_id).await, START_SECONDS + 1);
    pair.world.submit(&work, "completed", "4").await.tool();
}
