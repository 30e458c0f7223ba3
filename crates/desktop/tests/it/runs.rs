//! Runs from the hub and by hand, on a good day.

use callboard_ambient::{Clock, Entropy};
use callboard_desktop::control::{Request, Response};
use callboard_desktop::{Activity, Desktop, RunStatus};
use callboard_domain::Timestamp;
use callboard_domain::graph_run::Status;
use callboard_domain::limits::RESULT_UTF16_MAX;

use tokio_util::sync::CancellationToken;

use crate::here::{ECHO, FOREVER, Here, block_on};
use crate::hub::{HOME, Hub};

crate::suite![
    a_queued_run_completes_with_the_engines_own_json,
    a_polling_desktop_completes_a_run_without_the_wake_up_call,
    a_running_command_is_cancelled_at_its_control_poll,
    phase_and_progress_travel_with_the_control_poll,
    a_long_result_travels_cut_and_is_whole_in_the_history,
    a_run_by_hand_goes_through_the_history_but_not_the_hub,
    a_run_by_hand_can_be_stopped,
    two_slots_run_two_commands_at_a_time,
    a_stopping_desktop_finishes_its_run_first,
    after_the_grace_a_run_fails_with_the_reason,
    a_stopping_desktop_begins_no_run_by_hand,
    a_run_is_shown_and_stopped_by_the_end_of_its_id,
    old_rows_are_forgotten_also_while_the_desktop_goes_on,
];

fn a_queued_run_completes_with_the_engines_own_json() {
    block_on(async {
        let mut here = Here::sharing(&[("echo", ECHO)]).await;
        let id = here
            .hub
            .queue(HOME, "echo", r#"{"n":1,"list":[1.5,"\u00e9"]}"#);
        here.hub.reaches(id, Status::Completed).await;
        let report = here.hub.report(id);
        assert_eq!(
            report.result.as_deref(),
            Some(r#"{"n":1,"list":[1.5,"é"]}"#)
        );
        let delivered = here.event(|event| match event {
            Activity::Delivered { command_id } => Some(command_id.clone()),
            _ => None,
        });
        assert_eq!(delivered.await, id.to_string());
        let run = here.run(id).await;
        assert_eq!(run.channel, format!("graph:external:{id}"));
        assert_eq!(run.summary.project.as_deref(), Some("Home"));
        assert_eq!(run.summary.status, RunStatus::Completed);
        assert_eq!(run.summary.delivery, None);
        let executions = here.hub.with(|inner| inner.executions[&id].clone());
        assert_eq!(executions.len(), 1);
        here.stop().await;
    });
}

fn a_polling_desktop_completes_a_run_without_the_wake_up_call() {
    block_on(async {
        let here = Here::start(Hub::start().await, |config| config.poll_only = true).await;
        here.knows_projects().await;
        here.add("echo", ECHO).await;
        here.ask(Request::ProjectEnable {
            project: "Home".into(),
        })
        .await;
        here.share("echo").await;
        here.hub.listed(HOME, &["echo"]).await;
        let id = here.hub.queue(HOME, "echo", "{}");
        here.hub.reaches(id, Status::Completed).await;
        assert_eq!(here.hub.calls("wait"), 0);
        assert_eq!(here.status().await.mode, "poll-only");
        here.stop().await;
    });
}

fn a_running_command_is_cancelled_at_its_control_poll() {
    block_on(async {
        let here = Here::sharing(&[("forever", FOREVER)]).await;
        let id = here.hub.queue(HOME, "forever", "{}");
        here.hub.reaches(id, Status::Running).await;
        here.hub.cancel(id);
        here.hub.reaches(id, Status::Cancelled).await;
        assert_eq!(here.run(id).await.summary.status, RunStatus::Cancelled);
        here.stop().await;
    });
}

fn phase_and_progress_travel_with_the_control_poll() {
    block_on(async {
        let body = "phase('reading'); await agent('hello'); log('read'); await sleep(600000);";
        let here = Here::sharing(&[("slow", body)]).await;
        let id = here.hub.queue(HOME, "slow", "{}");
        let progress = here.hub.until("a phase with progress", |inner| {
            let with_phase = |control: &&callboard_wire::relay::ControlRequest| {
                control.phase.as_deref() == Some("reading")
            };
            let control = inner.controls.iter().rev().find(with_phase)?;
            control.progress.filter(|progress| progress.calls_done == 1)
        });
        assert!(progress.await.tokens > 0);
        let run = here.run(id).await;
        assert_eq!(run.phase.as_deref(), Some("reading"));
        assert_eq!(run.logs, ["read"]);
        here.hub.cancel(id);
        here.hub.reaches(id, Status::Cancelled).await;
        assert_eq!(here.run(id).await.logs, ["read"], "the history keeps it");
        here.stop().await;
    });
}

fn a_long_result_travels_cut_and_is_whole_in_the_history() {
    block_on(async {
        let here = Here::sharing(&[("long", "return 'x'.repeat(args.n);")]).await;
        let id = here.hub.queue(HOME, "long", r#"{"n":100000}"#);
        here.hub.reaches(id, Status::Completed).await;
        let report = here.hub.report(id);
        assert_eq!((report.result, report.result_truncated), (None, true));
        let whole = here.run(id).await.result.unwrap();
        assert_eq!(whole.get().len(), RESULT_UTF16_MAX + 2);
        here.stop().await;
    });
}

fn a_run_by_hand_goes_through_the_history_but_not_the_hub() {
    block_on(async {
        let mut here = Here::sharing(&[("echo", ECHO)]).await;
        let arguments = Some(r#"{"a":[1]}"#.to_owned());
        let request = Request::GraphRun {
            slug: "echo".into(),
            arguments,
        };
        let Response::Started { execution_id } = here.ask(request).await else {
            panic!("started");
        };
        let ended = here.event(|event| match event {
            Activity::Ended {
                execution_id,
                status,
                ..
            } => Some((execution_id.clone(), *status)),
            _ => None,
        });
        assert_eq!(
            ended.await,
            (Some(execution_id.clone()), RunStatus::Completed)
        );
        let run = here.run(&execution_id).await;
        assert_eq!(run.result.unwrap().get(), r#"{"a":[1]}"#);
        assert_eq!(run.summary.command_id, None);
        assert_eq!(here.hub.calls("start"), 0);
        let request = Request::GraphRun {
            slug: "echo".into(),
            arguments: Some("[1]".into()),
        };
        let refused = here.refused(request).await;
        assert!(
            refused
                .message
                .starts_with("the arguments are not a JSON object")
        );
        here.stop().await;
    });
}

fn a_run_by_hand_can_be_stopped() {
    block_on(async {
        let mut here = Here::sharing(&[("forever", FOREVER)]).await;
        let request = Request::GraphRun {
            slug: "forever".into(),
            arguments: None,
        };
        let Response::Started { execution_id } = here.ask(request).await else {
            panic!("started");
        };
        here.ask(Request::RunCancel {
            id: execution_id[..23].to_owned(),
        })
        .await;
        let status = here.event(|event| match event {
            Activity::Ended { status, .. } => Some(*status),
            _ => None,
        });
        assert_eq!(status.await, RunStatus::Cancelled);
        let refused = here.refused(Request::RunCancel { id: execution_id }).await;
        assert_eq!(refused.message, "this run is over: cancelled");
        here.stop().await;
    });
}

fn two_slots_run_two_commands_at_a_time() {
    block_on(async {
        let hub = Hub::start().await;
        let here = Here::start(hub, |config| config.slots = 2).await;
        here.knows_projects().await;
        here.add("forever", FOREVER).await;
        here.ask(Request::ProjectEnable {
            project: "Home".into(),
        })
        .await;
        here.share("forever").await;
        here.hub.listed(HOME, &["forever"]).await;
        let ids = [1, 2, 3].map(|_| here.hub.queue(HOME, "forever", "{}"));
        here.hub.reaches(ids[0], Status::Running).await;
        here.hub.reaches(ids[1], Status::Running).await;
        here.hub
            .until("the third waits", |inner| {
                let status = inner.commands[&ids[2]].run.status();
                (status == Status::Queued).then_some(())
            })
            .await;
        here.hub.cancel(ids[0]);
        here.hub.reaches(ids[2], Status::Running).await;
        for id in &ids[1..] {
            here.hub.cancel(*id);
            here.hub.reaches(*id, Status::Cancelled).await;
        }
        here.stop().await;
    });
}

fn a_stopping_desktop_finishes_its_run_first() {
    block_on(async {
        let here = Here::sharing(&[("short", "await sleep(1500); return 'done';")]).await;
        let id = here.hub.queue(HOME, "short", "{}");
        here.hub.reaches(id, Status::Running).await;
        let (_folder, hub) = here.stop().await;
        hub.reaches(id, Status::Completed).await;
    });
}

fn after_the_grace_a_run_fails_with_the_reason() {
    block_on(async {
        let here = Here::sharing(&[("forever", FOREVER)]).await;
        let (folder, hub) = here.stop().await;
        let here = Here::start_in(folder, hub, |config| config.shutdown_grace_ms = 200).await;
        let id = here.hub.queue(HOME, "forever", "{}");
        here.hub.reaches(id, Status::Running).await;
        here.hub
            .until("the engine has it", |inner| inner.controls.last().map(drop))
            .await;
        let (_folder, hub) = here.stop().await;
        hub.reaches(id, Status::Failed).await;
        let error = hub.report(id).error;
        assert_eq!(
            error.as_deref(),
            Some("desktop was stopped before the run ended")
        );
    });
}

/// Starts a run by hand.
async fn started(here: &Here, slug: &str) -> String {
    let run = Request::GraphRun {
        slug: slug.to_owned(),
        arguments: None,
    };
    match here.ask(run).await {
        Response::Started { execution_id } => execution_id,
        answer => panic!("{answer:?}"),
    }
}

fn a_stopping_desktop_begins_no_run_by_hand() {
    block_on(async {
        let here = Here::start(Hub::start().await, |_| {}).await;
        here.add("forever", FOREVER).await;
        let first = started(&here, "forever").await;
        here.begin_stop();
        let run = |slug: &str| Request::GraphRun {
            slug: slug.to_owned(),
            arguments: None,
        };
        // The word to stop is on its way to the thread.
        while here.refused(run("none")).await.message != "the desktop is stopping" {
            tokio::task::yield_now().await;
        }
        let refused = here.refused(run("forever")).await;
        assert_eq!(refused.message, "the desktop is stopping");
        here.ask(Request::RunCancel { id: first }).await;
        here.stop().await;
    });
}

fn a_run_is_shown_and_stopped_by_the_end_of_its_id() {
    block_on(async {
        let mut here = Here::start(Hub::start().await, |_| {}).await;
        here.add("forever", FOREVER).await;
        let (first, second) = (
            started(&here, "forever").await,
            started(&here, "forever").await,
        );
        for id in [&first, &second] {
            let shown = here.run(&id[id.len() - 8..]).await;
            assert_eq!(shown.summary.execution_id.as_ref(), Some(id));
        }
        let id = first[..4].to_owned();
        let refused = here.refused(Request::RunShow { id: id.clone() }).await;
        assert_eq!(
            refused.message,
            format!("several runs begin or end with \"{id}\"")
        );
        let id = first[first.len() - 3..].to_owned();
        let refused = here.refused(Request::RunShow { id: id.clone() }).await;
        assert_eq!(refused.message, format!("no run here has the id \"{id}\""));
        for id in [first, second] {
            let id = id[id.len() - 8..].to_owned();
            here.ask(Request::RunCancel { id }).await;
            here.event(|event| matches!(event, Activity::Ended { .. }).then_some(()))
                .await;
        }
        here.stop().await;
    });
}

fn old_rows_are_forgotten_also_while_the_desktop_goes_on() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::start().await;
        let (clock, hands) = Clock::manual(Timestamp::from_millis(1_796_000_000_000));
        let config = crate::here::config(folder.path(), &hub.url);
        let desktop = Desktop::open(config, clock, Entropy::system()).await;
        let desktop = desktop.unwrap();
        let control = desktop.control();
        let shutdown = CancellationToken::new();
        let ended = tokio::spawn(desktop.run(shutdown.clone()));
        // It has tidied up once when it answers.
        control.call(Request::FolderList).await;
        let rows = rusqlite::Connection::open(folder.path().join("desktop.db")).unwrap();
        rows.execute_batch(
            "INSERT INTO seen_commands (command_id, project_id, graph_session_id, slug, state,
                                        updated_at_ms)
             VALUES ('00000000-0000-4000-8000-000000000000', '', '', '', 'done', 0)",
        )
        .unwrap();
        let left = || -> i64 {
            let count = "SELECT count(*) FROM seen_commands";
            rows.query_row(count, [], |row| row.get(0)).unwrap()
        };
        hands.advance_ms(23 * 3_600_000);
        control.call(Request::FolderList).await;
        control.call(Request::FolderList).await;
        assert_eq!(left(), 1);
        hands.advance_ms(3_600_000);
        while left() > 0 {
            control.call(Request::FolderList).await;
        }
        shutdown.cancel();
        ended.await.unwrap().unwrap();
    });
}
