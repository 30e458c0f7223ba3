//! Documents that speak of the code: their links lead somewhere, and an invariant names what keeps it.

use super::Finding;
use crate::tree::Tree;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// Longest map, in lines. What a newcomer does not read to the end is no map.
const LINES_MAX: usize = 400;
/// A name with as many underscores is a test's: a sentence, not a function.
const UNDERSCORES_OF_A_TEST: usize = 3;

/// ARCHITECTURE.md is short; each of its invariants names what keeps it, and the tests that it names exist.
pub(super) fn invariants_name_what_keeps_them(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let Some(text) = tree.text_if_present(ARCHITECTURE)? else {
        return Ok(Vec::new());
    };
    let mut findings = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() > LINES_MAX {
        findings.push(Finding::file(
            ARCHITECTURE,
            format!("{} lines, {LINES_MAX} at most", lines.len()),
        ));
    }
    let code = code(tree)?;
    for (number, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains("**Invariant"))
    {
        // The names may stand on the following lines of the same paragraph, up to the next invariant.
        let rest = lines
            .iter()
            .skip(number + 1)
            .take_while(|next| !next.trim().is_empty() && !next.contains("**Invariant"));
        let paragraph = std::iter::once(line)
            .chain(rest)
            .copied()
            .collect::<Vec<_>>()
            .join(" ");
        let named: Vec<&str> = paragraph.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            findings.push(Finding::line(
                ARCHITECTURE,
                number + 1,
                "name the test or lint that keeps this invariant, in backticks",
            ));
        }
        let missing = named
            .into_iter()
            .filter(|name| is_test_name(name) && !code.contains(&format!("fn {name}(")));
        findings.extend(missing.map(|name| {
            Finding::line(
                ARCHITECTURE,
                number + 1,
                format!("there is no test `{name}`"),
            )
        }));
    }
    Ok(findings)
}

fn code(tree: &Tree) -> anyhow::Result<String> {
    tree.files("", ".rs").map(|path| tree.text(path)).collect()
}

fn is_test_name(name: &str) -> bool {
    name.matches('_').count() >= UNDERSCORES_OF_A_TEST
        && name
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

/// A link from one document to a file or folder of the repository finds it.
pub(super) fn links_lead_somewhere(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for path in tree.files("", ".md") {
        let mut in_code = false;
        for (number, line) in tree.text(path)?.lines().enumerate() {
            in_code ^= line.trim_start().starts_with("```");
            if in_code {
                continue;
            }
            let lost = targets(line).filter(|target| !leads_somewhere(tree, path, target));
            findings.extend(lost.map(|target| {
                Finding::line(path, number + 1, format!("`{target}` leads nowhere"))
            }));
        }
    }
    Ok(findings)
}

/// Where the links of a line lead to, without anchors and without what lies outside the repository.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?.split('#').next()?;
        (!target.is_empty() && !target.contains(':')).then_some(target)
    })
}

fn leads_somewhere(tree: &Tree, from: &str, target: &str) -> bool {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    let path = parts.join("/");
    tree.files(&path, "")
        .any(|file| file == path || file.starts_with(&format!("{path}/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sketch;

    fn problems(check: super::super::Check, files: &[(&str, &str)]) -> Vec<String> {
        let (_folder, tree) = sketch::tree(files);
        check(&tree)
            .unwrap()
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn an_invariant_without_a_keeper_or_with_one_that_is_gone_is_found() {
        let map = "# Map\n\n**Invariant:** nothing connects to the desktop.\n\n**Invariant:** a read never writes, see\n\
                   `a_read_takes_no_lock` and `a_read_is_only_a_read`, in `store`.\n";
        let found = problems(
            invariants_name_what_keeps_them,
            &[
                (ARCHITECTURE, map),
                ("crates/store/src/lib.rs", "fn a_read_takes_no_lock() {}\n"),
            ],
        );
        assert_eq!(
            found,
            [
                "ARCHITECTURE.md:3: name the test or lint that keeps this invariant, in backticks",
                "ARCHITECTURE.md:5: there is no test `a_read_is_only_a_read`",
            ]
        );
    }

    #[test]
    fn a_map_of_401_lines_is_found() {
        let found = problems(
            invariants_name_what_keeps_them,
            &[(ARCHITECTURE, &"\n".repeat(401))],
        );
        assert_eq!(found, ["ARCHITECTURE.md: 401 lines, 400 at most"]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let text = "[a](../SECURITY.md#reporting) [b](other.md) [c](https://example.org) [d](#here) [e](../docs/)\n\
                    ```\n[f](sample.md)\n```\n[g](../SECURITY.m)\n";
        let found = problems(
            links_lead_somewhere,
            &[("docs/guide.md", text), ("SECURITY.md", "# Security\n")],
        );
        assert_eq!(
            found,
            [
                "docs/guide.md:1: `other.md` leads nowhere",
                "docs/guide.md:5: `../SECURITY.m` leads nowhere"
            ]
        );
    }
}
