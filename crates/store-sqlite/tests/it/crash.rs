//! `kill -9` while writes are under way: what was answered is there, and nothing is half there.
//!
//! The child is this very test binary, told by a variable to play the part of the hub.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use callboard_ambient::Entropy;
use callboard_domain::graph_run::Status;
use callboard_domain::{CommandId, ConnectionId, ExecutionId, GraphSessionId};
use callboard_store::{RunKey, Store};
use callboard_store_sqlite::SqliteStore;
use callboard_store_testkit::block_on;
use callboard_store_testkit::world::{START, Workspace, World, at, completed};
use rusqlite::Connection;

use crate::opening::place;

/// Names the database that the child writes to.
const DATABASE_VARIABLE: &str = "CALLBOARD_TEST_DATABASE";
/// The test that plays the child.
const CHILD: &str = "crash::a_hub_tells_of_each_write_that_was_answered";
/// What the child says before and after each step that was answered.
const TOLD_FROM: &str = "told: ";
const TOLD_TO: &str = " for good";
/// Threads that write in the child.
pub(crate) const WRITERS: usize = 6;
/// How often the child is killed.
pub(crate) const KILLS: u64 = 8;

/// Queues, starts and completes runs, and tells of each step that was answered.
fn write(
    world: &World<SqliteStore>,
    workspace: &Workspace,
    runs: usize,
    tell: &(impl Fn(String) + Sync),
) {
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                for _ in 0..runs {
                    let name = world.entropy.secret("key-");
                    block_on(async {
                        let row = world.queue(workspace, &name).await;
                        let (desktop, command) = (row.desktop_id, row.command_id);
                        let connection = row.connection_id;
                        tell(format!("queued {command} {connection}"));
                        let execution = ExecutionId::from_bytes(world.id());
                        let start = world.store.start_run(desktop, command, execution, at(1));
                        start.await.unwrap();
                        tell(format!("running {command} {connection}"));
                        let done = completed(execution, "\"done\"");
                        let stored = world.store.complete_run(desktop, command, done, at(2));
                        stored.await.unwrap();
                        tell(format!("completed {command} {connection}"));
                    });
                }
            });
        }
    });
}

/// A world whose ids are its own, with a workspace: the database may hold those of others.
pub(crate) fn hub(path: &Path) -> (World<SqliteStore>, Workspace) {
    let mut world = World::new(SqliteStore::open(path).unwrap());
    world.entropy = Entropy::system();
    let workspace = block_on(world.workspace());
    (world, workspace)
}

/// The database of a process that plays the child.
pub(crate) fn database_of_the_child() -> Option<OsString> {
    std::env::var_os(DATABASE_VARIABLE)
}

/// Tells the parent of a step that was answered.
#[allow(clippy::print_stdout, reason = "that is how the parent is told")]
pub(crate) fn tell_parent(line: String) {
    println!("{TOLD_FROM}{line}{TOLD_TO}");
}

#[test]
fn a_hub_tells_of_each_write_that_was_answered() {
    if let Some(path) = database_of_the_child() {
        let (world, workspace) = hub(path.as_ref());
        write(&world, &workspace, usize::MAX, &tell_parent);
        return;
    }
    let (_folder, path) = place();
    let (world, workspace) = hub(&path);
    let told = std::sync::Mutex::new(Vec::new());
    write(&world, &workspace, 2, &|line| {
        told.lock().unwrap().push(line)
    });
    assert_eq!(told.lock().unwrap().len(), WRITERS * 2 * 3);
}

#[test]
fn every_answered_write_outlives_a_kill() {
    let (_folder, path) = place();
    let seed = Entropy::system().below(1 << 32);
    eprintln!("kills after the numbers of answers that seed {seed} gives");
    let entropy = Entropy::seeded(seed, "kills");
    let mut answered: BTreeMap<CommandId, (ConnectionId, Status)> = BTreeMap::new();
    for _ in 0..KILLS {
        let kill_after = entropy.below(400);
        for line in killed_after(&path, CHILD, kill_after) {
            let mut words = line.split(' ');
            let status = Status::from_word(words.next().unwrap()).unwrap();
            let command = words.next().unwrap().parse().unwrap();
            let connection = words.next().unwrap().parse().unwrap();
            answered.insert(command, (connection, status));
        }
        check(&path, &answered);
    }
    assert!(!answered.is_empty(), "seed {seed}");
}

/// What a child, which is the test of that name, told before it was killed, which was when it had told `kill_after` lines.
pub(crate) fn killed_after(path: &Path, child: &str, kill_after: u64) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child, "--nocapture", "--test-threads=1"])
        .env(DATABASE_VARIABLE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = Vec::new();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines {
        let line = line.unwrap();
        // The test harness writes into the same pipe, and the kill may cut the last line.
        let answer = line.split_once(TOLD_FROM).map(|(_, answer)| answer);
        told.extend(answer.and_then(|answer| Some(answer.strip_suffix(TOLD_TO)?.to_owned())));
        if told.len() as u64 >= kill_after {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    told
}

fn check(path: &Path, answered: &BTreeMap<CommandId, (ConnectionId, Status)>) {
    let store = SqliteStore::open(path).expect("the lock went with the process");
    for (command_id, (connection_id, status)) in answered {
        let key = RunKey {
            connection_id: *connection_id,
            command_id: *command_id,
        };
        let row = block_on(store.run(key, START))
            .unwrap()
            .expect("it was answered");
        assert!(row.run.status() >= *status, "{command_id} was {status}");
        assert!(row.run.status() <= Status::Completed);
        assert_eq!(row.graph_session_id, GraphSessionId::from_bytes([0x5e; 16]));
    }
    drop(store);
    let raw = Connection::open(path).unwrap();
    let text = |sql: &str| raw.query_row(sql, [], |row| row.get::<_, String>(0));
    assert_eq!(text("PRAGMA integrity_check").unwrap(), "ok");
    let broken = text("SELECT \"table\" FROM pragma_foreign_key_check");
    assert_eq!(broken, Err(rusqlite::Error::QueryReturnedNoRows));
    let halves = raw.query_row(
        "SELECT (SELECT count(*) FROM runs) - (SELECT count(*) FROM run_arguments)",
        [],
        |row| row.get::<_, i64>(0),
    );
    assert_eq!(halves, Ok(0));
}
