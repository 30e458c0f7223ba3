//! What nobody should send in links, tasks and results: refused in words, or kept as plain text.

use std::fmt::Write as _;

use callboard_hub::HubError;
use serde_json::{Value, json};

use crate::chat_world::{CLAIM, Chat, LINK, READ, SUBMIT, UPLOAD, Work, ended};
use crate::world::{MODERN, REVISIONS, World, send};

const HANGUL: &str = "\u{d55c}";
const EMOJI: &str = "\u{1F600}";
/// Markup, script, shell, format strings, quotes, a direction override, NUL and a line break.
const MARKUP: &str =
    "<script>alert(1)</script>\"'`${7*7}`{{7*7}} %s %n ../../etc/passwd\\ \u{202e}\0\n]]>";

async fn working() -> (World, Work) {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    (world, work)
}

/// Asserts that the call is refused in those words and that nothing became of it.
async fn assert_refused(world: &World, work: &Work, tool: &str, arguments: Value, words: &str) {
    let before = world.owned(&work.task_id).await;
    let answer = world.under(work, tool, arguments).await;
    assert_eq!(answer.tool_error(), words);
    assert_eq!(world.owned(&work.task_id).await, before, "{words}");
}

#[tokio::test]
async fn a_result_is_counted_in_utf16_units_and_a_longer_one_leaves_the_claim() {
    let (world, first) = working().await;
    let chat = first.chat.clone();
    let long = "`result` must be text of 1 to 20000 characters.";
    for unit in ["a", HANGUL, EMOJI] {
        let units = unit.encode_utf16().count();
        let fitting = unit.repeat(20_000 / units);
        let work = world.work(&chat).await;
        for status in ["completed", "failed"] {
            let longer = work.result(status, &format!("{fitting}a"));
            assert_refused(&world, &work, SUBMIT, longer, long).await;
        }
        let again = world.claim(&chat, &work.task_id).await.tool();
        assert_eq!(again["claim_id"], work.claim_id);
        world.submit(&work, "completed", &fitting).await.tool();
        let stored = world.outcome(&work.task_id).await;
        assert_eq!(stored, ended("completed", Some(&fitting)));
        let longer = work.result("completed", &format!("{fitting}a"));
        assert_refused(&world, &work, SUBMIT, longer, long).await;
    }
    let again = world.claim(&chat, &first.task_id).await.tool();
    assert_eq!(again["claim_id"], first.claim_id);
}

#[tokio::test]
async fn a_result_that_says_nothing_is_refused_and_leaves_the_claim() {
    let (world, work) = working().await;
    let bound = "`result` must be text of 1 to 20000 characters.";
    let blank = "`result` must say how the task went: it holds nothing, or only white space.";
    for (result, words) in [("", bound), (" \n", blank), ("\u{200b}\u{feff}", blank)] {
        for status in ["completed", "failed"] {
            let nothing = work.result(status, result);
            assert_refused(&world, &work, SUBMIT, nothing, words).await;
        }
    }
    world.submit(&work, "completed", ".").await.tool();
}

#[tokio::test]
async fn a_status_is_one_of_two_words() {
    let (world, work) = working().await;
    let words = "`status` must be one of completed, failed.";
    for status in ["done", "Completed", "cancelled", "queued", "", " completed"] {
        let wrong = work.result(status, "4");
        assert_refused(&world, &work, SUBMIT, wrong, words).await;
    }
    for status in [json!(true), json!(["completed"]), json!({})] {
        let wrong = work.with(json!({"status": status, "result": "4"}));
        assert_refused(&world, &work, SUBMIT, wrong, words).await;
    }
    let missing = work.with(json!({"status": null, "result": "4"}));
    let words = "`status` is required: one of completed, failed.";
    assert_refused(&world, &work, SUBMIT, missing, words).await;
}

#[tokio::test]
async fn what_does_not_fit_its_description_is_named() {
    let (world, work) = working().await;
    let result = work.result("completed", "4");
    let changed = |name: &str, value: Value| {
        let mut arguments = result.clone();
        arguments[name] = value;
        arguments
    };
    for (arguments, words) in [
        (
            changed("claim_id", Value::Null),
            "`claim_id` is required: an id, as text.",
        ),
        (
            changed("task_id", json!(7)),
            "`task_id` must be an id, as text.",
        ),
        (
            changed("result", json!({"answer": 4})),
            "`result` must be text of 1 to 20000 characters.",
        ),
        (
            changed("result", json!(4)),
            "`result` must be text of 1 to 20000 characters.",
        ),
        (
            changed("result", Value::Null),
            "`result` is required: text of 1 to 20000 characters.",
        ),
        (
            changed("priority", json!(1)),
            "There is no argument `priority`. This tool takes `chat_link_id`, `task_id`, \
             `claim_id`, `status`, `result`.",
        ),
    ] {
        assert_refused(&world, &work, SUBMIT, arguments, words).await;
    }
    for (tool, words) in [
        (
            READ,
            "There is no argument `limit`. This tool takes `chat_link_id`.",
        ),
        (
            CLAIM,
            "There is no argument `limit`. This tool takes `chat_link_id`, `task_id`.",
        ),
    ] {
        let mut arguments = json!({"chat_link_id": work.chat.link_id, "limit": 1});
        if tool == CLAIM {
            arguments["task_id"] = json!(work.task_id);
        }
        assert_refused(&world, &work, tool, arguments, words).await;
    }
}

#[tokio::test]
async fn a_label_is_one_line_of_at_most_200_units() {
    let world = World::new().await;
    let long = "`label` must be text of 1 to 200 characters.";
    let line = "`label` has 1 to 200 characters and no line breaks or other control characters.";
    for (label, words) in [
        ("a".repeat(201), long),
        (EMOJI.repeat(100) + "a", long),
        (String::new(), long),
        (" \t\n ".to_owned(), line),
        ("Trip\nto Jeju".to_owned(), line),
        ("Trip\u{0}to Jeju".to_owned(), line),
        ("Trip\u{1b}[31m to Jeju".to_owned(), line),
    ] {
        let mut link = world.link_arguments("conversation-1");
        link["label"] = json!(label);
        let refused = world.call(MODERN, LINK, link).await.tool_error();
        assert_eq!(refused, words, "{label:?}");
    }
    assert!(world.hub.chat_links().await.unwrap().is_empty());
    for (index, label) in ["a".repeat(200), HANGUL.repeat(200), EMOJI.repeat(100)]
        .into_iter()
        .enumerate()
    {
        let mut link = world.link_arguments(&format!("fitting-{index}"));
        link["label"] = json!(label);
        assert_eq!(world.call(MODERN, LINK, link).await.tool()["label"], label);
    }
}

#[tokio::test]
async fn a_reference_is_one_line_of_at_most_500_units() {
    let world = World::new().await;
    for (reference, words) in [
        (
            "a".repeat(501),
            "`reference` must be text of at most 500 characters.",
        ),
        (
            "https://chat.example/1\r\nX: y".to_owned(),
            "`reference` has 1 to 500 characters and no line breaks or other control characters.",
        ),
    ] {
        let mut link = world.link_arguments("conversation-1");
        link["reference"] = json!(reference);
        let refused = world.call(MODERN, LINK, link).await.tool_error();
        assert_eq!(refused, words);
    }
    let mut link = world.link_arguments("conversation-1");
    link["reference"] = json!(EMOJI.repeat(250));
    world.call(MODERN, LINK, link).await.tool();
    let rows = world.hub.chat_links().await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].link.reference, Some(EMOJI.repeat(250)));
}

#[tokio::test]
async fn a_task_has_a_text_of_at_most_8000_units() {
    let world = World::new().await;
    let chat = world.link("conversation-1").await;
    let links = [chat.link_id.clone()];
    for text in [
        String::new(),
        " \n\t ".to_owned(),
        "\u{3000}".to_owned(),
        "a".repeat(8_001),
        EMOJI.repeat(4_000) + "a",
    ] {
        let refused = world.hub.assign_task(&links, &text, "k-00000001").await;
        let words = "The text of a task has 1 to 8000 characters, not only white space.".to_owned();
        assert_eq!(refused.unwrap_err(), HubError::Invalid(words));
    }
    for text in [
        "a".repeat(8_000),
        HANGUL.repeat(8_000),
        EMOJI.repeat(4_000),
        "  kept as it is \n".to_owned(),
    ] {
        let task_id = world.assign(&[&chat], &text).await;
        let shown = world.inbox(&chat).await.pop().unwrap();
        assert_eq!(
            (&shown["task_id"], &shown["text"]),
            (&json!(task_id), &json!(text))
        );
    }
    let refused = world.hub.assign_task(&[], "Go", "k-00000002").await;
    assert!(matches!(refused, Err(HubError::Invalid(_))));
    let refused = world.hub.assign_task(&links, "Go", "k").await;
    assert!(matches!(refused, Err(HubError::Invalid(_))));
    assert_eq!(world.inbox(&chat).await.len(), 4);
}

#[tokio::test]
async fn a_task_names_at_most_eight_chats_of_one_project() {
    let world = World::new().await;
    let mut links = Vec::new();
    for index in 0..9 {
        links.push(world.link(&format!("conversation-{index}")).await.link_id);
    }
    let refused = world.hub.assign_task(&links, "Go", "k-00000001").await;
    let words = "A task names 1 to 8 linked chats.".to_owned();
    assert_eq!(refused.unwrap_err(), HubError::Invalid(words));
    for unknown in ["malformed", crate::world::UNKNOWN] {
        let with_unknown = [links[0].clone(), unknown.to_owned()];
        let refused = world.hub.assign_task(&with_unknown, "Go", "k-00000001");
        let not_found = callboard_domain::Refusal::ChatLinkNotFound;
        assert!(refused.await.unwrap_err().is(not_found));
    }
    assert!(world.hub.tasks(500).await.unwrap().is_empty());
    let assigned = world.hub.assign_task(&links[1..], "Go", "k-00000001").await;
    assert_eq!(assigned.unwrap().row.task.candidates.len(), 8);
}

#[tokio::test]
async fn markup_comes_back_as_the_plain_text_that_it_is() {
    let world = World::new().await;
    let label = MARKUP.replace(['\0', '\n'], "");
    for (index, revision) in REVISIONS.into_iter().enumerate() {
        let mut link = world.link_arguments(&format!("conversation-{index}"));
        (link["label"], link["reference"]) = (json!(label), json!(label));
        let linked = world.call(revision, LINK, link).await.tool();
        assert_eq!(linked["label"], label.as_str());
        let chat = Chat {
            token: world.token.clone(),
            link_id: linked["chat_link_id"].as_str().unwrap().to_owned(),
        };
        let rows = world.hub.chat_links().await.unwrap();
        assert_eq!(rows[index].link.reference.as_deref(), Some(label.as_str()));
        let task_id = world.assign(&[&chat], MARKUP).await;
        let look = json!({"chat_link_id": chat.link_id});
        let read = world.call(revision, READ, look).await.tool();
        assert_eq!(read["tasks"][0]["text"], MARKUP);
        let work = world.claimed(&chat, &task_id).await;
        let submit = work.result("completed", MARKUP);
        for replayed in [json!(null), json!(true)] {
            let answer = world.call(revision, SUBMIT, submit.clone()).await.tool();
            assert_eq!(
                answer.get("replayed").cloned().unwrap_or_default(),
                replayed
            );
        }
        let stored = world.outcome(&task_id).await;
        assert_eq!(stored, ended("completed", Some(MARKUP)));
    }
}

#[tokio::test]
async fn markup_in_an_id_is_never_said_back() {
    let (world, work) = working().await;
    let mut submit = work.result("completed", "4");
    for name in ["chat_link_id", "task_id", "claim_id"] {
        let mut arguments = submit.clone();
        arguments[name] = json!(MARKUP);
        for (tool, mut arguments) in [
            (SUBMIT, arguments.clone()),
            (UPLOAD, work.file("report", "4")),
        ] {
            arguments[name] = json!(MARKUP);
            let answer = world.under(&work, tool, arguments).await;
            answer.tool_error();
            assert!(!answer.text.contains("script"), "{}", answer.text);
        }
    }
    submit["claim_id"] = json!(work.claim_id);
    world.under(&work, SUBMIT, submit).await.tool();
}

#[tokio::test]
async fn half_a_surrogate_pair_is_no_text_and_a_whole_one_is() {
    let (world, work) = working().await;
    let with_result = |escaped: &str| {
        let params = json!({"name": SUBMIT, "arguments": work.result("completed", "HERE")});
        let request = world.request("2025-06-18", "tools/call", params);
        let request = request.bearer_auth(&world.token).build().unwrap();
        let body = request.body().unwrap().as_bytes().unwrap();
        let mut text = String::new();
        write!(
            text,
            "{}",
            String::from_utf8_lossy(body).replace("HERE", escaped)
        )
        .unwrap();
        send(
            world
                .post(text)
                .header("mcp-protocol-version", "2025-06-18")
                .bearer_auth(&world.token),
        )
    };
    let refused = with_result("\\ud83d").await;
    assert_eq!(refused.status.as_u16(), 400);
    assert_eq!(refused.error_code(), -32_700);
    assert_eq!(world.outcome(&work.task_id).await, ended("claimed", None));
    with_result("\\ud83d\\ude00").await.tool();
    let stored = world.outcome(&work.task_id).await;
    assert_eq!(stored, ended("completed", Some(EMOJI)));
}
