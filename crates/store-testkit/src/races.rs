//! Eight callers at a barrier: whatever the order, one outcome.

use std::collections::BTreeSet;
use std::sync::Barrier;

use callboard_domain::graph_run::Status;
use callboard_domain::{CommandId, ExecutionId, Refusal};
use callboard_store::{QueueRun, RunRow, Store, StoreError};

use crate::block_on;
use crate::chat_races::Contest;
use crate::world::{Workspace, World, at, completed, key, refusal, session};

/// Callers that start together.
pub const CALLERS: usize = 8;
/// How often each race is run.
const ROUNDS: usize = 20;

/// Runs every race on one store.
///
/// # Panics
/// When two callers win.
pub fn races<S: Store>(factory: impl Fn() -> S) {
    let world = World::new(factory());
    let workspace = block_on(world.workspace());
    let contest = Contest::new(&world, &workspace);
    for round in 0..ROUNDS {
        eprintln!("round {round}");
        one_key_queues_one_command(&world, &workspace, round);
        one_execution_gets_the_start(&world, &workspace, round);
        cancel_start_and_complete_agree_on_one_end(&world, &workspace, round);
        one_of_several_completions_is_stored(&world, &workspace, round);
        a_sync_replaces_a_list_as_a_whole(&world, &workspace, round);
        block_on(world.share(&workspace, vec![session(0x5e, "Report")]));
        contest.play(round);
    }
}

/// Calls `operation` from [`CALLERS`] threads that start together, and gives their answers in the
/// order of their numbers.
///
/// # Panics
/// When a caller does.
pub fn at_once<T: Send>(operation: impl AsyncFn(usize) -> T + Sync) -> Vec<T> {
    let (barrier, operation) = (&Barrier::new(CALLERS), &operation);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                scope.spawn(move || {
                    block_on(async {
                        barrier.wait();
                        operation(caller).await
                    })
                })
            })
            .collect();
        let answers = callers.into_iter().map(|caller| caller.join().unwrap());
        answers.collect()
    })
}

fn one_key_queues_one_command<S: Store>(world: &World<S>, workspace: &Workspace, round: usize) {
    let requests: Vec<QueueRun> = (0..CALLERS)
        .map(|_| world.request(workspace, &format!("one-key-{round}")))
        .collect();
    let answers = at_once(async |caller| {
        let queued = world.store.queue_run(requests[caller].clone()).await;
        queued.unwrap()
    });
    let commands: BTreeSet<CommandId> =
        answers.iter().map(|queued| queued.row.command_id).collect();
    assert_eq!(commands.len(), 1, "{answers:?}");
    let fresh = answers.iter().filter(|queued| !queued.replayed).count();
    assert_eq!(fresh, 1, "one caller queued it, the others found it");
}

fn one_execution_gets_the_start<S: Store>(world: &World<S>, workspace: &Workspace, round: usize) {
    let row = block_on(world.queue(workspace, &format!("one-start-{round}")));
    let executions: Vec<_> = (0..CALLERS)
        .map(|_| ExecutionId::from_bytes(world.id()))
        .collect();
    let mut answers = at_once(async |caller| {
        let id = executions[caller];
        let start = world
            .store
            .start_run(row.desktop_id, row.command_id, id, at(1_000));
        start.await
    });
    let won: Vec<_> = (0..CALLERS)
        .filter(|caller| answers[*caller].is_ok())
        .collect();
    assert_eq!(won.len(), 1, "{answers:?}");
    let winner = answers.swap_remove(won[0]).unwrap();
    assert_eq!(winner.run.execution().unwrap().id, executions[won[0]]);
    for lost in answers {
        assert_eq!(refusal(lost), Refusal::RunTaken);
    }
    assert_eq!(block_on(world.read(&row, at(1_000))), Some(winner));
}

/// Two callers each cancel, start, complete what never began, and complete the execution.
fn cancel_start_and_complete_agree_on_one_end<S: Store>(
    world: &World<S>,
    workspace: &Workspace,
    round: usize,
) {
    let row = block_on(world.queue(workspace, &format!("one-end-{round}")));
    let execution_id = ExecutionId::from_bytes(world.id());
    let (desktop_id, command_id) = (row.desktop_id, row.command_id);
    let done = completed(execution_id, "1");
    let never = callboard_domain::graph_run::Completion {
        execution_id: None,
        status: callboard_domain::FinalStatus::Cancelled,
        report: callboard_domain::Report::of_error("no longer shared"),
    };
    let store = &world.store;
    let answers: Vec<Result<RunRow, StoreError>> = at_once(async |caller| match caller % 4 {
        0 => store.request_cancel(key(&row), at(2_000)).await,
        1 => {
            store
                .start_run(desktop_id, command_id, execution_id, at(2_000))
                .await
        }
        2 => {
            let stored = store.complete_run(desktop_id, command_id, never.clone(), at(2_000));
            stored.await.map(|(row, _)| row)
        }
        _ => {
            let stored = store.complete_run(desktop_id, command_id, done.clone(), at(2_000));
            stored.await.map(|(row, _)| row)
        }
    });
    let last = block_on(world.read(&row, at(2_000))).unwrap();
    for answer in &answers {
        match answer {
            Ok(row) if row.run.status().is_terminal() => assert_eq!(*row, last, "{answers:?}"),
            Ok(_) | Err(StoreError::Refused(_)) => {}
            Err(StoreError::NameTaken | StoreError::Unavailable(_)) => panic!("{answers:?}"),
        }
    }
    let started = answers.iter().any(|answer| match answer {
        Ok(row) => row.run.execution().is_some(),
        Err(_) => false,
    });
    let status = last.run.status();
    assert_eq!(started, last.run.execution().is_some(), "{answers:?}");
    assert_ne!(status, Status::Queued, "{answers:?}");
    assert!(started || status == Status::Cancelled, "{answers:?}");
}

fn one_of_several_completions_is_stored<S: Store>(
    world: &World<S>,
    workspace: &Workspace,
    round: usize,
) {
    let (row, execution_id) = block_on(world.start(workspace, &format!("one-report-{round}")));
    let mut answers = at_once(async |caller| {
        let completion = completed(execution_id, &caller.to_string());
        let (desktop_id, command_id) = (row.desktop_id, row.command_id);
        let stored = world
            .store
            .complete_run(desktop_id, command_id, completion, at(3_000));
        stored.await
    });
    let won = answers.iter().position(Result::is_ok).expect("a winner");
    let (winner, replayed) = answers.swap_remove(won).unwrap();
    assert!(!replayed);
    for lost in answers {
        assert_eq!(refusal(lost), Refusal::CompletionDiffers);
    }
    let result = winner.run.end().unwrap().report.result.clone();
    assert_eq!(result, Some(won.to_string()));
    assert_eq!(block_on(world.read(&row, at(3_000))), Some(winner));
}

fn a_sync_replaces_a_list_as_a_whole<S: Store>(
    world: &World<S>,
    workspace: &Workspace,
    round: usize,
) {
    let list = |caller: usize| {
        let number = u8::try_from(caller).unwrap();
        let name = format!("round {round} caller {caller}");
        (0..5)
            .map(|id| session(id * 16 + number, &name))
            .collect::<Vec<_>>()
    };
    let (desktop_id, project_id) = (workspace.desktop.id, workspace.project.id);
    at_once(async |caller| {
        let synced = world
            .store
            .sync(desktop_id, project_id, list(caller), at(1))
            .await;
        assert!(synced.unwrap().changed);
        let sessions = world
            .store
            .sessions(workspace.connection.id, project_id, 50)
            .await;
        let sessions = sessions.unwrap().unwrap();
        let names: BTreeSet<_> = sessions.iter().map(|row| &row.session.name).collect();
        assert_eq!(
            (names.len(), sessions.len()),
            (1, 5),
            "one list, and all of it"
        );
    });
}
