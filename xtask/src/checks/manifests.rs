//! What Cargo.toml files say: which crate depends on which, and that versions, lints and reasons stand in one place.

use toml::{Table, Value};

use super::Finding;
use crate::tree::Tree;

const ROOT: &str = "Cargo.toml";
const REASONS: &str = "docs/decisions/0002-dependencies.md";

/// One crate of the workspace as its manifest describes it.
#[derive(Debug)]
pub(super) struct Manifest {
    /// The manifest, from the repository's root.
    pub(super) path: String,
    /// The crate's own folder, without its parents.
    pub(super) folder: String,
    /// The package's name.
    pub(super) name: String,
    /// Normal and build dependencies, for every target; development ones are exempt from the arrows.
    pub(super) dependencies: Vec<Dependency>,
    table: Table,
}

/// One normal or build dependency.
#[derive(Debug)]
pub(super) struct Dependency {
    /// The package's name, whatever it is renamed to.
    pub(super) name: String,
    /// It lies in this repository.
    pub(super) ours: bool,
    /// Its version is the workspace's.
    from_workspace: bool,
}

impl Manifest {
    /// Whether `key` is a dependency of any kind, for tests too.
    fn mentions(&self, key: &str) -> bool {
        places(&self.table).any(|place| {
            let sections = ["dependencies", "build-dependencies", "dev-dependencies"].into_iter();
            sections
                .filter_map(|section| place.get(section))
                .any(|section| section.get(key).is_some())
        })
    }
}

/// Where a manifest may have sections of dependencies: at its top, and below each target.
fn places(table: &Table) -> impl Iterator<Item = &Table> {
    let targets = table.get("target").and_then(Value::as_table);
    std::iter::once(table).chain(
        targets
            .into_iter()
            .flat_map(Table::values)
            .filter_map(Value::as_table),
    )
}

/// Reads the manifest of every crate, `xtask` among them.
pub(super) fn read(tree: &Tree) -> anyhow::Result<Vec<Manifest>> {
    let shared = workspace_dependencies(tree)?;
    let paths = tree
        .files("crates/", "/Cargo.toml")
        .chain(tree.files("xtask/", "/Cargo.toml"));
    paths
        .filter(|path| path.split('/').count() <= 3)
        .map(|path| read_one(tree, path, &shared))
        .collect()
}

fn read_one(tree: &Tree, path: &str, shared: &Table) -> anyhow::Result<Manifest> {
    let table = tree.toml(path)?;
    let name = table
        .get("package")
        .and_then(|package| package.get("name"))
        .and_then(Value::as_str);
    let Some(name) = name.map(str::to_owned) else {
        anyhow::bail!("{path} names no package")
    };
    let dependencies = places(&table)
        .flat_map(|place| {
            ["dependencies", "build-dependencies"]
                .into_iter()
                .filter_map(|section| place.get(section))
        })
        .filter_map(Value::as_table)
        .flatten()
        .map(|(key, value)| dependency(key, value, shared))
        .collect();
    let folder = path
        .trim_end_matches("/Cargo.toml")
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    Ok(Manifest {
        path: path.to_owned(),
        folder,
        name,
        dependencies,
        table,
    })
}

fn dependency(key: &str, value: &Value, shared: &Table) -> Dependency {
    let from_workspace = value.get("workspace").and_then(Value::as_bool) == Some(true);
    let described = if from_workspace {
        shared.get(key).unwrap_or(value)
    } else {
        value
    };
    let name = described
        .get("package")
        .and_then(Value::as_str)
        .unwrap_or(key)
        .to_owned();
    Dependency {
        name,
        ours: described.get("path").is_some(),
        from_workspace,
    }
}

fn workspace_dependencies(tree: &Tree) -> anyhow::Result<Table> {
    let root = tree.toml(ROOT)?;
    let shared = root
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"));
    Ok(shared
        .and_then(Value::as_table)
        .cloned()
        .unwrap_or_default())
}

/// Each crate inherits the lints, and each version stands in the root manifest and is no `*`.
pub(super) fn follow_the_workspace(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for manifest in read(tree)? {
        let lints = manifest
            .table
            .get("lints")
            .and_then(|lints| lints.get("workspace"));
        if lints.and_then(Value::as_bool) != Some(true) {
            findings.push(Finding::file(
                &manifest.path,
                "add `[lints] workspace = true`",
            ));
        }
        let own = manifest
            .dependencies
            .iter()
            .filter(|dependency| !dependency.from_workspace);
        findings.extend(own.map(|dependency| {
            let name = &dependency.name;
            Finding::file(
                &manifest.path,
                format!("`{name}` must be `workspace = true`, its version in the root manifest"),
            )
        }));
    }
    let stars = workspace_dependencies(tree)?
        .into_iter()
        .filter(|(_, value)| {
            let version = value
                .as_str()
                .or_else(|| value.get("version").and_then(Value::as_str));
            version.is_some_and(|version| version.contains('*'))
        });
    findings
        .extend(stars.map(|(name, _)| {
            Finding::file(ROOT, format!("`{name}` may not have the version `*`"))
        }));
    Ok(findings)
}

/// Each third-party dependency of the workspace is used, and has a row in the decision that gives the reasons; no row is
/// left over.
pub(super) fn dependencies_have_reasons(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let reasons = tree.text_if_present(REASONS)?.unwrap_or_default();
    let manifests = read(tree)?;
    let shared = workspace_dependencies(tree)?;
    let rows = reasons
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name);
    let left_over = rows.filter(|name| !shared.contains_key(*name));
    let mut findings: Vec<Finding> = left_over
        .map(|name| Finding::file(REASONS, format!("`{name}` is no dependency: drop the row")))
        .collect();
    for (name, described) in &shared {
        if described.get("path").is_none() && !reasons.contains(&format!("`{name}`")) {
            findings.push(Finding::file(
                REASONS,
                format!("says nothing of `{name}`: what it does here, and what was rejected"),
            ));
        }
        if !manifests.iter().any(|manifest| manifest.mentions(name)) {
            findings.push(Finding::file(
                ROOT,
                format!("`{name}` is used by no crate: drop it"),
            ));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sketch;

    #[test]
    fn a_crate_without_the_lints_or_with_a_version_of_its_own_is_found() {
        let (_folder, tree) = sketch::tree(&[
            (
                "Cargo.toml",
                "[workspace.dependencies]\nserde = '*'\ntoml = { version = '1.*' }\nclap = '4'\n",
            ),
            (
                "crates/hub/Cargo.toml",
                "[package]\nname = 'callboard-hub'\n[dependencies]\nserde = '1'\n",
            ),
        ]);
        let problems: Vec<String> = follow_the_workspace(&tree)
            .unwrap()
            .iter()
            .map(Finding::to_string)
            .collect();
        assert_eq!(
            problems,
            [
                "crates/hub/Cargo.toml: add `[lints] workspace = true`",
                "crates/hub/Cargo.toml: `serde` must be `workspace = true`, its version in the root manifest",
                "Cargo.toml: `serde` may not have the version `*`",
                "Cargo.toml: `toml` may not have the version `*`",
            ]
        );
    }

    #[test]
    fn a_dependency_without_a_reason_or_a_user_is_found() {
        let root = "[workspace.dependencies]\nserde = '1'\ntoml = '1'\nx = { path = 'crates/x' }\n";
        let used = "[package]\nname = 'callboard-hub'\n[dependencies]\nx.workspace = true\n\
                    [target.'cfg(unix)'.dev-dependencies]\ntoml.workspace = true\n";
        let (_folder, tree) = sketch::tree(&[
            ("Cargo.toml", root),
            ("crates/hub/Cargo.toml", used),
            (
                REASONS,
                "| `serde` | reads and writes |\n| `rand` | dice |\n",
            ),
        ]);
        let problems: Vec<String> = dependencies_have_reasons(&tree)
            .unwrap()
            .iter()
            .map(Finding::to_string)
            .collect();
        let left_over = format!("{REASONS}: `rand` is no dependency: drop the row");
        let unexplained =
            format!("{REASONS}: says nothing of `toml`: what it does here, and what was rejected");
        assert_eq!(
            problems,
            [
                left_over,
                "Cargo.toml: `serde` is used by no crate: drop it".to_owned(),
                unexplained
            ]
        );
    }

    #[test]
    fn dependencies_of_a_target_and_renamed_ones_are_seen_under_their_own_name() {
        let (_folder, tree) = sketch::tree(&[
            (
                "Cargo.toml",
                "[workspace.dependencies]\nboard = { package = 'callboard-domain', path = 'crates/domain' }\n",
            ),
            (
                "crates/hub/Cargo.toml",
                "[package]\nname = 'callboard-hub'\n[target.'cfg(unix)'.dependencies]\nboard.workspace = true\n\
                 [build-dependencies]\ncc = '1'\n[dev-dependencies]\nhidden = '1'\n",
            ),
        ]);
        let manifests = read(&tree).unwrap();
        let seen: Vec<(&str, bool)> = manifests[0]
            .dependencies
            .iter()
            .map(|found| (found.name.as_str(), found.ours))
            .collect();
        assert_eq!(seen, [("cc", false), ("callboard-domain", true)]);
    }
}
