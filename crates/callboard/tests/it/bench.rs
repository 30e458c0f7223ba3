//! `callboard bench` measures and says what it measured. What it measures is nobody's test.

use crate::process::{callboard, run};

#[tokio::test]
async fn a_short_benchmark_gives_rows_with_ratios_and_goals() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = callboard(folder.path());
    command.args(["--json", "bench", "claims", "strangers", "--quick"]);
    let told = run(command).await.ok().json();
    assert_eq!(told["quick"], true);
    assert!(told["machine"]["cores"].is_string(), "{told:#}");
    let rows = told["figures"].as_array().unwrap();
    let found = |name: &str| {
        let named = rows
            .iter()
            .find(|row| row["figure"].as_str().unwrap().starts_with(name));
        named.unwrap_or_else(|| panic!("no {name} in {told:#}"))
    };
    for disk in ["fdatasync of 4 KiB, before", "fdatasync of 4 KiB, after"] {
        assert!(found(disk)["ours"].as_f64().unwrap() > 0.0);
    }
    // The only figure that no machine may change.
    let race = found("claim race, this hub over HTTP: tasks with two winners");
    assert_eq!((&race["ours"], &race["met"]), (&0.0.into(), &true.into()));
    assert!(found("foreign ÷ unknown")["ours"].as_f64().unwrap() > 0.0);
    assert!(
        !folder.path().join("hub").exists(),
        "it works in folders of its own"
    );
}

#[tokio::test]
async fn an_unknown_figure_names_those_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = callboard(folder.path());
    command.args(["bench", "everything"]);
    run(command)
        .await
        .refused(2, "there are inbox, lifecycle", "");
}
