//! The agent's commands: what they print, where, and with which exit code.

use crate::network::{Lost, Network};
use crate::process::{run, within};
use crate::rig::Rig;

#[tokio::test]
async fn sessions_lists_what_is_shared_and_where_it_runs() {
    let rig = Rig::with_graph().await;
    let listed = rig.client(&["sessions"]).await.ok();
    let columns: Vec<_> = listed.stdout.split_whitespace().collect();
    assert_eq!(
        columns[..6],
        ["ask", "v1", "ready", "Home", "laptop", "(online)"]
    );
    assert_eq!(listed.stderr, "");
    let found = rig
        .client(&["sessions", "--json", "--project", "Home"])
        .await
        .ok()
        .json();
    let session = &found[0]["sessions"][0];
    assert_eq!(session["graph_session_id"], columns[6]);
    assert_eq!(session["slug"], "ask");
    assert_eq!(session["description"], "A test.");
    assert_eq!(session["version"], 1);
    assert_eq!(session["desktop"]["name"], "laptop");
    assert_eq!(session["desktop"]["online"], true);
}

#[tokio::test]
async fn a_run_prints_its_key_before_the_call_and_only_the_result_on_stdout() {
    let rig = Rig::with_graph().await;
    let ran = rig.client(&["run", "ask", "--wait"]).await.ok();
    assert_eq!(ran.stdout, "{\"said\":\"well\"}\n");
    let notes: Vec<_> = ran.stderr.lines().collect();
    assert!(notes[0].starts_with("key        "), "{ran:#?}");
    assert!(notes[0].contains("--idempotency-key"), "{ran:#?}");
    assert!(notes[1].starts_with("ticket     "), "{ran:#?}");
    assert!(notes.last().unwrap().starts_with("completed  "), "{ran:#?}");

    let unknown = ["run", "gs_00000000000000000000000000000000"];
    let refused = rig.client(&unknown).await;
    refused.refused(1, "Graph session not found or access removed", "");
    assert!(refused.stderr.starts_with("key        "), "{refused:#?}");
    assert!(
        !refused.stderr.contains("hint:"),
        "a refusal is no lost answer: {refused:#?}"
    );

    let value = rig
        .client(&["run", "ask", "--wait", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(value["status"], "completed");
    assert_eq!(value["result"]["said"], "well");
    assert_eq!(value["total_tokens"], 16);
    for time in ["queued_at", "started_at", "finished_at"] {
        assert!(value[time].as_str().unwrap().ends_with('Z'), "{value:#}");
    }
}

#[tokio::test]
async fn the_same_key_gives_the_same_ticket_and_other_arguments_are_refused() {
    let rig = Rig::with_graph().await;
    let start = [
        "run",
        "ask",
        "--json",
        "--idempotency-key",
        "one-key-only",
        "--args",
    ];
    let with = |arguments| [&start[..], &[arguments]].concat();
    let first = rig.client(&with(r#"{"a":1,"b":2}"#)).await.ok().json();
    assert_eq!(first["idempotency_key"], "one-key-only");
    let again = rig.client(&with(r#"{ "b": 2, "a": 1 }"#)).await.ok().json();
    assert_eq!(first["ticket"]["command_id"], again["ticket"]["command_id"]);
    let other = rig.client(&with(r#"{"a":2,"b":1}"#)).await;
    assert_eq!(other.code, Some(1), "{other:#?}");
    let error = other.json()["error"].as_str().unwrap().to_owned();
    let ticket = first["ticket"]["command_id"].as_str().unwrap();
    assert!(
        error.contains("idempotency_key") && !error.contains(ticket),
        "{error}"
    );
    rig.completes(ticket).await;
    assert_eq!(rig.model.asked(), 1);
}

#[tokio::test]
async fn a_lost_answer_names_the_key_and_the_same_key_finds_the_run() {
    let rig = Rig::with_graph().await;
    let network = Network::start(rig.port).await;
    let endpoint = format!("http://127.0.0.1:{}/mcp", network.port);
    let over_it = |arguments: &[&str]| {
        let mut command = rig.client_command(arguments);
        command.env("CALLBOARD_URL", &endpoint);
        run(command)
    };
    network.lose(Lost::Answer, "run_graph_session");
    let start = ["run", "ask", "--wait", "--idempotency-key", "lost-once"];
    let lost = over_it(&start).await;
    lost.refused(
        3,
        "no answer from",
        "run this again with --idempotency-key lost-once",
    );
    network.heal();
    over_it(&start).await.ok();
    assert_eq!(rig.model.asked(), 1);

    // The answers to a waiting client get lost, too; its ticket stays good.
    rig.model.hold();
    network.lose(Lost::Call, "wait_seconds");
    let lost = over_it(&["run", "ask", "--wait"]).await;
    lost.refused(3, "no answer from", "callboard client get ");
    let hint = lost.stderr.split("callboard client ").last().unwrap();
    let arguments: Vec<_> = hint.split_whitespace().collect();
    network.heal();
    rig.model.release();
    let found = over_it(&arguments).await.ok();
    assert_eq!(found.json()["status"], "completed");
}

#[tokio::test]
async fn two_processes_that_start_with_one_key_at_once_get_one_ticket() {
    let rig = Rig::with_graph().await;
    let start = ["run", "ask", "--json", "--idempotency-key", "twice-at-once"];
    let (one, other) = tokio::join!(rig.client(&start), rig.client(&start));
    let (one, other) = (one.ok().json(), other.ok().json());
    assert_eq!(one["ticket"]["command_id"], other["ticket"]["command_id"]);
    rig.completes(one["ticket"]["command_id"].as_str().unwrap())
        .await;
    assert_eq!(rig.model.asked(), 1);
}

#[tokio::test]
async fn get_waits_for_the_end_and_cancel_brings_it() {
    let rig = Rig::with_graph().await;
    rig.model.hold();
    let ticket = rig.queue("ask").await;
    rig.model.is_asked(1).await;
    let run = rig.read(&ticket).await;
    assert_eq!(run["status"], "running");
    assert_eq!(run["cancel_requested"], false);
    let arguments = ["get", &ticket, "--wait"];
    let waiting = Box::pin(rig.client(&arguments));
    let arguments = ["cancel", &ticket];
    let cancelling = Box::pin(rig.client(&arguments));
    let (waited, cancelled) =
        within("the cancel", async { tokio::join!(waiting, cancelling) }).await;
    assert!(cancelled.ok().stdout.contains("asked to stop"));
    waited.refused(1, "the run was cancelled", "");
    let again = rig.client(&["cancel", &ticket, "--json"]).await.ok().json();
    assert_eq!(again["status"], "cancelled", "a second cancel is no error");
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_not_asked_for_this_machine() {
    let rig = Rig::with_graph().await;
    let mut command = rig.client_command(&["run", "ask", "--wait"]);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:9");
    }
    command.env_remove("no_proxy").env_remove("NO_PROXY");
    let ran = run(command).await.ok();
    assert_eq!(ran.stdout, "{\"said\":\"well\"}\n");
}
