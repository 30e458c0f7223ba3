//! A crate's own clippy.toml replaces the root one instead of extending it, so it has to repeat the lists.

use super::Finding;
use crate::tree::Tree;

const ROOT: &str = "clippy.toml";
const LISTS: [&str; 2] = ["disallowed-methods", "disallowed-types"];

/// Each crate's own clippy.toml has the root's lists and thresholds.
pub(super) fn repeat_the_root(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let root = tree.toml(ROOT)?;
    let mut findings = Vec::new();
    for list in LISTS.into_iter().filter(|list| !root.contains_key(*list)) {
        findings.push(Finding::file(ROOT, format!("`{list}` is missing")));
    }
    let copies = tree
        .files("crates/", "clippy.toml")
        .chain(tree.files("xtask/", "clippy.toml"));
    for path in
        copies.filter(|path| path.ends_with("/clippy.toml") || path.ends_with("/.clippy.toml"))
    {
        let own = tree.toml(path)?;
        let differing = root
            .iter()
            .filter(|(key, value)| own.get(*key) != Some(*value))
            .map(|(key, _)| key);
        findings.extend(
            differing.map(|key| {
                Finding::file(path, format!("`{key}` differs from the root clippy.toml"))
            }),
        );
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sketch;

    const LISTED: &str =
        "disallowed-methods = [{ path = 'std::thread::sleep' }]\ndisallowed-types = []\n";

    #[test]
    fn a_copy_that_repeats_the_lists_and_adds_to_them_elsewhere_is_allowed() {
        let own = format!("{LISTED}large-error-threshold = 200\n");
        let (_folder, tree) =
            sketch::tree(&[("clippy.toml", LISTED), ("crates/fleet/clippy.toml", &own)]);
        assert!(repeat_the_root(&tree).unwrap().is_empty());
    }

    #[test]
    fn a_copy_with_a_shorter_list_is_found() {
        let own = "disallowed-methods = []\ndisallowed-types = []\n";
        let (_folder, tree) =
            sketch::tree(&[("clippy.toml", LISTED), ("crates/fleet/clippy.toml", own)]);
        let findings = repeat_the_root(&tree).unwrap();
        let expected =
            "crates/fleet/clippy.toml: `disallowed-methods` differs from the root clippy.toml";
        assert_eq!(
            findings.iter().map(Finding::to_string).collect::<Vec<_>>(),
            [expected]
        );
    }

    #[test]
    fn a_root_file_without_its_lists_is_found() {
        let (_folder, tree) = sketch::tree(&[("clippy.toml", "too-many-lines-threshold = 80\n")]);
        assert_eq!(repeat_the_root(&tree).unwrap().len(), 2);
    }
}
