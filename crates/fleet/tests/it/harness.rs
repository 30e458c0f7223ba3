//! The fleet under test and how to run bodies in it.

use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use callboard_agents::{Agents, ScriptedProvider, Tools};
use callboard_ambient::Clock;
use callboard_fleet::{Event, Finished, Fleet, FleetStatus, Launcher, Limits, RunRequest};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Runs a test's future with everything enabled, and never longer than a minute.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), future)
            .await
            .expect("the test ends")
    })
}

pub(crate) fn launcher() -> Launcher {
    Launcher {
        program: std::env::current_exe().unwrap(),
        arguments: vec![crate::CHILD.into()],
    }
}

pub(crate) fn fleet_with(agents: Agents, tools: Tools) -> Fleet {
    Fleet::new(launcher(), agents, tools, Clock::system())
}

/// A fleet whose agents echo and which has no tools.
pub(crate) fn fleet() -> Fleet {
    fleet_with(
        Agents::scripted(ScriptedProvider::echo()),
        Tools::new(Vec::new()),
    )
}

/// A whole script around a body; the body begins on line 2.
pub(crate) fn script(body: &str) -> String {
    format!("export const meta = {{ name: 'test', description: 'a test' }};\n{body}\n")
}

pub(crate) fn request(script: String) -> RunRequest {
    RunRequest {
        run_id: "run-1".to_owned(),
        slug: "test".to_owned(),
        script,
        arguments: "{}".to_owned(),
        limits: Limits::default(),
    }
}

/// Runs a body and returns its end.
pub(crate) async fn run(fleet: &Fleet, body: &str) -> Finished {
    run_request(fleet, request(script(body))).await.0
}

/// Runs a request and returns its end and its events.
pub(crate) async fn run_request(fleet: &Fleet, request: RunRequest) -> (Finished, Vec<Event>) {
    let (events, mut seen) = mpsc::unbounded_channel();
    let finished = fleet.run(request, CancellationToken::new(), events).await;
    let mut all = Vec::new();
    while let Ok(event) = seen.try_recv() {
        all.push(event);
    }
    (finished, all)
}

/// The result of a body that must complete.
pub(crate) async fn result(fleet: &Fleet, body: &str) -> String {
    let finished = run(fleet, body).await;
    assert_eq!(
        finished.status,
        FleetStatus::Completed,
        "{body}\n{finished:?}"
    );
    finished.result.expect("a completed run has a result")
}

/// Waits for all, in order.
pub(crate) async fn join<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut pending: Vec<_> = futures.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = pending.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, slot) in pending.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *slot = Some(value);
            }
        }
        if done.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}
