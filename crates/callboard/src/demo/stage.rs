//! Everything that the demo plays on: a hub in this process, a desktop in its own, a chat, and the
//! network between them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use callboard_ambient::Clock;
use callboard_desktop::control::{Request, Response};
use callboard_domain::Scopes;
use callboard_wire::tools::{get_graph_run, list_graph_sessions, list_projects, run_graph_session};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::folder;
use super::link::Link;
use crate::client::Chat;
use crate::desktop::{ask, connect};
use crate::failure::Failure;
use crate::hub::{self, HubConfig};
use crate::paths;

/// A Graph that lasts until somebody stops it.
const SLOW: &str = "export const meta = { name: 'slow', description: 'Waits for ten minutes.' };\n\
                    phase('waiting');\nawait sleep(600000);\nreturn 'nobody stopped me';\n";
/// The lease of the demo's hub: a step waits for its end, and the others must be done before it.
const LEASE_SECONDS: u64 = 3;
/// How long to wait between two looks at something that has no event.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long a desktop may take to start.
const DESKTOP_START_MAX: Duration = Duration::from_secs(30);

/// The stage.
#[derive(Debug)]
pub(super) struct Stage {
    temporary: TempDir,
    data: PathBuf,
    link: Link,
    link_address: SocketAddr,
    chat: Chat,
    second_chat: Chat,
    desktop: Option<Child>,
    shutdown: CancellationToken,
}

/// Wall time, for durations shown to people.
pub(super) fn now_ms() -> i64 {
    Clock::system().now().as_millis()
}

impl Stage {
    /// Builds everything in a temporary folder, with the example Graphs shared.
    pub(super) async fn set(model: Option<&str>) -> Result<Self, Failure> {
        let temporary = tempfile::tempdir().map_err(|error| {
            Failure::cannot_start(format!("cannot make a temporary folder: {error}"))
        })?;
        let (data, notes) = (
            temporary.path().join("data"),
            temporary.path().join("notes"),
        );
        let data = data.as_path();
        paths::make_private_dir(data)?;
        folder::write(&notes)?;
        if let Some(model) = model {
            paths::write_private(&paths::config_file(data), &provider(model))?;
        }
        let listener = hub::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let address = listener
            .local_addr()
            .map_err(|error| Failure::cannot_start(format!("the hub has no address: {error}")))?;
        let config = HubConfig {
            listen: address,
            public_url: None,
            public_tool_list: true,
            task_lease_seconds: LEASE_SECONDS,
        };
        let shutdown = CancellationToken::new();
        let hub = hub::open_hub(data, config.task_lease_ms())?;
        hub::start(Arc::clone(&hub), data, &config, listener, &shutdown)?;
        let refused = |error: callboard_hub::HubError| Failure::failed(error.to_string());
        hub.create_project("Home").await.map_err(refused)?;
        let desktop = hub.create_desktop("this-machine").await.map_err(refused)?;
        let projects = ["Home".to_owned()];
        paths::write_private(&data.join("device-token"), &desktop.token)?;
        let (link, link_address) = Link::open(address).await?;
        let mut chats = Vec::new();
        for name in ["Claude", "ChatGPT"] {
            let agent = hub.create_connection(name, &projects, Scopes::ALL).await;
            let token = agent.map_err(refused)?.token;
            chats.push(Chat::connect(&format!("http://{link_address}/mcp"), &token).await?);
        }
        let [chat, second_chat] = <[Chat; 2]>::try_from(chats)
            .map_err(|_| Failure::failed("the demo has two connected agents"))?;
        let data = data.to_owned();
        let mut stage = Self {
            temporary,
            data,
            link,
            link_address,
            chat,
            second_chat,
            desktop: None,
            shutdown,
        };
        stage.start_desktop().await?;
        stage.share().await?;
        Ok(stage)
    }

    /// The data folder of hub and desktop.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// The folder that Graphs may read.
    pub(super) fn folder(&self) -> PathBuf {
        self.temporary.path().join("notes")
    }

    /// The arguments of folder-report.
    pub(super) fn report_arguments(&self) -> Value {
        json!({"folder": self.folder(), "largest": 3})
    }

    /// The connected agent.
    pub(super) fn chat(&self) -> &Chat {
        &self.chat
    }

    /// Another connected agent of the same project.
    pub(super) fn second_chat(&self) -> &Chat {
        &self.second_chat
    }

    /// The network.
    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Starts the desktop's process and waits until it answers.
    pub(super) async fn start_desktop(&mut self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            Failure::cannot_start(format!("cannot start the desktop: {error}"))
        };
        let program = std::env::current_exe().map_err(failed)?;
        let child = Command::new(program)
            .arg("--data")
            .arg(self.data())
            .args(["desktop", "run", "--hub"])
            .arg(format!("http://{}", self.link_address))
            .arg("--token-file")
            .arg(self.data().join("device-token"))
            .env("CALLBOARD_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        self.desktop = Some(child);
        let known = async {
            loop {
                if connect(self.data()).await.is_ok()
                    && let Response::Projects(projects) =
                        ask(self.data(), Request::ProjectList).await?
                    && !projects.is_empty()
                {
                    return Ok(());
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::time::timeout(DESKTOP_START_MAX, known)
            .await
            .unwrap_or_else(|_| Err(Failure::cannot_start("the desktop did not start in 30 s")))
    }

    /// Kills the desktop's process; it has no chance to write anything.
    pub(super) async fn kill_desktop(&mut self) -> Result<(), Failure> {
        if let Some(mut child) = self.desktop.take() {
            child
                .kill()
                .await
                .map_err(|error| Failure::failed(format!("cannot kill the desktop: {error}")))?;
        }
        Ok(())
    }

    async fn share(&self) -> Result<(), Failure> {
        let path = crate::desktop::absolute(&self.folder())?;
        ask(self.data(), Request::FolderGrant { path }).await?;
        let examples = crate::up::EXAMPLES
            .iter()
            .map(|(slug, source, _)| (*slug, *source));
        for (slug, source) in examples.chain([("slow", SLOW)]) {
            let (slug, source) = (slug.to_owned(), source.to_owned());
            let add = Request::GraphAdd {
                source,
                slug: Some(slug.clone()),
            };
            ask(self.data(), add).await?;
            ask(
                self.data(),
                Request::GraphShare {
                    slug,
                    project: "Home".to_owned(),
                },
            )
            .await?;
        }
        ask(
            self.data(),
            Request::ProjectEnable {
                project: "Home".to_owned(),
            },
        )
        .await?;
        // The list reaches the hub with the turn that enabling caused.
        while self.sessions().await?.len() < crate::up::EXAMPLES.len() + 1 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// What the chat sees.
    pub(super) async fn sessions(&self) -> Result<Vec<list_graph_sessions::Session>, Failure> {
        let listed: list_projects::Answer = self.chat.ask("list_projects", json!({})).await?;
        let home = listed
            .projects
            .first()
            .ok_or_else(|| Failure::failed("no project is listed"))?;
        Ok(self
            .chat
            .sessions(&home.project_id.to_string())
            .await?
            .sessions)
    }

    /// The session of a Graph.
    pub(super) async fn session_id(&self, slug: &str) -> Result<String, Failure> {
        let sessions = self.sessions().await?;
        let found = sessions.iter().find(|entry| entry.session.slug == slug);
        let found = found.ok_or_else(|| Failure::failed(format!("{slug} is not listed")))?;
        Ok(found.session.graph_session_id.to_string())
    }

    /// Starts a run.
    pub(super) async fn start(
        &self,
        slug: &str,
        arguments: Value,
        key: &str,
    ) -> Result<run_graph_session::Answer, Failure> {
        let session = self.session_id(slug).await?;
        let call =
            json!({"graph_session_id": session, "arguments": arguments, "idempotency_key": key});
        self.chat.ask("run_graph_session", call).await
    }

    /// Reads a run, held by the hub between changes of its status, until it is as wanted.
    pub(super) async fn until(
        &self,
        command_id: &str,
        wanted: impl Fn(&get_graph_run::Answer) -> bool,
    ) -> Result<get_graph_run::Answer, Failure> {
        let mut run = self.chat.read_run(command_id).await?;
        while !wanted(&run) {
            if run.finished_at.is_some() {
                let why = run.error.unwrap_or_default();
                return Err(Failure::failed(format!(
                    "the run ended {}: {why}",
                    run.status
                )));
            }
            run = self.chat.read_run_after(&run, 40).await?;
        }
        Ok(run)
    }

    /// How often a Graph ran, by the desktop's own history.
    pub(super) async fn executions_of(&self, slug: &str) -> Result<usize, Failure> {
        let Response::Runs(runs) = ask(self.data(), Request::RunList { limit: 100 }).await? else {
            return Err(Failure::failed("the desktop did not list its runs"));
        };
        let executed = runs
            .iter()
            .filter(|run| run.slug == slug && run.execution_id.is_some());
        Ok(executed.count())
    }

    /// Waits until nothing is left to deliver.
    pub(super) async fn outbox_empty(&self) -> Result<(), Failure> {
        loop {
            if let Response::Status(status) = ask(self.data(), Request::Status).await?
                && status.outbox_waiting == 0
            {
                let parked = status.outbox_parked;
                return super::demand(parked == 0, || format!("{parked} results are parked"));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// How many TCP ports the desktop's process listens on, as the kernel tells.
    pub(super) fn listening_ports(&self) -> Result<usize, Failure> {
        let id = self.desktop.as_ref().and_then(Child::id);
        let id = id.ok_or_else(|| Failure::failed("the desktop does not run"))?;
        let failed = |error: std::io::Error| {
            Failure::failed(format!("cannot look at the desktop's sockets: {error}"))
        };
        let mut own = BTreeSet::new();
        for entry in std::fs::read_dir(format!("/proc/{id}/fd")).map_err(failed)? {
            // A descriptor can close between the listing and the look.
            let Ok(target) = std::fs::read_link(entry.map_err(failed)?.path()) else {
                continue;
            };
            let target = target.to_string_lossy().into_owned();
            let inode = target
                .strip_prefix("socket:[")
                .and_then(|rest| rest.strip_suffix(']'));
            own.extend(inode.map(str::to_owned));
        }
        let mut listening = 0;
        for table in ["tcp", "tcp6"] {
            let path = format!("/proc/{id}/net/{table}");
            let text = std::fs::read_to_string(path).map_err(failed)?;
            let owned_listener = |line: &&str| {
                let fields: Vec<_> = line.split_whitespace().collect();
                // State 0A is LISTEN; the tenth field is the socket's inode.
                fields.get(3) == Some(&"0A")
                    && fields.get(9).is_some_and(|inode| own.contains(*inode))
            };
            listening += text.lines().filter(owned_listener).count();
        }
        Ok(listening)
    }

    /// Ends everything.
    pub(super) async fn strike(mut self) {
        self.shutdown.cancel();
        // A desktop that is gone already needs no ending.
        drop(self.kill_desktop().await);
    }
}

/// The configuration of an OpenAI-compatible server.
fn provider(base_url: &str) -> String {
    let quoted = Value::from(base_url);
    format!(
        "[desktop]\ndefault_provider = \"demo\"\n\n[providers.demo]\nkind = \"openai\"\nbase_url = {quoted}\nmodel = \"default\"\n"
    )
}
