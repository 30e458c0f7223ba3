//! The hub's memory, and what 10,000 desktops cost it.

use std::time::Duration;

use callboard_ambient::Entropy;
use callboard_domain::Timestamp;
use callboard_wire::WORKER_HEADER;
use futures::future::try_join_all;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::load::{Caller, Endpoint, now};
use crate::served::{Filling, Served};
use crate::{Goal, Options, Row, process};

/// The published scale of the question.
const DESKTOPS: usize = 10_000;
/// Connections that carry the polls of all desktops.
const CONNECTIONS: usize = 16;
/// Time between two polls of a desktop.
const POLL_SECONDS: usize = 20;
/// Files that the hub and the benchmark need beside the held calls.
const SPARE_FILES: u64 = 500;
/// How long the hub settles before its idle memory is read.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let held = more_files()?.min(options.count(DESKTOPS, 100));
    let filling = Filling {
        desktops: options.count(DESKTOPS, 100),
        ..Filling::default()
    };
    let served = Served::start(&options.binary, filling).await?;
    tokio::time::sleep(SETTLE).await;
    let idle = process::resident_mib(&served.child)?;
    let mut rows = vec![Row::ours("hub memory, idle", "MiB", idle).goal(Goal::AtMost(20.0))];
    let workers: Vec<_> = served.device_tokens.iter().map(|_| worker()).collect();
    let desktops: Vec<_> = served.device_tokens.iter().zip(&workers).collect();
    // The first call of each binds it to its data folder, which is a write; the others write nothing.
    poll(&served, &desktops, None).await?;
    let began = now();
    let used = process::processor_seconds(&served.child)?;
    poll(&served, &desktops, Some(desktops.len() / POLL_SECONDS)).await?;
    let used = process::processor_seconds(&served.child)? - used;
    let share = 100.0 * used / began.elapsed().as_secs_f64();
    let polling = format!(
        "processor, {} desktops polling every {POLL_SECONDS} s",
        desktops.len()
    );
    rows.push(Row::ours(polling, "% of a core", share).goal(Goal::AtMost(5.0)));
    let calls = hold(&served, &desktops[..held.min(desktops.len())]).await?;
    tokio::time::sleep(SETTLE).await;
    let holding = process::resident_mib(&served.child)?;
    let name = format!("hub memory, {} held wake-up calls", calls.len());
    rows.push(Row::ours(name, "MiB", holding).goal(Goal::AtMost(250.0)));
    drop(calls);
    served.stop().await?;
    Ok(rows)
}

fn worker() -> String {
    let uuid = Entropy::system().uuid_v7(Timestamp::from_millis(0));
    callboard_domain::WorkerId::from_bytes(uuid).to_string()
}

/// Raises the number of files that this process and its children may open; gives how many calls may
/// be held.
fn more_files() -> anyhow::Result<usize> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(usize::try_from(hard.saturating_sub(SPARE_FILES)).unwrap_or(usize::MAX))
}

/// One poll of every desktop; `a_second` of them, or as fast as they go.
async fn poll(
    served: &Served,
    desktops: &[(&String, &String)],
    a_second: Option<usize>,
) -> anyhow::Result<()> {
    let began = now();
    let body = json!({"project_id": served.project_id, "sessions": []}).to_string();
    let path = "/api/v1/external-assistants/graph-relays/sync";
    let connection = async |number: usize| {
        let endpoint = Endpoint {
            address: served.endpoint.address,
            token: None,
        };
        let mut caller = Caller::connect(&endpoint).await?;
        let mine = desktops
            .iter()
            .enumerate()
            .skip(number)
            .step_by(CONNECTIONS);
        for (turn, (token, worker)) in mine {
            if let Some(a_second) = a_second {
                let due = Duration::from_micros((turn * 1_000_000 / a_second.max(1)) as u64);
                tokio::time::sleep(due.saturating_sub(began.elapsed())).await;
            }
            let bearer = format!("Bearer {token}");
            let headers = [
                ("authorization", bearer.as_str()),
                (WORKER_HEADER, worker.as_str()),
            ];
            let (status, body) = caller.post(path, &headers, body.clone()).await?;
            anyhow::ensure!(status.is_success(), "a poll was answered {status} {body:?}");
        }
        Ok::<_, anyhow::Error>(())
    };
    try_join_all((0..CONNECTIONS).map(connection)).await?;
    Ok(())
}

/// Begins the wake-up call of each desktop and holds them all.
async fn hold(
    served: &Served,
    desktops: &[(&String, &String)],
) -> anyhow::Result<tokio::task::JoinSet<()>> {
    let mut calls = tokio::task::JoinSet::new();
    for (token, worker) in desktops {
        let endpoint = Endpoint {
            address: served.endpoint.address,
            token: Some((*token).clone()),
        };
        let mut caller = Caller::connect(&endpoint).await?;
        let synced = caller
            .post(
                "/api/v1/external-assistants/graph-relays/sync",
                &[(WORKER_HEADER, worker)],
                json!({"project_id": served.project_id, "sessions": []}).to_string(),
            )
            .await?;
        let synced: Value = serde_json::from_slice(&synced.1)?;
        let watched = json!({"project_id": served.project_id, "revision": synced["revision"]});
        let (body, worker) = (
            json!({"projects": [watched]}).to_string(),
            (*worker).clone(),
        );
        calls.spawn(async move {
            let headers = [(WORKER_HEADER, worker.as_str())];
            let path = "/api/v1/external-assistants/graph-relays/wait";
            while caller.post(path, &headers, body.clone()).await.is_ok() {}
        });
    }
    Ok(calls)
}
