//! What every Rust file keeps: its size, its first lines, and nothing left for later.

use super::Finding;
use crate::tree::Tree;

/// Longest file, in lines. 400 is normal; beyond 800 a file has become two rooms.
const LINES_MAX: usize = 800;
/// Longest opening, in lines. What needs more belongs in a document that it links to.
const OPENING_LINES_MAX: usize = 8;

/// Marks of unfinished work, each with what to do instead.
const UNFINISHED: &[(&str, &str)] = &[
    (
        "todo!",
        "write it, or open an issue and refuse the input with a reason",
    ),
    (
        "unimplemented!",
        "write it, or open an issue and refuse the input with a reason",
    ),
    (
        "dbg!",
        "remove it, or trace what somebody will want to read",
    ),
    (
        "FIXME",
        "fix it, or open an issue and say what holds until then",
    ),
    (
        "#[ignore",
        "assert what happens today and say why it is wrong",
    ),
];

/// No file is longer than 800 lines.
pub(super) fn are_small(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in tree.files("", ".rs") {
        let lines = tree.text(path)?.lines().count();
        if lines > LINES_MAX {
            findings.push(Finding::file(
                path,
                format!("{lines} lines, {LINES_MAX} at most: split it by what belongs together"),
            ));
        }
    }
    Ok(findings)
}

/// Each file opens with one to eight lines of `//!` that say what belongs in it.
pub(super) fn open_with_their_purpose(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in tree.files("", ".rs") {
        let text = tree.text(path)?;
        let opening = text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .count();
        let says_something = text
            .lines()
            .next()
            .is_some_and(|line| line.len() > "//! ".len());
        if opening == 0 || !says_something {
            findings.push(Finding::line(
                path,
                1,
                "open with `//!` and what belongs in this file",
            ));
        } else if opening > OPENING_LINES_MAX {
            findings.push(Finding::line(
                path,
                1,
                format!("{opening} lines of `//!`, {OPENING_LINES_MAX} at most"),
            ));
        }
    }
    Ok(findings)
}

/// The product's crates hold no mark of unfinished work, in code, tests or comments.
pub(super) fn are_finished(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in tree.files("crates/", ".rs") {
        for (number, line) in tree.text(path)?.lines().enumerate() {
            let marks = UNFINISHED.iter().filter(|(mark, _)| holds_word(line, mark));
            findings.extend(marks.map(|(mark, instead)| {
                Finding::line(path, number + 1, format!("`{mark}`: {instead}"))
            }));
        }
    }
    Ok(findings)
}

/// Whether `mark` stands in `line` and is not the end of a longer word.
fn holds_word(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sketch;

    #[test]
    fn a_file_of_801_lines_is_found_and_one_of_800_is_not() {
        let (long, longest) = ("\n".repeat(801), "\n".repeat(800));
        let (_folder, tree) = sketch::tree(&[
            ("crates/hub/src/a.rs", &long),
            ("crates/hub/src/b.rs", &longest),
        ]);
        let findings = are_small(&tree).unwrap();
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "crates/hub/src/a.rs");
    }

    #[test]
    fn a_file_that_does_not_say_what_belongs_in_it_is_found() {
        let (_folder, tree) = sketch::tree(&[
            ("crates/hub/src/late.rs", "use std::fmt;\n//! Late.\n"),
            ("crates/hub/src/empty.rs", ""),
            ("crates/hub/src/mute.rs", "//!\n"),
            ("crates/hub/src/long.rs", &"//! Words.\n".repeat(9)),
            ("crates/hub/src/good.rs", "//! What belongs here.\n"),
        ]);
        let paths: Vec<String> = open_with_their_purpose(&tree)
            .unwrap()
            .into_iter()
            .map(|found| found.path)
            .collect();
        let expected =
            ["empty", "late", "long", "mute"].map(|name| format!("crates/hub/src/{name}.rs"));
        assert_eq!(paths, expected);
    }

    #[test]
    fn each_mark_of_unfinished_work_is_found_with_its_line() {
        let text: String = UNFINISHED
            .iter()
            .map(|(mark, _)| format!("// {mark}\n"))
            .collect();
        let (_folder, tree) = sketch::tree(&[
            ("crates/hub/src/lib.rs", &text),
            ("xtask/src/main.rs", &text),
        ]);
        let lines: Vec<Option<usize>> = are_finished(&tree)
            .unwrap()
            .into_iter()
            .map(|found| found.line)
            .collect();
        assert_eq!(lines, [Some(1), Some(2), Some(3), Some(4), Some(5)]);
    }

    #[test]
    fn a_longer_word_that_ends_like_a_mark_is_not_found() {
        let (_folder, tree) = sketch::tree(&[("crates/hub/src/lib.rs", "my_todo!(); undbg!();\n")]);
        assert!(are_finished(&tree).unwrap().is_empty());
    }
}
