//! `kill -9` of the hub at every stage of a run, and of `callboard up` as a whole.

use serde_json::json;

use crate::mcp::{call, content, request, send};
use crate::network::{Lost, Network};
use crate::process::until;
use crate::rig::Rig;

#[tokio::test]
async fn a_queued_run_survives_the_hub() {
    let mut rig = Rig::with_graph().await;
    rig.kill_desktop().await;
    let ticket = rig.queue("ask").await;
    rig.kill_hub().await;
    // Its socket is still there; without it the commands look into the data themselves.
    let desktops = rig.hub(&["desktop", "list"]).await.ok();
    assert!(desktops.stdout.starts_with("laptop"), "{desktops:#?}");
    rig.start_hub().await;
    assert_eq!(rig.read(&ticket).await["status"], "queued");
    rig.start_desktop().await;
    rig.completes(&ticket).await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 2);
}

#[tokio::test]
async fn a_running_run_goes_on_without_the_hub_and_its_result_arrives() {
    let mut rig = Rig::with_graph().await;
    rig.model.hold();
    let ticket = rig.queue("ask").await;
    rig.model.is_asked(1).await;
    rig.kill_hub().await;
    rig.model.release();
    until("the result waits for the hub", async || {
        (rig.status().await["outbox_waiting"] == 1).then_some(())
    })
    .await;
    rig.start_hub().await;
    rig.completes(&ticket).await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 2);
}

#[tokio::test]
async fn a_run_that_outlasts_the_hubs_restart_is_still_running_and_then_completes() {
    let mut rig = Rig::with_graph().await;
    rig.model.hold();
    let ticket = rig.queue("ask").await;
    rig.model.is_asked(1).await;
    rig.kill_hub().await;
    rig.start_hub().await;
    assert_eq!(rig.read(&ticket).await["status"], "running");
    rig.model.release();
    rig.completes(&ticket).await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 2);
}

/// The hub dies when a completion is under way: before it got it, or after it stored it.
async fn killed_at_the_completion(lost: Lost) {
    let mut rig = Rig::with_graph().await;
    rig.kill_desktop().await;
    rig.network = Some(Network::start(rig.port).await);
    rig.start_desktop().await;
    let network = rig.network.as_ref().unwrap();
    network.lose(lost, "/complete");
    let ticket = rig.queue("ask").await;
    network.is_down().await;
    rig.kill_hub().await;
    rig.network.as_ref().unwrap().heal();
    rig.start_hub().await;
    rig.completes(&ticket).await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 2);
    assert_eq!(rig.history(&ticket).await.len(), 1);
}

#[tokio::test]
async fn a_completion_that_the_hub_never_got_is_sent_again() {
    killed_at_the_completion(Lost::Call).await;
}

#[tokio::test]
async fn a_completion_that_the_hub_stored_before_it_died_is_taken_as_a_replay() {
    killed_at_the_completion(Lost::Answer).await;
}

#[tokio::test]
async fn a_start_that_the_hub_granted_before_it_died_is_granted_again() {
    let mut rig = Rig::with_graph().await;
    rig.kill_desktop().await;
    rig.network = Some(Network::start(rig.port).await);
    rig.start_desktop().await;
    let network = rig.network.as_ref().unwrap();
    network.lose(Lost::Answer, "/start");
    let ticket = rig.queue("ask").await;
    network.is_down().await;
    rig.kill_hub().await;
    rig.network.as_ref().unwrap().heal();
    rig.start_hub().await;
    assert_eq!(rig.read(&ticket).await["status"], "running");
    rig.completes(&ticket).await;
    assert_eq!(rig.model.asked(), 1);
    assert_eq!(rig.history(&ticket).await.len(), 1);
}

#[tokio::test]
async fn after_a_restart_the_result_the_token_and_an_old_session_id_are_still_good() {
    let mut rig = Rig::with_graph().await;
    let ticket = rig.queue("ask").await;
    rig.completes(&ticket).await;
    let revision = "2025-06-18";
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    });
    let opened = send(rig.port, &request(&rig.token, revision, None, &initialize)).await;
    assert_eq!(opened.status, 200, "{opened:?}");
    let given = opened
        .session
        .unwrap_or_else(|| "a-session-of-before".to_owned());
    rig.kill_hub().await;
    rig.start_hub().await;
    let read = call("get_graph_run", &json!({"command_id": ticket}));
    for session in [Some(given.as_str()), None, Some("a-session-that-never-was")] {
        let answer = send(rig.port, &request(&rig.token, revision, session, &read)).await;
        let run = content(&answer);
        assert_eq!(run["status"], "completed", "{session:?}");
        assert_eq!(run["result"]["said"], "well", "{session:?}");
    }
    // The idempotency key, too, is remembered.
    rig.works().await;
}
