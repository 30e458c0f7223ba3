//! The idempotency key of a link: equal requests are one, others are told so.

use callboard_domain::Scope;
use serde_json::{Value, json};

use crate::chat_world::{LINK, NO_LINK};
use crate::world::{MODERN, UNKNOWN, World};

const KEY: &str = "k-00000001";

async fn link(world: &World, arguments: Value) -> Value {
    world.call(MODERN, LINK, arguments).await.tool()
}

async fn refusal(world: &World, arguments: Value) -> String {
    world.call(MODERN, LINK, arguments).await.tool_error()
}

/// The usual arguments under [`KEY`] with some of them changed.
fn changed(world: &World, changes: Value) -> Value {
    let mut arguments = world.link_arguments(KEY);
    for (name, value) in changes.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    arguments
}

#[tokio::test]
async fn an_equal_request_is_the_same_link_however_it_is_written() {
    let world = World::new().await;
    let first = link(&world, world.link_arguments(KEY)).await;
    for same in [
        json!({}),
        json!({"reference": null}),
        json!({"reference": ""}),
        json!({"reference": "  "}),
        json!({"label": "  Trip to Jeju "}),
        json!({"project_id": world.project_id.to_uppercase()}),
    ] {
        assert_eq!(link(&world, changed(&world, same)).await, first);
    }
    let other_order = json!({"idempotency_key": KEY, "label": "Trip to Jeju",
        "project_id": world.project_id});
    assert_eq!(link(&world, other_order).await, first);
    assert_eq!(world.hub.chat_links().await.unwrap().len(), 1);
}

#[tokio::test]
async fn another_request_under_the_key_is_refused_and_makes_nothing() {
    let world = World::new().await;
    let first = link(&world, world.link_arguments(KEY)).await;
    for other in [
        json!({"label": "Trip to Busan"}),
        json!({"label": "trip to jeju"}),
        json!({"reference": "https://chat.example/1"}),
        json!({"project_id": UNKNOWN}),
        json!({"project_id": "malformed"}),
    ] {
        let refused = refusal(&world, changed(&world, other.clone())).await;
        assert_eq!(
            refused,
            "This idempotency_key already belongs to a different link, and no link was made. \
             Repeat the first request unchanged to read its chat_link_id, or use a new key for a \
             new link.",
            "{other}"
        );
    }
    assert_eq!(link(&world, world.link_arguments(KEY)).await, first);
    assert_eq!(world.hub.chat_links().await.unwrap().len(), 1);
}

#[tokio::test]
async fn keys_of_a_link_are_counted_in_code_points() {
    let world = World::new().await;
    for (key, fits) in [
        ("k".repeat(7), false),
        ("k".repeat(8), true),
        ("k".repeat(128), true),
        ("\u{d55c}".repeat(128), true),
        ("\u{1F600}".repeat(128), true),
        ("k".repeat(129), false),
    ] {
        let arguments = world.link_arguments(&key);
        if fits {
            link(&world, arguments).await;
        } else {
            let expected = "`idempotency_key` must be text of 8 to 128 characters.";
            assert_eq!(refusal(&world, arguments).await, expected);
        }
    }
    assert_eq!(world.hub.chat_links().await.unwrap().len(), 4);
}

#[tokio::test]
async fn the_key_of_another_connection_is_another_key() {
    let world = World::new().await;
    let stranger = world.connect("ChatGPT", &Scope::ALL).await;
    let mine = world.link(KEY).await;
    let theirs = world.link_as(&stranger, KEY).await;
    assert_ne!(mine.link_id, theirs.link_id);
}

#[tokio::test]
async fn a_key_whose_first_request_was_refused_is_still_free() {
    let world = World::new().await;
    let refused = refusal(&world, changed(&world, json!({"project_id": UNKNOWN}))).await;
    assert_eq!(refused, "Project not found or access removed");
    link(&world, world.link_arguments(KEY)).await;
}

#[tokio::test]
async fn the_key_of_a_revoked_link_makes_no_second_one() {
    let world = World::new().await;
    let chat = world.link(KEY).await;
    world.hub.revoke_chat_link(&chat.link_id).await.unwrap();
    assert_eq!(refusal(&world, world.link_arguments(KEY)).await, NO_LINK);
    let other = changed(&world, json!({"label": "Trip to Busan"}));
    let refused = refusal(&world, other).await;
    assert!(refused.contains("already belongs"), "{refused}");
    assert!(world.hub.chat_links().await.unwrap().is_empty());
    world.link("k-00000002").await;
}

#[tokio::test]
async fn a_project_that_is_foreign_unknown_or_malformed_is_one_answer() {
    let world = World::new().await;
    let foreign = world.hub.create_project("Foreign").await.unwrap();
    let mut answers = Vec::new();
    for id in [&foreign.id.to_string(), UNKNOWN, "malformed", ""] {
        let arguments = changed(&world, json!({"project_id": id}));
        let answer = world.call(MODERN, LINK, arguments).await;
        let refused = answer.tool_error();
        assert_eq!(refused, "Project not found or access removed");
        answers.push((answer.status, answer.text));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(world.hub.chat_links().await.unwrap().is_empty());
}
