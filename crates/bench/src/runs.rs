//! A run from its start call to its result, through hub and desktop.

use std::time::Duration;

use callboard_ambient::Entropy;
use serde_json::json;

use crate::load::{Latencies, now};
use crate::session::{Session, between_ms};
use crate::{Goal, Options, Row, disk};

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let entropy = Entropy::system();
    let mut session = Session::start(&options.binary, false).await?;
    let new = Latencies::new;
    let (mut pickup, mut start, mut status, mut whole, mut work) =
        (new()?, new()?, new()?, new()?, new()?);
    for _ in 0..options.count(300, 30) {
        let began = now();
        let command_id = session.start_run(&entropy).await?;
        start.since(began);
        let run = session.finished(&command_id).await?;
        whole.since(began);
        pickup.add_ms(between_ms(&run, "queued_at", "started_at")?);
        work.add_ms(between_ms(&run, "started_at", "finished_at")?);
        let asked = now();
        let arguments = json!({"command_id": command_id});
        session.caller.tool("get_graph_run", arguments).await?;
        status.since(asked);
    }
    session.stop().await?;
    let disk = disk::fdatasync()?.ms(0.5);
    let p50 =
        |name: &str, times: &Latencies| Row::ours(format!("{name}, p50"), "ms", times.ms(0.5));
    let mut rows = vec![
        p50("start call over MCP", &start).goal(Goal::AtMost(9.0)),
        p50("status call over MCP", &status).goal(Goal::AtMost(0.9)),
        // 4 × fdatasync of this minute + 3 ms.
        p50("pickup, queued to started", &pickup).goal(Goal::AtMost(4.0 * disk + 3.0)),
        Row::ours("pickup, queued to started, p99", "ms", pickup.ms(0.99)),
        p50("one Graph, started to finished", &work),
        p50("one Graph, start call to result", &whole),
    ];
    let mut session = Session::start(&options.binary, true).await?;
    let mut polled = new()?;
    for _ in 0..options.count(12, 2) {
        // A random phase: the published tables assume one.
        tokio::time::sleep(Duration::from_millis(entropy.below(20_000))).await;
        let command_id = session.start_run(&entropy).await?;
        let run = session.finished(&command_id).await?;
        polled.add_ms(between_ms(&run, "queued_at", "started_at")?);
    }
    session.stop().await?;
    rows.push(p50("pickup with --poll-only", &polled));
    Ok(rows)
}
