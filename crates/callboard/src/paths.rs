//! Where things lie on this machine.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use directories::ProjectDirs;

use crate::failure::Failure;

/// The data folder: as given, or the platform's own.
pub(crate) fn data_dir(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return std::path::absolute(&given)
            .map_err(|error| Failure::usage(format!("--data {}: {error}", given.display())));
    }
    let dirs = ProjectDirs::from("", "", "callboard").ok_or_else(|| {
        Failure::usage("this user has no home folder").hint("name one with --data")
    })?;
    Ok(dirs.data_dir().to_owned())
}

/// The hub's part of the data folder.
pub(crate) fn hub_dir(data: &Path) -> PathBuf {
    data.join("hub")
}

/// The hub's database.
pub(crate) fn hub_database(data: &Path) -> PathBuf {
    hub_dir(data).join("hub.db")
}

/// The socket over which the hub's own commands reach a running hub.
pub(crate) fn hub_socket(data: &Path) -> PathBuf {
    hub_dir(data).join("hub.sock")
}

/// The desktop's part of the data folder.
pub(crate) fn desktop_dir(data: &Path) -> PathBuf {
    data.join("desktop")
}

/// The configuration that is read when none is named.
pub(crate) fn config_file(data: &Path) -> PathBuf {
    data.join("config.toml")
}

/// Where `callboard up` keeps how a chat connects.
pub(crate) fn connection_file(data: &Path) -> PathBuf {
    data.join("connection.json")
}

/// The folder that a first `callboard up` makes for Graphs to read.
pub(crate) fn welcome_dir(data: &Path) -> PathBuf {
    data.join("welcome")
}

/// There once `callboard up` has given the folder its examples, so that what the owner removes
/// stays removed.
pub(crate) fn set_up_file(data: &Path) -> PathBuf {
    data.join("set-up")
}

/// Makes a folder that only its owner can enter.
pub(crate) fn make_private_dir(dir: &Path) -> Result<(), Failure> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| {
            Failure::cannot_start(format!("cannot make the folder {}: {error}", dir.display()))
                .hint("choose another folder with --data")
        })
}

/// Writes a file that only its owner can read, in one step: a reader sees the old or the new one.
pub(crate) fn write_private(file: &Path, contents: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot write {}: {error}", file.display()))
    };
    let fresh = file.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut handle = options.open(&fresh).map_err(failed)?;
    handle
        .write_all(contents.as_bytes())
        .and_then(|()| handle.sync_all())
        .map_err(failed)?;
    std::fs::rename(&fresh, file).map_err(failed)
}
