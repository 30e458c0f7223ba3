//! A Graph's source: where its body begins, and errors that point into it.

use std::fmt;

use callboard_domain::limits::SCRIPT_BYTES_MAX;

use crate::meta::{self, Meta};

/// What stands before the first line of the body when it is compiled, in columns.
pub(crate) const WRAPPER_OPENING: &str = "(async()=>{";
/// What stands behind the last line.
pub(crate) const WRAPPER_CLOSING: &str = "\n})";
/// The name that the body has in the engine's messages.
pub(crate) const FILE_NAME: &str = "graph.js";
/// Longest part of a source line that an error shows, in characters.
const EXCERPT_CHARS_MAX: usize = 120;

/// A mistake in a Graph's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// Line, counted from 1; 0 when the mistake has no place.
    pub line: u32,
    /// Column in characters, counted from 1; 0 when the mistake has no place.
    pub column: u32,
    /// What is wrong, in the engine's or our words.
    pub message: String,
    /// The text of that line.
    pub source_line: String,
}

impl ScriptError {
    /// A mistake at a byte offset of the source.
    pub(crate) fn at(source: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = source.get(..offset).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Self::at_line(source, to_u32(line), to_u32(column), message)
    }

    /// A mistake at a line and column of the source. A place behind the end becomes the end.
    pub(crate) fn at_line(
        source: &str,
        line: u32,
        column: u32,
        message: impl Into<String>,
    ) -> Self {
        let last = to_u32(source.lines().count()).max(1);
        let (line, behind) = if line > last {
            (last, true)
        } else {
            (line, false)
        };
        let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        let source_line = source.lines().nth(index).unwrap_or_default().to_owned();
        let end = to_u32(source_line.chars().count()) + 1;
        let column = if behind { end } else { column.min(end) };
        Self {
            line,
            column,
            message: message.into(),
            source_line,
        }
    }

    /// A mistake that concerns the whole of the source.
    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Self {
            line: 0,
            column: 0,
            message: message.into(),
            source_line: String::new(),
        }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str(&self.message);
        }
        let Self {
            line,
            column,
            message,
            ..
        } = self;
        writeln!(f, "line {line}, column {column}: {message}")?;
        let at = usize::try_from(*column).unwrap_or(1).saturating_sub(1);
        // A long line is shown from a little before the mistake.
        let from = at.saturating_sub(EXCERPT_CHARS_MAX / 2);
        let excerpt: String = self
            .source_line
            .chars()
            .skip(from)
            .take(EXCERPT_CHARS_MAX)
            .collect();
        let indent: String = excerpt
            .chars()
            .take(at - from)
            .map(|character| if character == '\t' { '\t' } else { ' ' })
            .collect();
        let gutter = line.to_string().len();
        writeln!(f, "  {line} | {}", excerpt.trim_end())?;
        write!(f, "  {:gutter$} | {indent}^", "")
    }
}

impl std::error::Error for ScriptError {}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A Graph whose `meta` was read.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) meta: Meta,
    /// The source with the word `export` blanked, so that every place keeps its numbers.
    pub(crate) body: String,
}

impl Script {
    /// Reads `meta` and prepares the body. Nothing is executed.
    pub(crate) fn parse(source: &str) -> Result<Self, ScriptError> {
        if source.len() > SCRIPT_BYTES_MAX {
            return Err(ScriptError::whole(format!(
                "the script has {} bytes; {SCRIPT_BYTES_MAX} is the most",
                source.len()
            )));
        }
        if let Some(offset) = source.find('\0') {
            return Err(ScriptError::at(
                source,
                offset,
                "a script holds no NUL character",
            ));
        }
        let (meta, export) = meta::read(source)?;
        let mut body = source.to_owned();
        body.replace_range(export.clone(), &" ".repeat(export.len()));
        // A byte order mark or an interpreter line is no JavaScript inside a function.
        if let Some(rest) = body.strip_prefix('\u{feff}') {
            body = format!(" {rest}");
        }
        if body.starts_with("#!") {
            body.replace_range(..2, "//");
        }
        Ok(Self { meta, body })
    }
}

/// The first `graph.js:line:column` in an engine's stack, with the column of the user's own line.
pub(crate) fn first_place(stack: &str) -> Option<(u32, u32)> {
    let marker = format!("{FILE_NAME}:");
    stack.match_indices(&marker).find_map(|(at, _)| {
        let mut numbers = stack[at + marker.len()..].splitn(3, [':', ')', '\n']);
        let line: u32 = numbers.next()?.parse().ok()?;
        let column: u32 = numbers.next()?.trim().parse().ok()?;
        let opening = to_u32(WRAPPER_OPENING.len());
        let column = if line == 1 {
            column.saturating_sub(opening).max(1)
        } else {
            column
        };
        Some((line, column))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_shows_its_line_and_points_at_the_place() {
        let source = format!(
            "{}\n  await agent(\"summarise\", {{ schema: S ) \n",
            "\n".repeat(12)
        );
        let error = ScriptError::at_line(&source, 14, 40, "Unexpected token ')'");
        assert_eq!(
            error.to_string(),
            "line 14, column 40: Unexpected token ')'\n\
             \u{20} 14 |   await agent(\"summarise\", { schema: S )\n\
             \u{20}    |                                        ^"
        );
    }

    #[test]
    fn a_place_behind_the_end_becomes_the_end() {
        let error = ScriptError::at_line("if (\n", 3, 1, "unexpected end");
        assert_eq!((error.line, error.column), (1, 5));
        assert_eq!(ScriptError::at_line("", 9, 9, "").line, 1);
    }

    #[test]
    fn a_long_line_is_shown_around_the_mistake() {
        let source = format!("{}!", "\u{d55c}".repeat(5_000));
        let text = ScriptError::at_line(&source, 1, 5_001, "wrong").to_string();
        assert!(text.chars().count() < 300, "{text}");
        assert!(text.contains('!'));
    }

    #[test]
    fn the_first_line_of_a_script_keeps_its_columns() {
        assert_eq!(first_place("    at f (graph.js:1:15)\n"), Some((1, 4)));
        assert_eq!(first_place("    at graph.js:2:15\n"), Some((2, 15)));
        assert_eq!(
            first_place("at x (native)\n at f (graph.js:3:1)"),
            Some((3, 1))
        );
        assert_eq!(first_place("at <anonymous>"), None);
    }
}
