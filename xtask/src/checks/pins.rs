//! The real clients' packages: exact versions, and no address of a registry.

use super::Finding;
use crate::tree::Tree;

const PACKAGE: &str = "tests/clients/package.json";
const LOCK: &str = "tests/clients/package-lock.json";
const REQUIREMENTS: &str = "tests/clients/requirements.txt";

/// npm and pip packages are pinned exactly, and the lock file names no host that a package came from.
pub(super) fn clients(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if let Some(text) = tree.text_if_present(PACKAGE)? {
        let package: serde_json::Value = serde_json::from_str(&text)?;
        let versions = package
            .get("dependencies")
            .and_then(serde_json::Value::as_object);
        let loose = versions
            .into_iter()
            .flatten()
            .filter(|(_, version)| !version.as_str().is_some_and(is_exact));
        findings.extend(
            loose.map(|(name, _)| {
                Finding::file(PACKAGE, format!("`{name}` needs an exact version"))
            }),
        );
        match tree.text_if_present(LOCK)? {
            None => findings.push(Finding::file(LOCK, "is missing beside package.json")),
            Some(lock) => findings.extend(addresses(&lock)),
        }
    }
    for (number, line) in tree
        .text_if_present(REQUIREMENTS)?
        .unwrap_or_default()
        .lines()
        .enumerate()
    {
        let requirement = line
            .split('#')
            .next()
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        let exact = requirement
            .split_once("==")
            .is_some_and(|(_, version)| is_exact(version));
        if !requirement.is_empty() && !exact {
            findings.push(Finding::line(
                REQUIREMENTS,
                number + 1,
                format!("`{requirement}` needs an exact version: NAME==VERSION"),
            ));
        }
    }
    Ok(findings)
}

fn addresses(lock: &str) -> Vec<Finding> {
    let numbered = lock.lines().enumerate();
    let named = numbered.filter(|(_, line)| line.trim_start().starts_with("\"resolved\""));
    named
        .map(|(number, _)| {
            Finding::line(
                LOCK,
                number + 1,
                "names a host: see tests/clients/README.md",
            )
        })
        .collect()
}

fn is_exact(version: &str) -> bool {
    version.starts_with(|first: char| first.is_ascii_digit())
        && version
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || ".-+".contains(letter))
        && !version.split('.').any(|part| part == "x")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sketch;

    #[test]
    fn loose_versions_and_named_hosts_are_found() {
        let (_folder, tree) = sketch::tree(&[
            (
                PACKAGE,
                "{\"dependencies\": {\"a\": \"^1.0.0\", \"b\": \"1.0.0\", \"c\": \"1.x\"}}",
            ),
            (
                LOCK,
                "{\n  \"resolved\": \"https://host.example/a.tgz\"\n}\n",
            ),
            (REQUIREMENTS, "# pins\nmcp==2.3.0\nfastmcp>=4\nanyio==4.*\n"),
        ]);
        let problems: Vec<String> = clients(&tree)
            .unwrap()
            .iter()
            .map(Finding::to_string)
            .collect();
        assert_eq!(
            problems,
            [
                "tests/clients/package.json: `a` needs an exact version",
                "tests/clients/package.json: `c` needs an exact version",
                "tests/clients/package-lock.json:2: names a host: see tests/clients/README.md",
                "tests/clients/requirements.txt:3: `fastmcp>=4` needs an exact version: NAME==VERSION",
                "tests/clients/requirements.txt:4: `anyio==4.*` needs an exact version: NAME==VERSION",
            ]
        );
    }

    #[test]
    fn a_missing_lock_is_found() {
        let (_folder, tree) = sketch::tree(&[(PACKAGE, "{}")]);
        assert_eq!(
            clients(&tree).unwrap(),
            [Finding::file(LOCK, "is missing beside package.json")]
        );
    }
}
