//! The data folder: one desktop at a time, closed to other users.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use callboard_domain::Digest;

use crate::OpenError;

/// Longest path of a Unix socket on Linux, without its closing NUL; others allow 103.
const SOCKET_PATH_BYTES_MAX: usize = 103;

/// The right to use a data folder, held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

/// Creates the folder if there is none, and locks it.
pub(crate) fn take(path: &Path) -> Result<FolderLock, OpenError> {
    let refused = |source| OpenError::Folder {
        path: path.to_owned(),
        source,
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(refused)?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path.join("lock"))
        .map_err(refused)?;
    match file.try_lock() {
        Ok(()) => {
            write_process(&mut file).map_err(refused)?;
            Ok(FolderLock { _file: file })
        }
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            let read = file.read_to_string(&mut process);
            Err(OpenError::InUse {
                path: path.to_owned(),
                process: read.ok().and_then(|_| process.trim().parse().ok()),
            })
        }
        Err(TryLockError::Error(source)) => Err(refused(source)),
    }
}

/// What this product keeps to itself, whatever folders are granted. All paths are real ones.
#[derive(Debug, Clone)]
pub(crate) struct Privacy {
    pub(crate) private: Vec<PathBuf>,
    pub(crate) open: Vec<PathBuf>,
}

impl Privacy {
    /// The data folder is there already.
    pub(crate) fn new(data_dir: &Path, private: &[PathBuf], open: &[PathBuf]) -> Self {
        let data_dir = real_path(data_dir);
        let private = private.iter().map(|path| real_path(path));
        Self {
            private: private.chain([data_dir]).collect(),
            open: open.iter().map(|path| real_path(path)).collect(),
        }
    }

    /// Whether a real path is to be read by nobody.
    pub(crate) fn covers(&self, real: &Path) -> bool {
        let below = |folders: &[PathBuf]| folders.iter().any(|folder| real.starts_with(folder));
        below(&self.private) && !below(&self.open)
    }
}

/// The real path also of what is made later in a folder that is there.
fn real_path(path: &Path) -> PathBuf {
    let real = path.canonicalize().ok().or_else(|| {
        let parent = path.parent()?.canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    });
    real.unwrap_or_else(|| path.to_owned())
}

fn write_process(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

/// Where the control socket of a data folder is: in the folder, or where its path fits.
///
/// # Errors
/// Neither fits; the text says so.
pub(crate) fn socket_path(data_dir: &Path) -> Result<PathBuf, String> {
    let usual = data_dir.join("control.sock");
    if usual.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
        return Ok(usual);
    }
    let real = data_dir
        .canonicalize()
        .unwrap_or_else(|_| data_dir.to_owned());
    let digest = Digest::of(&[real.as_os_str().as_encoded_bytes()]);
    let name: String = digest.as_bytes()[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime
        .map(|folder| folder.join(format!("callboard-{name}.sock")))
        .filter(|path| path.is_absolute() && path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX)
        .ok_or_else(|| format!("its path is longer than {SOCKET_PATH_BYTES_MAX} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_desktop_is_told_which_process_has_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let _first = take(folder.path()).unwrap();
        let second = take(folder.path()).unwrap_err();
        let expected = format!(
            "another desktop is using {} (process {})",
            folder.path().display(),
            std::process::id()
        );
        assert_eq!(second.to_string(), expected);
        assert_eq!(
            second.hint(),
            "stop it, or choose another folder with --data"
        );
    }

    #[test]
    fn a_folder_is_free_again_once_its_desktop_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        drop(take(folder.path()).unwrap());
        take(folder.path()).unwrap();
    }

    #[test]
    fn the_socket_of_a_deep_folder_is_never_longer_than_the_system_allows() {
        let deep = Path::new("/tmp").join("d".repeat(200));
        match socket_path(&deep) {
            Ok(path) => assert!(path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX),
            Err(reason) => assert!(reason.contains("longer than 103 bytes"), "{reason}"),
        }
        assert!(
            socket_path(Path::new("/tmp/d"))
                .unwrap()
                .ends_with("control.sock")
        );
    }
}
