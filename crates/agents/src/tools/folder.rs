//! Which paths may be read: those below a granted folder, after every link has been followed.
//! What is opened is checked once more through its descriptor, so that a link swapped in between
//! leads nowhere.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::{ToolError, ToolErrorCode};

/// The granted folders.
#[derive(Debug)]
pub(super) struct Folders {
    granted: Vec<PathBuf>,
    home: Option<PathBuf>,
}

/// A file or folder that lies inside a granted folder.
#[derive(Debug)]
pub(super) struct Opened {
    /// The open file or folder.
    pub(super) file: File,
    /// Its real path.
    pub(super) path: PathBuf,
}

impl Folders {
    pub(super) fn new(granted: Vec<PathBuf>) -> Self {
        let home = std::env::var_os("HOME")
            .filter(|home| !home.is_empty())
            .map(PathBuf::from);
        let granted = granted
            .into_iter()
            .map(|path| expand(&path, home.as_deref()))
            .collect();
        Self { granted, home }
    }

    /// Opens a path for reading, if it lies inside a granted folder.
    pub(super) fn open(&self, path: &str) -> Result<Opened, ToolError> {
        if path.contains('\0') {
            return Err(ToolError::new(
                ToolErrorCode::BadArguments,
                "a path holds no NUL",
            ));
        }
        if self.granted.is_empty() {
            return Err(ToolError::new(
                ToolErrorCode::ToolRefused,
                "no folder is granted to the files tools on this desktop: add one to its \
                 configuration",
            ));
        }
        let asked = self.absolute(path)?;
        let real = match asked.canonicalize() {
            Ok(real) => real,
            Err(error) => return Err(self.explain_missing(&asked, path, &error)),
        };
        if !self.holds(&real) {
            return Err(outside(path));
        }
        let file = open_for_reading(&real).map_err(|error| failed(path, &error))?;
        let path_now = path_of(&file, &real).map_err(|error| failed(path, &error))?;
        if !self.holds(&path_now) {
            return Err(outside(path));
        }
        Ok(Opened {
            file,
            path: path_now,
        })
    }

    fn absolute(&self, path: &str) -> Result<PathBuf, ToolError> {
        let expanded = expand(Path::new(path), self.home.as_deref());
        if expanded.is_absolute() {
            return Ok(expanded);
        }
        match self.granted.as_slice() {
            [only] => Ok(only.join(expanded)),
            _ => Err(ToolError::new(
                ToolErrorCode::BadArguments,
                "several folders are granted: give an absolute path or one that begins with ~/",
            )),
        }
    }

    /// Whether a real path lies inside a granted folder. The grants are resolved each time: one
    /// may have been created, or replaced by a link, since.
    fn holds(&self, real: &Path) -> bool {
        self.granted
            .iter()
            .filter_map(|granted| granted.canonicalize().ok())
            .any(|granted| real.starts_with(granted))
    }

    /// A path that does not exist is told from one outside only when its nearest existing
    /// ancestor lies inside: nothing is learnt about files elsewhere.
    fn explain_missing(&self, asked: &Path, path: &str, error: &io::Error) -> ToolError {
        let climbs = asked
            .components()
            .any(|part| part == std::path::Component::ParentDir);
        let ancestor = asked
            .ancestors()
            .skip(1)
            .find_map(|parent| parent.canonicalize().ok());
        match ancestor {
            Some(real) if !climbs && self.holds(&real) => failed(path, error),
            Some(_) | None => outside(path),
        }
    }
}

fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_), None) | (Err(_), _) => path.to_owned(),
    }
}

fn outside(path: &str) -> ToolError {
    let path = callboard_domain::cut_utf16(path, 200);
    ToolError::new(
        ToolErrorCode::ToolRefused,
        format!("\"{path}\" does not lie inside a granted folder"),
    )
}

pub(super) fn failed(path: &str, error: &io::Error) -> ToolError {
    let path = callboard_domain::cut_utf16(path, 200);
    ToolError::new(ToolErrorCode::ToolFailed, format!("\"{path}\": {error}"))
}

#[cfg(unix)]
fn open_for_reading(real: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    use nix::fcntl::OFlag;
    // Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(real)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_dir() {
        return Ok(file);
    }
    Err(io::Error::other("neither a file nor a folder"))
}

#[cfg(not(unix))]
fn open_for_reading(real: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(real)
}

/// Where an open file really is.
#[cfg(target_os = "linux")]
fn path_of(file: &File, _real: &Path) -> io::Result<PathBuf> {
    std::fs::read_link(descriptor_path(file))
}

#[cfg(not(target_os = "linux"))]
fn path_of(_file: &File, real: &Path) -> io::Result<PathBuf> {
    real.canonicalize()
}

#[cfg(target_os = "linux")]
fn descriptor_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

impl Opened {
    /// The names in an open folder, without a race between its path and its descriptor.
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        #[cfg(target_os = "linux")]
        let listing = std::fs::read_dir(descriptor_path(&self.file))?;
        #[cfg(not(target_os = "linux"))]
        let listing = std::fs::read_dir(&self.path)?;
        let mut names = Vec::new();
        for entry in listing.take(super::files::FOLDER_NAMES_MAX) {
            names.push(entry?.file_name());
        }
        names.sort();
        Ok(names)
    }
}
