//! The only place that prints. The report is what was asked for, so it goes to stdout; errors and hints go to stderr.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the one place of this program that prints"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::checks::Finding;
use crate::test::{Outcome, Report};

/// Wide enough for the name of any step, so that outcomes printed one after another stand in one column.
const NAME_COLUMN: usize = 20;

/// Prints one line a check, then each finding.
pub(crate) fn checks(findings: &BTreeMap<&'static str, Vec<Finding>>) {
    let width = findings
        .keys()
        .map(|rule| rule.chars().count())
        .max()
        .unwrap_or(0);
    for (rule, found) in findings {
        match found.len() {
            0 => println!("{rule:width$}  holds"),
            1 => println!("{rule:width$}  1 finding"),
            several => println!("{rule:width$}  {several} findings"),
        }
    }
    for finding in findings.values().flatten() {
        println!("error: {finding}");
    }
}

/// Opens a step: its place, its name, what is run.
pub(crate) fn heading(number: usize, of: usize, name: &str, what: &str) {
    println!("\n{number} of {of}  {name}  {what}");
}

/// Closes a step with its outcome and time.
pub(crate) fn outcome(report: &Report) {
    println!("{}", line(report, NAME_COLUMN));
}

/// A line that a client or a tool wrote, set in from the left.
pub(crate) fn quoted(text: &str) {
    println!("    {text}");
}

/// What the step is doing now.
pub(crate) fn note(text: &str) {
    println!("  {text}");
}

/// Every step again, then what could not run and why, then the counts as the last line.
pub(crate) fn summary(reports: &[Report], elapsed: Duration, skips_fail: bool) {
    println!("\nsummary  {}", seconds(elapsed));
    let width = reports
        .iter()
        .map(|report| report.name.chars().count())
        .max()
        .unwrap_or(0);
    for report in reports {
        println!("  {}", line(report, width));
    }
    if reports
        .iter()
        .any(|report| matches!(report.outcome, Outcome::CouldNotRun(_)))
    {
        println!("\nNOT EVERYTHING RAN. What could not run is not known to work.");
        if skips_fail {
            println!("With CI=true each of these steps counts as failed.");
        }
    }
    println!("\n{}", closing(reports, skips_fail));
}

/// `N passed, N failed`, and `, N skipped` where something could not run and is forgiven.
fn closing(reports: &[Report], skips_fail: bool) -> String {
    let count = |wanted: fn(&Outcome) -> bool| {
        reports
            .iter()
            .filter(|report| wanted(&report.outcome))
            .count()
    };
    let passed = count(|outcome| matches!(outcome, Outcome::Passed));
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let missing = count(|outcome| matches!(outcome, Outcome::CouldNotRun(_)));
    match (missing, skips_fail) {
        (0, _) => format!("{passed} passed, {failed} failed"),
        (_, true) => format!("{passed} passed, {} failed", failed + missing),
        (_, false) => format!("{passed} passed, {failed} failed, {missing} skipped"),
    }
}

fn line(report: &Report, width: usize) -> String {
    let name = &report.name;
    let time = seconds(report.elapsed);
    match &report.outcome {
        Outcome::Passed => format!("{name:width$}  passed         {time:>8}"),
        Outcome::Failed(reason) => format!("{name:width$}  failed         {time:>8}  {reason}"),
        Outcome::CouldNotRun(reason) => {
            format!("{name:width$}  could not run  {:>8}  {reason}", "")
        }
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// What happened.
pub(crate) fn error(text: &str) {
    eprintln!("error: {text}");
}

/// One thing to do about it.
pub(crate) fn hint(text: &str) {
    eprintln!("hint:  {text}");
}

/// The end of a log file, for the step that failed.
pub(crate) fn tail(path: &Path, lines: usize) {
    let Ok(text) = std::fs::read_to_string(path) else {
        return;
    };
    let all: Vec<&str> = text.lines().collect();
    println!("  the last lines of {}:", path.display());
    for text in all.iter().skip(all.len().saturating_sub(lines)) {
        quoted(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcome: Outcome) -> Report {
        Report {
            name: "clippy".to_owned(),
            outcome,
            elapsed: Duration::from_millis(1_240),
        }
    }

    #[test]
    fn the_closing_line_counts_steps() {
        let reports = [
            report(Outcome::Passed),
            report(Outcome::Failed("exit code 101".to_owned())),
        ];
        assert_eq!(closing(&reports, false), "1 passed, 1 failed");
    }

    #[test]
    fn a_step_that_could_not_run_is_skipped_by_hand_and_failed_in_ci() {
        let reports = [
            report(Outcome::Passed),
            report(Outcome::CouldNotRun("node is missing".to_owned())),
        ];
        assert_eq!(closing(&reports, false), "1 passed, 0 failed, 1 skipped");
        assert_eq!(closing(&reports, true), "1 passed, 1 failed");
    }

    #[test]
    fn a_line_of_the_summary_gives_name_outcome_time_and_reason() {
        let failed = report(Outcome::Failed("exit code 101".to_owned()));
        assert_eq!(
            line(&failed, 8),
            "clippy    failed            1.2 s  exit code 101"
        );
    }
}
