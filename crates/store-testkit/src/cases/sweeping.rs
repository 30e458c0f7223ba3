//! What time causes, stored.

use callboard_domain::graph_run::Status;
use callboard_domain::limits::{DESKTOP_SILENT, QUEUED_EXPIRY_MS, SILENT_DESKTOP_MS};
use callboard_store::{QueueRun, RunRow, Store, Swept};

use crate::world::{START, World, at};

pub(super) async fn nothing_due_moves_nothing<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let row = world.queue(&workspace, "waits-in-peace").await;
    let swept = world.store.sweep(at(QUEUED_EXPIRY_MS - 1), 10).await;
    assert_eq!(swept.unwrap(), Swept::default());
    assert_eq!(world.read(&row, START).await, Some(row));
}

pub(super) async fn what_nobody_started_expires<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let row = world.queue(&workspace, "waits-for-a-week").await;
    let swept = world.store.sweep(at(QUEUED_EXPIRY_MS), 10).await.unwrap();
    let moved = only_runs(swept);
    assert_eq!(moved.len(), 1);
    assert_eq!(moved[0].run.status(), Status::Expired);
    let read = world.read(&row, START).await;
    assert_eq!(
        read.as_ref(),
        moved.first(),
        "it is stored, whatever the clock says now"
    );
    let again = world.store.sweep(at(QUEUED_EXPIRY_MS), 10).await.unwrap();
    assert_eq!(again, Swept::default());
}

pub(super) async fn a_silent_desktop_loses_its_running_commands<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (row, _) = world.start(&workspace, "runs-for-a-week").await;
    let end = at(1_000).plus_ms(SILENT_DESKTOP_MS);
    let early = world.store.sweep(at(SILENT_DESKTOP_MS), 10).await.unwrap();
    assert_eq!(early, Swept::default());
    let moved = only_runs(world.store.sweep(end, 10).await.unwrap());
    let ended = moved[0].run.end().unwrap();
    assert_eq!(ended.report.error.as_deref(), Some(DESKTOP_SILENT));
    assert_eq!(moved[0].run.status(), Status::Failed);
    assert_eq!(world.read(&row, end).await.as_ref(), moved.first());
}

pub(super) async fn a_sign_of_life_puts_that_off<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (row, _) = world.start(&workspace, "runs-for-a-week").await;
    let seen_at = at(5_000);
    world
        .store
        .note_seen(vec![(row.desktop_id, seen_at)])
        .await
        .unwrap();
    let first_end = at(1_000).plus_ms(SILENT_DESKTOP_MS);
    for _ in 0..2 {
        let put_off = world.store.sweep(first_end, 10).await.unwrap();
        assert_eq!(put_off, Swept::default());
    }
    let end = seen_at.plus_ms(SILENT_DESKTOP_MS);
    let moved = only_runs(world.store.sweep(end, 10).await.unwrap());
    assert_eq!(moved[0].run.status(), Status::Failed);
}

pub(super) async fn a_small_sweep_takes_the_longest_due_and_says_that_there_is_more<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let mut ids = Vec::new();
    for number in [3, 0, 4, 1, 2] {
        let request = QueueRun {
            now: at(number),
            ..world.request(&workspace, &format!("queued-at-{number}"))
        };
        let queued = world.store.queue_run(request).await.unwrap();
        ids.push((number, queued.row.command_id));
    }
    ids.sort();
    let now = at(QUEUED_EXPIRY_MS + 10);
    let mut swept = Vec::new();
    for more_expected in [true, true, false] {
        let Swept { runs, tasks, more } = world.store.sweep(now, 2).await.unwrap();
        assert_eq!((tasks, more), (vec![], more_expected));
        swept.extend(runs.into_iter().map(|row| row.command_id));
    }
    assert!(ids.iter().map(|(_, id)| id).eq(&swept));
}

/// The commands of a sweep that moved no task and left nothing.
fn only_runs(swept: Swept) -> Vec<RunRow> {
    let Swept { runs, tasks, more } = swept;
    assert_eq!((tasks, more), (vec![], false));
    runs
}
