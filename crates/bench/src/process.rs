//! Child processes that end with the benchmark, and what the system says of them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use tokio::process::{Child, Command};

/// Longest that a server may take to start or to stop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a server that says nothing here.
pub(crate) fn start(command: &mut Command, program: &Path) -> anyhow::Result<Child> {
    command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// Ends a server as a person would.
pub(crate) async fn stop(mut child: Child) -> anyhow::Result<()> {
    let id = child.id().context("the server has ended by itself")?;
    kill(Pid::from_raw(i32::try_from(id)?), Signal::SIGTERM)?;
    let ended = tokio::time::timeout(PATIENCE, child.wait()).await;
    ended.context("the server did not stop in time")??;
    Ok(())
}

/// Memory that a process holds, in MiB.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
pub(crate) fn resident_mib(child: &Child) -> anyhow::Result<f64> {
    let id = child.id().context("the server has ended by itself")?;
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: u64 = kib.context("no VmRSS")?.parse()?;
    Ok(kib as f64 / 1_024.0)
}

/// Processor time that a process has used, in seconds.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
pub(crate) fn processor_seconds(child: &Child) -> anyhow::Result<f64> {
    let id = child.id().context("the server has ended by itself")?;
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The name, which may hold anything, ends with the last parenthesis; 12 and 13 after it are the
    // ticks in user and in system mode.
    let rest = stat.rsplit_once(')').context("no name")?.1;
    let columns: Vec<_> = rest.split_whitespace().collect();
    let ticks = |column: usize| -> anyhow::Result<u64> {
        Ok(columns.get(column).context("no ticks")?.parse()?)
    };
    let a_second = sysconf(SysconfVar::CLK_TCK)?.unwrap_or(100);
    Ok((ticks(11)? + ticks(12)?) as f64 / a_second as f64)
}
