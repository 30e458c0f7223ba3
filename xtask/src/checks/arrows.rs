//! The rings of ARCHITECTURE.md as a table, and the arrows that the manifests draw between them.

use super::Finding;
use super::manifests::{self, Manifest};
use crate::tree::Tree;

/// Which half of the product a crate belongs to. Hub and desktop meet only in `Whole`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Shared,
    Hub,
    Desktop,
    Whole,
}

/// A crate's place: folder, ring, side. An arrow goes to a smaller ring, on its own side or the shared one.
const RINGS: &[(&str, u8, Side)] = &[
    ("domain", 0, Side::Shared),
    ("ambient", 1, Side::Shared),
    ("wire", 1, Side::Shared),
    ("store", 2, Side::Hub),
    ("relay", 2, Side::Desktop),
    ("agents", 2, Side::Desktop),
    ("store-sqlite", 3, Side::Hub),
    ("store-postgres", 3, Side::Hub),
    ("store-testkit", 3, Side::Hub),
    ("hub", 3, Side::Hub),
    ("fleet", 3, Side::Desktop),
    ("hub-http", 4, Side::Hub),
    ("desktop", 4, Side::Desktop),
    ("sim", 4, Side::Whole),
    ("bench", 4, Side::Whole),
    ("callboard", 5, Side::Whole),
];

/// Crates that only tests may use.
const TEST_CRATES: &[&str] = &["store-testkit"];

/// Third-party crates that only the named crates may use, and why.
const ONLY_IN: &[(&str, &[&str], &str)] = &[
    (
        "anyhow",
        &["callboard", "bench", "xtask"],
        "libraries name their errors",
    ),
    (
        "axum",
        &["hub-http"],
        "only `hub-http` knows HTTP on the hub's side",
    ),
    (
        "tower-http",
        &["hub-http"],
        "only `hub-http` knows HTTP on the hub's side",
    ),
    (
        "rusqlite",
        &["store-sqlite", "desktop", "bench"],
        "SQL lives in the stores, and in the benchmark's naive rivals",
    ),
    (
        "tokio-postgres",
        &["store-postgres"],
        "SQL lives in the stores",
    ),
    (
        "rquickjs",
        &["fleet"],
        "scripts run in the sandbox process of `fleet`",
    ),
    (
        "genai",
        &["agents"],
        "models are behind the trait of `agents`",
    ),
    (
        "getrandom",
        &["ambient"],
        "randomness enters through `ambient`",
    ),
    (
        "clap",
        &["callboard", "bench", "xtask"],
        "arguments are read in the binary",
    ),
];

/// Third-party crates that may not be used by the named crate, and why.
const KEPT_OUT: &[(&str, &[&str], &str)] = &[
    (
        "domain",
        &[
            "chrono",
            "futures",
            "log",
            "serde",
            "serde_json",
            "tokio",
            "tracing",
        ],
        "the domain only thinks",
    ),
    (
        "relay",
        &["futures", "hyper", "reqwest", "tokio", "tracing"],
        "the relay says what to do and does nothing itself",
    ),
    (
        "store",
        &["http", "hyper", "reqwest", "rmcp"],
        "a store knows no HTTP",
    ),
    (
        "store-sqlite",
        &["http", "hyper", "reqwest", "rmcp"],
        "a store knows no HTTP",
    ),
    (
        "store-postgres",
        &["http", "hyper", "reqwest", "rmcp"],
        "a store knows no HTTP",
    ),
    (
        "hub",
        &["http", "hyper", "reqwest", "rmcp"],
        "the use cases know no HTTP",
    ),
];

/// The folder that a crate of this name must lie in.
fn short(name: &str) -> &str {
    name.strip_prefix("callboard-").unwrap_or(name)
}

fn place(name: &str) -> Option<(u8, Side)> {
    RINGS
        .iter()
        .find(|(folder, ..)| *folder == short(name))
        .map(|(_, ring, side)| (*ring, *side))
}

/// Each arrow between our crates goes to a smaller ring and does not cross from hub to desktop or back.
pub(super) fn point_inwards(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    Ok(manifests::read(tree)?.iter().flat_map(arrows_of).collect())
}

fn arrows_of(manifest: &Manifest) -> Vec<Finding> {
    let refuse = |problem: String| Finding::file(&manifest.path, problem);
    let ours = manifest
        .dependencies
        .iter()
        .filter(|dependency| dependency.ours)
        .map(|dependency| dependency.name.as_str());
    if manifest.name == "xtask" {
        return ours
            .map(|to| {
                refuse(format!(
                    "`xtask` must run when `{to}` does not compile: drop the dependency"
                ))
            })
            .collect();
    }
    let mut findings = Vec::new();
    if manifest.folder != short(&manifest.name) {
        let (name, folder) = (&manifest.name, &manifest.folder);
        findings.push(refuse(format!(
            "`{name}` lies in `{folder}`: a folder is named like its crate without `callboard-`"
        )));
    }
    let Some((ring, side)) = place(&manifest.name) else {
        findings.push(refuse(format!(
            "`{}` has no ring: give it one in xtask/src/checks/arrows.rs",
            manifest.name
        )));
        return findings;
    };
    for to in ours {
        let Some((inner, target)) = place(to) else {
            findings.push(refuse(format!("depends on `{to}`, which has no ring")));
            continue;
        };
        if inner >= ring {
            findings.push(refuse(format!(
                "ring {ring} depends on `{to}` of ring {inner}: an arrow goes to a smaller ring"
            )));
        }
        if target != Side::Shared && target != side && side != Side::Whole {
            findings.push(refuse(format!("depends on `{to}` of the other side: hub and desktop share domain, wire and ambient")));
        }
    }
    findings
}

/// No crate takes a test crate as a normal or build dependency.
pub(super) fn test_crates_are_not_shipped(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for manifest in manifests::read(tree)? {
        let test_crates = manifest
            .dependencies
            .iter()
            .filter(|found| TEST_CRATES.contains(&short(&found.name)));
        findings.extend(test_crates.map(|found| {
            Finding::file(
                &manifest.path,
                format!("`{}` belongs under [dev-dependencies]", found.name),
            )
        }));
    }
    Ok(findings)
}

/// Third-party crates are used only where the tables above let them be.
pub(super) fn parts_stay_where_they_belong(tree: &Tree) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for manifest in manifests::read(tree)? {
        let crate_name = short(&manifest.name);
        for used in manifest
            .dependencies
            .iter()
            .map(|found| found.name.as_str())
        {
            let only = ONLY_IN
                .iter()
                .filter(|(part, crates, _)| *part == used && !crates.contains(&crate_name));
            let kept = KEPT_OUT
                .iter()
                .filter(|(inner, parts, _)| *inner == crate_name && parts.contains(&used));
            let reasons = only
                .map(|(_, _, why)| *why)
                .chain(kept.map(|(_, _, why)| *why));
            findings.extend(reasons.map(|why| {
                Finding::file(&manifest.path, format!("may not depend on `{used}`: {why}"))
            }));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sketch;

    const ROOT: &str = "[workspace.dependencies]
callboard-agents = { path = 'crates/agents' }
callboard-ambient = { path = 'crates/ambient' }
callboard-domain = { path = 'crates/domain' }
callboard-hub = { path = 'crates/hub' }
callboard-helpers = { path = 'crates/helpers' }
callboard-store-testkit = { path = 'crates/store-testkit' }
callboard-wire = { path = 'crates/wire' }
anyhow = '1'
serde = '1'
";

    fn problems(check: super::super::Check, folder: &str, name: &str, rest: &str) -> Vec<String> {
        let manifest = format!("[package]\nname = '{name}'\n{rest}");
        let path = format!("crates/{folder}/Cargo.toml");
        let (_folder, tree) = sketch::tree(&[("Cargo.toml", ROOT), (&path, &manifest)]);
        check(&tree)
            .unwrap()
            .into_iter()
            .map(|finding| finding.problem)
            .collect()
    }

    #[test]
    fn an_arrow_inwards_is_allowed() {
        let rest =
            "[dependencies]\ncallboard-domain.workspace = true\ncallboard-wire.workspace = true\n";
        assert!(problems(point_inwards, "hub", "callboard-hub", rest).is_empty());
    }

    #[test]
    fn an_arrow_outwards_or_within_a_ring_is_found() {
        let outwards = problems(
            point_inwards,
            "domain",
            "callboard-domain",
            "[dependencies]\ncallboard-wire.workspace = true\n",
        );
        assert_eq!(
            outwards,
            ["ring 0 depends on `callboard-wire` of ring 1: an arrow goes to a smaller ring"]
        );
        let within = problems(
            point_inwards,
            "wire",
            "callboard-wire",
            "[build-dependencies]\ncallboard-ambient.workspace = true\n",
        );
        assert_eq!(
            within,
            ["ring 1 depends on `callboard-ambient` of ring 1: an arrow goes to a smaller ring"]
        );
    }

    #[test]
    fn an_arrow_from_the_hub_to_the_desktop_is_found() {
        let found = problems(
            point_inwards,
            "hub",
            "callboard-hub",
            "[dependencies]\ncallboard-agents.workspace = true\n",
        );
        assert_eq!(
            found,
            [
                "depends on `callboard-agents` of the other side: hub and desktop share domain, wire and ambient"
            ]
        );
    }

    #[test]
    fn a_development_dependency_may_point_outwards() {
        let rest = "[dev-dependencies]\ncallboard-hub.workspace = true\n";
        assert!(problems(point_inwards, "domain", "callboard-domain", rest).is_empty());
    }

    #[test]
    fn an_unknown_crate_is_found_on_both_ends_of_an_arrow() {
        let from = problems(point_inwards, "helpers", "callboard-helpers", "");
        assert_eq!(
            from,
            ["`callboard-helpers` has no ring: give it one in xtask/src/checks/arrows.rs"]
        );
        let to = problems(
            point_inwards,
            "hub",
            "callboard-hub",
            "[dependencies]\ncallboard-helpers.workspace = true\n",
        );
        assert_eq!(to, ["depends on `callboard-helpers`, which has no ring"]);
    }

    #[test]
    fn a_folder_with_another_name_than_its_crate_is_found() {
        let found = problems(point_inwards, "core", "callboard-hub", "");
        assert_eq!(
            found,
            [
                "`callboard-hub` lies in `core`: a folder is named like its crate without `callboard-`"
            ]
        );
    }

    #[test]
    fn a_shipped_test_crate_is_found() {
        let rest = "[dependencies]\ncallboard-store-testkit.workspace = true\n";
        let found = problems(
            test_crates_are_not_shipped,
            "hub-http",
            "callboard-hub-http",
            rest,
        );
        assert_eq!(
            found,
            ["`callboard-store-testkit` belongs under [dev-dependencies]"]
        );
        let for_tests = "[dev-dependencies]\ncallboard-store-testkit.workspace = true\n";
        assert!(
            problems(
                test_crates_are_not_shipped,
                "hub-http",
                "callboard-hub-http",
                for_tests
            )
            .is_empty()
        );
    }

    #[test]
    fn a_part_outside_its_place_is_found() {
        let rest = "[dependencies]\nanyhow.workspace = true\nserde.workspace = true\n";
        let found = problems(
            parts_stay_where_they_belong,
            "domain",
            "callboard-domain",
            rest,
        );
        assert_eq!(
            found,
            [
                "may not depend on `anyhow`: libraries name their errors",
                "may not depend on `serde`: the domain only thinks",
            ]
        );
    }

    #[test]
    fn the_tables_name_only_crates_that_have_a_ring() {
        let named = ONLY_IN
            .iter()
            .flat_map(|(_, crates, _)| crates.iter())
            .chain(KEPT_OUT.iter().map(|(inner, ..)| inner));
        for name in named.chain(TEST_CRATES).filter(|name| **name != "xtask") {
            assert!(place(name).is_some(), "{name}");
        }
    }
}
