//! The bytes of artifacts: files beside the database, or a map beside one in memory.
//!
//! A file is on the disk before a row names it, and goes only when no row does. So a crash leaves
//! at most a file too many, which the next start puts aside. It deletes none: the rows that name it
//! may be in a copy of the database that is put back tomorrow.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use callboard_domain::Digest;
use callboard_store::Artifact;

use crate::OpenError;
use crate::files::{make_private_folder, open_private_file, sync};

/// What a file is called while it is written, after the name of its database.
const HALF: &str = "half";
/// The folder, in that of the artifacts, of files that no row named when the database was opened.
const ASIDE: &str = "unnamed";

/// Where the bytes of artifacts are.
#[derive(Debug)]
pub(crate) enum Contents {
    Folder(Folder),
    Memory(Mutex<BTreeMap<Digest, Vec<u8>>>),
}

/// The folder `artifacts` beside a database, made with the first file. Databases of one folder
/// share it, so each puts its own name before those of its files.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    prefix: OsString,
}

/// The stored file is not what was uploaded.
#[derive(Debug, thiserror::Error)]
#[error("the stored file of an artifact is damaged")]
pub(crate) struct Damaged;

/// The name of an artifact's file: uploads that are the same in every respect meet in one.
pub(crate) fn file_name(artifact: &Artifact) -> Digest {
    Digest::of(&[
        artifact.task_id.as_bytes(),
        artifact.claim_id.as_bytes(),
        artifact.link_id.as_bytes(),
        artifact.artifact_id.as_bytes(),
        artifact.content.as_bytes(),
    ])
}

impl Contents {
    pub(crate) fn memory() -> Self {
        Self::Memory(Mutex::default())
    }

    /// Stores `bytes` for good, or again.
    pub(crate) fn put(&self, name: Digest, bytes: Vec<u8>) -> io::Result<()> {
        match self {
            Self::Folder(folder) => folder.put(name, &bytes),
            Self::Memory(map) => {
                lock(map).insert(name, bytes);
                Ok(())
            }
        }
    }

    pub(crate) fn has(&self, name: Digest) -> io::Result<bool> {
        match self {
            Self::Folder(folder) => folder.found(name).try_exists(),
            Self::Memory(map) => Ok(lock(map).contains_key(&name)),
        }
    }

    /// Whether the bytes of `artifact` are there and undamaged.
    pub(crate) fn holds(&self, artifact: &Artifact) -> io::Result<bool> {
        match self.get(artifact) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) if error.get_ref().is_some_and(|source| source.is::<Damaged>()) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The bytes of `artifact`, checked against its row. [`Damaged`] is the source of the error
    /// when they are others.
    pub(crate) fn get(&self, artifact: &Artifact) -> io::Result<Vec<u8>> {
        let name = file_name(artifact);
        let bytes = match self {
            Self::Folder(folder) => folder.get(name, artifact.size_bytes)?,
            Self::Memory(map) => lock(map)
                .get(&name)
                .cloned()
                .ok_or(io::ErrorKind::NotFound)?,
        };
        if Digest::plain(&bytes) == artifact.content {
            Ok(bytes)
        } else {
            Err(io::Error::other(Damaged))
        }
    }

    /// Removes what no row names. What cannot be removed is put aside at the next start.
    pub(crate) fn remove(&self, name: Digest) {
        match self {
            Self::Folder(folder) => drop(fs::remove_file(folder.place(name))),
            Self::Memory(map) => drop(lock(map).remove(&name)),
        }
    }
}

fn lock(map: &Mutex<BTreeMap<Digest, Vec<u8>>>) -> MutexGuard<'_, BTreeMap<Digest, Vec<u8>>> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Folder {
    /// Of the database at `database`, which is a file.
    pub(crate) fn beside(database: &Path) -> Self {
        let mut prefix = database.file_name().unwrap_or_default().to_owned();
        prefix.push("-");
        Self {
            path: database.with_file_name("artifacts"),
            prefix,
        }
    }

    fn place(&self, name: Digest) -> PathBuf {
        let mut file = self.prefix.clone();
        file.push(name.to_hex());
        self.path.join(file)
    }

    /// The place of a file that a row names, which may have been put aside before that row was back.
    fn found(&self, name: Digest) -> PathBuf {
        let place = self.place(name);
        if !place.exists()
            && let Some(file) = place.file_name()
        {
            // Most often there is none; whoever opens the place says what is wrong.
            drop(fs::rename(self.path.join(ASIDE).join(file), &place));
        }
        place
    }

    /// Only one thread of one process writes here, so the half-written file needs no name of its
    /// own.
    fn put(&self, name: Digest, bytes: &[u8]) -> io::Result<()> {
        if !self.path.is_dir() {
            make_private_folder(&self.path)?;
            sync(self.path.parent().unwrap_or(Path::new("")))?;
        }
        let (place, mut half) = (self.place(name), self.prefix.clone());
        half.push(HALF);
        let half = self.path.join(half);
        let mut file = open_private_file(&half)?;
        file.set_len(0)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&half, &place)?;
        sync(&self.path)
    }

    fn get(&self, name: Digest, size_bytes: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.found(name))?;
        if file.metadata()?.len() != size_bytes {
            return Err(io::Error::other(Damaged));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Puts the files of this database aside that `is_named` knows nothing of, and removes what was
    /// half written. Whatever else lies in the folder, or cannot be moved, is left alone.
    pub(crate) fn clear(
        &self,
        mut is_named: impl FnMut(Digest) -> Result<bool, OpenError>,
    ) -> Result<(), OpenError> {
        let failed = |source| OpenError::files(&self.path, source);
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            match self.kind(&entry.file_name()) {
                Kind::Content(name) if !is_named(name)? => self.put_aside(&entry),
                Kind::Half => drop(fs::remove_file(entry.path())),
                Kind::Content(_) | Kind::Foreign => {}
            }
        }
        Ok(())
    }

    /// A file that cannot be moved takes room and does no other harm.
    fn put_aside(&self, entry: &DirEntry) {
        let aside = self.path.join(ASIDE);
        if aside.is_dir() || make_private_folder(&aside).is_ok() {
            drop(fs::rename(entry.path(), aside.join(entry.file_name())));
        }
    }

    fn kind(&self, file: &OsStr) -> Kind {
        let prefix = self.prefix.as_encoded_bytes();
        let Some(rest) = file.as_encoded_bytes().strip_prefix(prefix) else {
            return Kind::Foreign;
        };
        if rest == HALF.as_bytes() {
            return Kind::Half;
        }
        parse_hex(rest).map_or(Kind::Foreign, Kind::Content)
    }
}

/// What a file of the folder is.
enum Kind {
    Content(Digest),
    Half,
    Foreign,
}

/// The digest that 64 lowercase hex digits name.
fn parse_hex(digits: &[u8]) -> Option<Digest> {
    let digits = std::str::from_utf8(digits).ok()?;
    let mut bytes = [0; 32];
    if digits.len() != 2 * bytes.len() || !digits.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
    }
    let digest = Digest::from_bytes(bytes);
    (digest.to_hex() == digits).then_some(digest)
}
