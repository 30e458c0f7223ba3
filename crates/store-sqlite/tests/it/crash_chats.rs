//! `kill -9` while chats claim, upload and submit: what was answered is there, no row lacks its
//! file, and no file its row.

use std::collections::BTreeMap;
use std::path::Path;

use callboard_ambient::Entropy;
use callboard_domain::linked_task::Status;
use callboard_domain::{ClaimId, OwnerId, TaskId};
use callboard_store::{ArtifactKey, ArtifactReader, Store};
use callboard_store_sqlite::SqliteStore;
use callboard_store_testkit::block_on;
use callboard_store_testkit::chat_world::file;
use callboard_store_testkit::world::at;
use rusqlite::Connection;

use crate::artifacts::files;
use crate::crash::{KILLS, WRITERS, database_of_the_child, hub, killed_after, tell_parent};
use crate::opening::place;

/// The test that plays the child.
const CHILD: &str = "crash_chats::a_chat_tells_of_each_step_that_was_answered";
/// What each task gets.
const CONTENT: &[u8] = &[7; 20_000];

/// Does tasks from beginning to end, and tells of each step that was answered.
fn work(path: &Path, tasks: usize, tell: &(impl Fn(String) + Sync)) {
    let (world, workspace) = hub(path);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                block_on(async {
                    let chat = world.chat(&workspace, &world.entropy.secret("chat-")).await;
                    for _ in 0..tasks {
                        let text = world.entropy.secret("task-");
                        let row = world.assign(&workspace, &[chat], &text).await;
                        let (task, owner) = (row.task_id, workspace.owner_id);
                        tell(format!("queued {task} {owner} {}", ClaimId::UNKNOWN));
                        let (row, claim) = world.claimed(chat, &row, 1).await;
                        tell(format!("claimed {task} {owner} {}", claim.id));
                        let artifact = file(claim, "sums", CONTENT);
                        world.upload(chat, &row, artifact, 2).await.unwrap();
                        tell(format!("uploaded {task} {owner} {}", claim.id));
                        let done = world.submit(chat, &row, claim.id, "done", 3);
                        done.await.unwrap();
                        tell(format!("completed {task} {owner} {}", claim.id));
                    }
                });
            });
        }
    });
}

#[test]
fn a_chat_tells_of_each_step_that_was_answered() {
    if let Some(path) = database_of_the_child() {
        work(path.as_ref(), usize::MAX, &tell_parent);
        return;
    }
    let (_folder, path) = place();
    let told = std::sync::Mutex::new(Vec::new());
    work(&path, 2, &|line| told.lock().unwrap().push(line));
    assert_eq!(told.lock().unwrap().len(), WRITERS * 2 * 4);
}

#[test]
fn every_answered_step_of_a_task_outlives_a_kill() {
    let (_folder, path) = place();
    let seed = Entropy::system().below(1 << 32);
    eprintln!("kills after the numbers of answers that seed {seed} gives");
    let entropy = Entropy::seeded(seed, "kills");
    let mut answered: BTreeMap<TaskId, Answered> = BTreeMap::new();
    for _ in 0..KILLS {
        for line in killed_after(&path, CHILD, entropy.below(300)) {
            let mut words = line.split(' ');
            let step = words.next().unwrap().to_owned();
            let task_id = words.next().unwrap().parse().unwrap();
            let owner_id = words.next().unwrap().parse().unwrap();
            let claim_id = words.next().unwrap().parse().unwrap();
            answered.insert(
                task_id,
                Answered {
                    step,
                    owner_id,
                    claim_id,
                },
            );
        }
        check(&path, &answered);
    }
    assert!(!answered.is_empty(), "seed {seed}");
}

/// The last step of a task that was answered.
struct Answered {
    step: String,
    owner_id: OwnerId,
    claim_id: ClaimId,
}

fn check(path: &Path, answered: &BTreeMap<TaskId, Answered>) {
    let store = SqliteStore::open(path).expect("the lock went with the process");
    for (task_id, told) in answered {
        let found = block_on(store.task(told.owner_id, *task_id, at(4))).unwrap();
        let task = found.expect("it was answered").row.task;
        let step = told.step.as_str();
        // The upload changes no status.
        let least = Status::from_word(step).unwrap_or(Status::Claimed);
        assert!(
            task.status() >= least,
            "{task_id}: {step}, but {}",
            task.status()
        );
        if step != "queued" {
            assert_eq!(task.claim().unwrap().id, told.claim_id);
        }
        let result = task.outcome().map(|outcome| outcome.result.as_str());
        let over = task.status().ended().is_some();
        assert_eq!(result, over.then_some("done"), "{task_id}: {step}");
        let key = ArtifactKey {
            reader: ArtifactReader::Owner(told.owner_id),
            task_id: *task_id,
            claim_id: told.claim_id,
            artifact_id: "sums".to_owned(),
        };
        let artifact = block_on(store.artifact(key)).unwrap();
        let there = artifact.is_some_and(|(_, bytes)| bytes == CONTENT);
        assert!(there || ["queued", "claimed"].contains(&step), "{step}");
    }
    drop(store);
    let raw = Connection::open(path).unwrap();
    let integrity = raw.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    assert_eq!(integrity.unwrap(), "ok");
    let count = |what: &str| -> u32 {
        let sql = format!("SELECT count(*) FROM {what}");
        raw.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count("pragma_foreign_key_check"), 0);
    assert_eq!(count("tasks"), count("task_texts"));
    assert_eq!(count("tasks"), count("task_candidates"));
    let left = files(&path.with_file_name("artifacts"));
    assert_eq!(
        u32::try_from(left.len()).unwrap(),
        count("artifacts"),
        "the start put aside what no row names"
    );
}
