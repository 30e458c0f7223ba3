//! The test command: its steps in order, each with a heading, a time and an outcome, and a summary as the end.
//! A step that fails does not keep the later ones from running.

mod clients;
mod hub;
mod packages;
mod programs;
mod steps;

use std::path::Path;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::{output, process};

/// How to run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Install missing Debian packages (implied by CI=true).
    #[arg(long)]
    install: bool,
    /// Run only this step; may be given several times.
    #[arg(long, value_name = "STEP")]
    only: Vec<Step>,
}

/// The steps in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// rustfmt would change nothing.
    Format,
    /// `cargo xtask check`.
    Rules,
    /// clippy finds nothing.
    Lints,
    /// The release binary, which black-box tests and real clients use.
    Release,
    /// The published tables, and five thousand random bad days, by the release binary.
    Simulator,
    /// The workspace's tests.
    Tests,
    /// The examples in the documentation.
    DocTests,
    /// Real MCP clients against the running release binary.
    Clients,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran, and what it looked at is right.
    Passed,
    /// It ran, and something is wrong.
    Failed(String),
    /// Something that it needs is not there.
    CouldNotRun(String),
}

/// One line of the summary.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// What ran.
    pub(crate) name: String,
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// How long it took.
    pub(crate) elapsed: Duration,
}

impl Report {
    /// Closes what began at `start`, and prints the outcome.
    fn close(name: &str, start: Instant, outcome: Outcome) -> Self {
        let report = Self {
            name: name.to_owned(),
            outcome,
            elapsed: process::since(start),
        };
        output::outcome(&report);
        report
    }
}

/// Runs the steps and prints the summary. True when nothing failed; with CI=true, when everything also ran.
///
/// # Errors
/// Cargo cannot say where it builds.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<bool> {
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    let start = process::now();
    let mut place = steps::Place::find(root)?;
    place.missing = programs::ensure(options.install || ci)?;
    let wanted: Vec<Step> = Step::value_variants()
        .iter()
        .copied()
        .filter(|step| options.only.is_empty() || options.only.contains(step))
        .collect();
    let mut reports = Vec::new();
    for (index, step) in wanted.iter().enumerate() {
        let (name, what) = steps::describe(*step);
        output::heading(index + 1, wanted.len(), name, what);
        reports.extend(run_step(&mut place, *step, name));
    }
    output::summary(&reports, process::since(start), ci);
    Ok(reports.iter().all(|report| match report.outcome {
        Outcome::Passed => true,
        Outcome::Failed(_) => false,
        Outcome::CouldNotRun(_) => !ci,
    }))
}

fn run_step(place: &mut steps::Place, step: Step, name: &str) -> Vec<Report> {
    let start = process::now();
    let outcome = match step {
        Step::Format => steps::format(place),
        Step::Rules => steps::rules(place),
        Step::Lints => steps::lints(place),
        Step::Release => steps::release(place),
        Step::Simulator => steps::simulator(place),
        Step::Tests => steps::tests(place),
        Step::DocTests => steps::doc_tests(place),
        Step::Clients => return clients::run(place),
    };
    vec![Report::close(name, start, outcome)]
}
