//! What the list of tools says of the chat tools, what an inbox costs, and what a host may hint.

use callboard_domain::Scope;
use callboard_domain::limits::{
    ARTIFACT_BYTES_MAX, ARTIFACT_ID_CHARS_MAX, ARTIFACT_NAME_UTF16_MAX, ARTIFACTS_PER_CLAIM_MAX,
    ARTIFACTS_PER_TASK_MAX, CHAT_LABEL_UTF16_MAX, CHAT_REFERENCE_UTF16_MAX,
    IDEMPOTENCY_KEY_CHARS_MAX, IDEMPOTENCY_KEY_CHARS_MIN, TASK_RESULT_UTF16_MAX,
};
use serde_json::{Value, json};

use crate::chat_world::{CLAIM, Chat, LINK, NO_LINK, READ, SUBMIT, UPLOAD};
use crate::world::{Answer, MODERN, REVISIONS, World, send};

#[tokio::test]
async fn the_chat_tools_promise_what_was_published() {
    let world = World::new().await;
    let list = send(world.request(MODERN, "tools/list", json!({}))).await;
    let list = list.json();
    let tools = list["result"]["tools"].as_array().unwrap();
    let ids = ["chat_link_id", "task_id", "claim_id"];
    let submit: Vec<_> = ids.into_iter().chain(["status", "result"]).collect();
    let files = ["artifact_id", "name", "media_type"];
    let upload: Vec<_> = ids.into_iter().chain(files).collect();
    for (name, required, scope) in [
        (LINK, vec!["project_id", "label", "idempotency_key"], "run"),
        (READ, vec!["chat_link_id"], "read"),
        (CLAIM, vec!["chat_link_id", "task_id"], "run"),
        (SUBMIT, submit, "run"),
        (UPLOAD, upload, "run"),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(tool["inputSchema"]["required"], json!(required), "{name}");
        let schemes = json!([{"type": "oauth2", "scopes": [format!("osfoundry:{scope}")]}]);
        assert_eq!(tool["securitySchemes"], schemes, "{name}");
        let hints = json!({"readOnlyHint": scope == "read", "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": false});
        assert_eq!(tool["annotations"], hints, "{name}");
    }
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let status = &tool(SUBMIT)["inputSchema"]["properties"]["status"];
    assert_eq!(status["enum"], json!(["completed", "failed"]));
}

#[tokio::test]
async fn the_descriptions_say_what_is_refused() {
    let world = World::new().await;
    let list = send(world.request(MODERN, "tools/list", json!({}))).await;
    let list = list.json();
    let tools = list["result"]["tools"].as_array().unwrap();
    for (name, sentences) in [
        (LINK, vec![NO_LINK, "rejected: missing"]),
        (READ, vec![NO_LINK]),
        (
            CLAIM,
            vec![
                NO_LINK,
                "not claimable: missing",
                "not claimable: claimed",
                "not claimable: completed",
            ],
        ),
        (
            SUBMIT,
            vec![
                "rejected: missing",
                "rejected: task is completed",
                "rejected: claim lapsed, claim the task again",
                "rejected: stale claim, task was re-claimed",
                "20,000 characters",
            ],
        ),
        (
            UPLOAD,
            vec![
                "replayed",
                "other content under the same artifact_id is rejected",
                "programs are refused",
                "A cancelled, expired, revoked or mismatched claim is rejected",
            ],
        ),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let description = tool["description"].as_str().unwrap();
        for sentence in sentences {
            assert!(description.contains(sentence), "{name}: {sentence}");
        }
    }
}

#[tokio::test]
async fn a_number_in_a_description_is_the_limit() {
    let world = World::new().await;
    let list = send(world.request(MODERN, "tools/list", json!({}))).await;
    let list = list.json();
    let tools = list["result"]["tools"].as_array().unwrap();
    let megabytes = ARTIFACT_BYTES_MAX / (1_024 * 1_024);
    let thousands = TASK_RESULT_UTF16_MAX / 1_000;
    assert_eq!(ARTIFACT_BYTES_MAX % (1_024 * 1_024), 0);
    assert_eq!(TASK_RESULT_UTF16_MAX % 1_000, 0);
    for (name, sentence) in [
        (SUBMIT, format!("at most {thousands},000 characters")),
        (UPLOAD, format!("at most {megabytes} MB")),
        (
            UPLOAD,
            format!(
                "At most {ARTIFACTS_PER_CLAIM_MAX} files a claim and {ARTIFACTS_PER_TASK_MAX} a task"
            ),
        ),
        (UPLOAD, format!("1 to {ARTIFACT_ID_CHARS_MAX} characters")),
        (
            UPLOAD,
            format!("At most {ARTIFACT_NAME_UTF16_MAX} characters"),
        ),
        (LINK, format!("At most {CHAT_LABEL_UTF16_MAX} characters")),
        (
            LINK,
            format!("At most {CHAT_REFERENCE_UTF16_MAX} characters"),
        ),
        (
            LINK,
            format!("{IDEMPOTENCY_KEY_CHARS_MIN} to {IDEMPOTENCY_KEY_CHARS_MAX} characters"),
        ),
    ] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let said = tool.to_string();
        assert!(said.contains(&sentence), "{name}: {sentence}: {said}");
    }
}

/// Length of the text that a model reads.
fn model_reads(answer: &Answer) -> usize {
    let answer = answer.json();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    text.len()
}

#[tokio::test]
async fn an_inbox_costs_tens_of_bytes_and_each_task_about_two_hundred() {
    let world = World::new().await;
    let chat = world.link("conversation-1").await;
    let look = json!({"chat_link_id": chat.link_id});
    // Measured: the text that a model reads has 66 bytes, and 118 more for each task beside its
    // own text (here 52) and a comma. Published are 87 and 207 for a whole JSON-RPC body; ours has
    // 248 (272 on the newest revision) and 358, since it says everything twice: as text, and as
    // structured content for hosts that read that instead. A task that is over adds 112.
    let text = "Summarise the attached notes in three bullet points.";
    for revision in REVISIONS {
        let chat = world.link(&format!("economy-{revision}")).await;
        let look = json!({"chat_link_id": chat.link_id});
        let empty = world.call(revision, READ, look.clone()).await;
        world.assign(&[&chat], text).await;
        let one = world.call(revision, READ, look.clone()).await;
        world.assign(&[&chat], text).await;
        let two = world.call(revision, READ, look).await;
        let reads = [&empty, &one, &two].map(model_reads);
        let bodies = [&empty, &one, &two].map(|answer| answer.text.len());
        assert!(reads[0] <= 70, "empty: {reads:?}");
        assert!(reads[2] - reads[1] <= 175, "a task: {reads:?}");
        assert!(bodies[0] <= 280, "empty: {bodies:?} {}", empty.text);
        assert!(bodies[2] - bodies[1] <= 365, "a task: {bodies:?}");
    }
    // What is over is short, and never more than five.
    for _ in 0..8 {
        let work = world.work(&chat).await;
        world
            .submit(&work, "completed", &"4".repeat(20_000))
            .await
            .tool();
    }
    let over = world.call(MODERN, READ, look).await;
    assert!(model_reads(&over) <= 70 + 5 * 115, "{}", over.text);
}

/// Links a chat as a host does that says where the call comes from.
async fn link_with_hint(
    world: &World,
    (token, revision): (&str, &str),
    key: &str,
    hint: Value,
) -> Answer {
    let arguments = world.link_arguments(key);
    let params = json!({"name": LINK, "arguments": arguments, "_meta": hint});
    let request = world.request(revision, "tools/call", params);
    send(request.bearer_auth(token)).await
}

#[tokio::test]
async fn a_hosts_hint_is_kept_beside_the_link_on_every_revision() {
    let world = World::new().await;
    let long = "\u{1F600}".repeat(101);
    let mut expected = Vec::new();
    for (number, revision) in REVISIONS.into_iter().enumerate() {
        for (index, (hint, kept)) in [
            (json!({"openai/session": "v1/abc"}), Some("v1/abc")),
            (json!({"threadId": "0199-thread"}), Some("0199-thread")),
            (
                json!({"openai/session": "v1/abc", "threadId": "0199-thread"}),
                Some("v1/abc"),
            ),
            (json!({"openai/session": 7}), None),
            (json!({"anthropic/session": "x"}), None),
            (json!({}), None),
            (json!({"threadId": long}), Some(&long[..400])),
            (json!({"threadId": "<script>\u{0}"}), Some("<script>\u{0}")),
        ]
        .into_iter()
        .enumerate()
        {
            let key = format!("hint-{number}-{index}");
            let caller = (world.token.as_str(), revision);
            let linked = link_with_hint(&world, caller, &key, hint).await;
            linked.tool();
            assert!(!linked.text.contains("v1/abc"), "it is not said back");
            expected.push(kept.map(str::to_owned));
        }
    }
    let rows = world.hub.chat_links().await.unwrap();
    let hints: Vec<_> = rows.into_iter().map(|row| row.link.host_hint).collect();
    assert_eq!(hints, expected);
}

#[tokio::test]
async fn a_hosts_hint_gives_access_to_nothing() {
    let world = World::new().await;
    let hint = json!({"openai/session": "v1/abc", "threadId": "0199-thread"});
    let caller = (world.token.as_str(), MODERN);
    let linked = link_with_hint(&world, caller, "k-00000001", hint.clone()).await;
    let chat = Chat {
        token: world.token.clone(),
        link_id: linked.tool()["chat_link_id"].as_str().unwrap().to_owned(),
    };
    let work = world.work(&chat).await;
    // A retry from elsewhere in the host is still the same request.
    let other = json!({"openai/session": "v1/other"});
    let again = link_with_hint(&world, caller, "k-00000001", other).await;
    assert_eq!(again.tool(), linked.tool());
    let stranger = world.connect("ChatGPT", &Scope::ALL).await;
    for (token, key) in [(&world.token, "k-00000002"), (&stranger, "k-00000001")] {
        let caller = (token.as_str(), MODERN);
        let own = link_with_hint(&world, caller, key, hint.clone()).await;
        let own = Chat {
            token: token.clone(),
            link_id: own.tool()["chat_link_id"].as_str().unwrap().to_owned(),
        };
        assert_ne!(own.link_id, chat.link_id, "a link for each conversation");
        assert!(world.inbox(&own).await.is_empty());
    }
    for (tool, arguments, words) in [
        (READ, json!({"chat_link_id": chat.link_id}), NO_LINK),
        (SUBMIT, work.result("completed", "5"), "rejected: missing"),
    ] {
        let params = json!({"name": tool, "arguments": arguments, "_meta": hint});
        let request = world.request(MODERN, "tools/call", params);
        let refused = send(request.bearer_auth(&stranger)).await;
        assert_eq!(refused.tool_error(), words);
    }
    world.submit(&work, "completed", "4").await.tool();
}
