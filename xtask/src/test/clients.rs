//! MCP clients that others wrote, each doing a chat's work against one running hub. The scripts are in tests/clients.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::hub::{Hub, LEASE_SECONDS};
use super::programs::{self, Program};
use super::steps::Place;
use super::{Outcome, Report, packages};
use crate::{output, process};

/// Longest life of one client's script. It waits at most 120 s for its run, in each protocol that it speaks.
const CLIENT_LIMIT: Duration = Duration::from_secs(420);
/// Lines of the hub's log that are shown when something failed.
const LOG_LINES: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runtime {
    Node,
    Python,
}

/// The clients: what they are called, what runs them, their script.
const CLIENTS: [(&str, Runtime, &str); 5] = [
    ("TypeScript SDK v1", Runtime::Node, "typescript_v1.mjs"),
    ("TypeScript SDK v2", Runtime::Node, "typescript_v2.mjs"),
    ("Inspector", Runtime::Node, "inspector.mjs"),
    ("Python mcp", Runtime::Python, "python_mcp.py"),
    ("Python fastmcp", Runtime::Python, "python_fastmcp.py"),
];

/// Either the command that runs a script's interpreter, or why there is none.
type Ready<T> = Result<T, String>;

/// Starts the hub, lets each client do its work, stops the hub. One report each.
pub(super) fn run(place: &Place) -> Vec<Report> {
    if place.binary_is_stale {
        return could_not_run("the release build failed");
    }
    if !place.binary.is_file() {
        return could_not_run("there is no release binary yet: add `--only release`");
    }
    let node = install(place, &[Program::Node, Program::Npm], packages::node);
    let python = install(place, &[Program::Python], packages::python);
    let log = place.target.join("clients").join("hub.log");
    let mut reports = Vec::new();
    let start = process::now();
    let started = std::fs::create_dir_all(place.target.join("clients"))
        .map_err(anyhow::Error::from)
        .and_then(|()| Hub::start(&place.binary, &log));
    let hub = match started {
        Ok(hub) => hub,
        Err(error) => {
            reports.push(Report::close(
                "hub for the clients",
                start,
                Outcome::Failed(format!("{error:#}")),
            ));
            output::tail(&log, LOG_LINES);
            reports.extend(could_not_run("the hub did not start"));
            return reports;
        }
    };
    reports.push(Report::close("hub for the clients", start, Outcome::Passed));
    for (name, runtime, script) in CLIENTS {
        let start = process::now();
        let command = match runtime {
            Runtime::Node => node.as_ref().map(|folder| node_command(folder, script)),
            Runtime::Python => python
                .as_ref()
                .map(|interpreter| python_command(interpreter, &place.root, script)),
        };
        let outcome = match command {
            Ok(command) => run_client(command, &hub, &place.binary),
            Err(reason) => Outcome::CouldNotRun(reason.clone()),
        };
        reports.push(Report::close(name, start, outcome));
    }
    let start = process::now();
    let stopped = hub.stop().map_or_else(
        |error| Outcome::Failed(format!("{error:#}")),
        |()| Outcome::Passed,
    );
    reports.push(Report::close("hub stops when asked", start, stopped));
    if reports
        .iter()
        .any(|report| matches!(report.outcome, Outcome::Failed(_)))
    {
        output::tail(&log, LOG_LINES);
    }
    reports
}

fn could_not_run(reason: &str) -> Vec<Report> {
    let start = process::now();
    CLIENTS
        .iter()
        .map(|(name, ..)| Report::close(name, start, Outcome::CouldNotRun(reason.to_owned())))
        .collect()
}

fn install(
    place: &Place,
    needs: &[Program],
    packages: fn(&Place) -> anyhow::Result<PathBuf>,
) -> Ready<PathBuf> {
    if let Some(program) = needs.iter().find(|program| place.missing.contains(program)) {
        return Err(format!("{} is missing", programs::name(*program)));
    }
    packages(place).map_err(|error| format!("packages could not be installed: {error:#}"))
}

fn node_command(folder: &Path, script: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(folder.join(script));
    command
}

fn python_command(interpreter: &Path, root: &Path, script: &str) -> Command {
    let mut command = Command::new(interpreter);
    command
        .arg("-B")
        .arg(root.join("tests/clients").join(script))
        .env("PYTHONUNBUFFERED", "1");
    command
}

fn run_client(mut command: Command, hub: &Hub, binary: &Path) -> Outcome {
    command
        .env("CALLBOARD_URL", &hub.url)
        .env("CALLBOARD_TOKEN", &hub.token)
        .env("CALLBOARD_FOLDER", &hub.notes)
        .env("CALLBOARD_BINARY", binary)
        .env("CALLBOARD_DATA", &hub.data)
        .env("CALLBOARD_LEASE_SECONDS", LEASE_SECONDS.to_string())
        .env("NO_COLOR", "1");
    match process::run_bounded(&mut command, CLIENT_LIMIT, output::quoted) {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(status.to_string()),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_its_script() {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/clients");
        for (name, _, script) in CLIENTS {
            assert!(scripts.join(script).is_file(), "{name}: {script}");
        }
    }
}
