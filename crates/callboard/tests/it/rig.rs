//! A hub, a desktop and a connected agent in three places, each a process of the binary.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use callboard_desktop::Step;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::model::Model;
use crate::network::Network;
use crate::process::{Outcome, Process, callboard, run, until};

/// The project that everything is shared with.
pub(crate) const HOME: &str = "Home";
/// A Graph that asks the model once: how often it ran is how often the model was asked.
pub(crate) const ASK: &str = "phase('asking');\nreturn { said: await agent('How are you?') };\n";

/// The source of a Graph.
pub(crate) fn graph(name: &str, body: &str) -> String {
    format!("export const meta = {{ name: '{name}', description: 'A test.' }};\n{body}")
}

/// A port that nothing listens on. It is below those that the system gives to clients, so it
/// stays free while its server is dead.
pub(crate) fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    loop {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (std::process::id().wrapping_mul(31) + tried) % 20_000;
        let port = u16::try_from(port).unwrap();
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Everything that a test plays on.
#[derive(Debug)]
pub(crate) struct Rig {
    folder: TempDir,
    pub(crate) port: u16,
    pub(crate) model: Model,
    pub(crate) token: String,
    pub(crate) hub: Option<Process>,
    pub(crate) desktop: Option<Process>,
    /// Where the desktop finds the hub, if not directly.
    pub(crate) network: Option<Network>,
}

impl Rig {
    /// A hub that serves, with one project, one desktop and one connected agent.
    pub(crate) async fn with_hub() -> Self {
        let mut rig = Self {
            folder: tempfile::tempdir().unwrap(),
            port: 0,
            model: Model::start().await,
            token: String::new(),
            hub: None,
            desktop: None,
            network: None,
        };
        rig.hub(&["project", "create", HOME]).await.ok();
        let device = rig.hub(&["desktop", "create", "laptop"]).await.ok();
        let agent = ["token", "create", "--name", "Claude", "--project", HOME];
        rig.token = rig.hub(&agent).await.ok().stdout.trim().to_owned();
        std::fs::write(rig.device_token(), device.stdout).unwrap();
        std::fs::create_dir(rig.desktop_data()).unwrap();
        let config = rig.desktop_data().join("config.toml");
        std::fs::write(config, rig.model.config()).unwrap();
        loop {
            rig.port = free_port();
            let mut hub = rig.spawn_hub();
            if hub.says_or_ends("/mcp").await {
                rig.hub = Some(hub);
                return rig;
            }
        }
    }

    /// The same with a desktop that works for the project.
    pub(crate) async fn with_desktop() -> Self {
        let mut rig = Self::with_hub().await;
        rig.start_desktop().await;
        rig.desk(&["project", "enable", HOME]).await.ok();
        rig
    }

    /// The same with one Graph, `ask`, that is shared.
    pub(crate) async fn with_graph() -> Self {
        let rig = Self::with_desktop().await;
        rig.share("ask", ASK, HOME).await;
        rig
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn hub_data(&self) -> PathBuf {
        self.folder().join("hub-machine")
    }

    pub(crate) fn desktop_data(&self) -> PathBuf {
        self.folder().join("desktop-machine")
    }

    pub(crate) fn device_token(&self) -> PathBuf {
        self.folder().join("device-token")
    }

    /// The command that serves the hub.
    pub(crate) fn hub_command(&self) -> Command {
        let mut command = callboard(&self.hub_data());
        let listen = format!("127.0.0.1:{}", self.port);
        command.args(["hub", "serve", "--listen", &listen]);
        command
    }

    fn spawn_hub(&self) -> Process {
        Process::start(self.hub_command(), self.folder())
    }

    /// Starts the hub again, on its data and its port.
    pub(crate) async fn start_hub(&mut self) {
        let mut hub = self.spawn_hub();
        hub.says("/mcp").await;
        self.hub = Some(hub);
    }

    pub(crate) async fn kill_hub(&mut self) {
        self.hub.take().unwrap().kill().await;
    }

    /// The command that runs the desktop.
    pub(crate) fn desktop_command(&self) -> Command {
        let mut command = callboard(&self.desktop_data());
        let port = self.network.as_ref().map_or(self.port, |it| it.port);
        command
            .args(["desktop", "run", "--hub"])
            .arg(format!("http://127.0.0.1:{port}"))
            .arg("--token-file")
            .arg(self.device_token());
        command
    }

    /// Its events go to stdout as JSON lines.
    fn spawn_desktop(&self, halt_before: Option<Step>) -> Process {
        let mut command = self.desktop_command();
        command.arg("--json");
        if let Some(step) = halt_before {
            command.env("CALLBOARD_HALT_BEFORE", step.as_str());
        }
        Process::start(command, self.folder())
    }

    /// Starts the desktop and waits until it knows its hub.
    pub(crate) async fn start_desktop(&mut self) {
        let mut desktop = self.spawn_desktop(None);
        desktop.says(r#""reachable":true"#).await;
        until("the desktop knows its projects", async || {
            let projects = self.desk(&["project", "list", "--json"]).await.ok().json();
            (projects[0]["name"] == HOME).then_some(())
        })
        .await;
        self.desktop = Some(desktop);
    }

    /// Starts the desktop while its hub is away.
    pub(crate) async fn start_desktop_alone(&mut self) {
        let mut desktop = self.spawn_desktop(None);
        desktop.says(r#""reachable":false"#).await;
        self.desktop = Some(desktop);
    }

    /// The hub is back: makes the desktop look at once, which it does by itself within 20 s.
    pub(crate) async fn start_hub_and_look(&mut self) {
        self.start_hub().await;
        self.desk(&["project", "enable", HOME]).await.ok();
    }

    /// Starts a desktop that halts before a step, and forgets how it went on.
    pub(crate) fn start_desktop_halting(&mut self, step: Step) {
        self.desktop = Some(self.spawn_desktop(Some(step)));
    }

    pub(crate) async fn kill_desktop(&mut self) {
        self.desktop.take().unwrap().kill().await;
    }

    /// A command on the hub's machine.
    pub(crate) async fn hub(&self, arguments: &[&str]) -> Outcome {
        let mut command = callboard(&self.hub_data());
        command.arg("hub").args(arguments);
        run(command).await
    }

    /// The same for the owner's commands about chats and tasks.
    pub(crate) async fn owner(&self, arguments: &[&str]) -> Outcome {
        let mut command = callboard(&self.hub_data());
        command.arg("--json").args(arguments);
        run(command).await
    }

    /// A command on the desktop's machine.
    pub(crate) async fn desk(&self, arguments: &[&str]) -> Outcome {
        let mut command = callboard(&self.desktop_data());
        command.args(arguments);
        run(command).await
    }

    /// A command of the connected agent, who has a machine of his own.
    pub(crate) fn client_command(&self, arguments: &[&str]) -> Command {
        let mut command = callboard(&self.folder().join("chat-machine"));
        command
            .env(
                "CALLBOARD_URL",
                format!("http://127.0.0.1:{}/mcp", self.port),
            )
            .env("CALLBOARD_TOKEN", &self.token)
            .arg("client")
            .args(arguments);
        command
    }

    pub(crate) async fn client(&self, arguments: &[&str]) -> Outcome {
        run(self.client_command(arguments)).await
    }

    /// Adds a Graph and waits until the agent sees it.
    pub(crate) async fn share(&self, slug: &str, body: &str, project: &str) {
        let file = self.folder().join(format!("{slug}.js"));
        std::fs::write(&file, graph(slug, body)).unwrap();
        let file = file.to_str().unwrap();
        self.desk(&["graph", "add", file, "--slug", slug])
            .await
            .ok();
        self.desk(&["graph", "share", slug, "--project", project])
            .await
            .ok();
        until("the Graph is listed", async || {
            self.listed().await.contains(&slug.to_owned()).then_some(())
        })
        .await;
    }

    /// The slugs that the agent sees.
    pub(crate) async fn listed(&self) -> Vec<String> {
        let found = self.client(&["sessions", "--json"]).await.ok().json();
        let projects = found.as_array().unwrap().iter();
        let sessions = projects.flat_map(|project| project["sessions"].as_array().unwrap());
        let slugs = sessions.map(|session| session["slug"].as_str().unwrap().to_owned());
        slugs.collect()
    }

    /// Starts a run and gives its ticket.
    pub(crate) async fn queue(&self, slug: &str) -> String {
        let started = self.client(&["run", slug, "--json"]).await.ok().json();
        let ticket = &started["ticket"];
        assert_eq!(ticket["status"], "queued");
        ticket["command_id"].as_str().unwrap().to_owned()
    }

    /// How a run stands.
    pub(crate) async fn read(&self, ticket: &str) -> Value {
        self.client(&["get", ticket, "--json"]).await.ok().json()
    }

    /// Waits for the end of a run, and checks how it ended.
    pub(crate) async fn ends(&self, ticket: &str, status: &str, error: Option<&str>) -> Value {
        let run = until("the run is over", async || {
            let run = self.read(ticket).await;
            run["finished_at"].is_string().then_some(run)
        })
        .await;
        assert_eq!(run["status"], status, "{run:#}");
        assert_eq!(run["error"].as_str(), error, "{run:#}");
        run
    }

    /// A run of `ask` ended with the model's answer.
    pub(crate) async fn completes(&self, ticket: &str) {
        let run = self.ends(ticket, "completed", None).await;
        assert_eq!(run["result"]["said"], "well", "{run:#}");
    }

    /// What the desktop's history says about a command, one entry an execution.
    pub(crate) async fn history(&self, ticket: &str) -> Vec<Value> {
        let runs = self.desk(&["runs", "list", "--json"]).await.ok().json();
        let runs = runs.as_array().unwrap().iter();
        let of_command = runs.filter(|run| run["command_id"] == ticket);
        of_command.cloned().collect()
    }

    pub(crate) async fn status(&self) -> Value {
        self.desk(&["desktop", "status", "--json"])
            .await
            .ok()
            .json()
    }

    /// Everything is delivered, and nothing was refused.
    pub(crate) async fn outbox_empties(&self) {
        until("the outbox is empty", async || {
            let status = self.status().await;
            assert_eq!(status["outbox_parked"], 0, "{status:#}");
            (status["outbox_waiting"] == 0).then_some(())
        })
        .await;
    }

    /// A further run goes its normal way, so nothing was left blocked.
    pub(crate) async fn works(&self) {
        self.model.release();
        let asked = self.model.asked();
        let ran = self.client(&["run", "ask", "--wait"]).await.ok();
        assert!(ran.stdout.contains("well"), "{ran:#?}");
        assert_eq!(self.model.asked(), asked + 1);
        self.outbox_empties().await;
    }
}
