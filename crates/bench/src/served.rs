//! `callboard hub serve` on a data folder that the product's own use cases have filled.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use callboard_ambient::{Clock, Entropy};
use callboard_domain::Scopes;
use callboard_hub::{Hub, NewLink};
use callboard_store_sqlite::SqliteStore;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::load::{Caller, Endpoint};
use crate::process;

/// How many use cases fill the hub at a time: their writes share commits.
const AT_A_TIME: usize = 64;

/// What is in the hub before it serves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Filling {
    /// Linked chats.
    pub(crate) links: usize,
    /// Tasks that are over, spread over the links.
    pub(crate) old_tasks: usize,
    /// Desktops with a token.
    pub(crate) desktops: usize,
}

/// The hub at work.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) endpoint: Endpoint,
    /// Another connection of the same project, which owns nothing.
    pub(crate) stranger: Endpoint,
    pub(crate) project_id: String,
    pub(crate) links: Vec<String>,
    pub(crate) device_tokens: Vec<String>,
    data: TempDir,
}

/// What filling made.
struct Filled {
    token: String,
    stranger: String,
    project_id: String,
    links: Vec<String>,
    device_tokens: Vec<String>,
}

impl Served {
    pub(crate) async fn start(binary: &Path, filling: Filling) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let filled = fill(&data.path().join("hub").join("hub.db"), filling).await?;
        let address = free_address()?;
        let mut command = Command::new(binary);
        command.args(["hub", "serve", "--listen", &address.to_string()]);
        command.arg("--data").arg(data.path()).stdout(Stdio::null());
        // The benchmark's own environment must not change what is measured.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CALLBOARD_") {
                command.env_remove(name);
            }
        }
        let child = process::start(&mut command, binary)?;
        let endpoint = |token| Endpoint {
            address,
            token: Some(token),
        };
        let served = Self {
            child,
            endpoint: endpoint(filled.token),
            stranger: endpoint(filled.stranger),
            project_id: filled.project_id,
            links: filled.links,
            device_tokens: filled.device_tokens,
            data,
        };
        let ready = tokio::time::timeout(process::PATIENCE, served.ready()).await;
        ready.context("the hub did not start in time")?;
        Ok(served)
    }

    async fn ready(&self) {
        let answers = async || {
            let mut caller = Caller::connect(&self.endpoint).await?;
            caller.tool("list_projects", json!({})).await
        };
        while answers().await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn socket(&self) -> PathBuf {
        self.data.path().join("hub").join("hub.sock")
    }

    /// Assigns a task as its owner does, over the hub's own socket, and gives its id.
    pub(crate) async fn assign(
        &self,
        chats: &str,
        text: &str,
        key: &str,
    ) -> anyhow::Result<String> {
        let request = json!({
            "ask": "chats", "about": "assign", "chats": chats, "text": text,
            "idempotency_key": key,
        });
        let (reader, mut writer) = UnixStream::connect(self.socket()).await?.into_split();
        writer.write_all(format!("{request}\n").as_bytes()).await?;
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line).await?;
        let told: Value = serde_json::from_str(&line)?;
        let id = told["chats"]["assigned"]["task"]["task_id"].as_str();
        Ok(id
            .with_context(|| format!("no task was assigned: {told}"))?
            .to_owned())
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        process::stop(self.child).await
    }
}

async fn fill(database: &Path, filling: Filling) -> anyhow::Result<Filled> {
    let entropy = Entropy::system();
    let store = SqliteStore::open(database)?;
    let hub = Hub::new(store, Clock::system(), entropy.clone());
    let project = hub.create_project("Home").await?;
    let names = [project.name.clone()];
    let made = hub.create_connection("Bench", &names, Scopes::ALL).await?;
    let stranger = hub
        .create_connection("Stranger", &names, Scopes::ALL)
        .await?;
    let (project_id, caller) = (project.id.to_string(), &made.made);
    let link = async |number: usize| {
        let key = entropy.secret("link-");
        let new = NewLink {
            project_id: &project_id,
            label: &format!("chat {number}"),
            reference: None,
            idempotency_key: &key,
            host_hint: None,
        };
        let linked = hub.link_current_chat(caller, new).await?;
        Ok::<_, anyhow::Error>(linked.chat_link_id.to_string())
    };
    let links: Vec<_> = stream::iter((0..filling.links).map(link))
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await?;
    let finish = async |(number, link): (usize, &String)| {
        let text = format!("Summarise thread {number} and list open questions");
        let key = entropy.secret("task-");
        let assigned = hub.assign_task(std::slice::from_ref(link), &text, &key);
        let task_id = assigned.await?.row.task_id.to_string();
        let claim = hub.claim_linked_chat_task(caller, link, &task_id).await?;
        let (claim_id, result) = (claim.claim_id.to_string(), "done ".repeat(20));
        hub.submit_linked_chat_result(caller, link, &task_id, &claim_id, "completed", &result)
            .await?;
        Ok::<_, anyhow::Error>(())
    };
    let tasks = (0..filling.old_tasks).zip(links.iter().cycle());
    let () = stream::iter(tasks.map(finish))
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await?;
    let desktop = async |number: usize| {
        let made = hub.create_desktop(&format!("desktop {number}")).await?;
        Ok::<_, anyhow::Error>(made.token)
    };
    let device_tokens: Vec<_> = stream::iter((0..filling.desktops).map(desktop))
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await?;
    Ok(Filled {
        token: made.token,
        stranger: stranger.token,
        project_id,
        links,
        device_tokens,
    })
}

pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
