//! The relay API, as a desktop uses it.

use callboard_wire::WORKER_HEADER;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::world::{EXECUTION, MODERN, OTHER_EXECUTION, UNKNOWN, World, send};

fn code(answer: &crate::world::Answer) -> (u16, String) {
    (
        answer.status.as_u16(),
        answer.json()["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    )
}

#[tokio::test]
async fn a_desktop_learns_who_it_is() {
    let world = World::new().await;
    let request = world
        .client
        .get(world.url("/api/v1/desktop"))
        .bearer_auth(&world.desktop_token);
    let answer = send(request.header(WORKER_HEADER, UNKNOWN)).await.json();
    assert_eq!(answer["name"], "laptop");
    assert_eq!(
        answer["projects"],
        json!([{"project_id": world.project_id, "name": "Home"}])
    );
}

#[tokio::test]
async fn a_wrong_token_a_missing_worker_and_a_second_worker_are_told_apart() {
    let world = World::new().await;
    let get = || world.client.get(world.url("/api/v1/desktop"));
    for token in ["cbd_wrong", world.token.as_str()] {
        let answer = send(get().bearer_auth(token).header(WORKER_HEADER, UNKNOWN)).await;
        assert_eq!(code(&answer), (401, "unauthorized".into()));
    }
    let answer = send(get().bearer_auth(&world.desktop_token)).await;
    assert_eq!(code(&answer), (400, "worker_missing".into()));
    world.share().await;
    let as_other = || {
        get()
            .bearer_auth(&world.desktop_token)
            .header(WORKER_HEADER, UNKNOWN)
    };
    assert_eq!(
        code(&send(as_other()).await),
        (409, "desktop_in_use".into())
    );
    world.hub.rebind_desktop("laptop").await.unwrap();
    assert_eq!(send(as_other()).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_lost_sync_answer_hands_the_command_out_again() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    for _ in 0..3 {
        assert_eq!(
            world.share().await["commands"][0]["command_id"],
            command_id.as_str()
        );
    }
    world.start(&command_id, EXECUTION).await;
    assert_eq!(world.share().await["commands"], json!([]));
}

#[tokio::test]
async fn a_start_is_granted_to_one_execution_and_again_to_the_same() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    for _ in 0..2 {
        assert_eq!(
            world.start(&command_id, EXECUTION).await.status,
            StatusCode::OK
        );
    }
    assert_eq!(
        code(&world.start(&command_id, OTHER_EXECUTION).await),
        (409, "run_taken".into())
    );
    assert_eq!(
        code(&world.start(UNKNOWN, EXECUTION).await),
        (404, "run_not_found".into())
    );
    assert_eq!(
        code(&world.start("malformed", EXECUTION).await),
        (404, "run_not_found".into())
    );
}

#[tokio::test]
async fn a_cancel_of_a_running_run_reaches_the_control_poll_and_the_sync() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    world.start(&command_id, EXECUTION).await;
    let control = format!("/commands/{command_id}/control");
    let up = json!({"phase": "reading files", "progress": {"calls_done": 1, "calls_started": 2, "tokens": 30, "tokens_cap": 100}});
    assert_eq!(
        world.relay(&control, up.clone()).await.json(),
        json!({"cancel_requested": false})
    );
    let run = world
        .call(MODERN, "get_graph_run", json!({"command_id": command_id}))
        .await
        .tool();
    assert_eq!(
        (&run["phase"], &run["progress"]),
        (&up["phase"], &up["progress"])
    );
    world
        .call(
            MODERN,
            "cancel_graph_run",
            json!({"command_id": command_id}),
        )
        .await
        .tool();
    assert_eq!(
        world.relay(&control, json!({})).await.json(),
        json!({"cancel_requested": true})
    );
    assert_eq!(
        world.share().await["control"][0]["command_id"],
        command_id.as_str()
    );
    let report = json!({"execution_id": EXECUTION, "status": "cancelled"});
    world.complete(&command_id, report).await;
    assert_eq!(
        code(&world.relay(&control, json!({})).await),
        (409, "run_over".into())
    );
    let run = world
        .call(MODERN, "get_graph_run", json!({"command_id": command_id}))
        .await
        .tool();
    assert_eq!(
        (&run["status"], run.get("phase")),
        (&json!("cancelled"), None)
    );
}

#[tokio::test]
async fn a_repeated_completion_is_a_replay_and_a_changed_one_is_refused() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    world.start(&command_id, EXECUTION).await;
    let report =
        |result: Value| json!({"execution_id": EXECUTION, "status": "completed", "result": result});
    assert_eq!(
        world.complete(&command_id, report(json!(1))).await.json(),
        json!({"ok": true})
    );
    let again = world.complete(&command_id, report(json!(1))).await;
    assert_eq!(again.json(), json!({"ok": true, "replayed": true}));
    let changed = world.complete(&command_id, report(json!(2))).await;
    assert_eq!(code(&changed), (409, "completion_differs".into()));
    let stale = json!({"execution_id": OTHER_EXECUTION, "status": "completed", "result": 1});
    assert_eq!(
        code(&world.complete(&command_id, stale).await),
        (409, "stale_execution".into())
    );
}

#[tokio::test]
async fn the_result_travels_as_the_engines_own_text() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    world.start(&command_id, EXECUTION).await;
    let body = format!(
        r#"{{"execution_id":"{EXECUTION}","status":"completed","result":{{"z":1,"a":1e+21}}}}"#
    );
    let url = format!("/api/v1/external-assistants/graph-relays/commands/{command_id}/complete");
    let request = world
        .client
        .post(world.url(&url))
        .bearer_auth(&world.desktop_token);
    let worker = "11111111-1111-4111-8111-111111111111";
    assert_eq!(
        send(request.header(WORKER_HEADER, worker).body(body))
            .await
            .status,
        StatusCode::OK
    );
    let answer = world
        .call(MODERN, "get_graph_run", json!({"command_id": command_id}))
        .await
        .json();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(r#""result":{"z":1,"a":1e+21}"#), "{text}");
}

#[tokio::test]
async fn a_command_whose_consent_is_gone_ends_cancelled_with_the_published_sentence() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    assert_eq!(
        world.sync(json!([])).await.json()["commands"][0]["command_id"],
        command_id.as_str()
    );
    let sentence = "Graph session is no longer shared with this project";
    let report = json!({"status": "cancelled", "error": sentence});
    for _ in 0..2 {
        assert_eq!(
            world.complete(&command_id, report.clone()).await.status,
            StatusCode::OK
        );
    }
    let run = world
        .call(MODERN, "get_graph_run", json!({"command_id": command_id}))
        .await
        .tool();
    assert_eq!(
        (&run["status"], &run["error"]),
        (&json!("cancelled"), &json!(sentence))
    );
    let claimed = json!({"status": "completed", "result": 1});
    let refused = world.complete(&command_id, claimed).await;
    assert_eq!(code(&refused), (422, "completion_without_execution".into()));
}

#[tokio::test]
async fn a_sync_beyond_its_bounds_is_refused_and_changes_nothing() {
    let world = World::new().await;
    world.share().await;
    let session = |byte: usize, name: &str| {
        json!({
            "graph_session_id": format!("gs_{byte:032x}"), "name": name, "description": "",
            "slug": "s", "version": 1, "status": "ready",
        })
    };
    let many: Vec<_> = (0..101).map(|byte| session(byte, "n")).collect();
    assert_eq!(
        code(&world.sync(json!(many)).await),
        (422, "too_many_sessions".into())
    );
    assert_eq!(world.sync(json!(many[..100])).await.status, StatusCode::OK);
    for wrong in [
        json!([session(1, "")]),
        json!([session(1, "n"), session(1, "n")]),
        json!([{"name": 1}]),
    ] {
        assert_eq!(
            code(&world.sync(wrong).await),
            (422, "invalid_request".into())
        );
    }
    let listed = world
        .call(
            MODERN,
            "list_graph_sessions",
            json!({"project_id": world.project_id}),
        )
        .await;
    assert_eq!(
        listed.tool()["sessions"].as_array().unwrap().len(),
        50,
        "the hundred are still there"
    );
    let foreign = world
        .relay("/sync", json!({"project_id": UNKNOWN, "sessions": []}))
        .await;
    assert_eq!(code(&foreign), (404, "project_not_found".into()));
}

#[tokio::test]
async fn results_that_strict_readers_refuse_do_not_make_a_run_unreadable() {
    let world = World::new().await;
    world.share().await;
    let deep = format!("{}{}", "[".repeat(126), "]".repeat(126));
    for (index, (result, shown)) in [
        ("null", json!(null)),
        (r#""a\ud83d""#, json!("a\u{fffd}")),
        ("1e400", Value::Null),
        (deep.as_str(), Value::Null),
    ]
    .into_iter()
    .enumerate()
    {
        let command_id = world.queue(&format!("strict-{index:04}")).await;
        world.start(&command_id, EXECUTION).await;
        let body =
            format!(r#"{{"execution_id":"{EXECUTION}","status":"completed","result":{result}}}"#);
        let url =
            format!("/api/v1/external-assistants/graph-relays/commands/{command_id}/complete");
        let request = world
            .client
            .post(world.url(&url))
            .bearer_auth(&world.desktop_token);
        let worker = "11111111-1111-4111-8111-111111111111";
        let sent = send(request.header(WORKER_HEADER, worker).body(body)).await;
        assert_eq!(sent.status, StatusCode::OK, "{result}: {}", sent.text);
        let answer = world
            .call(MODERN, "get_graph_run", json!({"command_id": command_id}))
            .await;
        let answered = &answer.json()["result"];
        assert_eq!(answered["isError"], json!(false), "{result}");
        let text = answered["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains(r#""status":"completed""#) && text.contains(r#""result":"#),
            "{text}"
        );
        if let Some(structured) = answered.get("structuredContent") {
            assert_eq!(structured["result"], shown, "{result}");
        }
    }
}

#[tokio::test]
async fn paths_and_bodies_that_cannot_be_read_get_the_hubs_own_problem() {
    let world = World::new().await;
    let unknown = world.start("malformed", EXECUTION).await;
    let broken = world.start("%FF", EXECUTION).await;
    assert_eq!(
        (broken.status, &broken.text),
        (unknown.status, &unknown.text)
    );
    let long = json!({"execution_id": EXECUTION, "x": "a".repeat(8 * 1024 * 1024)});
    let refused = world
        .relay(&format!("/commands/{UNKNOWN}/start"), long)
        .await;
    assert_eq!(code(&refused), (413, "body_too_large".into()));
}

#[tokio::test]
async fn a_run_of_another_desktop_is_like_an_unknown_one() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    let other = world.hub.create_desktop("other").await.unwrap().token;
    let mut answers = Vec::new();
    for id in [command_id.as_str(), UNKNOWN, "malformed"] {
        for (call, body) in [
            ("start", json!({"execution_id": EXECUTION})),
            ("control", json!({})),
            (
                "complete",
                json!({"execution_id": EXECUTION, "status": "failed"}),
            ),
        ] {
            let url = format!("/api/v1/external-assistants/graph-relays/commands/{id}/{call}");
            let request = world.client.post(world.url(&url)).bearer_auth(&other);
            let answer = send(
                request
                    .header(WORKER_HEADER, UNKNOWN)
                    .body(body.to_string()),
            )
            .await;
            answers.push((answer.status, answer.text, answer.headers.len()));
        }
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    let untouched = world
        .call(MODERN, "get_graph_run", json!({"command_id": command_id}))
        .await;
    assert_eq!(untouched.tool()["status"], "queued");
}
