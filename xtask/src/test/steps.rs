//! The steps that are one command of cargo, and what they share.
//! Two builds in all: the dev profile for tests, the release profile for the binary.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::programs::Program;
use super::{Outcome, Step};
use crate::tree::Tree;
use crate::{checks, output, process};

/// Where the steps work, and what earlier ones found out.
#[derive(Debug)]
pub(super) struct Place {
    /// The repository.
    pub(super) root: PathBuf,
    /// Cargo's target folder.
    pub(super) target: PathBuf,
    /// The release binary; a path in `CALLBOARD_BIN` takes its place.
    pub(super) binary: PathBuf,
    /// The release build of this run failed, so the binary is an old one.
    pub(super) binary_is_stale: bool,
    /// Programs that are not installed.
    pub(super) missing: BTreeSet<Program>,
}

impl Place {
    /// Asks cargo where it builds.
    ///
    /// # Errors
    /// Cargo cannot read the workspace.
    pub(super) fn find(root: &Path) -> anyhow::Result<Self> {
        let output = process::cargo(&["metadata", "--format-version", "1", "--no-deps"])
            .current_dir(root)
            .output()
            .context("cannot start cargo")?;
        anyhow::ensure!(
            output.status.success(),
            "cargo cannot read the workspace: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let target = metadata
            .get("target_directory")
            .and_then(serde_json::Value::as_str);
        let target = PathBuf::from(target.context("cargo names no target folder")?);
        let built = target
            .join("release")
            .join(format!("callboard{}", std::env::consts::EXE_SUFFIX));
        let binary = std::env::var_os("CALLBOARD_BIN").map_or(built, PathBuf::from);
        Ok(Self {
            root: root.to_path_buf(),
            target,
            binary,
            binary_is_stale: false,
            missing: BTreeSet::new(),
        })
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = process::cargo(arguments);
        command.current_dir(&self.root);
        command
    }
}

/// A step's name, and what it runs.
pub(super) fn describe(step: Step) -> (&'static str, &'static str) {
    match step {
        Step::Format => ("format", "cargo fmt --all --check"),
        Step::Rules => ("rules", "cargo xtask check"),
        Step::Lints => (
            "lints",
            "cargo clippy --workspace --all-targets -- -D warnings",
        ),
        Step::Release => ("release build", "cargo build --release --package callboard"),
        Step::Simulator => (
            "simulator",
            "callboard sim tables, callboard sim fuzz --seeds 5000",
        ),
        Step::Tests => ("tests", "every test of the workspace"),
        Step::DocTests => ("doc tests", "cargo test --workspace --doc"),
        Step::Clients => (
            "real clients",
            "MCP clients of others against `callboard up`",
        ),
    }
}

fn ended(mut command: Command) -> Outcome {
    match process::run(&mut command) {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(status.to_string()),
        Err(error) => Outcome::CouldNotRun(format!("{error:#}")),
    }
}

/// rustfmt would change nothing.
pub(super) fn format(place: &Place) -> Outcome {
    ended(place.cargo(&["fmt", "--all", "--check"]))
}

/// The repository keeps its rules.
pub(super) fn rules(place: &Place) -> Outcome {
    match Tree::open(&place.root).and_then(|tree| checks::run_all(&tree)) {
        Ok(findings) => {
            output::checks(&findings);
            match findings.values().map(Vec::len).sum::<usize>() {
                0 => Outcome::Passed,
                count => Outcome::Failed(format!("findings: {count}")),
            }
        }
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// clippy finds nothing, in tests either.
pub(super) fn lints(place: &Place) -> Outcome {
    ended(place.cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

/// The release binary builds.
pub(super) fn release(place: &mut Place) -> Outcome {
    let outcome = ended(place.cargo(&["build", "--release", "--package", "callboard"]));
    place.binary_is_stale = outcome != Outcome::Passed;
    outcome
}

/// The page of figures and its plots, below `docs/reference`.
const FIGURES: [&str; 4] = [
    "figures.md",
    "figures/pickup.svg",
    "figures/polling.svg",
    "figures/burst.svg",
];

/// Every published figure is what it must be, the committed page says so, and five thousand histories
/// break no invariant.
pub(super) fn simulator(place: &Place) -> Outcome {
    if place.binary_is_stale || !place.binary.is_file() {
        return Outcome::CouldNotRun("there is no release binary of this tree".to_owned());
    }
    let made = place.target.join("reference");
    if let Err(error) = std::fs::create_dir_all(&made) {
        return Outcome::CouldNotRun(format!("{}: {error}", made.display()));
    }
    let mut tables = Command::new(&place.binary);
    tables.args(["sim", "tables", "--markdown"]);
    tables
        .arg(made.join("figures.md"))
        .arg("--plot")
        .arg(made.join("figures"));
    let mut fuzz = Command::new(&place.binary);
    fuzz.args(["sim", "fuzz", "--seeds", "5000"]);
    for command in [tables, fuzz] {
        let outcome = ended(command);
        if outcome != Outcome::Passed {
            return outcome;
        }
    }
    let committed = place.root.join("docs/reference");
    let differs = |file: &&&str| {
        let [made, committed] =
            [&made, &committed].map(|folder| std::fs::read(folder.join(file)).ok());
        made != committed
    };
    match FIGURES.iter().find(differs) {
        None => Outcome::Passed,
        Some(file) => Outcome::Failed(format!(
            "docs/reference/{file} is not what the simulator gives: write it again with `callboard sim \
             tables --markdown docs/reference/figures.md --plot docs/reference/figures`"
        )),
    }
}

/// Every test of the workspace, by nextest where it is installed. Black-box tests find the binary in `CALLBOARD_BIN`.
pub(super) fn tests(place: &Place) -> Outcome {
    let nextest = process::succeeds(process::cargo(&["nextest", "--version"]));
    let mut command = if nextest {
        place.cargo(&["nextest", "run", "--workspace"])
    } else {
        place.cargo(&[
            "test",
            "--workspace",
            "--no-fail-fast",
            "--lib",
            "--bins",
            "--tests",
        ])
    };
    if !place.binary_is_stale && place.binary.is_file() {
        command.env("CALLBOARD_BIN", &place.binary);
    }
    ended(command)
}

/// The examples in the documentation, which nextest does not run.
pub(super) fn doc_tests(place: &Place) -> Outcome {
    ended(place.cargo(&["test", "--workspace", "--doc", "--quiet"]))
}
