//! Which paths may be read: those below a granted folder, after every link has been followed.
//! What is opened is checked once more through its descriptor, so that a link swapped in between
//! leads nowhere.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::{ToolError, ToolErrorCode};

/// The granted folders, and those that no grant opens.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    /// Shared by all clones, so that a change reaches calls under way.
    granted: Arc<RwLock<Vec<PathBuf>>>,
    denied: Vec<PathBuf>,
    /// Folders inside denied ones that open again when they are granted by themselves.
    except: Vec<PathBuf>,
    home: Option<PathBuf>,
}

/// Where a real path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Granted,
    Denied,
    Outside,
}

/// The names in a folder.
#[derive(Debug)]
pub(super) struct Names {
    /// As many as may be read, sorted.
    pub(super) names: Vec<OsString>,
    /// There are more, and which ones were read is up to the file system.
    pub(super) truncated: bool,
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
        Self {
            granted: Arc::new(RwLock::new(expand_all(granted, home.as_deref()))),
            denied: Vec::new(),
            except: Vec::new(),
            home,
        }
    }

    pub(super) fn denying(&self, denied: Vec<PathBuf>, except: Vec<PathBuf>) -> Self {
        Self {
            granted: Arc::clone(&self.granted),
            denied: expand_all(denied, self.home.as_deref()),
            except: expand_all(except, self.home.as_deref()),
            home: self.home.clone(),
        }
    }

    pub(super) fn set_granted(&self, granted: Vec<PathBuf>) {
        let granted = expand_all(granted, self.home.as_deref());
        *self.granted.write().unwrap_or_else(PoisonError::into_inner) = granted;
    }

    fn granted(&self) -> Vec<PathBuf> {
        self.granted
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Opens a path for reading, if it lies inside a granted folder.
    pub(super) fn open(&self, path: &str) -> Result<Opened, ToolError> {
        if path.contains('\0') {
            return Err(ToolError::new(
                ToolErrorCode::BadArguments,
                "a path holds no NUL",
            ));
        }
        let granted = self.granted();
        if granted.is_empty() {
            return Err(ToolError::new(
                ToolErrorCode::ToolRefused,
                "no folder is granted to the files tools on this desktop: add one to its \
                 configuration",
            ));
        }
        let asked = self.absolute(path, &granted)?;
        let real = match asked.canonicalize() {
            Ok(real) => real,
            Err(error) => return Err(self.explain_missing(&asked, path, &error)),
        };
        self.check(&real, path)?;
        let file = open_for_reading(&real).map_err(|error| failed(path, &error))?;
        let path_now = path_of(&file, &real).map_err(|error| failed(path, &error))?;
        self.check(&path_now, path)?;
        Ok(Opened {
            file,
            path: path_now,
        })
    }

    fn absolute(&self, path: &str, granted: &[PathBuf]) -> Result<PathBuf, ToolError> {
        let expanded = expand(Path::new(path), self.home.as_deref());
        if expanded.is_absolute() {
            return Ok(expanded);
        }
        match granted {
            [only] => Ok(only.join(expanded)),
            _ => Err(ToolError::new(
                ToolErrorCode::BadArguments,
                "several folders are granted: give an absolute path or one that begins with ~/",
            )),
        }
    }

    /// Where a real path lies. Every folder is resolved each time: one may have been created, or
    /// replaced by a link, since.
    fn holds(&self, real: &Path) -> Place {
        let holding: Vec<PathBuf> = self
            .granted()
            .iter()
            .filter_map(|granted| granted.canonicalize().ok())
            .filter(|granted| real.starts_with(granted))
            .collect();
        if holding.is_empty() {
            return Place::Outside;
        }
        let except: Vec<PathBuf> = self
            .except
            .iter()
            .filter_map(|except| except.canonicalize().ok())
            .collect();
        let denied = self
            .denied
            .iter()
            // A folder that cannot be resolved is still denied by its name.
            .map(|denied| denied.canonicalize().unwrap_or_else(|_| denied.clone()))
            .filter(|denied| real.starts_with(denied))
            .any(|denied| !opens_again(&denied, &except, &holding));
        if denied {
            Place::Denied
        } else {
            Place::Granted
        }
    }

    fn check(&self, real: &Path, path: &str) -> Result<(), ToolError> {
        match self.holds(real) {
            Place::Granted => Ok(()),
            Place::Denied => Err(denied(path)),
            Place::Outside => Err(outside(path)),
        }
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
        match ancestor.map(|real| self.holds(&real)) {
            Some(Place::Granted) if !climbs => failed(path, error),
            Some(Place::Denied) if !climbs => denied(path),
            Some(Place::Granted | Place::Denied | Place::Outside) | None => outside(path),
        }
    }
}

/// Whether one of the granted folders that hold a path lies in an exception inside `denied`.
fn opens_again(denied: &Path, except: &[PathBuf], holding: &[PathBuf]) -> bool {
    except
        .iter()
        .filter(|except| except.starts_with(denied) && except.as_path() != denied)
        .any(|except| holding.iter().any(|granted| granted.starts_with(except)))
}

fn expand_all(paths: Vec<PathBuf>, home: Option<&Path>) -> Vec<PathBuf> {
    paths.into_iter().map(|path| expand(&path, home)).collect()
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

fn denied(path: &str) -> ToolError {
    let path = callboard_domain::cut_utf16(path, 200);
    ToolError::new(
        ToolErrorCode::ToolRefused,
        format!("\"{path}\" belongs to this desktop itself, which no tool reads"),
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
    pub(super) fn names(&self) -> io::Result<Names> {
        #[cfg(target_os = "linux")]
        let listing = std::fs::read_dir(descriptor_path(&self.file))?;
        #[cfg(not(target_os = "linux"))]
        let listing = std::fs::read_dir(&self.path)?;
        let listing = listing.map(|entry| entry.map(|entry| entry.file_name()));
        Names::read(listing, super::files::FOLDER_NAMES_MAX)
    }
}

impl Names {
    fn read(listing: impl Iterator<Item = io::Result<OsString>>, max: usize) -> io::Result<Self> {
        let (mut names, mut truncated) = (Vec::new(), false);
        for name in listing {
            if names.len() == max {
                truncated = true;
                break;
            }
            names.push(name?);
        }
        names.sort();
        Ok(Self { names, truncated })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_are_reported_and_what_was_read_is_sorted() {
        let listing = || {
            ["c", "a", "b"]
                .map(|name| Ok(OsString::from(name)))
                .into_iter()
        };
        let whole = Names::read(listing(), 3).unwrap();
        assert_eq!(
            (whole.names, whole.truncated),
            (vec!["a".into(), "b".into(), "c".into()], false)
        );
        let part = Names::read(listing(), 2).unwrap();
        assert_eq!(
            (part.names, part.truncated),
            (vec!["a".into(), "c".into()], true)
        );
    }
}
