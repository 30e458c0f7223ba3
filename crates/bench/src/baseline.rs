//! The published server, made again in Python, as a process beside ours.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use callboard_ambient::Entropy;
use callboard_domain::{ChatLinkId, Timestamp};
use rusqlite::{Connection, params};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::load::Endpoint;
use crate::process;

const SERVER: &str = include_str!("../../../bench/published_baseline/server.py");

/// Old tasks and the links they belong to (the published table's own).
pub(crate) const OLD_TASKS: usize = 10_000;
/// See [`OLD_TASKS`].
pub(crate) const LINKS: usize = 500;

/// The server at work.
#[derive(Debug)]
pub(crate) struct Baseline {
    child: Child,
    pub(crate) endpoint: Endpoint,
    pub(crate) links: Vec<String>,
    _folder: TempDir,
}

impl Baseline {
    /// Starts it with [`OLD_TASKS`] finished tasks; `None` where there is no Python.
    pub(crate) async fn start(sweep: &str) -> anyhow::Result<Option<Self>> {
        let python = Path::new("python3");
        let folder = tempfile::tempdir()?;
        let (script, database) = (folder.path().join("server.py"), folder.path().join("t.db"));
        std::fs::write(&script, SERVER)?;
        let mut command = Command::new(python);
        command.arg(&script).arg("--db").arg(&database);
        command.args(["--sweep", sweep]).stdout(Stdio::piped());
        let Ok(mut child) = process::start(&mut command, python) else {
            return Ok(None);
        };
        let said = child.stdout.take().context("no output")?;
        let mut lines = BufReader::new(said).lines();
        let port = tokio::time::timeout(process::PATIENCE, lines.next_line()).await;
        let port = port.context("the baseline did not start in time")??;
        let port: u16 = port.context("the baseline says no port")?.trim().parse()?;
        let links = seed(&database)?;
        Ok(Some(Self {
            child,
            endpoint: Endpoint {
                address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
                token: None,
            },
            links,
            _folder: folder,
        }))
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        process::stop(self.child).await
    }
}

/// Puts the old tasks into its tables, as they were published: all completed.
fn seed(database: &Path) -> anyhow::Result<Vec<String>> {
    let entropy = Entropy::system();
    let id = || ChatLinkId::from_bytes(entropy.uuid_v7(Timestamp::from_millis(0))).to_string();
    #[allow(
        clippy::disallowed_methods,
        reason = "the server compares with the wall clock"
    )]
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    let mut sqlite = Connection::open(database)?;
    let transaction = sqlite.transaction()?;
    let links: Vec<_> = (0..LINKS).map(|_| id()).collect();
    for link in &links {
        transaction.execute(
            "INSERT INTO links VALUES(?1, 'p', 'chat', ?1, ?2)",
            params![link, now],
        )?;
    }
    for (number, link) in (0..OLD_TASKS).zip(links.iter().cycle()) {
        transaction.execute(
            "INSERT INTO tasks VALUES(?1, ?2, ?3, 'completed', ?4, ?5, ?6, ?7, ?8, ?9, ?10, NULL)",
            params![
                id(),
                link,
                format!("Summarise thread {number} and list open questions"),
                id(),
                now - 9_000.0,
                "done ".repeat(20),
                "0".repeat(64),
                now - 90_000.0,
                now - 80_000.0,
                now - 3_600.0,
            ],
        )?;
    }
    transaction.commit()?;
    sqlite
        .pragma_update(None, "wal_checkpoint", "TRUNCATE")
        .ok();
    Ok(links)
}
