//! Child processes: how they are started, bounded and ended. Only what was started here is ever ended.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Pause between two looks at a process that gives no signal to wait for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The monotonic clock.
#[allow(
    clippy::disallowed_methods,
    reason = "xtask takes no crate of the product, and times real processes"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Time since `start`.
pub(crate) fn since(start: Instant) -> Duration {
    now().duration_since(start)
}

/// Waits until `ready` gives a value, fails, or `limit` is over (then `None`).
pub(crate) fn poll<T>(
    limit: Duration,
    mut ready: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    let start = now();
    loop {
        if let Some(value) = ready()? {
            return Ok(Some(value));
        }
        if since(start) >= limit {
            return Ok(None);
        }
        pause();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "another process gives no signal to wait for"
)]
fn pause() {
    thread::sleep(LOOK_AGAIN);
}

/// The cargo that started this program.
///
/// The variables that describe *this* package are taken away: build scripts that watch them would rebuild
/// for each change between `cargo` and `cargo xtask`.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(describes_this_package) {
            command.env_remove(&name);
        }
    }
    command
}

fn describes_this_package(variable: &str) -> bool {
    const EXACT: [&str; 6] = [
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_PATH",
        "CARGO_MANIFEST_LINKS",
        "CARGO_CRATE_NAME",
        "CARGO_BIN_NAME",
        "CARGO_PRIMARY_PACKAGE",
    ];
    variable.starts_with("CARGO_PKG_") || EXACT.contains(&variable)
}

/// Whether `command` starts and ends well, saying nothing.
pub(crate) fn succeeds(mut command: Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Runs `command` with this terminal's output and no input.
///
/// # Errors
/// It cannot be started.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{name}`"))
}

/// Runs `command`, hands each line that it writes to `line`, and ends it after `limit`.
///
/// # Errors
/// It cannot be started, or it was still running at the limit.
pub(crate) fn run_bounded(
    command: &mut Command,
    limit: Duration,
    mut line: impl FnMut(&str),
) -> anyhow::Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    let start = now();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = Owned(child.with_context(|| format!("cannot start `{name}`"))?);
    let (sender, lines) = mpsc::channel();
    forward(child.0.stdout.take(), sender.clone());
    forward(child.0.stderr.take(), sender);
    loop {
        match lines.recv_timeout(limit.saturating_sub(since(start))) {
            Ok(text) => line(&text),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                anyhow::bail!("still running after {} s", limit.as_secs())
            }
        }
    }
    child
        .wait(limit.saturating_sub(since(start)))?
        .with_context(|| format!("still running after {} s", limit.as_secs()))
}

fn forward(stream: Option<impl Read + Send + 'static>, lines: Sender<String>) {
    let Some(stream) = stream else { return };
    thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            // The receiver is gone once the limit was reached; nobody wants the rest then.
            if lines
                .send(String::from_utf8_lossy(&line).trim_end().to_owned())
                .is_err()
            {
                return;
            }
        }
    });
}

/// A child that does not outlive this value.
#[derive(Debug)]
pub(crate) struct Owned(pub(crate) Child);

impl Owned {
    /// Waits for the end, at most `limit`; `None` when it still runs.
    ///
    /// # Errors
    /// The operating system does not know the child.
    pub(crate) fn wait(&mut self, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
        poll(limit, || Ok(self.0.try_wait()?))
    }

    /// Asks the child to end.
    ///
    /// # Errors
    /// The child has ended already.
    pub(crate) fn terminate(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.0.try_wait()? {
            anyhow::bail!("it had ended already: {status}");
        }
        // Not waited for yet, so the number still belongs to this child.
        let pid = Pid::from_raw(i32::try_from(self.0.id()).context("a process number beyond i32")?);
        kill(pid, Signal::SIGTERM).context("cannot send SIGTERM")
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) && self.0.kill().is_ok() {
            // Collects the ended child; there is nothing left to do about a failure.
            drop(self.0.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_of_both_streams_and_the_exit_code_are_handed_on() {
        let mut lines = Vec::new();
        let mut script = shell("echo one; echo two >&2; exit 3");
        let status = run_bounded(&mut script, Duration::from_secs(20), |line| {
            lines.push(line.to_owned())
        })
        .unwrap();
        lines.sort();
        assert_eq!(
            (lines, status.code()),
            (vec!["one".to_owned(), "two".to_owned()], Some(3))
        );
    }

    #[test]
    fn a_process_that_does_not_end_is_ended_at_the_limit() {
        let mut script = shell("exec sleep 600");
        let error = run_bounded(&mut script, Duration::from_millis(1), |_| ()).unwrap_err();
        assert_eq!(error.to_string(), "still running after 0 s");
    }

    #[test]
    fn a_child_ends_with_its_owner() {
        let child = Owned(shell("exec sleep 600").spawn().unwrap());
        let pid = Pid::from_raw(i32::try_from(child.0.id()).unwrap());
        drop(child);
        assert!(kill(pid, None).is_err());
    }

    #[test]
    fn a_child_that_is_asked_to_end_can_be_waited_for() {
        let mut child = Owned(shell("exec sleep 600").spawn().unwrap());
        child.terminate().unwrap();
        let status = child.wait(Duration::from_secs(20)).unwrap().unwrap();
        assert!(!status.success());
    }

    #[test]
    fn variables_of_this_package_are_told_from_settings_of_cargo() {
        assert!(describes_this_package("CARGO_PKG_VERSION_MAJOR"));
        assert!(describes_this_package("CARGO_MANIFEST_DIR"));
        for setting in [
            "CARGO",
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "CARGO_NET_OFFLINE",
            "CARGO_BUILD_JOBS",
        ] {
            assert!(!describes_this_package(setting), "{setting}");
        }
    }
}
