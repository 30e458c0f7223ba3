//! What this machine's disk and the store give: a bounded run of some seconds, printed as a table.
//!
//! `cargo run --release -p callboard-store-sqlite --example throughput [FOLDER]`; the folder decides
//! which disk is measured. Durable writes are bounded by the disk, so read them beside its own time.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a measuring program: it prints, reads the real clock and fails by panicking"
)]

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callboard_ambient::{Clock, Entropy};
use callboard_domain::CommandId;
use callboard_store::{QueueRun, Store};
use callboard_store_sqlite::SqliteStore;
use callboard_store_testkit::world::{Workspace, World, key, session};
use tokio::task::JoinSet;

/// How long each of the write measurements lasts.
const WRITING: Duration = Duration::from_millis(2_000);
const CLIENTS: usize = 64;
const READS: usize = 20_000;
const FSYNCS: usize = 300;

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = tempfile::tempdir_in(folder).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    println!(
        "fdatasync of 4 KiB          p50 {:>9.1} us",
        fdatasync(folder.path())
    );
    let path = folder.path().join("hub.sqlite3");
    runtime.block_on(measure(&path));
    println!(
        "fdatasync of 4 KiB, again   p50 {:>9.1} us",
        fdatasync(folder.path())
    );
}

/// Microseconds that one durable overwrite of a page takes.
fn fdatasync(folder: &Path) -> f64 {
    let mut file = File::create(folder.join("fdatasync")).unwrap();
    let times = (0..FSYNCS).map(|_| {
        let started = Instant::now();
        file.rewind().unwrap();
        file.write_all(&[7; 4_096]).unwrap();
        file.sync_data().unwrap();
        started.elapsed()
    });
    median(times.collect())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

async fn measure(path: &Path) {
    let world = Arc::new(World::new(SqliteStore::open(path).unwrap()));
    let workspace = Arc::new(world.workspace().await);
    let one = write(&world, &workspace, 1).await;
    let many = write(&world, &workspace, CLIENTS).await;
    println!("group commit lifts durable writes by {:.1}", many / one);

    let (store, row) = (
        &world.store,
        world.queue(&workspace, "the-one-to-read").await,
    );
    let now = row.run.queued_at;
    let token = workspace.connection_token;
    report("run by connection", READS, async || {
        assert!(store.run(key(&row), now).await.unwrap().is_some());
    })
    .await;
    report("connection by token", READS, async || {
        assert!(store.connection_by_token(token).await.unwrap().is_some());
    })
    .await;
    report("the same on spawn_blocking", READS / 10, async || {
        let store = store.clone();
        let found = tokio::task::spawn_blocking(move || {
            callboard_store_testkit::block_on(store.connection_by_token(token))
        });
        assert!(found.await.unwrap().unwrap().is_some());
    })
    .await;
    let (desktop, project) = (workspace.desktop.id, workspace.project.id);
    report("unchanged sync, full queue", READS / 10, async || {
        let list = vec![session(0x5e, "Report")];
        let synced = store.sync(desktop, project, list, now).await.unwrap();
        assert!(!synced.changed && !synced.handout.commands.is_empty());
    })
    .await;
}

/// Queued runs a second that `clients` together get stored.
async fn write(world: &Arc<World<SqliteStore>>, workspace: &Arc<Workspace>, clients: usize) -> f64 {
    let (clock, entropy) = (Clock::system(), Entropy::system());
    let (started, commits) = (Instant::now(), world.store.commit_count());
    let mut writers = JoinSet::new();
    for _ in 0..clients {
        let (world, workspace) = (Arc::clone(world), Arc::clone(workspace));
        let (clock, entropy) = (clock.clone(), entropy.clone());
        writers.spawn(async move {
            let mut times = Vec::new();
            while started.elapsed() < WRITING {
                let request = QueueRun {
                    command_id: CommandId::from_bytes(entropy.uuid_v7(clock.now())),
                    ..world.request(&workspace, &entropy.secret(""))
                };
                let began = Instant::now();
                world.store.queue_run(request).await.unwrap();
                times.push(began.elapsed());
            }
            times
        });
    }
    let times = writers.join_all().await.concat();
    let a_second = times.len() as f64 / started.elapsed().as_secs_f64();
    let together = times.len() as f64 / (world.store.commit_count() - commits) as f64;
    println!(
        "queue_run, {clients:>2} client(s)     p50 {:>9.1} us   {a_second:>8.0} /s, {together:.1} a commit",
        median(times)
    );
    a_second
}

async fn report(name: &str, times: usize, operation: impl AsyncFn()) {
    let mut taken = Vec::with_capacity(times);
    for _ in 0..times {
        let started = Instant::now();
        operation().await;
        taken.push(started.elapsed());
    }
    println!("{name:<27} p50 {:>9.1} us", median(taken));
}
