//! `callboard up` and `callboard demo`, as a newcomer meets them.

use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::model::Model;
use crate::process::{Outcome, Process, callboard, run};
use crate::rig::{ASK, HOME, free_port, graph};

/// A running `callboard up`.
#[derive(Debug)]
pub(crate) struct Up {
    folder: TempDir,
    port: u16,
    model: Model,
    process: Option<Process>,
}

impl Up {
    pub(crate) async fn start() -> Self {
        let mut up = Self {
            folder: tempfile::tempdir().unwrap(),
            port: 0,
            model: Model::start().await,
            process: None,
        };
        let mut private = std::fs::DirBuilder::new();
        private.mode(0o700).create(up.data()).unwrap();
        let config = up.data().join("config.toml");
        std::fs::write(&config, up.model.config()).unwrap();
        let owners_alone = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&config, owners_alone).unwrap();
        while up.process.is_none() {
            up.port = free_port();
            up.launch().await;
        }
        up
    }

    /// Starts it on its data and its port; nothing runs when the port is taken.
    async fn launch(&mut self) {
        let mut command = callboard(&self.data());
        command.args(["up", "--listen", &format!("127.0.0.1:{}", self.port)]);
        let mut process = Process::start(command, self.folder.path());
        if process.says_or_ends("Or yourself:").await {
            self.process = Some(process);
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn process(&self) -> &Process {
        self.process.as_ref().unwrap()
    }

    /// A command beside it, which finds it by its data folder alone.
    async fn beside(&self, arguments: &[&str]) -> Outcome {
        let mut command = callboard(&self.data());
        command.args(arguments);
        run(command).await
    }

    async fn add(&self, slug: &str, body: &str) {
        let file = self.folder.path().join(format!("{slug}.js"));
        std::fs::write(&file, graph(slug, body)).unwrap();
        self.beside(&["graph", "add", file.to_str().unwrap()])
            .await
            .ok();
        self.beside(&["graph", "share", slug, "--project", HOME])
            .await
            .ok();
        crate::process::until("the Graph is listed", async || {
            let listed = self.beside(&["client", "sessions"]).await.ok();
            listed.stdout.contains(slug).then_some(())
        })
        .await;
    }

    async fn queue(&self, slug: &str) -> String {
        let started = self
            .beside(&["client", "run", slug, "--json"])
            .await
            .ok()
            .json();
        started["ticket"]["command_id"].as_str().unwrap().to_owned()
    }

    async fn waits(&self, ticket: &str) -> (Outcome, Value) {
        let waited = self.beside(&["client", "get", ticket, "--wait"]).await;
        let run = self
            .beside(&["client", "get", ticket, "--json"])
            .await
            .ok()
            .json();
        (waited, run)
    }

    /// A run of an example Graph, with what the first start prepared for it.
    async fn works(&self) {
        let arguments = format!(
            r#"{{"folder":"{}"}}"#,
            self.data().join("welcome").display()
        );
        let run = [
            "client",
            "run",
            "folder-report",
            "--args",
            &arguments,
            "--wait",
        ];
        let ran = self.beside(&run).await.ok();
        assert_eq!(ran.json()["files"], 1);
    }
}

fn connect_line(said: &str) -> &str {
    let line = said.lines().find(|line| line.contains("claude mcp add"));
    line.unwrap_or_else(|| panic!("no connect line: {said}"))
}

fn read_json(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[tokio::test]
async fn the_first_start_says_how_to_connect_and_the_second_one_says_the_same() {
    let mut up = Up::start().await;
    let first = up.process().stdout();
    let line = connect_line(&first).to_owned();
    let noted = read_json(&up.data().join("connection.json"));
    let (url, token) = (
        noted["url"].as_str().unwrap(),
        noted["token"].as_str().unwrap(),
    );
    assert_eq!(url, format!("http://127.0.0.1:{}/mcp", up.port));
    let expected =
        format!("--transport http callboard {url} --header \"Authorization: Bearer {token}\"");
    assert!(line.contains(&expected), "{line}");
    up.works().await;
    up.process.take().unwrap().stop().await;

    up.launch().await;
    let second = up.process().stdout();
    assert_eq!(connect_line(&second), line);
    assert_eq!(read_json(&up.data().join("connection.json")), noted);
    up.works().await;
    let graphs = up.beside(&["graph", "list", "--json"]).await.ok().json();
    assert_eq!(
        graphs.as_array().unwrap().len(),
        3,
        "the examples are there once"
    );
}

#[tokio::test]
async fn sigterm_lets_a_running_run_finish_and_ends_with_exit_0() {
    let mut up = Up::start().await;
    up.add("ask", ASK).await;
    up.model.hold();
    let ticket = up.queue("ask").await;
    up.model.is_asked(1).await;
    let mut process = up.process.take().unwrap();
    process.signal(Signal::SIGTERM);
    process
        .says("stopping: running work has 30 s to finish")
        .await;
    up.model.release();
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.said());
    assert!(process.said().contains("completed"), "{}", process.said());
    up.launch().await;
    let (waited, run) = up.waits(&ticket).await;
    waited.ok();
    assert_eq!(run["result"]["said"], "well");
    assert_eq!(up.model.asked(), 1);
}

#[tokio::test]
async fn killed_with_a_run_in_progress_it_comes_back_fails_that_run_and_does_the_next() {
    let mut up = Up::start().await;
    up.add("ask", ASK).await;
    up.model.hold();
    let ticket = up.queue("ask").await;
    let behind = up.queue("ask").await;
    up.model.is_asked(1).await;
    up.process.take().unwrap().kill().await;
    up.model.release();
    up.launch().await;
    let (waited, run) = up.waits(&ticket).await;
    waited.refused(1, "failed: desktop restarted", "");
    assert_eq!(run["status"], "failed");
    let (waited, run) = up.waits(&behind).await;
    waited.ok();
    assert_eq!(run["result"]["said"], "well");
    assert_eq!(up.model.asked(), 2);
    up.works().await;
}

#[tokio::test]
async fn a_second_signal_stops_at_once_and_the_cut_off_run_says_so() {
    let mut up = Up::start().await;
    up.add("ask", ASK).await;
    up.model.hold();
    let ticket = up.queue("ask").await;
    up.model.is_asked(1).await;
    let mut process = up.process.take().unwrap();
    process.signal(Signal::SIGINT);
    process.says("(again stops now)").await;
    process.signal(Signal::SIGINT);
    assert_eq!(process.ended().await.code(), Some(1), "{}", process.said());
    assert!(
        process.said().contains("error: stopped at once"),
        "{}",
        process.said()
    );
    up.model.release();
    up.launch().await;
    let (waited, _) = up.waits(&ticket).await;
    waited.refused(1, "failed: desktop restarted", "");
    up.works().await;
    assert_eq!(up.model.asked(), 1);
}

#[tokio::test]
async fn a_token_that_the_owner_revoked_is_replaced_at_the_next_start() {
    let mut up = Up::start().await;
    up.beside(&["hub", "token", "revoke", "chat"]).await.ok();
    let refused = up.beside(&["client", "sessions"]).await;
    refused.refused(1, "does not know this token", "hub token list");
    up.process.take().unwrap().stop().await;
    up.launch().await;
    up.works().await;
}

#[tokio::test]
async fn the_demo_holds_all_its_twelve_steps() {
    let elsewhere = tempfile::tempdir().unwrap();
    let mut demo = callboard(&elsewhere.path().join("data"));
    demo.args(["demo", "--json"])
        .env("TMPDIR", elsewhere.path());
    let shown = run(demo).await.ok();
    assert_eq!(shown.json()["held"], 12);
    shown.no_panic();
    let left = std::fs::read_dir(elsewhere.path()).unwrap().count();
    assert_eq!(left, 0, "it leaves nothing behind");
}
