//! The rules that the compiler cannot keep, one function a rule, walked in one order by the command and by the tests.

mod architecture;
mod arrows;
mod clippy_lists;
mod documents;
mod manifests;
mod pins;
mod sources;

use std::collections::BTreeMap;
use std::fmt;

use crate::tree::Tree;

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// File, from the repository's root.
    pub(crate) path: String,
    /// Line, where one line is to blame.
    pub(crate) line: Option<usize>,
    /// What is wrong and what to do instead.
    pub(crate) problem: String,
}

impl Finding {
    /// A finding about a whole file.
    pub(crate) fn file(path: &str, problem: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
            problem: problem.into(),
        }
    }

    /// A finding about line `line`, counted from 1.
    pub(crate) fn line(path: &str, line: usize, problem: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: Some(line),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.problem),
            None => write!(f, "{}: {}", self.path, self.problem),
        }
    }
}

type Check = fn(&Tree) -> anyhow::Result<Vec<Finding>>;

/// Every rule by its name.
const CHECKS: &[(&str, Check)] = &[
    ("arrows point to a smaller ring", arrows::point_inwards),
    (
        "test crates are not shipped",
        arrows::test_crates_are_not_shipped,
    ),
    (
        "parts stay where they belong",
        arrows::parts_stay_where_they_belong,
    ),
    (
        "crates take lints and versions from the workspace",
        manifests::follow_the_workspace,
    ),
    (
        "every dependency has a user and a reason",
        manifests::dependencies_have_reasons,
    ),
    ("files are at most 800 lines", sources::are_small),
    (
        "files open with what belongs in them",
        sources::open_with_their_purpose,
    ),
    ("nothing unfinished", sources::are_finished),
    (
        "a crate's clippy.toml repeats the root lists",
        clippy_lists::repeat_the_root,
    ),
    ("a change note is present", documents::change_notes),
    (
        "invariants name what keeps them",
        architecture::invariants_name_what_keeps_them,
    ),
    ("links lead somewhere", architecture::links_lead_somewhere),
    ("every tool is documented", documents::tools),
    ("real clients are pinned", pins::clients),
];

/// Runs every check and returns the findings by rule.
///
/// # Errors
/// A file that a check needs is missing, unreadable, or not what its name says.
pub(crate) fn run_all(tree: &Tree) -> anyhow::Result<BTreeMap<&'static str, Vec<Finding>>> {
    CHECKS
        .iter()
        .map(|(rule, check)| Ok((*rule, check(tree)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn this_repository_keeps_its_rules() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let findings = run_all(&Tree::open(root).unwrap()).unwrap();
        let broken: Vec<String> = findings
            .values()
            .flatten()
            .map(Finding::to_string)
            .collect();
        assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    }

    #[test]
    fn a_finding_names_the_place_first() {
        assert_eq!(
            Finding::line("crates/hub/src/lib.rs", 3, "why").to_string(),
            "crates/hub/src/lib.rs:3: why"
        );
        assert_eq!(
            Finding::file("Cargo.toml", "why").to_string(),
            "Cargo.toml: why"
        );
    }
}
