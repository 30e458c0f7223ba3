//! The Graph tools, as a connected agent uses them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::world::{EXECUTION, MODERN, REVISIONS, SESSION, UNKNOWN, World};

fn start(key: &str, arguments: Value) -> Value {
    json!({"graph_session_id": SESSION.to_string(), "idempotency_key": key, "arguments": arguments})
}

#[tokio::test]
async fn nothing_is_listed_until_the_owner_shares_it() {
    let world = World::new().await;
    let ask = json!({"project_id": world.project_id});
    let empty = world
        .call(MODERN, "list_graph_sessions", ask.clone())
        .await
        .tool();
    assert_eq!(
        empty,
        json!({"project_id": world.project_id, "sessions": []})
    );
    world.share().await;
    for revision in REVISIONS {
        let listed = world
            .call(revision, "list_graph_sessions", ask.clone())
            .await
            .tool();
        let session = &listed["sessions"][0];
        assert_eq!(
            session["graph_session_id"],
            SESSION.to_string(),
            "{revision}"
        );
        assert_eq!(session["slug"], "folder-report");
        assert_eq!(session["desktop"]["name"], "laptop");
        assert_eq!(session["desktop"]["online"], json!(true));
    }
    world.sync(json!([])).await;
    assert_eq!(
        world.call(MODERN, "list_graph_sessions", ask).await.tool(),
        empty
    );
}

#[tokio::test]
async fn a_run_goes_from_the_ticket_to_the_result() {
    let world = World::new().await;
    world.share().await;
    for (index, revision) in REVISIONS.into_iter().enumerate() {
        let key = format!("revision-{index}");
        let ticket = world
            .call(revision, "run_graph_session", start(&key, json!({"n": 1})))
            .await
            .tool();
        let command_id = ticket["command_id"].as_str().unwrap();
        assert_eq!(ticket["status"], "queued");
        assert_eq!(ticket["read_with"], "get_graph_run");
        assert_eq!(
            ticket["first_check_after_seconds"], 20,
            "the desktop only polls"
        );
        assert_eq!(ticket["then_every_seconds"], 15);

        let waiting = world.share().await;
        assert_eq!(waiting["commands"][0]["command_id"], command_id);
        assert_eq!(waiting["commands"][0]["arguments"], json!({"n": 1}));
        assert_eq!(
            world.start(command_id, EXECUTION).await.json()["cancel_requested"],
            json!(false)
        );
        let report = json!({"execution_id": EXECUTION, "status": "completed",
            "result": {"files": 3}, "total_tokens": 7, "reported_cost": 0.25});
        assert_eq!(
            world.complete(command_id, report).await.json(),
            json!({"ok": true})
        );

        let run = world
            .call(revision, "get_graph_run", json!({"command_id": command_id}))
            .await
            .tool();
        assert_eq!(run["status"], "completed");
        assert_eq!(run["result"], json!({"files": 3}));
        assert_eq!(
            (&run["total_tokens"], &run["reported_cost"]),
            (&json!(7), &json!(0.25))
        );
        assert_eq!(run["execution_id"], EXECUTION);
        assert_eq!(run.get("next_check_after_seconds"), None);
    }
}

#[tokio::test]
async fn the_same_key_gives_the_same_command_whatever_order_and_number_style() {
    let world = World::new().await;
    world.share().await;
    let first = world
        .call(
            MODERN,
            "run_graph_session",
            start("k-00000001", json!({"a": 1, "b": 2})),
        )
        .await
        .tool();
    for same in [
        json!({"b": 2, "a": 1}),
        json!({"a": 1.0, "b": 2}),
        json!({"a": 1, "b": 2}),
    ] {
        let again = world
            .call(MODERN, "run_graph_session", start("k-00000001", same))
            .await
            .tool();
        assert_eq!(again["command_id"], first["command_id"]);
    }
    for other in [
        start("k-00000001", json!({"a": 1, "b": 3})),
        start("k-00000001", json!({})),
    ] {
        let refused = world
            .call(MODERN, "run_graph_session", other)
            .await
            .tool_error();
        assert!(
            refused.contains("idempotency_key already belongs to a different request"),
            "{refused}"
        );
        assert!(
            !refused.contains(first["command_id"].as_str().unwrap()),
            "names no id"
        );
    }
    let bare = json!({"graph_session_id": SESSION.to_string(), "idempotency_key": "k-00000002"});
    let left_out = world.call(MODERN, "run_graph_session", bare).await.tool();
    let empty = world
        .call(MODERN, "run_graph_session", start("k-00000002", json!({})))
        .await
        .tool();
    assert_eq!(left_out["command_id"], empty["command_id"]);
    assert_eq!(world.share().await["commands"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_replay_answers_with_the_present_status_even_when_the_session_is_gone() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    world
        .call(
            MODERN,
            "cancel_graph_run",
            json!({"command_id": command_id}),
        )
        .await
        .tool();
    world.sync(json!([])).await;
    let bare = json!({"graph_session_id": SESSION.to_string(), "idempotency_key": "k-00000001"});
    let again = world.call(MODERN, "run_graph_session", bare).await.tool();
    assert_eq!(
        (again["command_id"].as_str(), &again["status"]),
        (Some(command_id.as_str()), &json!("cancelled"))
    );
}

#[tokio::test]
async fn keys_are_counted_in_code_points() {
    let world = World::new().await;
    world.share().await;
    for (key, fits) in [
        ("k".repeat(7), false),
        ("k".repeat(8), true),
        ("k".repeat(128), true),
        ("\u{d55c}".repeat(128), true),
        ("k".repeat(129), false),
    ] {
        let answer = world
            .call(MODERN, "run_graph_session", start(&key, json!({})))
            .await;
        if fits {
            answer.tool();
        } else {
            let expected = "`idempotency_key` must be text of 8 to 128 characters.";
            assert_eq!(answer.tool_error(), expected);
        }
    }
}

#[tokio::test]
async fn sloppy_limits_work_and_wrong_ones_name_the_range() {
    let world = World::new().await;
    world.share().await;
    let ask = |limit: Value| json!({"project_id": world.project_id, "limit": limit});
    for limit in [
        json!(10),
        json!(10.0),
        json!("10"),
        Value::Null,
        serde_json::from_str("1e1").unwrap(),
    ] {
        let listed = world
            .call(MODERN, "list_graph_sessions", ask(limit))
            .await
            .tool();
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    }
    for limit in [
        json!(10.5),
        json!("ten"),
        json!(0),
        json!(51),
        json!(-1),
        json!(true),
    ] {
        let refused = world
            .call(MODERN, "list_graph_sessions", ask(limit))
            .await
            .tool_error();
        assert_eq!(refused, "`limit` must be a whole number from 1 to 50.");
    }
}

#[tokio::test]
async fn arguments_beyond_their_limit_or_undeclared_are_a_tool_error() {
    let world = World::new().await;
    world.share().await;
    let envelope = json!({"text": ""}).to_string().len();
    for (index, (unit, units)) in [("a", 1), ("\u{65e5}", 1), ("\u{1F600}", 2)]
        .into_iter()
        .enumerate()
    {
        let room = (100_000 - envelope) / units;
        let key = format!("limit-{index:04}");
        let long = json!({"text": unit.repeat(room + 1)});
        let refused = world
            .call(MODERN, "run_graph_session", start(&key, long))
            .await;
        let expected = "`arguments` must be a JSON object of at most 100000 characters.";
        assert_eq!(refused.tool_error(), expected, "{unit}");
        let fitting = json!({"text": unit.repeat(room)});
        world
            .call(MODERN, "run_graph_session", start(&key, fitting))
            .await
            .tool();
    }
    // JavaScript writes 1.0 as 1: what counts is what a client's JSON.stringify counts.
    let floats: Value = serde_json::from_str(&format!("[{}1.0]", "1.0,".repeat(49_000))).unwrap();
    let floats = start("limit-floats", json!({"n": floats}));
    world.call(MODERN, "run_graph_session", floats).await.tool();
    let mut extra = start("k-00000002", json!({}));
    extra["priority"] = json!(1);
    let refused = world
        .call(MODERN, "run_graph_session", extra)
        .await
        .tool_error();
    assert!(
        refused.starts_with("There is no argument `priority`."),
        "{refused}"
    );
}

#[tokio::test]
async fn foreign_unknown_and_malformed_ids_get_the_same_bytes() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    let stranger = world
        .connect("stranger", &callboard_domain::Scope::ALL)
        .await;
    for tool in ["get_graph_run", "cancel_graph_run"] {
        let mut answers = Vec::new();
        for id in [
            command_id.as_str(),
            UNKNOWN,
            "malformed",
            "",
            &"x".repeat(10_000),
        ] {
            let arguments = json!({"command_id": id});
            let answer = world.call_as(&stranger, MODERN, tool, arguments).await;
            assert_eq!(answer.tool_error(), "Graph run not found or access removed");
            answers.push((answer.status, answer.text));
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{tool}: {answers:?}");
    }
    let untouched = world
        .call(MODERN, "get_graph_run", json!({"command_id": command_id}))
        .await;
    assert_eq!(untouched.tool()["status"], "queued");
    let upper = json!({"command_id": command_id.to_uppercase()});
    assert_eq!(
        world.call(MODERN, "get_graph_run", upper).await.tool()["command_id"],
        command_id
    );
    let foreign = world
        .hub
        .create_project("Foreign")
        .await
        .unwrap()
        .id
        .to_string();
    for id in [UNKNOWN, "malformed", &foreign] {
        let refused = world
            .call(MODERN, "list_graph_sessions", json!({"project_id": id}))
            .await;
        assert_eq!(refused.tool_error(), "Project not found or access removed");
        let unknown = json!({"graph_session_id": id, "idempotency_key": "k-00000009"});
        let refused = world
            .call(MODERN, "run_graph_session", unknown)
            .await
            .tool_error();
        assert_eq!(refused, "Graph session not found or access removed");
    }
}

#[tokio::test]
async fn a_queued_run_is_cancelled_at_once_and_never_handed_out() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    for _ in 0..2 {
        let cancelled = world
            .call(
                MODERN,
                "cancel_graph_run",
                json!({"command_id": command_id}),
            )
            .await
            .tool();
        assert_eq!(
            cancelled,
            json!({"command_id": command_id, "status": "cancelled", "cancel_requested": true})
        );
    }
    assert_eq!(world.share().await["commands"], json!([]));
    let refused = world.start(&command_id, EXECUTION).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["code"]),
        (409, &json!("run_over"))
    );
}

#[tokio::test]
async fn a_revoked_connection_loses_its_token_and_its_queued_runs() {
    let world = World::new().await;
    world.share().await;
    let (queued, running) = (
        world.queue("k-00000001").await,
        world.queue("k-00000002").await,
    );
    world.start(&running, EXECUTION).await;
    let revoked = world.hub.revoke_connection("Claude").await.unwrap();
    assert_eq!(revoked.runs.len(), 2);
    let answer = world.call(MODERN, "list_projects", json!({})).await;
    assert_eq!(answer.status.as_u16(), 401);
    let waiting = world.share().await;
    assert_eq!(waiting["commands"], json!([]), "{queued} ended cancelled");
    assert_eq!(
        waiting["control"],
        json!([{"command_id": running, "cancel_requested": true}])
    );
}

#[tokio::test]
async fn the_same_start_twice_within_milliseconds_queues_one_run() {
    let world = Arc::new(World::new().await);
    world.share().await;
    for round in 0..40 {
        let key = format!("round-{round:03}");
        let sends = REVISIONS.map(|revision| {
            let (world, arguments) = (Arc::clone(&world), start(&key, json!({"round": round})));
            tokio::spawn(async move {
                world
                    .call(revision, "run_graph_session", arguments)
                    .await
                    .tool()
            })
        });
        let mut ids = Vec::new();
        for sent in sends {
            ids.push(sent.await.unwrap()["command_id"].clone());
        }
        ids.dedup();
        assert_eq!(ids.len(), 1, "{ids:?}");
    }
}

#[tokio::test]
async fn a_result_at_the_limit_comes_whole_and_the_answer_stays_within_bounds() {
    let world = World::new().await;
    world.share().await;
    for (index, unit) in ["a", "\u{65e5}"].into_iter().enumerate() {
        let command_id = world.queue(&format!("limit-{index:04}")).await;
        world.start(&command_id, EXECUTION).await;
        let text = unit.repeat(99_800);
        let report = json!({"execution_id": EXECUTION, "status": "completed", "result": text});
        assert_eq!(
            world.complete(&command_id, report).await.status.as_u16(),
            200
        );
        let answer = world
            .call(MODERN, "get_graph_run", json!({"command_id": command_id}))
            .await;
        assert_eq!(answer.tool()["result"], text.as_str());
        assert!(
            answer.text.len() * 10 <= text.len() * 22,
            "{} of {}",
            answer.text.len(),
            text.len()
        );
    }
    let command_id = world.queue("limit-polls").await;
    let poll = world
        .call(MODERN, "get_graph_run", json!({"command_id": command_id}))
        .await;
    assert!(poll.text.len() < 1_024, "{}", poll.text.len());
}

#[tokio::test]
async fn a_limit_cuts_the_list_and_a_known_key_comes_before_the_session() {
    let world = World::new().await;
    let session = |byte: usize| {
        json!({"graph_session_id": format!("gs_{byte:032x}"), "name": format!("n{byte}"),
            "description": "", "slug": "s", "version": 1, "status": "ready"})
    };
    world
        .sync(json!([session(1), session(2), session(3)]))
        .await;
    let ask = json!({"project_id": world.project_id, "limit": 2});
    let listed = world.call(MODERN, "list_graph_sessions", ask).await.tool();
    let names: Vec<_> = listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["name"])
        .collect();
    assert_eq!(names, ["n1", "n2"]);
    let run = |id: &str| json!({"graph_session_id": id, "idempotency_key": "k-00000001"});
    world
        .call(MODERN, "run_graph_session", run(&format!("gs_{:032x}", 1)))
        .await
        .tool();
    for other in ["malformed", &format!("gs_{:032x}", 9)] {
        let refused = world
            .call(MODERN, "run_graph_session", run(other))
            .await
            .tool_error();
        assert!(
            refused.starts_with("This idempotency_key already belongs"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_the_command_there_once_or_not_at_all() {
    let world = World::new().await;
    world.share().await;
    for round in 0..50u64 {
        let key = format!("drop-{round:06}");
        let call = world.call(
            MODERN,
            "run_graph_session",
            start(&key, json!({"round": round})),
        );
        let cut = std::time::Duration::from_micros(round * 400);
        // Whether the answer came in time or was cut off makes no difference to what follows.
        drop(tokio::time::timeout(cut, call).await);
        let again = || {
            world.call(
                MODERN,
                "run_graph_session",
                start(&key, json!({"round": round})),
            )
        };
        let (first, second) = (again().await.tool(), again().await.tool());
        assert_eq!(first["command_id"], second["command_id"], "{round}");
    }
    let mut waiting = 0;
    while let Some(command) = world.share().await["commands"].as_array().unwrap().first() {
        let report = json!({"status": "cancelled"});
        world
            .complete(command["command_id"].as_str().unwrap(), report)
            .await;
        waiting += 1;
    }
    assert_eq!(waiting, 50, "one command a key");
}
