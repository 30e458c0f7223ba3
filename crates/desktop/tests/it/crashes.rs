//! `kill -9` before every step of a run, and what the next start makes of it.

use std::path::Path;

use callboard_desktop::control::{Client, Request, Response};
use callboard_desktop::{Activity, Step};
use callboard_domain::CommandId;
use callboard_domain::graph_run::Status;
use callboard_domain::limits::DESKTOP_RESTARTED;

use crate::here::{ECHO, FOREVER, Here, block_on, graph};
use crate::hub::{Fault, HOME, Hub};
use crate::process::Process;

crate::suite![
    killed_before_every_step_a_run_ends_once_and_the_outbox_empty,
    killed_while_the_engine_works_the_run_fails_and_the_next_one_runs,
    a_run_by_hand_that_was_cut_off_is_failed_in_the_history,
    a_disk_that_takes_no_result_loses_none_and_fetches_nothing_more,
    a_command_that_was_cancelled_while_the_desktop_stood_still_does_not_run,
    the_desktop_listens_on_no_port,
];

/// Before the row `running` the run happens after all; from then on, until the completion is in
/// the outbox, it has failed; with the completion in the outbox the result arrives.
const fn fate(step: Step) -> Status {
    match step {
        Step::RecordStarting | Step::SendStart | Step::RecordRunning => Status::Completed,
        Step::BeginExecution | Step::RecordDone => Status::Failed,
        Step::SendComplete | Step::DeleteCompletion => Status::Completed,
    }
}

async fn ask(client: &mut Client, request: Request) -> Response {
    match client.call(&request).await.unwrap() {
        Response::Refused(refused) => panic!("{request:?}: {refused:?}"),
        answer => answer,
    }
}

async fn share_here(process: &mut Process, folder: &Path, slug: &str, body: &str) {
    let client = &mut process.client(folder).await;
    let source = graph(slug, body);
    ask(client, Request::GraphAdd { source, slug: None }).await;
    loop {
        let answer = ask(client, Request::ProjectList).await;
        if matches!(&answer, Response::Projects(projects) if !projects.is_empty()) {
            break;
        }
    }
    let project = "Home".to_owned();
    let share = Request::GraphShare {
        slug: slug.into(),
        project: project.clone(),
    };
    ask(client, Request::ProjectEnable { project }).await;
    ask(client, share).await;
}

async fn killed_before(step: Step) -> (Hub, CommandId) {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start().await;
    let mut process = Process::start(folder.path(), &hub.url, Some(step));
    share_here(&mut process, folder.path(), "echo", ECHO).await;
    hub.listed(HOME, &["echo"]).await;
    let mut watch = process.watch(folder.path()).await;
    let id = hub.queue(HOME, "echo", r#"{"n":1}"#);
    loop {
        let event = watch.next().await.unwrap().expect("the desktop runs");
        if let Activity::Halted { step: halted } = event {
            assert_eq!(halted, step.as_str());
            break;
        }
    }
    process.kill().await;

    let mut process = Process::start(folder.path(), &hub.url, None);
    hub.reaches(id, fate(step)).await;
    let client = &mut process.client(folder.path()).await;
    loop {
        let Response::Status(status) = ask(client, Request::Status).await else {
            panic!("a status");
        };
        assert_eq!(status.outbox_parked, 0);
        if status.outbox_waiting == 0 {
            break;
        }
    }
    process.kill().await;
    (hub, id)
}

fn killed_before_every_step_a_run_ends_once_and_the_outbox_empty() {
    for step in Step::ALL {
        block_on(async {
            let (hub, id) = killed_before(step).await;
            let executions = hub.with(|inner| inner.executions[&id].len());
            // Without a row on disk nothing was asked for, so the second start has its own id.
            assert_eq!(executions, 1, "{step}");
            let report = hub.report(id);
            match fate(step) {
                Status::Failed => assert_eq!(report.error.as_deref(), Some(DESKTOP_RESTARTED)),
                _ => assert_eq!(report.result.as_deref(), Some(r#"{"n":1}"#), "{step}"),
            }
        });
    }
}

fn killed_while_the_engine_works_the_run_fails_and_the_next_one_runs() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::start().await;
        let mut process = Process::start(folder.path(), &hub.url, None);
        share_here(&mut process, folder.path(), "forever", FOREVER).await;
        hub.listed(HOME, &["forever"]).await;
        let id = hub.queue(HOME, "forever", "{}");
        hub.until("the engine has it", |inner| inner.controls.last().map(drop))
            .await;
        process.kill().await;

        let process = Process::start(folder.path(), &hub.url, None);
        hub.reaches(id, Status::Failed).await;
        assert_eq!(hub.report(id).error.as_deref(), Some(DESKTOP_RESTARTED));
        let next = hub.queue(HOME, "forever", "{}");
        hub.reaches(next, Status::Running).await;
        process.kill().await;
    });
}

fn a_run_by_hand_that_was_cut_off_is_failed_in_the_history() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::start().await;
        let mut process = Process::start(folder.path(), &hub.url, None);
        let client = &mut process.client(folder.path()).await;
        let source = graph("forever", FOREVER);
        ask(client, Request::GraphAdd { source, slug: None }).await;
        let run = Request::GraphRun {
            slug: "forever".into(),
            arguments: None,
        };
        let Response::Started { execution_id } = ask(client, run).await else {
            panic!("started");
        };
        process.kill().await;

        let here = Here::start_in(folder, hub, |_| {}).await;
        let run = here.run(execution_id).await;
        assert_eq!(run.summary.error.as_deref(), Some(DESKTOP_RESTARTED));
        here.stop().await;
    });
}

fn a_disk_that_takes_no_result_loses_none_and_fetches_nothing_more() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::start().await;
        let mut process = Process::start(folder.path(), &hub.url, None);
        let body = "await sleep(500); return 'x'.repeat(90000);";
        share_here(&mut process, folder.path(), "large", body).await;
        hub.listed(HOME, &["large"]).await;
        let mut watch = process.watch(folder.path()).await;
        let first = hub.queue(HOME, "large", "{}");
        hub.until("the engine has it", |inner| inner.controls.last().map(drop))
            .await;
        let second = hub.queue(HOME, "large", "{}");
        process.fill_disk(true).await;
        loop {
            let event = watch.next().await.unwrap().expect("the desktop runs");
            if matches!(event, Activity::DiskTrouble { .. }) {
                break;
            }
        }
        let client = &mut process.client(folder.path()).await;
        let Response::Status(status) = ask(client, Request::Status).await else {
            panic!("a status");
        };
        assert!(status.disk.is_some(), "it says why");
        assert_eq!(status.unsaved_results, 1);
        hub.with(|inner| {
            assert_eq!(inner.commands[&first].run.status(), Status::Running);
            assert_eq!(inner.commands[&second].run.status(), Status::Queued);
        });
        process.fill_disk(false).await;
        hub.reaches(first, Status::Completed).await;
        hub.reaches(second, Status::Completed).await;
        assert_eq!(
            hub.report(first).result.map(|text| text.len()),
            Some(90_002)
        );
        process.kill().await;
    });
}

fn a_command_that_was_cancelled_while_the_desktop_stood_still_does_not_run() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::start().await;
        let mut process = Process::start(folder.path(), &hub.url, None);
        share_here(&mut process, folder.path(), "echo", ECHO).await;
        hub.listed(HOME, &["echo"]).await;
        let mut watch = process.watch(folder.path()).await;
        // It is fetched, and its start is asked for in vain.
        hub.fault("start", &vec![Fault::Answer(503, ""); 100]);
        let id = hub.queue(HOME, "echo", "{}");
        hub.until("the start is asked for", |inner| {
            inner.calls.get("start").map(drop)
        })
        .await;
        process.freeze(true);
        hub.cancel(id);
        hub.with(|inner| inner.faults.clear());
        process.freeze(false);
        loop {
            match watch.next().await.unwrap().expect("the desktop runs") {
                Activity::Refused { command_id, .. } => {
                    assert_eq!(command_id, id.to_string());
                    break;
                }
                event => assert!(!matches!(event, Activity::Started { .. }), "{event:?}"),
            }
        }
        hub.reaches(id, Status::Cancelled).await;
        let client = &mut process.client(folder.path()).await;
        let answer = ask(client, Request::RunList { limit: 10 }).await;
        assert!(matches!(answer, Response::Runs(runs) if runs.is_empty()));
        process.kill().await;
    });
}

fn the_desktop_listens_on_no_port() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::start().await;
        let mut process = Process::start(folder.path(), &hub.url, None);
        share_here(&mut process, folder.path(), "forever", FOREVER).await;
        hub.listed(HOME, &["forever"]).await;
        hub.queue(HOME, "forever", "{}");
        hub.until("a run is under way", |inner| {
            inner.controls.last().map(drop)
        })
        .await;
        let own: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", process.id))
            .unwrap()
            .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
            .filter_map(|target| {
                let target = target.to_str()?.strip_prefix("socket:[")?.to_owned();
                Some(target.trim_end_matches(']').to_owned())
            })
            .collect();
        assert!(!own.is_empty(), "it holds its socket and its calls");
        for table in ["tcp", "tcp6", "udp", "udp6"] {
            let text = std::fs::read_to_string(format!("/proc/{}/net/{table}", process.id));
            for line in text.unwrap_or_default().lines().skip(1) {
                let fields: Vec<_> = line.split_whitespace().collect();
                let (state, inode) = (fields[3], fields[9]);
                let listens = state == "0A" || table.starts_with("udp");
                assert!(!(listens && own.iter().any(|own| own == inode)), "{line}");
            }
        }
        process.kill().await;
    });
}
