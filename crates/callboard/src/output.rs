//! The only place that prints. Data goes to stdout, everything else to stderr.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::OnceLock;

use callboard_domain::is_deceptive;
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Why data could not be printed, once it could not.
static UNPRINTED: OnceLock<String> = OnceLock::new();

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
            print_line(&visible(line.as_ref()));
        }
    }

    /// Data: the JSON for programs, the lines for people.
    pub(crate) fn data<T: Serialize>(&self, value: &T, lines: impl FnOnce() -> Vec<String>) {
        if self.json {
            print_line(&escaped(&serde_json::to_string(value).unwrap_or_default()));
        } else {
            lines().iter().for_each(|line| print_line(&visible(line)));
        }
    }

    /// Data that is JSON for people, too.
    pub(crate) fn value(&self, value: &Value) {
        print_line(&escaped(&if self.json {
            value.to_string()
        } else {
            format!("{value:#}")
        }));
    }

    /// A remark beside the data.
    pub(crate) fn note(&self, note: impl AsRef<str>) {
        if !self.json {
            print_note(&visible(note.as_ref()));
        }
    }

    /// Something was done, and there is nothing else to say.
    pub(crate) fn done(&self, what: impl AsRef<str>) {
        if self.json {
            print_line(&escaped(&json!({"done": what.as_ref()}).to_string()));
        } else {
            self.note(what);
        }
    }

    /// Shows a failure and gives the exit code.
    pub(crate) fn failure(&self, failure: &Failure) -> ExitCode {
        if self.json && failure.told {
            return ExitCode::from(failure.exit as u8);
        }
        if self.json {
            let told = json!({"error": failure.message, "hint": failure.hint});
            print_line(&escaped(&told.to_string()));
        } else {
            print_note(&format!("error: {}", visible(&failure.message)));
            if let Some(hint) = &failure.hint {
                print_note(&format!("hint:  {}", visible(hint)));
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

/// Text as a terminal may show it: what a Graph, a model or a file wrote must not move the cursor,
/// set the title or turn the direction of its neighbours.
fn visible(text: &str) -> String {
    let unsafe_here =
        |character: char| is_deceptive(character) && character != '\n' && character != '\t';
    text.replace(unsafe_here, "\u{fffd}")
}

/// JSON that means the same and that a terminal may show, too: what could steer it can only stand in
/// a string, where an escape says it.
fn escaped(json: &str) -> String {
    let unsafe_here = |character: &char| is_deceptive(*character) && *character != '\n';
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if unsafe_here(&character) {
            text.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            text.push(character);
        }
    }
    text
}

/// A failure if something that was to be printed is lost: a token is shown only once.
pub(crate) fn all_printed() -> Result<(), Failure> {
    match UNPRINTED.get() {
        Some(reason) => Err(Failure::failed(format!(
            "what this printed is lost: {reason}"
        ))),
        None => Ok(()),
    }
}

/// A reader that went away, such as `head`, is no failure.
fn print_line(line: &str) {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            // The first reason is as good as any later one.
            drop(UNPRINTED.set(error.to_string()));
        }
        Ok(()) | Err(_) => {}
    }
}

/// A remark that nobody can read stops nothing.
fn print_note(note: &str) {
    drop(writeln!(std::io::stderr().lock(), "{note}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_steer_a_terminal_is_shown_as_replaced() {
        let shown = visible("a\x1b[2Jb\u{202e}c\r\n\td\u{9b}");
        assert_eq!(shown, "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\n\td\u{fffd}");
        assert_eq!(visible("\u{d55c}\u{1F600}"), "\u{d55c}\u{1F600}");
    }

    #[test]
    fn json_for_a_terminal_means_the_same() {
        let value = json!({"a\u{9b}": "b\u{202e}c\n\u{7f}\u{2028}\u{1F600}"});
        for json in [value.to_string(), format!("{value:#}")] {
            let shown = escaped(&json);
            assert!(
                !shown.contains(|seen| is_deceptive(seen) && seen != '\n'),
                "{shown}"
            );
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "b"], ["long", "c"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), ["a     b", "long  c"]);
    }
}
