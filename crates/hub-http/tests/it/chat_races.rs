//! Calls that arrive together: claims of many chats, and every call of one chat sent twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use callboard_domain::Scope;
use callboard_store::Store;
use callboard_store_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::chat_world::{CLAIM, Chat, LINK, SUBMIT, UPLOAD, ended};
use crate::world::{Answer, MODERN, SESSION, World};

const CLAIMERS: usize = 8;
const TASKS: usize = 200;

/// Eight chats of two connections, all candidates of every task, claim each task at one instant.
async fn claim_race<S: Store>(world: World<S>) {
    let world = Arc::new(world);
    let other = world.connect("ChatGPT", &Scope::ALL).await;
    let mut chats = Vec::new();
    for index in 0..CLAIMERS {
        let token = [&world.token, &other][index % 2];
        chats.push(world.link_as(token, &format!("conversation-{index}")).await);
    }
    let candidates: Vec<&Chat> = chats.iter().collect();
    let mut tasks = Vec::new();
    for index in 0..TASKS {
        tasks.push(world.assign(&candidates, &format!("Task {index}")).await);
    }
    let (tasks, barrier) = (Arc::new(tasks), Arc::new(Barrier::new(CLAIMERS)));
    let claimers: Vec<_> = chats
        .into_iter()
        .map(|chat| {
            let (world, tasks) = (Arc::clone(&world), Arc::clone(&tasks));
            let barrier = Arc::clone(&barrier);
            tokio::spawn(async move {
                let mut answers = Vec::new();
                for task_id in tasks.iter() {
                    barrier.wait().await;
                    answers.push(world.claim(&chat, task_id).await);
                }
                answers
            })
        })
        .collect();
    let mut winners: Vec<Vec<Value>> = vec![Vec::new(); TASKS];
    for claimer in claimers {
        for (won, answer) in winners.iter_mut().zip(claimer.await.unwrap()) {
            if answer.json()["result"]["isError"] == json!(false) {
                won.push(answer.tool()["claim_id"].clone());
            } else {
                assert_eq!(answer.tool_error(), "not claimable: claimed");
            }
        }
    }
    let with_two = winners.iter().filter(|won| won.len() > 1).count();
    assert_eq!(with_two, 0, "tasks with two or more winners");
    for (task_id, won) in tasks.iter().zip(winners) {
        let claim = world.owned(task_id).await.row.task.claim().unwrap().id;
        assert_eq!(won, [json!(claim.to_string())], "exactly one, and it holds");
    }
}

/// Eight identical claims of one chat.
async fn claim_alike<S: Store>(world: World<S>) {
    let world = Arc::new(world);
    let chat = world.link("conversation-1").await;
    for round in 0..50 {
        let task_id = world.assign(&[&chat], &format!("Task {round}")).await;
        let arguments = json!({"chat_link_id": chat.link_id, "task_id": task_id});
        let calls = [(); CLAIMERS].map(|()| (MODERN, CLAIM, arguments.clone()));
        let answers = together(&world, calls).await;
        let claims: BTreeSet<_> = answers.iter().map(|answer| answer.text.clone()).collect();
        assert_eq!(claims.len(), 1, "{claims:?}");
        answers[0].tool();
    }
}

/// Sends `calls` of the world's connection at one instant.
async fn together<S: Store, const N: usize>(
    world: &Arc<World<S>>,
    calls: [(&'static str, &'static str, Value); N],
) -> Vec<Answer> {
    let barrier = Arc::new(Barrier::new(N));
    let sent = calls.map(|(revision, tool, arguments)| {
        let (world, barrier) = (Arc::clone(world), Arc::clone(&barrier));
        tokio::spawn(async move {
            barrier.wait().await;
            world.call(revision, tool, arguments).await
        })
    });
    let mut answers = Vec::new();
    for answer in sent {
        answers.push(answer.await.unwrap());
    }
    answers
}

/// The two answers to one call that two sessions of one connection send at one instant.
async fn doubled<S: Store>(
    world: &Arc<World<S>>,
    sessions: [&'static str; 2],
    tool: &'static str,
    arguments: &Value,
) -> [Value; 2] {
    let calls = sessions.map(|revision| (revision, tool, arguments.clone()));
    let answers = together(world, calls).await;
    [answers[0].tool(), answers[1].tool()]
}

/// Asserts that one of the answers is `first` and the other the same, marked as replayed.
fn assert_one_replay(answers: [Value; 2], first: &Value) {
    let mut replayed = first.clone();
    replayed["replayed"] = json!(true);
    assert_eq!(answers.iter().filter(|answer| *answer == first).count(), 1);
    assert!(answers.contains(&replayed), "{answers:?}");
}

/// One after the other, every call of a conversation, each of them twice at one instant.
async fn every_call_twice<S: Store>(world: World<S>, sessions: [&'static str; 2]) {
    let world = Arc::new(world);
    world.share().await;
    for round in 0..200 {
        let key = format!("round-{round:03}");
        let run = json!({"graph_session_id": SESSION.to_string(), "idempotency_key": key,
            "arguments": {"round": round}});
        let [one, two] = doubled(&world, sessions, "run_graph_session", &run).await;
        assert_eq!(one["command_id"], two["command_id"]);
        // A desktop takes it, so that the queue stays short.
        let done = json!({"status": "cancelled"});
        let command_id = one["command_id"].as_str().unwrap();
        assert_eq!(world.complete(command_id, done).await.status, 200);

        let link = world.link_arguments(&key);
        let [one, two] = doubled(&world, sessions, LINK, &link).await;
        assert_eq!(one, two);
        let link_id = one["chat_link_id"].as_str().unwrap().to_owned();
        let links = [link_id.clone()];
        let assigned = world.hub.assign_task(&links, "What is 2 + 2?", &key);
        let task_id = assigned.await.unwrap().row.task_id.to_string();

        let mut ids = json!({"chat_link_id": link_id, "task_id": task_id});
        let [one, two] = doubled(&world, sessions, CLAIM, &ids).await;
        assert_eq!(one, two);
        ids["claim_id"] = one["claim_id"].clone();

        let mut file = ids.clone();
        for (name, value) in [
            ("artifact_id", "report"),
            ("name", "report.md"),
            ("media_type", "text/markdown"),
            ("text", "4"),
        ] {
            file[name] = json!(value);
        }
        let uploaded = doubled(&world, sessions, UPLOAD, &file).await;
        let mut first = uploaded[0].clone();
        first.as_object_mut().unwrap().remove("replayed");
        assert_one_replay(uploaded, &first);

        let mut submit = ids.clone();
        (submit["status"], submit["result"]) = (json!("completed"), json!("4"));
        let submitted = doubled(&world, sessions, SUBMIT, &submit).await;
        assert_one_replay(submitted, &json!({"ok": true}));
        let task = world.owned(&task_id).await;
        assert_eq!(task.artifacts.len(), 1);
        assert_eq!(world.outcome(&task_id).await, ended("completed", Some("4")));
    }
    assert_eq!(world.hub.chat_links().await.unwrap().len(), 200);
}

async fn two_handshakes<S: Store>(world: World<S>) {
    every_call_twice(world, ["2025-06-18", "2025-11-25"]).await;
}

async fn with_and_without_a_handshake<S: Store>(world: World<S>) {
    every_call_twice(world, ["2025-11-25", MODERN]).await;
}

/// Two different links under one key, at one instant: one is made, the other refused.
async fn one_key_two_links<S: Store>(world: World<S>) {
    let world = Arc::new(world);
    for round in 0..50 {
        let mut links = ["Trip to Jeju", "Trip to Busan"].map(|label| {
            let mut link = world.link_arguments(&format!("round-{round:03}"));
            link["label"] = json!(label);
            (MODERN, LINK, link)
        });
        links.rotate_left(round % 2);
        let answers = together(&world, links).await;
        let made = |answer: &&Answer| answer.json()["result"]["isError"] == json!(false);
        assert_eq!(answers.iter().filter(made).count(), 1);
        let refused = answers.iter().find(|answer| !made(answer)).unwrap();
        assert!(refused.tool_error().contains("no link was made"));
    }
    assert_eq!(world.hub.chat_links().await.unwrap().len(), 50);
}

/// A result and a cancel at one instant: one of them wins, and both sides are told the same.
async fn submit_against_cancel<S: Store>(world: World<S>) {
    let world = Arc::new(world);
    let chat = world.link("conversation-1").await;
    for _ in 0..50 {
        let work = world.work(&chat).await;
        let barrier = Arc::new(Barrier::new(2));
        let submitting = {
            let (world, work) = (Arc::clone(&world), work.clone());
            let barrier = Arc::clone(&barrier);
            tokio::spawn(async move {
                barrier.wait().await;
                world.submit(&work, "completed", "4").await
            })
        };
        barrier.wait().await;
        let row = world.hub.cancel_task(&work.task_id).await.unwrap();
        let submitted = submitting.await.unwrap();
        let outcome = world.outcome(&work.task_id).await;
        assert_eq!(row.task.status().as_str(), outcome.0);
        if outcome.0 == "cancelled" {
            assert_eq!(submitted.tool_error(), "rejected: task is cancelled");
        } else {
            assert_eq!(submitted.tool(), json!({"ok": true}));
            assert_eq!(outcome, ended("completed", Some("4")));
        }
    }
}

macro_rules! on_every_store {
    ($($name:ident => $race:ident;)*) => {
        mod in_memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$race(super::World::new().await).await;
            })*
        }

        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let folder = tempfile::tempdir().unwrap();
                let store = super::SqliteStore::open(&folder.path().join("hub.sqlite")).unwrap();
                super::$race(super::World::over(store).await).await;
            })*
        }
    };
}

on_every_store! {
    a_task_has_one_winner_among_eight_claimers => claim_race;
    the_same_claim_sent_eight_times_is_one_claim => claim_alike;
    every_call_that_two_sessions_send_at_once_counts_once => two_handshakes;
    every_call_counts_once_with_and_without_a_handshake => with_and_without_a_handshake;
    two_links_under_one_key_become_one => one_key_two_links;
    a_result_and_a_cancel_agree_on_who_was_first => submit_against_cancel;
}
