//! The only place that prints. Data goes to stdout, everything else to stderr.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this module is the printer"
)]

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Prints lines for people, or one JSON value (or JSON lines) for programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    /// An output for people, or for programs with `json`.
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether a program reads the output.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether progress can redraw in place.
    pub(crate) fn is_live(&self) -> bool {
        !self.json
            && std::io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// A line of data for people; nothing for programs.
    pub(crate) fn line(&self, line: impl AsRef<str>) {
        if !self.json {
            print_line(line.as_ref());
        }
    }

    /// Data: the JSON for programs, the lines for people.
    pub(crate) fn data<T: Serialize>(&self, value: &T, lines: impl FnOnce() -> Vec<String>) {
        if self.json {
            print_line(&serde_json::to_string(value).unwrap_or_default());
        } else {
            lines().iter().for_each(|line| print_line(line));
        }
    }

    /// Data that is JSON for people, too.
    pub(crate) fn value(&self, value: &Value) {
        print_line(&if self.json {
            value.to_string()
        } else {
            format!("{value:#}")
        });
    }

    /// A remark beside the data.
    pub(crate) fn note(&self, note: impl AsRef<str>) {
        if !self.json {
            eprintln!("{}", note.as_ref());
        }
    }

    /// Shows a failure and gives the exit code.
    pub(crate) fn failure(&self, failure: &Failure) -> ExitCode {
        if self.json {
            print_line(&json!({"error": failure.message, "hint": failure.hint}).to_string());
        } else {
            eprintln!("error: {}", failure.message);
            if let Some(hint) = &failure.hint {
                eprintln!("hint:  {hint}");
            }
        }
        ExitCode::from(failure.exit as u8)
    }
}

/// Rows as aligned columns, without a border.
pub(crate) fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let padded: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A reader that went away, such as `head`, is no failure.
fn print_line(line: &str) {
    drop(writeln!(std::io::stdout().lock(), "{line}"));
}
