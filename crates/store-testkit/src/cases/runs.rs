//! Commands from the first request to the last report.

use callboard_domain::graph_run::{Completion, Status};
use callboard_domain::limits::{ERROR_UTF16_MAX, QUEUED_EXPIRY_MS};
use callboard_domain::{Digest, ExecutionId, FinalStatus, Refusal, Report};
use callboard_store::{QueueRun, RunRow, Store, StoreError};
use callboard_wire::relay::Progress;

use crate::world::{SESSION, START, Workspace, World, at, completed, key, refusal, session};

async fn complete<S: Store>(
    world: &World<S>,
    row: &RunRow,
    completion: &Completion,
    after_ms: u64,
) -> Result<(RunRow, bool), StoreError> {
    let (desktop_id, command_id) = (row.desktop_id, row.command_id);
    let completion = completion.clone();
    let stored = world
        .store
        .complete_run(desktop_id, command_id, completion, at(after_ms));
    stored.await
}

pub(super) async fn a_queued_run_is_read_back_whole<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let request = world.request(&workspace, "the-only-key");
    let queued = world.store.queue_run(request.clone()).await.unwrap();
    assert!(!queued.replayed);
    let row = queued.row;
    assert_eq!(row.command_id, request.command_id);
    assert_eq!(row.connection_id, workspace.connection.id);
    assert_eq!(row.project_id, workspace.project.id);
    assert_eq!(row.desktop_id, workspace.desktop.id);
    assert_eq!(
        (row.graph_session_id, row.slug.as_str()),
        (SESSION, "report")
    );
    assert_eq!(row.arguments, request.arguments);
    assert_eq!(
        (row.run.status(), row.run.queued_at),
        (Status::Queued, START)
    );
    assert_eq!((&row.phase, row.progress), (&None, None));
    assert_eq!(world.read(&row, at(1)).await, Some(row));
}

pub(super) async fn a_run_goes_to_the_first_project_and_there_to_the_smallest_desktop<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let owner_id = workspace.owner_id;
    let work = world.project(owner_id, "Work").await;
    let added = [work.id, workspace.project.id];
    let (connection, _) = world.connection(owner_id, "Codex", &added).await;
    let (attic, _) = world.desktop(owner_id, "attic").await;
    let codex = Workspace {
        connection,
        ..workspace.clone()
    };
    let row = world.queue(&codex, "shared-in-home-alone").await;
    let place = (row.project_id, row.desktop_id);
    assert_eq!(place, (workspace.project.id, workspace.desktop.id));

    let mut desktops = [workspace.desktop.id, attic.id];
    desktops.sort();
    for (desktop_id, slug) in desktops.into_iter().zip(["small", "great"]).rev() {
        let list = vec![session(1, "Other"), session(0x5e, slug)];
        world
            .store
            .sync(desktop_id, work.id, list, START)
            .await
            .unwrap();
        let row = world.queue(&codex, &format!("shared-by-{slug}")).await;
        assert_eq!((row.project_id, row.desktop_id), (work.id, desktop_id));
        assert_eq!(row.slug, slug);
    }
    let row = world
        .queue(&workspace, "claude-was-added-to-home-alone")
        .await;
    assert_eq!(row.project_id, workspace.project.id);
}

pub(super) async fn a_session_that_is_not_shared_is_not_found<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    world.share(&workspace, vec![session(1, "Other")]).await;
    let request = world.request(&workspace, "the-only-key");
    let refused = world.store.queue_run(request.clone()).await;
    assert_eq!(refusal(refused), Refusal::SessionNotFound);
    world.share(&workspace, vec![session(0x5e, "Report")]).await;
    let queued = world.store.queue_run(request).await.unwrap();
    assert!(!queued.replayed, "a refused request leaves its key free");
}

pub(super) async fn the_same_key_is_the_same_command_for_ever<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let row = world.queue(&workspace, "the-only-key").await;
    let again = || {
        world
            .store
            .queue_run(world.request(&workspace, "the-only-key"))
    };
    let queued = again().await.unwrap();
    assert_eq!((&queued.row, queued.replayed), (&row, true));

    world.share(&workspace, vec![]).await;
    let queued = again().await.unwrap();
    assert_eq!(queued.row, row, "also when the session is no longer shared");
    let ended = world.store.request_cancel(key(&row), at(5)).await.unwrap();
    let queued = again().await.unwrap();
    assert_eq!(queued.row, ended, "also when the run is over");
    let late = QueueRun {
        now: at(QUEUED_EXPIRY_MS * 2),
        ..world.request(&workspace, "the-only-key")
    };
    assert_eq!(world.store.queue_run(late).await.unwrap().row, ended);
}

pub(super) async fn the_same_key_for_another_request_is_refused<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let row = world.queue(&workspace, "the-only-key").await;
    let other = QueueRun {
        request: Digest::of(&[b"another request"]),
        ..world.request(&workspace, "the-only-key")
    };
    let refused = world.store.queue_run(other).await;
    assert_eq!(refusal(refused), Refusal::KeyReused);
    assert_eq!(world.read(&row, START).await, Some(row));
}

pub(super) async fn keys_belong_to_their_connection<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let added = [workspace.project.id];
    let (connection, _) = world.connection(workspace.owner_id, "Codex", &added).await;
    let codex = Workspace {
        connection,
        ..workspace.clone()
    };
    let first = world.queue(&workspace, "the-only-key").await;
    let second = world.queue(&codex, "the-only-key").await;
    assert_ne!(first.command_id, second.command_id);
    let third = world.queue(&workspace, "THE-ONLY-KEY").await;
    assert_ne!(first.command_id, third.command_id);
}

pub(super) async fn a_start_is_granted_to_one_execution<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (row, execution_id) = world.start(&workspace, "the-only-key").await;
    let execution = row.run.execution().unwrap();
    assert_eq!(
        (execution.id, execution.started_at),
        (execution_id, at(1_000))
    );
    let start = |id| {
        world
            .store
            .start_run(row.desktop_id, row.command_id, id, at(2_000))
    };
    assert_eq!(start(execution_id).await.unwrap(), row, "a lost answer");
    let other = ExecutionId::from_bytes(world.id());
    assert_eq!(refusal(start(other).await), Refusal::RunTaken);
    assert_eq!(world.read(&row, at(2_000)).await, Some(row));
}

pub(super) async fn a_queued_command_is_cancelled_at_once_and_never_starts<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let row = world.queue(&workspace, "the-only-key").await;
    let cancel = |after_ms| world.store.request_cancel(key(&row), at(after_ms));
    let ended = cancel(10).await.unwrap();
    assert_eq!(ended.run.status(), Status::Cancelled);
    assert_eq!(ended.run.finished_at(), Some(at(10)));
    assert_eq!(cancel(20).await.unwrap(), ended);
    let id = ExecutionId::from_bytes(world.id());
    let start = world
        .store
        .start_run(row.desktop_id, row.command_id, id, at(30));
    assert_eq!(refusal(start.await), Refusal::RunOver);
    assert_eq!(world.read(&row, at(30)).await, Some(ended));
}

pub(super) async fn a_running_command_keeps_running_until_it_reports<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (row, execution_id) = world.start(&workspace, "the-only-key").await;
    let cancel = |after_ms| world.store.request_cancel(key(&row), at(after_ms));
    let asked = cancel(2_000).await.unwrap();
    assert_eq!(asked.run.status(), Status::Running);
    let requested_at = asked.run.execution().unwrap().cancel_requested_at;
    assert_eq!(requested_at, Some(at(2_000)));
    assert_eq!(cancel(3_000).await.unwrap(), asked);
    let completion = Completion {
        execution_id: Some(execution_id),
        status: FinalStatus::Cancelled,
        report: Report::default(),
    };
    let (ended, replayed) = complete(&world, &row, &completion, 4_000).await.unwrap();
    assert!(!replayed);
    assert_eq!(ended.run.status(), Status::Cancelled);
    assert!(ended.run.cancel_requested());
    assert_eq!(cancel(5_000).await.unwrap(), ended);
}

pub(super) async fn a_completion_is_stored_once<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    for status in FinalStatus::ALL {
        let (row, execution_id) = world.start(&workspace, &format!("ends-{status}")).await;
        let completion = Completion {
            status,
            ..completed(execution_id, r#"{"value":1}"#)
        };
        let (ended, replayed) = complete(&world, &row, &completion, 2_000).await.unwrap();
        assert!(!replayed);
        assert_eq!(ended.run.status().as_str(), status.as_str());
        assert_eq!(ended.run.end().unwrap().report, completion.report);
        let again = complete(&world, &row, &completion, 3_000).await.unwrap();
        assert_eq!(again, (ended.clone(), true), "the same again is a success");
        let other = completed(execution_id, r#"{"value":1.0}"#);
        let refused = complete(&world, &row, &other, 3_000).await;
        assert_eq!(refusal(refused), Refusal::CompletionDiffers);
        assert_eq!(world.read(&row, at(4_000)).await, Some(ended));
    }
}

pub(super) async fn a_completion_needs_the_granted_execution<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (row, _) = world.start(&workspace, "runs-already").await;
    let waiting = world.queue(&workspace, "waits-still").await;
    let stale = completed(ExecutionId::from_bytes(world.id()), "1");
    for row in [row, waiting] {
        let refused = complete(&world, &row, &stale, 2_000).await;
        assert_eq!(refusal(refused), Refusal::StaleExecution);
        assert_eq!(world.read(&row, at(2_000)).await, Some(row));
    }
}

pub(super) async fn a_command_that_never_began_can_only_end_cancelled<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let row = world.queue(&workspace, "consent-was-withdrawn").await;
    let never = |status| Completion {
        execution_id: None,
        status,
        report: Report::of_error("no longer shared"),
    };
    let refused = complete(&world, &row, &never(FinalStatus::Failed), 10).await;
    assert_eq!(refusal(refused), Refusal::CompletionWithoutExecution);
    let (ended, replayed) = complete(&world, &row, &never(FinalStatus::Cancelled), 10)
        .await
        .unwrap();
    assert!(!replayed);
    assert_eq!(
        (ended.run.status(), ended.run.execution()),
        (Status::Cancelled, None)
    );
    let again = complete(&world, &row, &never(FinalStatus::Cancelled), 20).await;
    assert_eq!(again.unwrap(), (ended, true));
}

pub(super) async fn a_report_out_of_bounds_changes_nothing<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (row, execution_id) = world.start(&workspace, "the-only-key").await;
    let completion = Completion {
        report: Report {
            error: Some("x".repeat(ERROR_UTF16_MAX + 1)),
            ..Report::default()
        },
        ..completed(execution_id, "1")
    };
    let refused = complete(&world, &row, &completion, 2_000).await;
    assert_eq!(refusal(refused), Refusal::ReportTooLong);
    assert_eq!(world.read(&row, at(2_000)).await, Some(row));
}

pub(super) async fn texts_come_back_to_the_letter<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let name = "O'Brien \"x\" \\ %_ \u{0}\u{7f} \u{1F600} e\u{301} 日本 'DROP TABLE runs;--";
    let list = vec![session(0x5e, name)];
    world.share(&workspace, list.clone()).await;
    let synced = world.share(&workspace, list).await;
    assert!(!synced.changed);
    let request = QueueRun {
        arguments: format!(r#"{{"text":"{}"}}"#, "日\u{1F600}".repeat(30_000)),
        ..world.request(&workspace, name)
    };
    let arguments = request.arguments.clone();
    let row = world.store.queue_run(request).await.unwrap().row;
    let id = ExecutionId::from_bytes(world.id());
    let start = world
        .store
        .start_run(row.desktop_id, row.command_id, id, at(1));
    assert_eq!(start.await.unwrap().arguments, arguments);
    let report = Report {
        result: Some(format!("[{}0]", "1.0,".repeat(20_000))),
        result_truncated: true,
        error: Some(name.to_owned()),
        total_tokens: Some(u64::from(u32::MAX) * 1_000),
        reported_cost: Some(0.1 + 0.2),
    };
    let completion = Completion {
        execution_id: Some(id),
        status: FinalStatus::Failed,
        report,
    };
    complete(&world, &row, &completion, 2).await.unwrap();
    let read = world.read(&row, at(3)).await.unwrap();
    assert_eq!(read.run.end().unwrap().report, completion.report);
    assert_eq!((read.arguments, read.slug), (arguments, row.slug));
}

pub(super) async fn progress_is_merged_and_kept<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (row, execution_id) = world.start(&workspace, "the-only-key").await;
    let report = |phase: Option<&str>, progress| {
        let (desktop_id, command_id) = (row.desktop_id, row.command_id);
        let phase = phase.map(str::to_owned);
        world
            .store
            .report_progress(desktop_id, command_id, phase, progress, at(2_000))
    };
    let progress = Progress {
        calls_done: 1,
        calls_started: 3,
        tokens: u64::MAX,
        tokens_cap: None,
    };
    let capped = Progress {
        tokens_cap: Some(0),
        ..progress
    };
    let none = report(None, None).await.unwrap();
    assert_eq!(none, row);
    let first = report(Some("reading"), None).await.unwrap();
    assert_eq!(
        (first.phase.as_deref(), first.progress),
        (Some("reading"), None)
    );
    let second = report(None, Some(progress)).await.unwrap();
    assert_eq!(
        (second.phase.as_deref(), second.progress),
        (Some("reading"), Some(progress))
    );
    assert_eq!(
        report(Some("reading"), Some(progress)).await.unwrap(),
        second
    );
    let third = report(Some("writing"), Some(capped)).await.unwrap();
    assert_eq!(
        (third.phase.as_deref(), third.progress),
        (Some("writing"), Some(capped))
    );
    assert_eq!(world.read(&row, at(3_000)).await.as_ref(), Some(&third));
    assert_eq!(third.run, row.run, "progress moves nothing");
    let completion = completed(execution_id, "1");
    let (ended, _) = complete(&world, &row, &completion, 4_000).await.unwrap();
    assert_eq!((ended.phase, ended.progress), (third.phase, third.progress));
}

pub(super) async fn progress_of_a_command_that_does_not_run_is_dropped<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let waiting = world.queue(&workspace, "waits-still").await;
    let (row, execution_id) = world.start(&workspace, "is-over-soon").await;
    let (ended, _) = complete(&world, &row, &completed(execution_id, "1"), 2_000)
        .await
        .unwrap();
    for row in [waiting, ended] {
        let phase = Some("late".to_owned());
        let progress = Some(Progress::default());
        let (desktop_id, command_id) = (row.desktop_id, row.command_id);
        let told = world
            .store
            .report_progress(desktop_id, command_id, phase, progress, at(3_000));
        assert_eq!(told.await.unwrap(), row);
        assert_eq!(world.read(&row, at(3_000)).await, Some(row));
    }
}

pub(super) async fn a_read_settles_without_storing<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let row = world.queue(&workspace, "waits-for-a-week").await;
    let expired = world.read(&row, at(QUEUED_EXPIRY_MS)).await.unwrap();
    assert_eq!(expired.run.status(), Status::Expired);
    assert_eq!(
        world.read(&row, at(QUEUED_EXPIRY_MS - 1)).await,
        Some(row.clone())
    );
    let again = QueueRun {
        now: at(QUEUED_EXPIRY_MS),
        ..world.request(&workspace, "waits-for-a-week")
    };
    assert_eq!(world.store.queue_run(again).await.unwrap().row, expired);
    let id = ExecutionId::from_bytes(world.id());
    let now = at(QUEUED_EXPIRY_MS);
    let start = world
        .store
        .start_run(row.desktop_id, row.command_id, id, now);
    assert_eq!(refusal(start.await), Refusal::RunOver);
}

pub(super) async fn time_never_runs_backwards_on_a_run<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (row, execution_id) = world.start(&workspace, "the-only-key").await;
    let (ended, _) = complete(&world, &row, &completed(execution_id, "1"), 0)
        .await
        .unwrap();
    assert_eq!(ended.run.finished_at(), Some(row.run.updated_at));
    assert_eq!(ended.run.updated_at, row.run.updated_at);
}
