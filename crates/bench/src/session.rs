//! A running `callboard up` in a folder of its own, called as a chat calls it.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use callboard_ambient::Entropy;
use chrono::DateTime;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// Longest that the binary may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// The binary at work.
#[derive(Debug)]
pub(crate) struct Session {
    child: Child,
    client: reqwest::Client,
    url: String,
    token: String,
    graph: String,
    binary: PathBuf,
    data: TempDir,
}

/// Milliseconds with a fraction, for differences only.
#[allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures what the clock of ambient rounds"
)]
pub(crate) fn precise_ms() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64() * 1_000.0
}

/// From queued to started, by the hub's own times.
pub(crate) fn pickup_ms(run: &Value) -> anyhow::Result<f64> {
    let time = |name: &str| {
        let text = run[name]
            .as_str()
            .with_context(|| format!("no {name} in {run}"))?;
        Ok::<_, anyhow::Error>(DateTime::parse_from_rfc3339(text)?)
    };
    let wait = (time("started_at")? - time("queued_at")?).num_milliseconds();
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
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let client = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("http://{address}/mcp");
        let token = tokio::time::timeout(PATIENCE, token(data.path()))
            .await
            .context("the binary was not ready in time")?;
        let mut session = Self {
            child,
            client,
            url,
            token,
            graph: String::new(),
            binary: binary.to_owned(),
            data,
        };
        let found = tokio::time::timeout(PATIENCE, session.find_graph());
        session.graph = found.await.context("the Graph was not shared in time")?;
        Ok(session)
    }

    async fn find_graph(&self) -> String {
        loop {
            if let Ok(graph) = self.shared_graph().await {
                return graph;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn shared_graph(&self) -> anyhow::Result<String> {
        let projects = self.call("list_projects", json!({})).await?;
        let project = &projects["projects"][0]["project_id"];
        let shared = self
            .call("list_graph_sessions", json!({"project_id": project}))
            .await?;
        let sessions = shared["sessions"].as_array().context("no list")?;
        let hello = sessions.iter().find(|session| session["slug"] == "hello");
        let id = hello.and_then(|session| session["graph_session_id"].as_str());
        Ok(id.context("hello is not shared")?.to_owned())
    }

    /// Starts a run and gives its ticket.
    pub(crate) async fn start_run(&self, entropy: &Entropy) -> anyhow::Result<String> {
        let key = entropy.secret("bench-");
        let arguments = json!({"graph_session_id": self.graph, "idempotency_key": key});
        let ticket = self.call("run_graph_session", arguments).await?;
        Ok(ticket["command_id"]
            .as_str()
            .context("no ticket")?
            .to_owned())
    }

    /// The run once it is over; it must have completed.
    pub(crate) async fn finished(&self, command_id: &str) -> anyhow::Result<Value> {
        let mut run = self
            .call("get_graph_run", json!({"command_id": command_id}))
            .await?;
        while run.get("finished_at").is_none() {
            let arguments = json!({
                "command_id": command_id, "wait_seconds": 40, "seen_status": run["status"],
            });
            run = self.call("get_graph_run", arguments).await?;
        }
        anyhow::ensure!(run["status"] == "completed", "the run ended: {run}");
        Ok(run)
    }

    /// Links a chat and gives its id.
    pub(crate) async fn link_chat(&self, label: &str, entropy: &Entropy) -> anyhow::Result<String> {
        let projects = self.call("list_projects", json!({})).await?;
        let arguments = json!({
            "project_id": projects["projects"][0]["project_id"],
            "label": label,
            "idempotency_key": entropy.secret("bench-"),
        });
        let link = self.call("link_current_chat", arguments).await?;
        let id = link["chat_link_id"].as_str();
        Ok(id.context("no link")?.to_owned())
    }

    /// Assigns a task as its owner does, and gives its id.
    pub(crate) async fn assign(&self, chats: &[String], text: &str) -> anyhow::Result<String> {
        let mut command = Command::new(&self.binary);
        command.arg("--json").arg("--data").arg(self.data.path());
        command.args(["task", "assign", &chats.join(","), text]);
        let ended = command.output().await?;
        let told: Value = serde_json::from_slice(&ended.stdout)?;
        let id = told["task"]["task_id"].as_str();
        Ok(id
            .with_context(|| format!("no task was assigned: {told}"))?
            .to_owned())
    }

    /// Calls a tool and gives its answer; it must be a good one.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> anyhow::Result<Value> {
        let result = self.result(tool, arguments).await?;
        anyhow::ensure!(
            result["isError"] == json!(false),
            "{tool} answered {result}"
        );
        Ok(result["structuredContent"].clone())
    }

    /// Calls a tool over a kept-alive connection, as the newest revision does.
    pub(crate) async fn result(&self, tool: &str, arguments: Value) -> anyhow::Result<Value> {
        let version = "2026-07-28";
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
            }},
        });
        let answer = self
            .client
            .post(&self.url)
            .bearer_auth(&self.token)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", version)
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .json(&message)
            .send()
            .await?;
        let mut answer: Value = answer.json().await?;
        Ok(answer["result"].take())
    }

    /// Ends the binary as a person would.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let id = self.child.id().context("the binary has ended by itself")?;
        kill(Pid::from_raw(i32::try_from(id)?), Signal::SIGTERM)?;
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = ended.context("the binary did not stop in time")??;
        anyhow::ensure!(status.success(), "the binary ended with {status}");
        Ok(())
    }
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

fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
