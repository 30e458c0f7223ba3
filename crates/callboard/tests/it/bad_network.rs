//! Calls that are cut off, answers that get lost, and the same call twice at once (B04, B07, B33).

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::mcp::{call, content, request, send};
use crate::network::{Lost, Network};
use crate::rig::Rig;

/// A start of `ask` under a key, as every well-behaved retry of it looks.
async fn start_call(rig: &Rig, key: &str) -> Value {
    let sessions = rig.client(&["sessions", "--json"]).await.ok().json();
    let session = &sessions[0]["sessions"][0]["graph_session_id"];
    let arguments = json!({"graph_session_id": session, "arguments": {}, "idempotency_key": key});
    call("run_graph_session", &arguments)
}

fn with_key(mut start: Value, key: &str) -> Value {
    start["params"]["arguments"]["idempotency_key"] = key.into();
    start
}

#[tokio::test]
async fn a_caller_that_hangs_up_at_any_moment_has_one_run_or_none_and_the_retry_finds_it() {
    const CALLS: u64 = 25;
    let mut rig = Rig::with_graph().await;
    rig.kill_desktop().await;
    let start = start_call(&rig, "drop-000000").await;
    let mut tickets = BTreeSet::new();
    for number in 0..CALLS {
        let start = with_key(start.clone(), &format!("drop-{number:06}"));
        let request = request(&rig.token, "2025-06-18", None, &start);
        let mut stream = TcpStream::connect(("127.0.0.1", rig.port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        // The moment is the fault, not a wait for anything.
        tokio::time::sleep(Duration::from_micros(number * 300)).await;
        drop(stream);
        let first = content(&send(rig.port, &request).await);
        let again = content(&send(rig.port, &request).await);
        assert_eq!(first["command_id"], again["command_id"]);
        tickets.insert(first["command_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(tickets.len() as u64, CALLS);
    rig.start_desktop().await;
    for ticket in &tickets {
        rig.completes(ticket).await;
    }
    assert_eq!(rig.model.asked(), tickets.len());
}

#[tokio::test]
async fn the_same_call_twice_at_once_in_two_revisions_is_one_run() {
    const ROUNDS: usize = 20;
    let mut rig = Rig::with_graph().await;
    rig.kill_desktop().await;
    let start = start_call(&rig, "twice-000000").await;
    let mut tickets = BTreeSet::new();
    for round in 0..ROUNDS {
        let start = with_key(start.clone(), &format!("twice-{round:06}"));
        let older = request(&rig.token, "2025-06-18", None, &start);
        let newer = request(&rig.token, "2025-11-25", None, &start);
        let (one, other) = tokio::join!(send(rig.port, &older), send(rig.port, &newer));
        let (one, other) = (content(&one), content(&other));
        assert_eq!(one["command_id"], other["command_id"]);
        tickets.insert(one["command_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(tickets.len(), ROUNDS);
    rig.start_desktop().await;
    for ticket in &tickets {
        rig.completes(ticket).await;
    }
    assert_eq!(rig.model.asked(), ROUNDS);
}

/// A desktop that asks through a network, and a run that is queued while it is away.
async fn with_queued_run() -> (Rig, String) {
    let mut rig = Rig::with_graph().await;
    rig.kill_desktop().await;
    rig.network = Some(Network::start(rig.port).await);
    let ticket = rig.queue("ask").await;
    (rig, ticket)
}

#[tokio::test]
async fn a_sync_whose_answer_got_lost_hands_the_command_out_again() {
    let (mut rig, ticket) = with_queued_run().await;
    rig.network.as_ref().unwrap().lose(Lost::Answer, "/sync");
    rig.start_desktop_alone().await;
    rig.network.as_ref().unwrap().is_down().await;
    assert_eq!(
        rig.read(&ticket).await["status"],
        "queued",
        "never running unfetched"
    );
    rig.network.as_ref().unwrap().heal();
    rig.completes(&ticket).await;
    // What a desktop has seen it knows after a restart, too.
    rig.kill_desktop().await;
    rig.start_desktop().await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 2);
    assert_eq!(rig.history(&ticket).await.len(), 1);
}

#[tokio::test]
async fn a_desktop_that_dies_with_its_start_unanswered_asks_under_the_same_id_again() {
    let (mut rig, ticket) = with_queued_run().await;
    rig.network.as_ref().unwrap().lose(Lost::Answer, "/start");
    rig.start_desktop().await;
    rig.network.as_ref().unwrap().is_down().await;
    let granted = rig.read(&ticket).await;
    assert_eq!(granted["status"], "running");
    rig.kill_desktop().await;
    rig.network.as_ref().unwrap().heal();
    rig.start_desktop().await;
    rig.completes(&ticket).await;
    assert_eq!(
        rig.read(&ticket).await["execution_id"],
        granted["execution_id"]
    );
    rig.works().await;
    assert_eq!(rig.model.asked(), 2);
}
