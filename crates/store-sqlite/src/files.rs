//! The folder, the database file and the lock beside it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::OpenError;

/// Longest process number that is read from a lock file, in bytes.
const PID_BYTES_MAX: u64 = 20;

/// Held by the one process that uses a database; the system frees it when the process ends,
/// however it ends. The file stays, since removing it would let two processes lock two files.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the database at `path`, making its folder if there is none.
    pub(crate) fn take(path: &Path) -> Result<Self, OpenError> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            make_folder(folder)?;
        }
        let lock_path = lock_path(path);
        let failed = |source| OpenError::files(&lock_path, source);
        let mut file = private_file(&lock_path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let (path, pid) = (path.to_path_buf(), holder(&mut file));
                return Err(OpenError::InUse { path, pid });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(failed)?;
        Ok(Self { _file: file })
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Who holds the lock, as far as its file tells.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(PID_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn make_folder(folder: &Path) -> Result<(), OpenError> {
    make_private_folder(folder).map_err(|source| OpenError::files(folder, source))
}

/// Makes a folder that only its owner can enter, and those above it that are missing.
pub(crate) fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Opens a file that only its owner can read, making it if there is none. SQLite gives the files
/// it adds the mode of the database.
pub(crate) fn private_file(path: &Path) -> Result<File, OpenError> {
    open_private_file(path).map_err(|source| OpenError::files(path, source))
}

/// See [`private_file`].
pub(crate) fn open_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes the names of new files beside `path` outlive a power cut.
pub(crate) fn sync_folder(path: &Path) -> Result<(), OpenError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    sync(folder).map_err(|source| OpenError::files(folder, source))
}

/// Makes the names in `folder` outlive a power cut, where the system lets a folder be synced.
pub(crate) fn sync(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if !folder.as_os_str().is_empty() {
        File::open(folder)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
