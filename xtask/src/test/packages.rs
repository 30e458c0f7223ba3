//! The real clients' npm and pip packages, installed below the target folder and kept until a pin changes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use super::steps::Place;
use crate::{output, process};

/// Longest wait for a registry.
const INSTALL_LIMIT: Duration = Duration::from_secs(600);
/// Written last; holds the pins that were installed.
const STAMP: &str = "installed";

/// Installs the npm packages and lays the scripts beside them, where Node looks for packages. Returns that folder.
///
/// # Errors
/// The registry cannot be reached, or has not what the lock file names.
pub(super) fn node(place: &Place) -> anyhow::Result<PathBuf> {
    let folder = place.target.join("clients").join("node");
    std::fs::create_dir_all(&folder)?;
    let sources = place.root.join("tests/clients");
    let lock = read(&sources.join("package-lock.json"))?;
    if !is_installed(&folder, &lock) {
        for name in ["package.json", "package-lock.json"] {
            std::fs::copy(sources.join(name), folder.join(name))?;
        }
        let mut npm = Command::new("npm");
        npm.args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ])
        .current_dir(&folder);
        install("npm ci", &mut npm)?;
        std::fs::write(folder.join(STAMP), &lock)?;
    }
    for entry in std::fs::read_dir(&sources)? {
        let path = entry?.path();
        if let Some(name) = path
            .file_name()
            .filter(|_| path.extension().is_some_and(|ending| ending == "mjs"))
        {
            std::fs::copy(&path, folder.join(name))?;
        }
    }
    Ok(folder)
}

/// Installs the pip packages into an environment of their own. Returns its interpreter.
///
/// # Errors
/// The registry cannot be reached, or has not what the requirements name.
pub(super) fn python(place: &Place) -> anyhow::Result<PathBuf> {
    let folder = place.target.join("clients").join("python");
    let interpreter = folder.join("bin").join("python");
    let requirements = place.root.join("tests/clients/requirements.txt");
    let pins = read(&requirements)?;
    if !is_installed(&folder, &pins) {
        install(
            "python3 -m venv",
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&folder),
        )?;
        let mut pip = Command::new(&interpreter);
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--requirement",
        ]);
        install("pip install", pip.arg(&requirements))?;
        // The pins are installed without resolving, so this is what finds one that is missing.
        install(
            "pip check",
            Command::new(&interpreter).args(["-m", "pip", "check"]),
        )?;
        std::fs::write(folder.join(STAMP), &pins)?;
    }
    Ok(interpreter)
}

fn is_installed(folder: &Path, pins: &str) -> bool {
    std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|installed| installed == pins)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn install(what: &str, command: &mut Command) -> anyhow::Result<()> {
    output::note(what);
    let status = process::run_bounded(command, INSTALL_LIMIT, output::quoted)
        .with_context(|| format!("`{what}`"))?;
    anyhow::ensure!(status.success(), "`{what}`: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_again_when_a_pin_changes_or_the_last_time_was_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_installed(folder.path(), "mcp==2.3.0\n"));
        std::fs::write(folder.path().join(STAMP), "mcp==2.3.0\n").unwrap();
        assert!(is_installed(folder.path(), "mcp==2.3.0\n"));
        assert!(!is_installed(folder.path(), "mcp==2.3.1\n"));
    }
}
