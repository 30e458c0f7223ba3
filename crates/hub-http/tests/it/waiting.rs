//! Calls that the hub holds: `wait_seconds` and the wake-up call.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::world::{EXECUTION, MODERN, World};

/// Far longer than a wake-up takes, far shorter than a hold that was missed.
const PROMPT: std::time::Duration = std::time::Duration::from_secs(10);

fn wait_for(world: &World, revision: &Value) -> Value {
    json!({"projects": [{"project_id": world.project_id, "revision": revision}]})
}

#[tokio::test]
async fn a_held_status_call_answers_as_soon_as_the_status_changes() {
    let world = Arc::new(World::new().await);
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    let held = {
        let (world, ask) = (
            Arc::clone(&world),
            json!({"command_id": command_id, "wait_seconds": 40}),
        );
        tokio::spawn(async move { world.call(MODERN, "get_graph_run", ask).await.tool() })
    };
    world.start(&command_id, EXECUTION).await;
    // Should the start overtake the held call, then the call sees a running run and waits for the
    // next change.
    let report = json!({"execution_id": EXECUTION, "status": "completed", "result": 1});
    world.complete(&command_id, report).await;
    let run = tokio::time::timeout(PROMPT, held)
        .await
        .expect("woken")
        .unwrap();
    assert!(
        run["status"] == "running" || run["status"] == "completed",
        "{run}"
    );
}

#[tokio::test]
async fn without_a_wait_or_for_a_finished_run_the_answer_comes_at_once() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    let ask = json!({"command_id": command_id, "wait_seconds": 0});
    let run = tokio::time::timeout(PROMPT, world.call(MODERN, "get_graph_run", ask)).await;
    assert_eq!(run.expect("at once").tool()["status"], "queued");
    world
        .call(
            MODERN,
            "cancel_graph_run",
            json!({"command_id": command_id}),
        )
        .await;
    let ask = json!({"command_id": command_id, "wait_seconds": 40});
    let run = tokio::time::timeout(PROMPT, world.call(MODERN, "get_graph_run", ask)).await;
    assert_eq!(run.expect("at once").tool()["status"], "cancelled");
    let ask = json!({"command_id": command_id, "wait_seconds": 41});
    let refused = world.call(MODERN, "get_graph_run", ask).await.tool_error();
    assert_eq!(
        refused,
        "`wait_seconds` must be a whole number from 0 to 40."
    );
}

#[tokio::test]
async fn a_wait_that_runs_out_answers_with_the_present_status() {
    let world = World::new().await;
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    let ask = json!({"command_id": command_id, "wait_seconds": 1});
    let run = tokio::time::timeout(PROMPT, world.call(MODERN, "get_graph_run", ask)).await;
    assert_eq!(run.expect("in time").tool()["status"], "queued");
}

#[tokio::test]
async fn the_wake_up_call_answers_for_a_new_command_and_for_a_cancel() {
    let world = Arc::new(World::new().await);
    let revision = world.share().await["revision"].clone();
    let hold = |revision: Value| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            world
                .relay("/wait", wait_for(&world, &revision))
                .await
                .json()
        })
    };
    let held = hold(revision);
    world.until_held().await;
    let command_id = world.queue("k-00000001").await;
    let woken = tokio::time::timeout(PROMPT, held)
        .await
        .expect("woken")
        .unwrap();
    assert_eq!(woken["wake"][0]["project_id"], world.project_id.as_str());

    let synced = world.share().await;
    assert_eq!(synced["commands"][0]["command_id"], command_id.as_str());
    world.start(&command_id, EXECUTION).await;
    let held = hold(synced["revision"].clone());
    world.until_held().await;
    world
        .call(
            MODERN,
            "cancel_graph_run",
            json!({"command_id": command_id}),
        )
        .await;
    let woken = tokio::time::timeout(PROMPT, held)
        .await
        .expect("woken")
        .unwrap();
    assert_ne!(woken["wake"][0]["revision"], synced["revision"]);
}

#[tokio::test]
async fn a_revision_of_before_a_restart_answers_at_once() {
    let world = World::new().await;
    let old = json!("0000000000000000-0");
    let woken = tokio::time::timeout(PROMPT, world.relay("/wait", wait_for(&world, &old))).await;
    assert_eq!(
        woken.expect("at once").json()["wake"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_desktop_that_holds_a_wake_up_call_is_checked_without_delay() {
    let world = Arc::new(World::new().await);
    let revision = world.share().await["revision"].clone();
    let held = {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            world
                .relay("/wait", wait_for(&world, &revision))
                .await
                .json()
        })
    };
    world.until_held().await;
    let start = json!({"graph_session_id": crate::world::SESSION.to_string(), "idempotency_key": "k-00000001"});
    let ticket = world.call(MODERN, "run_graph_session", start).await.tool();
    assert_eq!(ticket["first_check_after_seconds"], 0);
    tokio::time::timeout(PROMPT, held)
        .await
        .expect("woken")
        .unwrap();
}

#[tokio::test]
async fn a_shutdown_answers_held_calls_at_once() {
    let world = Arc::new(World::new().await);
    let revision = world.share().await["revision"].clone();
    let command_id = world.queue("k-00000001").await;
    let revision_now = world.share().await["revision"].clone();
    assert_ne!(revision, revision_now);
    let status = {
        let (world, ask) = (
            Arc::clone(&world),
            json!({"command_id": command_id, "wait_seconds": 40}),
        );
        tokio::spawn(async move { world.call(MODERN, "get_graph_run", ask).await.tool() })
    };
    let wake = {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            world
                .relay("/wait", wait_for(&world, &revision_now))
                .await
                .json()
        })
    };
    world.until_held().await;
    world.shutdown.cancel();
    let status = tokio::time::timeout(PROMPT, status)
        .await
        .expect("answered")
        .unwrap();
    assert_eq!(status["status"], "queued");
    let wake = tokio::time::timeout(PROMPT, wake)
        .await
        .expect("answered")
        .unwrap();
    assert_eq!(wake, json!({"wake": []}));
}

#[tokio::test]
async fn a_held_call_ends_with_its_client() {
    let world = Arc::new(World::new().await);
    world.share().await;
    let command_id = world.queue("k-00000001").await;
    let ask = json!({"command_id": command_id, "wait_seconds": 40});
    let before = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    for _ in 0..5 {
        let call = world.call(MODERN, "get_graph_run", ask.clone());
        let cut = tokio::time::timeout(std::time::Duration::from_millis(200), call).await;
        assert!(cut.is_err(), "the call is held");
    }
    let gone = async {
        while tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
            > before
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PROMPT, gone)
        .await
        .expect("no call outlives its client");
}

#[tokio::test]
async fn a_client_that_never_finishes_its_request_does_not_hold_up_the_end() {
    use tokio::io::AsyncWriteExt as _;
    let world = World::new().await;
    let mut stalled = tokio::net::TcpStream::connect(world.address).await.unwrap();
    let half = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    stalled.write_all(half.as_bytes()).await.unwrap();
    world.share().await;
    world.shutdown.cancel();
    let served = tokio::time::timeout(PROMPT, world.server)
        .await
        .expect("the end comes");
    served.unwrap().unwrap();
}
