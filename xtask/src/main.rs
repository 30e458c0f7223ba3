//! `cargo xtask check` and `cargo xtask test`: the rules of this repository and the test command of its README.
//! Depends on no crate of the product, so that it still runs when one of them does not compile.

mod checks;
mod output;
mod process;
mod test;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::tree::Tree;

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Repository checks and the test command."
)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Checks the rules that the compiler cannot: arrows between crates, sizes, documents, pins.
    Check,
    /// Runs every check and test of the repository, real MCP clients included.
    Test(test::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = repository_root().and_then(|root| match arguments.task {
        Task::Check => check(&root),
        Task::Test(options) => test::run(&root, &options),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            output::error(&format!("{error:#}"));
            ExitCode::from(3)
        }
    }
}

fn check(root: &Path) -> anyhow::Result<bool> {
    let tree = Tree::open(root)?;
    let findings = checks::run_all(&tree)?;
    output::checks(&findings);
    Ok(findings.values().all(Vec::is_empty))
}

/// The folder above `xtask`, whichever folder the command was typed in.
fn repository_root() -> anyhow::Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let xtask = manifest.ok_or_else(|| {
        anyhow::anyhow!("start it through cargo: `cargo xtask check` or `cargo xtask test`")
    })?;
    let root = xtask.parent().map(Path::to_path_buf);
    root.ok_or_else(|| anyhow::anyhow!("{} has no folder above it", xtask.display()))
}
