//! A running `callboard up` in a folder of its own, called as a chat calls it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use callboard_ambient::Entropy;
use chrono::DateTime;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::load::{Caller, Endpoint};
use crate::process;
use crate::served::free_address;

/// Hub and desktop at work.
#[derive(Debug)]
pub(crate) struct Session {
    child: Child,
    pub(crate) caller: Caller,
    graph: String,
    _data: TempDir,
}

/// Between two of the hub's own times of a run.
pub(crate) fn between_ms(run: &Value, from: &str, to: &str) -> anyhow::Result<f64> {
    let time = |name: &str| {
        let text = run[name]
            .as_str()
            .with_context(|| format!("no {name} in {run}"))?;
        Ok::<_, anyhow::Error>(DateTime::parse_from_rfc3339(text)?)
    };
    let wait = (time(to)? - time(from)?).num_milliseconds();
    Ok(f64::from(i32::try_from(wait)?))
}

impl Session {
    /// Starts the binary and finds its Graph `hello`.
    pub(crate) async fn start(binary: &Path, poll_only: bool) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let address = free_address()?;
        let mut command = Command::new(binary);
        command.arg("up").arg("--data").arg(data.path());
        command.arg("--listen").arg(address.to_string());
        if poll_only {
            command.arg("--poll-only");
        }
        let child = process::start(command.stdout(Stdio::null()), binary)?;
        let token = tokio::time::timeout(process::PATIENCE, token(data.path())).await;
        let endpoint = Endpoint {
            address,
            token: Some(token.context("the binary was not ready in time")?),
        };
        let found = tokio::time::timeout(process::PATIENCE, find_graph(&endpoint)).await;
        let (caller, graph) = found.context("the Graph was not shared in time")?;
        Ok(Self {
            child,
            caller,
            graph,
            _data: data,
        })
    }

    /// Starts a run and gives its ticket.
    pub(crate) async fn start_run(&mut self, entropy: &Entropy) -> anyhow::Result<String> {
        let key = entropy.secret("bench-");
        let arguments = json!({"graph_session_id": self.graph, "idempotency_key": key});
        let ticket = self.caller.tool("run_graph_session", arguments).await?;
        Ok(ticket["command_id"]
            .as_str()
            .context("no ticket")?
            .to_owned())
    }

    /// The run once it is over; it must have completed.
    pub(crate) async fn finished(&mut self, command_id: &str) -> anyhow::Result<Value> {
        let arguments = json!({"command_id": command_id});
        let mut run = self.caller.tool("get_graph_run", arguments).await?;
        while run.get("finished_at").is_none() {
            let arguments = json!({
                "command_id": command_id, "wait_seconds": 40, "seen_status": run["status"],
            });
            run = self.caller.tool("get_graph_run", arguments).await?;
        }
        anyhow::ensure!(run["status"] == "completed", "the run ended: {run}");
        Ok(run)
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        process::stop(self.child).await
    }
}

async fn find_graph(endpoint: &Endpoint) -> (Caller, String) {
    loop {
        if let Ok(found) = shared_graph(endpoint).await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn shared_graph(endpoint: &Endpoint) -> anyhow::Result<(Caller, String)> {
    let mut caller = Caller::connect(endpoint).await?;
    let projects = caller.tool("list_projects", json!({})).await?;
    let project = json!({"project_id": projects["projects"][0]["project_id"]});
    let shared = caller.tool("list_graph_sessions", project).await?;
    let sessions = shared["sessions"].as_array().context("no list")?;
    let hello = sessions.iter().find(|session| session["slug"] == "hello");
    let id = hello.and_then(|session| session["graph_session_id"].as_str());
    let id = id.context("hello is not shared")?.to_owned();
    Ok((caller, id))
}

async fn token(data: &Path) -> String {
    loop {
        let text = std::fs::read_to_string(data.join("connection.json")).unwrap_or_default();
        let connection: Value = serde_json::from_str(&text).unwrap_or_default();
        if let Some(token) = connection["token"].as_str() {
            return token.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
