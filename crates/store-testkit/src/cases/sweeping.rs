//! What time causes, stored.

use callboard_domain::graph_run::Status;
use callboard_domain::limits::{
    DESKTOP_SILENT, QUEUED_EXPIRY_MS, SILENT_DESKTOP_MS, TASK_EXPIRY_MS,
};
use callboard_domain::linked_task::State;
use callboard_store::{AssignTask, QueueRun, RunRow, Store, Swept, TaskRow};

use crate::chat_world::{LEASE_MS, moved};
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

pub(super) async fn tasks_that_are_not_due_stay<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chats = [
        world.chat(&workspace, "Tax").await,
        world.chat(&workspace, "Garden").await,
    ];
    let waiting = world.assign(&workspace, &chats, "waits").await;
    let alone = world.assign(&workspace, &chats[..1], "is held").await;
    let alone = world.claimed(chats[0], &alone, 0).await.0;
    let leased = world.assign(&workspace, &chats, "is leased").await;
    let leased = world.claimed(chats[0], &leased, 0).await.0;
    let over = world.assign(&workspace, &chats, "is over").await;
    let over = world.cancel(&workspace, &over, 1).await;
    let swept = world.store.sweep(at(LEASE_MS - 1), 10).await.unwrap();
    assert_eq!(swept, Swept::default());
    for row in [waiting, alone, leased, over] {
        assert_eq!(world.task(&workspace, &row, 1).await, row);
    }
}

pub(super) async fn lapsed_claims_wait_again_and_old_tasks_expire<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chats = [
        world.chat(&workspace, "Tax").await,
        world.chat(&workspace, "Garden").await,
    ];
    let alone = world.assign(&workspace, &chats[..1], "is held").await;
    world.claimed(chats[0], &alone, 0).await;
    let leased = world.assign(&workspace, &chats, "is leased").await;
    world.claimed(chats[0], &leased, 0).await;
    let sweep = async |after_ms, expected: &[TaskRow]| {
        let swept = world.store.sweep(at(after_ms), 10).await.unwrap();
        let told = Swept {
            tasks: expected.to_vec(),
            ..Swept::default()
        };
        assert_eq!(swept, told);
        let again = world.store.sweep(at(after_ms), 10).await.unwrap();
        assert_eq!(again, Swept::default());
        for row in expected {
            let read = world.task(&workspace, row, 1).await;
            assert_eq!(read, *row, "it is stored, whatever the clock says now");
        }
    };
    sweep(LEASE_MS, &[moved(&leased, State::Queued, LEASE_MS)]).await;
    let finished_at = at(TASK_EXPIRY_MS);
    let expired = |row| moved(row, State::Expired { finished_at }, TASK_EXPIRY_MS);
    let mut both = [expired(&alone), expired(&leased)];
    both.sort_by_key(|row| row.task_id);
    sweep(9 * TASK_EXPIRY_MS, &both).await;
}

pub(super) async fn a_claim_swept_too_late_expires_at_once<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chats = [
        world.chat(&workspace, "Tax").await,
        world.chat(&workspace, "Garden").await,
    ];
    let row = world.assign(&workspace, &chats, "is leased").await;
    world.claimed(chats[0], &row, 0).await;
    let swept = world.store.sweep(at(TASK_EXPIRY_MS), 10).await.unwrap();
    let finished_at = at(TASK_EXPIRY_MS);
    let expired = moved(&row, State::Expired { finished_at }, TASK_EXPIRY_MS);
    assert_eq!(swept.tasks, [expired]);
}

pub(super) async fn a_small_sweep_takes_the_longest_due_tasks_too<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chat = world.chat(&workspace, "Tax").await;
    let mut ids = Vec::new();
    for number in [3, 0, 4, 1, 2] {
        let request = AssignTask {
            now: at(number),
            ..world.assignment(workspace.owner_id, &[chat], &format!("task {number}"))
        };
        let assigned = world.store.assign_task(request).await.unwrap();
        ids.push((number, assigned.row.task_id));
    }
    ids.sort();
    let run = world.queue(&workspace, "waits-for-a-week").await;
    let now = at(QUEUED_EXPIRY_MS + 10);
    let mut swept = Vec::new();
    for (runs_expected, more_expected) in [(1, true), (0, true), (0, false)] {
        let Swept { runs, tasks, more } = world.store.sweep(now, 2).await.unwrap();
        assert_eq!((runs.len(), more), (runs_expected, more_expected));
        assert!(runs.iter().all(|row| row.command_id == run.command_id));
        swept.extend(tasks.into_iter().map(|row| row.task_id));
    }
    assert!(ids.iter().map(|(_, id)| id).eq(&swept));
    assert_eq!(world.store.sweep(now, 2).await.unwrap(), Swept::default());
}

/// The commands of a sweep that moved no task and left nothing.
fn only_runs(swept: Swept) -> Vec<RunRow> {
    let Swept { runs, tasks, more } = swept;
    assert_eq!((tasks, more), (vec![], false));
    runs
}
