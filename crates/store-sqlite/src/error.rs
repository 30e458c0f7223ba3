//! What goes wrong: when a database is opened, and inside an operation.

use std::io;
use std::path::{Path, PathBuf};

use callboard_domain::{ParseScopeError, Refusal};
use callboard_store::{ColumnError, StoreError};
use rusqlite::ErrorCode;

/// Why a database could not be opened. Each text is one sentence for the person who started the
/// program; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A newer version wrote it.
    #[error(
        "{} was written by a newer Callboard (database version {found}, this one knows {known}): \
         update Callboard, or use another data folder", path.display()
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// The version of the database.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// Another process has it open.
    #[error(
        "{} is in use by another Callboard{}: stop that one, or use another data folder",
        path.display(), process(*pid)
    )]
    InUse {
        /// The database file.
        path: PathBuf,
        /// The other process, if it could be told.
        pid: Option<u32>,
    },
    /// The file holds something else.
    #[error("{} is not a Callboard database: move it away, or use another data folder", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The pages of the file contradict each other.
    #[error("{} is damaged: restore it from a backup", path.display())]
    Damaged {
        /// The database file.
        path: PathBuf,
    },
    /// The user of this process may not write it.
    #[error(
        "{} cannot be written: give the user who runs Callboard access to it and its folder",
        path.display()
    )]
    ReadOnly {
        /// The database file.
        path: PathBuf,
    },
    /// No space is left.
    #[error("no space is left on the disk of {}: free some and start again", path.display())]
    DiskFull {
        /// The database file.
        path: PathBuf,
    },
    /// The folder or file could not be made or opened.
    #[error("{} cannot be opened: {source}", path.display())]
    Files {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// SQLite refused for another reason.
    #[error("{} cannot be opened: {source}", path.display())]
    Sqlite {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

fn process(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})"))
        .unwrap_or_default()
}

impl OpenError {
    pub(crate) fn files(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        let is = |kinds: &[io::ErrorKind]| kinds.contains(&source.kind());
        if is(&[
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem,
        ]) {
            Self::ReadOnly { path }
        } else if is(&[io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded]) {
            Self::DiskFull { path }
        } else {
            Self::Files { path, source }
        }
    }

    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        let is = |codes: &[ErrorCode]| {
            source
                .sqlite_error_code()
                .is_some_and(|code| codes.contains(&code))
        };
        if is(&[ErrorCode::NotADatabase]) {
            Self::NotADatabase { path }
        } else if is(&[ErrorCode::DatabaseCorrupt]) {
            Self::Damaged { path }
        } else if is(&[ErrorCode::ReadOnly, ErrorCode::PermissionDenied]) {
            Self::ReadOnly { path }
        } else if is(&[ErrorCode::DiskFull]) {
            Self::DiskFull { path }
        } else if is(&[ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked]) {
            Self::InUse { path, pid: None }
        } else {
            Self::Sqlite { path, source }
        }
    }
}

/// An operation that gives no answer, before it meets its caller.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) StoreError);

macro_rules! unavailable {
    ($($source:ty),*) => {$(
        impl From<$source> for Failure {
            fn from(source: $source) -> Self {
                Self(StoreError::unavailable(source))
            }
        }
    )*};
}

unavailable!(rusqlite::Error, ColumnError, ParseScopeError, io::Error);

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self(refusal.into())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn each_thing_that_a_person_can_mend_has_its_sentence() {
        let path = Path::new("hub.sqlite3");
        for (code, sentence) in [
            (ffi::SQLITE_NOTADB, "is not a Callboard database"),
            (ffi::SQLITE_CORRUPT, "is damaged"),
            (ffi::SQLITE_READONLY_DIRECTORY, "cannot be written"),
            (ffi::SQLITE_FULL, "no space is left"),
            (ffi::SQLITE_BUSY, "is in use by another Callboard:"),
            (ffi::SQLITE_IOERR, "cannot be opened"),
        ] {
            let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let text = OpenError::sqlite(path, source).to_string();
            assert!(text.contains(sentence), "{text}");
        }
        for (kind, sentence) in [
            (io::ErrorKind::PermissionDenied, "cannot be written"),
            (io::ErrorKind::StorageFull, "no space is left"),
            (io::ErrorKind::NotADirectory, "cannot be opened"),
        ] {
            let text = OpenError::files(path, kind.into()).to_string();
            assert!(text.contains(sentence), "{text}");
        }
    }
}
