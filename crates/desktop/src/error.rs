//! Why a desktop cannot begin or go on: one sentence, and one thing to do about it.

use std::io;
use std::path::PathBuf;

/// Why a desktop cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data folder cannot be made or written.
    #[error("cannot use the data folder {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another desktop has the folder.
    #[error("another desktop is using {}{}", path.display(), process_text(*process))]
    InUse {
        /// The folder.
        path: PathBuf,
        /// Its process, if it says so.
        process: Option<u32>,
    },
    /// A later program wrote the folder.
    #[error(
        "the data in {} is of version {found}, and this program knows versions up to {known}",
        path.display()
    )]
    Newer {
        /// The folder.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that this program reads.
        known: u32,
    },
    /// The database cannot be read or written.
    #[error("cannot use the database in {}: {reason}", path.display())]
    Database {
        /// The folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The hub's address cannot be used.
    #[error("\"{url}\" is not the address of a hub: {reason}")]
    BadHub {
        /// What was given.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The device token has characters that no token has.
    #[error("the device token is empty or has characters that no token has")]
    BadToken,
    /// The control socket cannot be made.
    #[error("cannot make the control socket {}: {reason}", path.display())]
    Socket {
        /// Where it should be.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// No slot means no work.
    #[error("a desktop needs at least one slot")]
    NoSlots,
}

fn process_text(process: Option<u32>) -> String {
    process.map_or_else(String::new, |id| format!(" (process {id})"))
}

impl OpenError {
    /// One thing to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Folder { .. } | Self::Database { .. } => {
                "check its permissions and free space, or choose another folder with --data"
            }
            Self::InUse { .. } => "stop it, or choose another folder with --data",
            Self::Newer { .. } => "use the newer program, or choose another folder with --data",
            Self::BadHub { .. } => "give it as --hub https://hub.example.org",
            Self::BadToken => "make one with `callboard hub desktop create NAME` and pass its file",
            Self::Socket { .. } => "set XDG_RUNTIME_DIR, or choose a shorter --data folder",
            Self::NoSlots => "leave --slots out, or give it 1 or more",
        }
    }
}

/// Why a running desktop stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The thread that owns the data ended unexpectedly.
    #[error("the desktop stopped unexpectedly; its data is safe")]
    Crashed,
    /// No thread could be made.
    #[error("the desktop cannot begin: {0}")]
    Thread(io::Error),
}
