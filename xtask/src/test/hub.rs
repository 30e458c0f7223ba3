//! A hub for the real clients: the release binary's `up` in a folder of its own, on a port of its own.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use crate::process::{self, Owned};

/// How long a claim lasts where another chat could take over: each client waits for one to lapse, and one of them
/// starts a process a call.
pub(super) const LEASE_SECONDS: u64 = 6;
/// From the start of the process to its `/readyz`.
const START_LIMIT: Duration = Duration::from_secs(60);
/// One request for `/readyz`.
const PROBE_LIMIT: Duration = Duration::from_secs(2);
/// The hub lets running work finish for 30 s.
const STOP_LIMIT: Duration = Duration::from_secs(45);

/// A running `callboard up`.
#[derive(Debug)]
pub(super) struct Hub {
    child: Owned,
    /// The MCP endpoint.
    pub(super) url: String,
    /// The bearer token of the connection that `up` made.
    pub(super) token: String,
    /// A folder with known files, for the Graph to report on.
    pub(super) notes: PathBuf,
    /// The data folder, for the owner's commands.
    pub(super) data: PathBuf,
    /// Holds everything above until the hub has ended.
    _home: tempfile::TempDir,
}

impl Hub {
    /// Starts the hub and waits until it says that it is ready. What it prints goes to `log`.
    ///
    /// # Errors
    /// It ends, is not ready in time, or does not leave its connection in a file that only the owner may read.
    pub(super) fn start(binary: &Path, log: &Path) -> anyhow::Result<Self> {
        let home = tempfile::tempdir()?;
        let notes = home.path().join("notes");
        write_notes(&notes)?;
        let data = home.path().join("data");
        std::fs::create_dir(&data)?;
        let config = format!("[hub]\ntask_lease_seconds = {LEASE_SECONDS}\n");
        std::fs::write(data.join("config.toml"), config)?;
        let address = free_address()?;
        let mut command = Command::new(binary);
        command
            .arg("up")
            .arg("--data")
            .arg(&data)
            .arg("--folder")
            .arg(&notes)
            .arg("--listen")
            .arg(address.to_string());
        let output =
            File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .current_dir(home.path());
        keep_settings_out(&mut command, home.path());
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut child = Owned(child);
        let connection = process::poll(START_LIMIT, || {
            if let Some(status) = child.0.try_wait()? {
                anyhow::bail!("`callboard up` ended before it was ready: {status}");
            }
            if is_ready(address) {
                Connection::read(&data.join("connection.json"))
            } else {
                Ok(None)
            }
        })?;
        let limit = START_LIMIT.as_secs();
        let Connection { url, token } =
            connection.with_context(|| format!("`callboard up` was not ready after {limit} s"))?;
        Ok(Self {
            child,
            url,
            token,
            notes,
            data,
            _home: home,
        })
    }

    /// Ends the hub as a person would, and expects it to end well.
    ///
    /// # Errors
    /// It has ended already, does not end in time, or ends with an error.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.child.terminate()?;
        let limit = STOP_LIMIT.as_secs();
        let status = self.child.wait(STOP_LIMIT)?;
        let status = status
            .with_context(|| format!("`callboard up` was still running {limit} s after SIGTERM"))?;
        anyhow::ensure!(
            status.success(),
            "`callboard up` ended on SIGTERM with {status}"
        );
        Ok(())
    }
}

/// Where to connect, as `up` leaves it in the data folder.
#[derive(Debug)]
struct Connection {
    url: String,
    token: String,
}

impl Connection {
    fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let Ok(text) = std::fs::read_to_string(path) else {
            return Ok(None);
        };
        if text.is_empty() {
            return Ok(None);
        }
        let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
        anyhow::ensure!(
            mode == 0o600,
            "connection.json has the mode {mode:o}; it holds a token, so it must be 600"
        );
        let value: serde_json::Value =
            serde_json::from_str(&text).context("connection.json is not JSON")?;
        let field = |name: &str| {
            let text = value.get(name).and_then(serde_json::Value::as_str);
            text.map(str::to_owned)
                .with_context(|| format!("connection.json has no text `{name}`"))
        };
        Ok(Some(Self {
            url: field("url")?,
            token: field("token")?,
        }))
    }
}

/// Five files in two folders, so that a report on them can be checked.
fn write_notes(folder: &Path) -> anyhow::Result<()> {
    let files = [
        "plan.md",
        "shopping.txt",
        "letters/first.md",
        "letters/second.md",
        "letters/old/third.md",
    ];
    for (index, name) in files.iter().enumerate() {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        std::fs::write(path, "A line of notes.\n".repeat(index + 1))?;
    }
    Ok(())
}

/// The hub must not see the settings of the person who runs the tests.
fn keep_settings_out(command: &mut Command, home: &Path) {
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CALLBOARD_") || name.starts_with("XDG_"))
        {
            command.env_remove(&name);
        }
    }
    command.env("HOME", home);
}

/// An address nobody listens on. Another process could take it before the hub does; then the hub says so and the step fails.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

fn is_ready(address: SocketAddr) -> bool {
    status_line(address, "/readyz").is_ok_and(|line| line.split(' ').nth(1) == Some("200"))
}

fn status_line(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PROBE_LIMIT)?;
    stream.set_read_timeout(Some(PROBE_LIMIT))?;
    stream.set_write_timeout(Some(PROBE_LIMIT))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn answer_once(status: &'static str) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            assert!(stream.read(&mut request).unwrap() > 0);
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").unwrap();
        });
        address
    }

    #[test]
    fn only_a_200_is_ready() {
        assert!(is_ready(answer_once("200 OK")));
        assert!(!is_ready(answer_once("503 Service Unavailable")));
        assert!(!is_ready(free_address().unwrap()));
    }

    #[test]
    fn a_connection_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("connection.json");
        assert!(Connection::read(&path).unwrap().is_none());
        std::fs::write(
            &path,
            "{\"url\": \"http://127.0.0.1:1/mcp\", \"token\": \"cb_x\"}",
        )
        .unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(
            Connection::read(&path)
                .unwrap_err()
                .to_string()
                .contains("has the mode 644")
        );
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(
            Connection::read(&path).unwrap().unwrap().url,
            "http://127.0.0.1:1/mcp"
        );
    }

    #[test]
    fn a_hub_that_ends_at_once_is_reported_with_its_exit_code() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("callboard");
        std::fs::write(&binary, "#!/bin/sh\nexit 3\n").unwrap();
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
        let error = Hub::start(&binary, &folder.path().join("hub.log")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`callboard up` ended before it was ready: exit status: 3"
        );
    }
}
