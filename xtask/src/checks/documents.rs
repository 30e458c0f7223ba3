//! Documents that have to move with the code: change notes and the reference of the tools.

use super::Finding;
use crate::tree::Tree;

const NOTES: &str = "changes/unreleased/";
const CHANGELOG: &str = "CHANGELOG.md";
const TOOLS: &str = "crates/hub-http/src/mcp/tools/";
const REFERENCE: &str = "docs/reference/tools.md";

/// There is a change note since the last release, and each one has a title and a text.
pub(super) fn change_notes(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let notes: Vec<&str> = tree.files(NOTES, ".md").collect();
    if notes.is_empty() && !is_released(tree)? {
        findings.push(Finding::file(
            NOTES,
            "no change note: see CONTRIBUTING.md, \"Change notes\"",
        ));
    }
    for path in notes {
        let text = tree.text(path)?;
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        if !lines.next().is_some_and(|first| first.starts_with("# ")) || lines.next().is_none() {
            findings.push(Finding::file(
                path,
                "a note is a `# ` title and what changed, whom it touches, what to do",
            ));
        }
    }
    Ok(findings)
}

/// Whether the changelog's newest section is the version that the manifests carry: then no note is due yet.
fn is_released(tree: &Tree) -> anyhow::Result<bool> {
    let root = tree.toml("Cargo.toml")?;
    let package = root
        .get("workspace")
        .and_then(|workspace| workspace.get("package"));
    let version = package
        .and_then(|package| package.get("version"))
        .and_then(toml::Value::as_str);
    let changelog = tree.text_if_present(CHANGELOG)?.unwrap_or_default();
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## "));
    Ok(newest
        .zip(version)
        .is_some_and(|(newest, version)| newest.split_whitespace().next() == Some(version)))
}

/// The reference has a section for each tool; a tool's file carries its name.
pub(super) fn tools(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let names: Vec<&str> = tree
        .files(TOOLS, ".rs")
        .filter_map(|path| path.strip_prefix(TOOLS)?.strip_suffix(".rs"))
        .filter(|name| *name != "mod")
        .collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let reference = tree.text_if_present(REFERENCE)?.unwrap_or_default();
    Ok(names
        .into_iter()
        .filter(|name| !has_section(&reference, name))
        .map(|name| {
            Finding::file(
                REFERENCE,
                format!("the tool `{name}` has no heading of its own"),
            )
        })
        .collect())
}

fn has_section(reference: &str, tool: &str) -> bool {
    let quoted = format!("`{tool}`");
    reference
        .lines()
        .any(|line| line.starts_with('#') && line.contains(&quoted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sketch;

    const MANIFEST: &str = "[workspace.package]\nversion = '0.2.0'\n";

    fn problems(check: super::super::Check, files: &[(&str, &str)]) -> Vec<String> {
        let (_folder, tree) = sketch::tree(files);
        check(&tree)
            .unwrap()
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn a_repository_without_a_change_note_is_found() {
        let found = problems(
            change_notes,
            &[
                ("Cargo.toml", MANIFEST),
                (CHANGELOG, "# Changelog\n\n## 0.1.0\n"),
            ],
        );
        assert_eq!(
            found,
            ["changes/unreleased/: no change note: see CONTRIBUTING.md, \"Change notes\""]
        );
    }

    #[test]
    fn no_note_is_due_right_after_a_release() {
        let changelog = "# Changelog\n\n## 0.2.0 · 2026-12-01\n";
        assert!(
            problems(
                change_notes,
                &[("Cargo.toml", MANIFEST), (CHANGELOG, changelog)]
            )
            .is_empty()
        );
    }

    #[test]
    fn a_note_without_title_or_text_is_found() {
        let files = [
            ("Cargo.toml", MANIFEST),
            ("changes/unreleased/a.md", "# Only a title\n"),
            ("changes/unreleased/b.md", "Text.\n\nText.\n"),
        ];
        assert_eq!(problems(change_notes, &files).len(), 2);
        assert!(
            problems(
                change_notes,
                &[
                    ("Cargo.toml", MANIFEST),
                    ("changes/unreleased/a.md", "# Title\n\nText.\n")
                ]
            )
            .is_empty()
        );
    }

    #[test]
    fn an_undocumented_tool_is_found() {
        let files = [
            ("crates/hub-http/src/mcp/tools/mod.rs", ""),
            ("crates/hub-http/src/mcp/tools/list_projects.rs", ""),
            ("crates/hub-http/src/mcp/tools/get_graph_run.rs", ""),
            (
                REFERENCE,
                "## `list_projects`\n\nIt is followed by `get_graph_run`.\n",
            ),
        ];
        assert_eq!(
            problems(tools, &files),
            ["docs/reference/tools.md: the tool `get_graph_run` has no heading of its own"]
        );
    }

    #[test]
    fn without_tools_no_reference_is_due() {
        assert!(problems(tools, &[("Cargo.toml", MANIFEST)]).is_empty());
    }
}
