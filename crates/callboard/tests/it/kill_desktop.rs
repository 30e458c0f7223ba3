//! `kill -9` of the desktop before every step of a run (B27).

use callboard_desktop::Step;
use serde_json::json;

use crate::process::{Process, callboard, parent_of, until};
use crate::rig::{ASK, HOME, Rig};

/// What becomes of a run whose desktop was killed, and how often its Graph was run in all.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It had not begun: it happens after all.
    RunsAfterAll,
    /// It may have begun, and it is not known how far it got: it is not run again.
    Failed { executions: usize },
    /// Its completion was on disk: it arrives.
    Arrives,
}

const fn fate(step: Step) -> Fate {
    match step {
        Step::RecordStarting | Step::SendStart | Step::RecordRunning => Fate::RunsAfterAll,
        Step::BeginExecution => Fate::Failed { executions: 0 },
        Step::RecordDone => Fate::Failed { executions: 1 },
        Step::SendComplete | Step::DeleteCompletion => Fate::Arrives,
    }
}

/// What the chat reads while the desktop is dead.
const fn meanwhile(step: Step) -> &'static str {
    match step {
        Step::RecordStarting | Step::SendStart => "queued",
        Step::RecordRunning | Step::BeginExecution | Step::RecordDone | Step::SendComplete => {
            "running"
        }
        Step::DeleteCompletion => "completed",
    }
}

async fn killed_before(step: Step) {
    let mut rig = Rig::with_graph().await;
    rig.kill_desktop().await;
    rig.start_desktop_halting(step);
    let ticket = rig.queue("ask").await;
    let halted = json!({"event": "halted", "step": step.as_str()}).to_string();
    rig.desktop.as_mut().unwrap().says(&halted).await;
    rig.kill_desktop().await;
    assert_eq!(rig.read(&ticket).await["status"], meanwhile(step));

    rig.start_desktop().await;
    let executions = match fate(step) {
        Fate::RunsAfterAll | Fate::Arrives => {
            rig.completes(&ticket).await;
            1
        }
        Fate::Failed { executions } => {
            let error = Some("desktop restarted");
            rig.ends(&ticket, "failed", error).await;
            executions
        }
    };
    rig.outbox_empties().await;
    let history = rig.history(&ticket).await;
    assert_eq!(history.len(), 1, "{history:#?}");
    let end = rig.read(&ticket).await;
    assert_eq!(
        history[0]["status"], end["status"],
        "both tell the same end"
    );
    assert_eq!(history[0]["execution_id"], end["execution_id"]);
    // The further run also shows that nothing of the first one goes on behind it.
    rig.works().await;
    assert_eq!(rig.model.asked(), executions + 1);
}

#[tokio::test]
async fn killed_before_the_row_starting_the_run_happens_after_all() {
    killed_before(Step::RecordStarting).await;
}

#[tokio::test]
async fn killed_before_the_start_call_the_run_happens_after_all() {
    killed_before(Step::SendStart).await;
}

#[tokio::test]
async fn killed_before_the_row_running_the_run_happens_after_all() {
    killed_before(Step::RecordRunning).await;
}

#[tokio::test]
async fn killed_before_the_engine_gets_the_script_the_run_fails() {
    killed_before(Step::BeginExecution).await;
}

#[tokio::test]
async fn killed_with_a_result_that_is_not_on_disk_the_run_fails_and_is_not_repeated() {
    killed_before(Step::RecordDone).await;
}

#[tokio::test]
async fn killed_with_the_completion_in_the_outbox_the_result_arrives() {
    killed_before(Step::SendComplete).await;
}

#[tokio::test]
async fn killed_before_the_hubs_thanks_are_noted_the_result_is_there_once() {
    killed_before(Step::DeleteCompletion).await;
}

#[tokio::test]
async fn killed_while_the_model_thinks_the_run_fails_and_the_model_is_not_asked_again() {
    let mut rig = Rig::with_graph().await;
    rig.model.hold();
    let ticket = rig.queue("ask").await;
    let behind = rig.queue("ask").await;
    rig.model.is_asked(1).await;
    let scripts = rig.desktop.as_ref().unwrap().children();
    assert_eq!(scripts.len(), 1, "the script has a process of its own");
    rig.kill_desktop().await;
    until("the script dies with its desktop", async || {
        let gone = |id: &i32| parent_of(*id).is_none();
        scripts.iter().all(gone).then_some(())
    })
    .await;
    let run = rig.read(&ticket).await;
    assert_eq!(run["status"], "running");
    assert!(
        run["desktop"]["last_seen_at"].is_string(),
        "never running without an age"
    );

    rig.model.release();
    rig.start_desktop().await;
    rig.ends(&ticket, "failed", Some("desktop restarted")).await;
    rig.completes(&behind).await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 3);
}

#[tokio::test]
async fn a_run_whose_desktop_never_returns_can_be_asked_to_stop() {
    let mut rig = Rig::with_graph().await;
    rig.model.hold();
    let running = rig.queue("ask").await;
    let queued = rig.queue("ask").await;
    rig.model.is_asked(1).await;
    rig.kill_desktop().await;
    let cancelled = rig.client(&["cancel", &queued, "--json"]).await.ok().json();
    assert_eq!(cancelled["status"], "cancelled");
    let asked = rig
        .client(&["cancel", &running, "--json"])
        .await
        .ok()
        .json();
    assert_eq!(asked["status"], "running");
    assert_eq!(asked["cancel_requested"], true);
    assert_eq!(rig.read(&running).await["cancel_requested"], true);
}

#[tokio::test]
async fn a_run_by_hand_that_was_cut_off_is_failed_in_the_history() {
    let mut rig = Rig::with_desktop().await;
    rig.share("ask", ASK, HOME).await;
    rig.model.hold();
    let mut by_hand = callboard(&rig.desktop_data());
    by_hand.args(["graph", "run", "ask"]);
    let mut by_hand = Process::start(by_hand, rig.folder());
    rig.model.is_asked(1).await;
    rig.kill_desktop().await;
    assert_eq!(by_hand.ended().await.code(), Some(3), "{}", by_hand.said());
    assert!(by_hand.said().contains("error: "), "{}", by_hand.said());
    rig.start_desktop().await;
    let runs = rig.desk(&["runs", "list", "--json"]).await.ok().json();
    assert_eq!(runs[0]["status"], "failed");
    assert_eq!(runs[0]["error"], "desktop restarted");
    rig.works().await;
}
