//! The owner's and the chat's commands about tasks, as people and scripts use them.

use std::path::Path;

use serde_json::Value;

use crate::process::{Outcome, callboard, run};
use crate::rig::{HOME, Rig};

/// A hub with chats of the given labels, and their ids.
async fn linked(labels: &[&str]) -> (Rig, Vec<String>) {
    let rig = Rig::with_hub().await;
    let mut ids = Vec::new();
    for label in labels {
        let arguments = ["link", label, "--project", HOME, "--json"];
        let linked = rig.client(&arguments).await.ok().json();
        ids.push(text(&linked["link"]["chat_link_id"]));
    }
    (rig, ids)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

impl Rig {
    async fn shown(&self, arguments: &[&str]) -> Outcome {
        let mut command = callboard(&self.hub_data());
        command.args(arguments);
        run(command).await
    }

    async fn assigned(&self, chats: &str, say: &str) -> Value {
        let assigned = self.owner(&["task", "assign", chats, say]).await;
        assigned.ok().json()["task"].clone()
    }

    /// Claims a task and uploads a file for it.
    async fn uploaded(&self, chat: &str, task: &str, file: &Path) -> (String, Outcome) {
        let claimed = self.client(&["claim", chat, task, "--json"]).await.ok();
        let claim = text(&claimed.json()["claim_id"]);
        let file = file.to_str().unwrap();
        let outcome = self.client(&["upload", chat, task, &claim, file]).await;
        (claim, outcome)
    }
}

#[tokio::test]
async fn chats_are_named_by_labels_with_commas_by_ids_and_together() {
    let (rig, ids) = linked(&["Tax", "Tax, 2025", "Garden"]).await;
    let both = format!("Tax, 2025,{}", ids[2]);
    let task = rig.assigned(&both, "Sum it up").await;
    let named: Vec<_> = task["chats"].as_array().unwrap().iter().collect();
    assert_eq!(named[0]["chat_link_id"], ids[1].as_str());
    assert_eq!(named[1]["label"], "Garden");

    let unknown = rig.shown(&["task", "assign", "Tax,Taxi", "Go"]).await;
    unknown.refused(1, "No linked chat is called `Taxi`", "");
    let unquoted = rig
        .shown(&["task", "assign", "Tax", "Sum", "it", "up"])
        .await;
    assert_eq!(unquoted.code, Some(2), "{unquoted:#?}");
    let tasks = rig.owner(&["task", "list"]).await.ok().json();
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1, "{tasks}");

    let dashed = rig.assigned("Tax", "--5 degrees: why?").await;
    assert_eq!(dashed["text"], "--5 degrees: why?");
}

#[tokio::test]
async fn the_key_of_an_assignment_finds_it_after_its_chat_was_unlinked() {
    let (rig, _) = linked(&["Tax"]).await;
    let assign = [
        "task",
        "assign",
        "Tax",
        "Sum it up",
        "--idempotency-key",
        "the-key-1",
    ];
    let first = rig.owner(&assign).await.ok().json();
    rig.owner(&["chat", "revoke", "Tax"]).await.ok();
    let again = rig.owner(&assign).await.ok().json();
    assert_eq!(again["replayed"], true);
    assert_eq!(again["task"]["task_id"], first["task"]["task_id"]);
    assert_eq!(again["task"]["status"], "cancelled");
    let other = [
        "task",
        "assign",
        "Tax",
        "Another",
        "--idempotency-key",
        "the-key-1",
    ];
    rig.owner(&other).await.fails(1, "key");
}

#[tokio::test]
async fn unlinking_says_what_became_of_each_task_and_can_be_repeated() {
    let (rig, ids) = linked(&["Tax", "Garden"]).await;
    let alone = rig.assigned("Tax", "Only Tax").await;
    let shared = rig.assigned("Tax,Garden", "Either").await;
    let chats = rig.shown(&["chat", "list"]).await.ok();
    assert!(chats.stdout.contains(&ids[0]), "{chats:#?}");

    let revoked = rig.shown(&["chat", "revoke", "Tax"]).await.ok();
    let lines: Vec<_> = revoked.stdout.lines().collect();
    assert_eq!(lines[0], "Tax is unlinked: it can submit nothing more");
    assert!(lines[1].ends_with("cancelled: no chat is left that could do it"));
    assert!(lines[1].contains(&text(&alone["task_id"])), "{revoked:#?}");
    assert!(lines[2].ends_with("waits for its other chats"));
    assert!(lines[2].contains(&text(&shared["task_id"])), "{revoked:#?}");

    let again = rig.owner(&["chat", "revoke", &ids[0]]).await.ok().json();
    assert_eq!(again["tasks"], serde_json::json!([]));
    assert_eq!(again["chat_link_id"], ids[0].as_str());

    let tokens = rig.hub(&["token", "list"]).await.ok();
    let agent = tokens.stdout.split_whitespace().next().unwrap().to_owned();
    let gone = rig.hub(&["token", "revoke", &agent, "--json"]).await.ok();
    let gone = &gone.json()["disconnected"];
    assert_eq!(gone["name"], agent.as_str());
    assert_eq!(gone["tasks"][0]["task_id"], shared["task_id"]);
    assert_eq!(gone["tasks"][0]["status"], "cancelled");
    let late = rig.client(&["tasks", &ids[1]]).await;
    late.refused(1, "does not know this token", "callboard hub token create");
}

#[tokio::test]
async fn saving_twice_tells_the_same_paths_in_one_json_value() {
    let (rig, ids) = linked(&["Tax"]).await;
    let task = text(&rig.assigned("Tax", "Write it").await["task_id"]);
    let file = rig.folder().join("report.md");
    std::fs::write(&file, "one").unwrap();
    let (claim, uploaded) = rig.uploaded(&ids[0], &task, &file).await;
    uploaded.ok();
    std::fs::write(&file, "two").unwrap();
    let other = ["upload", &ids[0], &task, &claim, file.to_str().unwrap()];
    let changed = rig.client(&other).await;
    changed.refused(1, "rejected: ", "--artifact-id");

    let folder = rig.folder().join("saved");
    let show = ["task", "show", &task, "--save", folder.to_str().unwrap()];
    for _ in 0..2 {
        let shown = rig.owner(&show).await.ok().json();
        let saved = shown["artifacts"][0]["saved_as"].as_str().unwrap();
        assert_eq!(Path::new(saved), folder.join("report.md"));
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    std::fs::write(folder.join("report.md"), "mine").unwrap();
    let shown = rig.shown(&show).await.ok();
    assert!(shown.stdout.contains("report (2).md"), "{shown:#?}");
    assert_eq!(
        std::fs::read_to_string(folder.join("report.md")).unwrap(),
        "mine"
    );
}

#[tokio::test]
async fn an_inbox_shows_own_claims_and_no_line_of_a_text_looks_like_a_field() {
    let (rig, ids) = linked(&["Tax"]).await;
    let say = "First\nstatus     completed\ntask       00000000-0000-7000-8000-000000000000";
    let task = text(&rig.assigned("Tax", say).await["task_id"]);
    let claimed = rig.client(&["claim", &ids[0], &task]).await.ok();
    let fields: Vec<_> = claimed.stdout.split_whitespace().collect();
    let (claim, until) = (fields[1], fields[3]);
    assert!(
        until.ends_with('Z'),
        "people read no epoch seconds: {claimed:#?}"
    );
    let inbox = rig.client(&["tasks", &ids[0]]).await.ok();
    let lines: Vec<_> = inbox.stdout.lines().collect();
    assert_eq!(lines[0], format!("task       {task}"));
    assert_eq!(lines[1], "status     claimed");
    assert_eq!(lines[2], format!("claim      {claim}"));
    assert_eq!(lines[3], format!("until      {until}"));
    let of_text = lines.iter().filter(|line| line.starts_with("    ")).count();
    assert_eq!(of_text, 3, "{inbox:#?}");
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.starts_with("status "))
            .count(),
        1
    );
}

#[tokio::test]
async fn a_call_that_the_hub_refuses_is_no_lost_answer() {
    let (rig, ids) = linked(&["Tax"]).await;
    let task = text(&rig.assigned("Tax", "Go").await["task_id"]);
    let made = rig
        .hub(&[
            "token",
            "create",
            "--name",
            "Reader",
            "--project",
            HOME,
            "--scope",
            "osfoundry:read",
        ])
        .await
        .ok();
    let reader = made.stdout.trim();
    let as_reader = |arguments: &[&str], token: &str| {
        let mut command = rig.client_command(arguments);
        command.env("CALLBOARD_TOKEN", token);
        run(command)
    };
    let refused = as_reader(&["claim", &ids[0], &task], reader).await;
    refused.refused(1, "this token lacks the scope osfoundry:run", "");
    assert!(!refused.stderr.contains("hint:"), "{refused:#?}");
    let broken = as_reader(&["claim", &ids[0], &task], "cb_a\nb").await;
    broken.refused(2, "this is no token", "callboard hub token create");

    let mut elsewhere = rig.client_command(&["sessions"]);
    elsewhere.env(
        "CALLBOARD_URL",
        format!("http://127.0.0.1:{}/wrong", rig.port),
    );
    let elsewhere = run(elsewhere).await;
    elsewhere.refused(1, "is no MCP endpoint: it answers HTTP 404", "/mcp");
}

#[tokio::test]
async fn a_mistyped_data_folder_is_no_empty_hub() {
    let folder = tempfile::tempdir().unwrap();
    let typo = folder.path().join("typo");
    for arguments in [
        &["chat", "list"][..],
        &["task", "list"],
        &["hub", "token", "list"],
        &["hub", "token", "revoke", "Claude"],
    ] {
        let mut command = callboard(&typo);
        command.args(arguments);
        let refused = run(command).await;
        refused.refused(2, "there is no hub in", "--data");
    }
    assert!(!typo.exists(), "nothing was made");
}

#[tokio::test]
async fn a_list_of_none_or_of_too_many_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for limit in ["0", "501", "-1", "many"] {
        let mut command = callboard(folder.path());
        command.args(["task", "list", &format!("--limit={limit}")]);
        let refused = run(command).await;
        refused.refused(2, "a number from 1 to 500 is expected", "");
    }
}
