//! How fast the simulator is, by its own commands.

use anyhow::Context as _;
use serde_json::Value;
use tokio::process::Command;

use crate::load::now;
use crate::{Goal, Options, Row};

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let began = now();
    let tables = command(options, &["tables"]).await?;
    let seconds = began.elapsed().as_secs_f64();
    anyhow::ensure!(tables["missed"] == 0, "a published figure is missed");
    let seeds = options.count(5_000, 500).to_string();
    let found = command(options, &["fuzz", "--seeds", &seeds]).await?;
    let rate = found["histories_per_second"].as_f64().context("no rate")?;
    Ok(vec![
        Row::ours("simulator: all published tables", "s", seconds).goal(Goal::AtMost(2.0)),
        Row::ours("simulator: histories a second", "1/s", rate).goal(Goal::AtLeast(1_000.0)),
        figure(
            &tables,
            "poll.wait.calls",
            "an agent's calls a run, defaults",
            4.0,
        )?,
        figure(
            &tables,
            "poll.wait.late",
            "noticed late, defaults, seconds",
            0.3,
        )?,
    ])
}

fn figure(tables: &Value, key: &str, name: &str, most: f64) -> anyhow::Result<Row> {
    let figures = tables["figures"].as_array().context("no figures")?;
    let found = figures.iter().find(|figure| figure["key"] == key);
    let found = found.and_then(|figure| figure["defaults"].as_f64());
    let found = found.with_context(|| format!("no figure {key}"))?;
    Ok(Row::ours(name, "", found).goal(Goal::AtMost(most)))
}

async fn command(options: &Options, arguments: &[&str]) -> anyhow::Result<Value> {
    let mut command = Command::new(&options.binary);
    command.args(["--json", "sim"]).args(arguments);
    let ended = command.output().await?;
    let told = serde_json::from_slice(&ended.stdout);
    told.with_context(|| format!("sim {arguments:?} ended with {}", ended.status))
}
