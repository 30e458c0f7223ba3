//! The published sequences of linked chats, on every protocol revision.

use callboard_domain::Refusal;
use serde_json::{Value, json};

use crate::chat_world::{CLAIM, LINK, READ, SUBMIT, UPLOAD, Work, ended};
use crate::world::{Answer, MODERN, REVISIONS, START_SECONDS, World};

const TEXT: &str = "What is 2 + 2?";
const EXPIRES_AT: &str = "2027-01-16T08:00:00.000Z";
const EXPIRY_SECONDS: i64 = START_SECONDS + 24 * 3_600;

/// The text of a success, to the letter.
fn said(answer: &Answer) -> String {
    answer.tool();
    let answer = answer.json();
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Asserts that `value` is an object of exactly these members, in this order.
fn assert_members(value: &Value, names: &[&str]) {
    let members: Vec<_> = value.as_object().unwrap().keys().collect();
    assert_eq!(members, names);
}

#[tokio::test]
async fn a_task_goes_from_the_link_to_the_result_on_every_revision() {
    let (world, _) = World::timed(1_000).await;
    for (index, revision) in REVISIONS.into_iter().enumerate() {
        let call = async |tool, arguments| world.call(revision, tool, arguments).await;
        let arguments = world.link_arguments(&format!("conversation-{index}"));
        let linked = call(LINK, arguments).await.tool();
        assert_members(&linked, &["chat_link_id", "project_id", "label"]);
        let link_id = linked["chat_link_id"].as_str().unwrap();
        assert_eq!(linked["project_id"], world.project_id);
        assert_eq!(linked["label"], "Trip to Jeju");

        let look = json!({"chat_link_id": link_id});
        let empty = call(READ, look.clone()).await.tool();
        assert_eq!(empty, json!({"chat_link_id": link_id, "tasks": []}));

        let assigned = world
            .hub
            .assign_task(&[link_id.to_owned()], TEXT, &format!("assign-{index}"))
            .await
            .unwrap();
        let task_id = assigned.row.task_id.to_string();
        let task = json!({"task_id": task_id, "status": "queued", "text": TEXT,
            "expires_at": EXPIRES_AT});
        let waiting = call(READ, look.clone()).await.tool();
        assert_eq!(waiting, json!({"chat_link_id": link_id, "tasks": [task]}));

        let ids = json!({"chat_link_id": link_id, "task_id": task_id});
        let claim = call(CLAIM, ids.clone()).await.tool();
        assert_members(&claim, &["claim_id", "lease_until"]);
        assert_eq!(claim["lease_until"], json!(EXPIRY_SECONDS), "the only one");
        assert_eq!(call(CLAIM, ids).await.tool(), claim);
        let task = json!({"task_id": task_id, "status": "claimed", "text": TEXT,
            "claim_id": claim["claim_id"], "lease_until": EXPIRY_SECONDS,
            "expires_at": EXPIRES_AT});
        let held = call(READ, look.clone()).await.tool();
        assert_eq!(held, json!({"chat_link_id": link_id, "tasks": [task]}));

        let submit = |status: &str, result: &str| {
            json!({"chat_link_id": link_id, "task_id": task_id, "claim_id": claim["claim_id"],
                "status": status, "result": result})
        };
        let first = call(SUBMIT, submit("completed", "4")).await;
        assert_eq!(said(&first), r#"{"ok":true}"#);
        for _ in 0..3 {
            let again = call(SUBMIT, submit("completed", "4")).await;
            assert_eq!(said(&again), r#"{"ok":true,"replayed":true}"#);
        }
        for changed in [submit("completed", "5"), submit("failed", "4")] {
            let refused = call(SUBMIT, changed).await.tool_error();
            assert_eq!(refused, "rejected: task is completed");
        }
        let stored = world.outcome(&task_id).await;
        assert_eq!(stored, ended("completed", Some("4")), "the first");
        let task = json!({"task_id": task_id, "status": "completed", "expires_at": EXPIRES_AT});
        let over = call(READ, look).await.tool();
        assert_eq!(over, json!({"chat_link_id": link_id, "tasks": [task]}));
    }
}

#[tokio::test]
async fn a_file_is_attached_and_fetched_on_every_revision() {
    let world = World::new().await;
    let chat = world.link("conversation-1").await;
    for revision in REVISIONS {
        let work = world.work(&chat).await;
        let file = work.file("report", "# Jeju\n");
        let first = world.call(revision, UPLOAD, file.clone()).await;
        let sha256 = "a0f7eae64ff6ee6257fc6639cc324cf7f84e9afc8605c710a5b4c6ac017b9a32";
        let answer = first.tool();
        assert_members(&answer, &["ok", "artifact_id", "size_bytes", "sha256"]);
        let expected = json!({"ok": true, "artifact_id": "report", "size_bytes": 7,
            "sha256": sha256});
        assert_eq!(answer, expected);
        let mut replayed = answer.clone();
        replayed["replayed"] = json!(true);
        assert_eq!(world.call(revision, UPLOAD, file).await.tool(), replayed);
        let path = format!("{}/{}/report", work.task_id, work.claim_id);
        let fetched = world.download(&world.token, &path).await;
        assert_eq!((fetched.status, &*fetched.body), (200, &b"# Jeju\n"[..]));
        let artifacts = world.owned(&work.task_id).await.artifacts;
        assert_eq!(artifacts.len(), 1, "{revision}: stored once");
        assert_eq!(artifacts[0].content.to_hex(), sha256);
    }
}

#[tokio::test]
async fn a_failed_task_keeps_its_reason() {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    let first = world.submit(&work, "failed", "no access").await;
    assert_eq!(said(&first), r#"{"ok":true}"#);
    let again = world.submit(&work, "failed", "no access").await;
    assert_eq!(said(&again), r#"{"ok":true,"replayed":true}"#);
    let changed = world.submit(&work, "completed", "4").await.tool_error();
    assert_eq!(changed, "rejected: task is failed");
    let claim = world.claim(&work.chat, &work.task_id).await.tool_error();
    assert_eq!(claim, "not claimable: failed");
    let stored = world.outcome(&work.task_id).await;
    assert_eq!(stored, ended("failed", Some("no access")));
}

#[tokio::test]
async fn a_completed_task_is_not_claimed_again_nor_cancelled() {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    world.submit(&work, "completed", "4").await.tool();
    let claim = world.claim(&work.chat, &work.task_id).await.tool_error();
    assert_eq!(claim, "not claimable: completed");
    world.hub.cancel_task(&work.task_id).await.unwrap();
    let again = world.submit(&work, "completed", "4").await;
    assert_eq!(said(&again), r#"{"ok":true,"replayed":true}"#);
    let stored = world.outcome(&work.task_id).await;
    assert_eq!(stored, ended("completed", Some("4")));
}

#[tokio::test]
async fn a_cancelled_task_takes_neither_claim_nor_result_nor_file() {
    let world = World::new().await;
    let chat = world.link("conversation-1").await;
    for revision in REVISIONS {
        let (claimed, queued) = (world.work(&chat).await, world.assign(&[&chat], TEXT).await);
        for task_id in [&claimed.task_id, &queued] {
            for _ in 0..2 {
                let row = world.hub.cancel_task(task_id).await.unwrap();
                assert_eq!(row.task.status().as_str(), "cancelled");
            }
            let ids = json!({"chat_link_id": chat.link_id, "task_id": task_id});
            let claim = world.call(revision, CLAIM, ids).await.tool_error();
            assert_eq!(claim, "not claimable: cancelled");
            let work = Work {
                task_id: task_id.clone(),
                ..claimed.clone()
            };
            for (tool, arguments) in [
                (SUBMIT, work.result("completed", "4")),
                (UPLOAD, work.file("report", "late")),
            ] {
                let refused = world.call(revision, tool, arguments).await.tool_error();
                assert_eq!(refused, "rejected: task is cancelled", "{tool}");
            }
            assert_eq!(world.outcome(task_id).await, ended("cancelled", None));
        }
    }
}

#[tokio::test]
async fn a_task_is_claimed_only_by_its_candidates() {
    let world = World::new().await;
    let candidate = world.link("conversation-1").await;
    let other = world.link("conversation-2").await;
    let work = world.work(&candidate).await;
    assert_eq!(world.inbox(&other).await, [] as [Value; 0]);
    let claim = world.claim(&other, &work.task_id).await.tool_error();
    assert_eq!(claim, "not claimable: missing");
    let as_other = Work {
        chat: other,
        ..work.clone()
    };
    let submit = world.submit(&as_other, "completed", "5").await.tool_error();
    assert_eq!(submit, "rejected: missing");
    let upload = world.upload(&as_other, "report", "5").await.tool_error();
    assert_eq!(upload, "rejected: missing");
    world.submit(&work, "completed", "4").await.tool();
    let stored = world.outcome(&work.task_id).await;
    assert_eq!(stored, ended("completed", Some("4")));
}

#[tokio::test]
async fn a_task_must_be_claimed_before_it_is_answered() {
    let world = World::new().await;
    let chat = world.link("conversation-1").await;
    let earlier = world.work(&chat).await;
    let queued = Work {
        task_id: world.assign(&[&chat], TEXT).await,
        ..earlier
    };
    let lapsed = "rejected: claim lapsed, claim the task again";
    let submit = world.submit(&queued, "completed", "4").await.tool_error();
    assert_eq!(submit, lapsed);
    let upload = world.upload(&queued, "report", "4").await.tool_error();
    assert_eq!(upload, lapsed);
    assert_eq!(world.outcome(&queued.task_id).await, ended("queued", None));
}

#[tokio::test]
async fn the_same_assignment_is_made_once() {
    let world = World::new().await;
    let first = world.link("conversation-1").await;
    let second = world.link("conversation-2").await;
    let assign = |links: &[&str], text: &str| {
        let links: Vec<_> = links.iter().map(|link| (*link).to_owned()).collect();
        let (hub, text) = (world.hub.clone(), text.to_owned());
        async move { hub.assign_task(&links, &text, "k-00000001").await }
    };
    let (one, two) = (first.link_id.as_str(), second.link_id.as_str());
    let made = assign(&[one, two], TEXT).await.unwrap();
    let upper = one.to_uppercase();
    for same in [vec![one, two], vec![two, one], vec![two, &upper, one]] {
        let again = assign(&same, TEXT).await.unwrap();
        assert_eq!((again.row, again.replayed), (made.row.clone(), true));
    }
    for other in [assign(&[one], TEXT).await, assign(&[one, two], "5?").await] {
        assert!(other.unwrap_err().is(Refusal::TaskKeyReused));
    }
    assert_eq!(world.hub.tasks(500).await.unwrap().len(), 1);
    assert_eq!(world.inbox(&first).await, world.inbox(&second).await);
}

#[tokio::test]
async fn an_inbox_shows_claims_then_what_waits_then_five_that_are_over() {
    let world = World::new().await;
    let chat = world.link("conversation-1").await;
    let mut over = Vec::new();
    for _ in 0..7 {
        let work = world.work(&chat).await;
        world.submit(&work, "completed", "4").await.tool();
        over.push(work.task_id);
    }
    let mut waiting = Vec::new();
    for index in 0..22 {
        waiting.push(world.assign(&[&chat], &format!("Task {index}")).await);
    }
    let last = waiting.last().unwrap();
    let held = world.claimed(&chat, last).await;
    let mut expected = vec![held.task_id];
    expected.extend_from_slice(&waiting[..20]);
    expected.extend(over.into_iter().rev().take(5));
    let inbox = world.inbox(&chat).await;
    let ids: Vec<_> = inbox
        .iter()
        .map(|task| task["task_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, expected);
    for task in inbox {
        let open = ["queued", "claimed"].contains(&task["status"].as_str().unwrap());
        assert_eq!(task.get("text").is_some(), open, "{task}");
    }
    let newest = world.call(MODERN, READ, json!({"chat_link_id": chat.link_id}));
    assert_eq!(newest.await.tool()["tasks"].as_array().unwrap().len(), 26);
}
