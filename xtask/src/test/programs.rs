//! Programs that the test command needs beside Rust, and the Debian packages that bring them.

use std::collections::BTreeSet;
use std::process::Command;

use crate::{output, process};

/// A program that some step cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Program {
    /// Compiles SQLite and QuickJS.
    CCompiler,
    /// Runs the TypeScript clients; 20 or newer.
    Node,
    /// Installs the TypeScript clients.
    Npm,
    /// Runs the Python clients in an environment of their own; 3.11 or newer.
    Python,
}

/// Each program: how to see that it is there, what to call it, which Debian packages bring it.
const PROGRAMS: [(Program, &[&str], &str, &[&str]); 4] = [
    (
        Program::CCompiler,
        &["cc", "--version"],
        "a C compiler",
        &["gcc", "libc6-dev"],
    ),
    (
        Program::Node,
        &[
            "node",
            "-e",
            "process.exit(Number(process.versions.node.split('.')[0]) >= 20 ? 0 : 1)",
        ],
        "node 20",
        &["nodejs"],
    ),
    (Program::Npm, &["npm", "--version"], "npm", &["npm"]),
    (
        Program::Python,
        &[
            "python3",
            "-c",
            "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))",
        ],
        "python 3.11 with venv",
        &["python3", "python3-venv"],
    ),
];

/// What the program is called in messages.
pub(super) fn name(program: Program) -> &'static str {
    PROGRAMS
        .iter()
        .find(|(listed, ..)| *listed == program)
        .map_or("", |(_, _, name, _)| *name)
}

/// Looks for every program, installs what is missing where that is allowed, and returns what is missing still.
///
/// # Errors
/// `apt-get` cannot be started.
pub(super) fn ensure(may_install: bool) -> anyhow::Result<BTreeSet<Program>> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(missing);
    }
    let packages = packages(&missing);
    if !may_install {
        let names: Vec<&str> = missing.iter().map(|program| name(*program)).collect();
        output::error(&format!("missing: {}", names.join(", ")));
        output::hint(&format!(
            "apt-get install -y {}   (or start again with --install)",
            packages.join(" ")
        ));
        return Ok(missing);
    }
    output::note(&format!("apt-get install -y {}", packages.join(" ")));
    process::run(apt_get().arg("update"))?;
    process::run(
        apt_get()
            .args(["install", "-y", "--no-install-recommends"])
            .args(&packages),
    )?;
    Ok(self::missing())
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .arg("--quiet");
    command
}

fn missing() -> BTreeSet<Program> {
    let absent = PROGRAMS.iter().filter(|(_, probe, ..)| !is_there(probe));
    absent.map(|(program, ..)| *program).collect()
}

fn is_there(probe: &[&str]) -> bool {
    let Some((program, arguments)) = probe.split_first() else {
        return false;
    };
    let mut command = Command::new(program);
    command.args(arguments);
    process::succeeds(command)
}

fn packages(missing: &BTreeSet<Program>) -> Vec<&'static str> {
    let wanted = PROGRAMS
        .iter()
        .filter(|(program, ..)| missing.contains(program));
    wanted
        .flat_map(|(_, _, _, packages)| packages.iter().copied())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_installed_is_not_there() {
        assert!(is_there(&["sh", "-c", "exit 0"]));
        assert!(!is_there(&["sh", "-c", "exit 1"]));
        assert!(!is_there(&["callboard-no-such-program"]));
    }

    #[test]
    fn one_command_brings_all_that_is_missing() {
        let missing = BTreeSet::from([Program::Npm, Program::Python]);
        assert_eq!(packages(&missing), ["npm", "python3", "python3-venv"]);
    }
}
