//! Other writers, many writers, writers who leave.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use callboard_domain::graph_run::Status as RunStatus;
use callboard_domain::limits::TASK_EXPIRY_MS;
use callboard_domain::linked_task::{Ended, Status};
use callboard_domain::{ExecutionId, Refusal};
use callboard_store::{ArtifactKey, ArtifactReader, Store, StoreError, Swept};
use callboard_store_sqlite::SqliteStore;
use callboard_store_testkit::block_on;
use callboard_store_testkit::chat_world::{LEASE_MS, file};
use callboard_store_testkit::world::{World, at, completed, key, refusal, session};
use callboard_wire::relay::Progress;
use rusqlite::Connection;

use crate::opening::place;

/// Takes the write lock, as a backup tool or a second program would.
pub(crate) fn take_write_lock(connection: &Connection) {
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let written = "UPDATE desktops SET name = name || '!'";
    connection.execute(written, []).unwrap();
}

pub(crate) fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn reads_answer_while_somebody_else_holds_the_write_lock() {
    let (_folder, path) = place();
    let world = World::new(SqliteStore::open(&path).unwrap());
    let other = Connection::open(&path).unwrap();
    block_on(async {
        let (store, workspace) = (&world.store, world.workspace().await);
        let (row, _) = world.start(&workspace, "runs-already").await;
        let (desktop, project) = (workspace.desktop.id, workspace.project.id);
        let (connection, worker) = (workspace.connection.id, world.worker());
        let progress = Some(Progress::default());
        let report = || {
            let phase = Some("reading".to_owned());
            store.report_progress(desktop, row.command_id, phase, progress, at(2_000))
        };
        let owner = store.ensure_owner(workspace.owner_id, at(0)).await.unwrap();
        store.bind_worker(desktop, worker).await.unwrap();
        let row = report().await.unwrap();
        let commits = store.commit_count();

        take_write_lock(&other);
        // A write would wait for five seconds and then fail.
        assert_eq!(
            store.run(key(&row), at(2_000)).await.unwrap(),
            Some(row.clone())
        );
        let sessions = store.sessions(connection, project, 50).await.unwrap();
        assert_eq!(sessions.unwrap().len(), 1);
        let token = workspace.connection_token;
        assert!(store.connection_by_token(token).await.unwrap().is_some());
        let token = workspace.desktop_token;
        let found = store.desktop_by_token(token).await.unwrap().unwrap();
        assert_eq!(found.name, "den", "what is not committed is not seen");
        assert_eq!(store.projects(owner).await.unwrap().len(), 1);
        assert_eq!(store.desktops(workspace.owner_id).await.unwrap().len(), 1);
        assert_eq!(
            store.connections(workspace.owner_id).await.unwrap().len(),
            1
        );
        let list = vec![session(0x5e, "Report")];
        let synced = store.sync(desktop, project, list, at(2_000)).await.unwrap();
        assert!(!synced.changed);
        assert_eq!(report().await.unwrap(), row);
        store.bind_worker(desktop, worker).await.unwrap();
        assert_eq!(
            store.ensure_owner(workspace.owner_id, at(0)).await.unwrap(),
            owner
        );
        assert_eq!(store.sweep(at(2_000), 10).await.unwrap(), Swept::default());
        store.note_seen(vec![]).await.unwrap();
        store.ready().await.unwrap();
        assert_eq!(store.commit_count(), commits, "none of them wrote");
        other.execute_batch("ROLLBACK").unwrap();
    });
}

#[test]
fn reading_and_repeating_of_chats_answer_while_somebody_else_holds_the_write_lock() {
    let (_folder, path) = place();
    let world = World::new(SqliteStore::open(&path).unwrap());
    let other = Connection::open(&path).unwrap();
    block_on(async {
        let (store, workspace) = (&world.store, world.workspace().await);
        let chat = world.chat(&workspace, "Tax").await;
        let rival = world.chat_elsewhere(&workspace, "Codex").await;
        let gone = world.chat(&workspace, "Gone").await;
        world.revoke_chat(&workspace, gone, 0).await;
        let linked = world.new_chat(workspace.connection.id, workspace.project.id, "Linked");
        store.link_chat(linked.clone()).await.unwrap();
        let done = world.assign(&workspace, &[chat], "Sum it up").await;
        let (_, claim) = world.claimed(chat, &done, 0).await;
        let (uploaded, _) = world
            .upload(chat, &done, file(claim, "sums", b"1, 2"), 1)
            .await
            .unwrap();
        let (done, _) = world.submit(chat, &done, claim.id, "3", 2).await.unwrap();
        let taken = world.assign(&workspace, &[chat, rival], "Check it").await;
        let (taken, _) = world.claimed(chat, &taken, 3).await;
        let waiting = world.assign(&workspace, &[chat], "File it").await;
        let commits = store.commit_count();

        take_write_lock(&other);
        let inbox = [taken.clone(), waiting.clone(), done.clone()];
        assert_eq!(world.inbox(chat, 4).await, inbox);
        // Time moves what is read, and still nothing is written.
        let lapsed = world.inbox(rival, LEASE_MS + 10).await;
        assert_eq!(lapsed[0].task.status(), Status::Queued);
        let expired = world.inbox(chat, TASK_EXPIRY_MS + 10).await;
        assert_eq!(expired.len(), 3);
        let owner = workspace.owner_id;
        assert_eq!(store.chat_links(owner).await.unwrap().len(), 3);
        assert_eq!(store.tasks(owner, 10, at(4)).await.unwrap().len(), 3);
        let owned = world.owned(&workspace, &done, 4).await;
        assert_eq!(owned.artifacts, std::slice::from_ref(&uploaded));
        let key = ArtifactKey {
            reader: ArtifactReader::Owner(owner),
            task_id: done.task_id,
            claim_id: claim.id,
            artifact_id: "sums".to_owned(),
        };
        let found = store.artifact(key).await.unwrap();
        assert_eq!(found, Some((uploaded.clone(), b"1, 2".to_vec())));

        let again = world.claim(chat, &taken, 4).await.unwrap();
        assert_eq!(again, (taken.clone(), true));
        let refused = world.claim(rival, &taken, 4).await;
        assert_eq!(refusal(refused), Refusal::ClaimTaken);
        let again = world.submit(chat, &done, claim.id, "3", 4).await.unwrap();
        assert_eq!(again, (done.clone(), true));
        let refused = world.submit(chat, &done, claim.id, "4", 4).await;
        assert_eq!(refusal(refused), Refusal::SubmitOver(Ended::Completed));
        let sums = file(claim, "sums", b"1, 2");
        let again = world.upload(chat, &done, sums, 4).await.unwrap();
        assert_eq!(again, (uploaded, true));
        assert_eq!(world.cancel(&workspace, &done, 4).await, done);
        let again = store.link_chat(linked.clone()).await.unwrap();
        assert!(again.replayed);
        let again = world.assignment(owner, &[chat], "File it");
        assert!(store.assign_task(again).await.unwrap().replayed);
        let found = store
            .task_by_key(owner, "key of File it".to_owned(), at(4))
            .await;
        assert_eq!(found.unwrap().unwrap().row.task_id, waiting.task_id);
        let again = store.revoke_chat_link(owner, gone.link_id, at(4)).await;
        assert_eq!(again.unwrap(), Some(Vec::new()));
        let swept = store.sweep(at(4), 10).await.unwrap();
        assert_eq!(swept, Swept::default());
        assert_eq!(store.commit_count(), commits, "none of them wrote");
        other.execute_batch("ROLLBACK").unwrap();
    });
}

/// 16 writers with 20 runs each and 2 readers, while a second program takes the write lock again
/// and again: each time it holds on until 20 reads were answered, and lets 20 writes through
/// before the next.
#[test]
fn concurrent_writers_never_see_a_locked_database() {
    const WRITERS: usize = 16;
    const RUNS: usize = 20;
    let (_folder, path) = place();
    let world = World::new(SqliteStore::open(&path).unwrap());
    let workspace = block_on(world.workspace());
    let other = Connection::open(&path).unwrap();
    let (wrote, writes) = mpsc::channel();
    let (read, reads) = mpsc::channel();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (world, workspace, wrote) = (&world, &workspace, wrote.clone());
            scope.spawn(move || {
                for run in 0..RUNS {
                    block_on(async {
                        let name = format!("run-{run}-of-{writer}");
                        let (row, execution_id) = world.start(workspace, &name).await;
                        let done = completed(execution_id, "1");
                        let (desktop, command) = (row.desktop_id, row.command_id);
                        let stored = world.store.complete_run(desktop, command, done, at(3_000));
                        let (row, _) = stored.await.unwrap();
                        assert_eq!(row.run.status(), RunStatus::Completed);
                    });
                    // Nobody counts any more once the second program is done.
                    wrote.send(()).ok();
                }
            });
        }
        drop(wrote);
        for _ in 0..2 {
            let (world, workspace, over, read) = (&world, &workspace, &over, read.clone());
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let token = workspace.connection_token;
                    let found = block_on(world.store.connection_by_token(token));
                    assert!(found.unwrap().is_some());
                    read.send(()).ok();
                }
            });
        }
        let mut held = 0;
        while writes.iter().take(WRITERS).count() == WRITERS {
            take_write_lock(&other);
            assert_eq!(reads.iter().take(20).count(), 20);
            other.execute_batch("COMMIT").unwrap();
            held += 1;
        }
        over.store(true, Ordering::Relaxed);
        assert!(held >= WRITERS, "it held the lock {held} times");
    });
}

#[test]
fn writes_that_wait_together_are_stored_in_one_commit() {
    const WRITES: usize = 200;
    let (_folder, path) = place();
    let world = World::new(SqliteStore::open(&path).unwrap());
    let workspace = block_on(world.workspace());
    let other = Connection::open(&path).unwrap();
    take_write_lock(&other);
    let before = world.store.commit_count();
    let mut waiting = Vec::new();
    for number in 0..WRITES {
        let request = world.request(&workspace, &format!("write-number-{number}"));
        let mut write = Box::pin(world.store.queue_run(request));
        assert!(poll(&mut write).is_pending());
        waiting.push(write);
    }
    other.execute_batch("ROLLBACK").unwrap();
    for write in waiting {
        assert!(!block_on(write).unwrap().replayed);
    }
    let commits = world.store.commit_count() - before;
    // The writer may have begun with the first ones before the last ones came.
    assert!((1..=2).contains(&commits), "{commits} commits");
}

#[test]
fn a_caller_who_leaves_leaves_a_whole_write_or_nothing() {
    const WRITES: u32 = 3_000;
    let (_folder, path) = place();
    let world = World::new(SqliteStore::open(&path).unwrap());
    let workspace = block_on(world.workspace());
    let other = Connection::open(&path).unwrap();
    take_write_lock(&other);
    let mut waiting = Vec::new();
    for number in 0..WRITES {
        let request = world.request(&workspace, &format!("write-number-{number}"));
        let mut write = Box::pin(world.store.queue_run(request));
        assert!(poll(&mut write).is_pending());
        waiting.push(write);
    }
    drop(waiting);
    other.execute_batch("ROLLBACK").unwrap();
    let last = block_on(world.queue(&workspace, "the-last-write"));
    let count = |table: &str| -> u32 {
        let sql = format!("SELECT count(*) FROM {table}");
        other.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count("runs"), count("run_arguments"));
    assert!(
        count("runs") > 1,
        "those that had a place in the queue are stored"
    );
    assert!(
        count("runs") < WRITES,
        "the queue is bounded: the others never got in"
    );
    let read = block_on(world.read(&last, at(0)));
    assert_eq!(read, Some(last));
}

#[test]
fn writes_that_wait_when_the_store_is_dropped_are_stored() {
    let (_folder, path) = place();
    let world = World::new(SqliteStore::open(&path).unwrap());
    let workspace = block_on(world.workspace());
    let row = block_on(world.queue(&workspace, "waits-still"));
    let start = ExecutionId::from_bytes(world.id());
    let started = world
        .store
        .start_run(row.desktop_id, row.command_id, start, at(1));
    let mut started = Box::pin(started);
    assert!(poll(&mut started).is_pending());
    drop(started);
    drop(world);
    let store = SqliteStore::open(&path).unwrap();
    let read = block_on(store.run(key(&row), at(2))).unwrap().unwrap();
    assert_eq!(read.run.execution().unwrap().id, start);
}

#[test]
fn a_write_that_cannot_get_the_lock_fails_and_can_be_repeated() {
    let (_folder, path) = place();
    let world = World::new(SqliteStore::open(&path).unwrap());
    let workspace = block_on(world.workspace());
    let other = Connection::open(&path).unwrap();
    take_write_lock(&other);
    let request = world.request(&workspace, "the-only-key");
    let failed = block_on(world.store.queue_run(request.clone())).unwrap_err();
    let StoreError::Unavailable(source) = failed else {
        panic!("{failed:?}");
    };
    let cause = std::error::Error::source(&*source).expect("what SQLite said");
    assert_eq!(cause.to_string(), "database is locked");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(!block_on(world.store.queue_run(request)).unwrap().replayed);
}
