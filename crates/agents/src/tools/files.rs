//! The read-only `files` server: list, read, search, stat, each within fixed bounds.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use callboard_domain::cut_utf16;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::folder::{Folders, Names, Opened, failed};
use super::{InRange as _, ToolError, ToolErrorCode};

// Every bound below is our choice: a listing or a file that a script can still work on in its
// 64 MB, and a search that ends within seconds on a spinning disk.

/// Most entries of one listing.
pub(super) const ENTRIES_MAX: u64 = 10_000;
/// Deepest listing or search, in folders.
pub(super) const DEPTH_MAX: u64 = 32;
/// Most names read of a single folder.
pub(super) const FOLDER_NAMES_MAX: usize = 100_000;
/// Most bytes of one read.
pub(super) const READ_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of a read that names no number.
const READ_BYTES: u64 = 256 * 1024;
/// Most matches of one search.
pub(super) const MATCHES_MAX: u64 = 500;
/// Most files that one search opens.
const SEARCH_FILES_MAX: u64 = 20_000;
/// Largest file that a search reads; larger ones are counted as skipped.
const SEARCH_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Longest line that a search quotes, in UTF-16 units.
const LINE_UTF16_MAX: usize = 400;
/// Longest character in UTF-8, in bytes: a read returns at least one whole character.
const CHARACTER_BYTES_MAX: u64 = 4;
/// Leading bytes that are looked at to tell text from binary.
const SNIFF_BYTES: usize = 8 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    path: String,
    depth: Option<u64>,
    limit: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    path: String,
    #[serde(default)]
    offset: u64,
    max_bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    path: String,
    text: String,
    #[serde(default)]
    ignore_case: bool,
    limit: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stat {
    path: String,
}

/// What a walk met.
enum Found {
    Folder,
    File,
    Link,
    Other,
}

impl Found {
    fn of(kind: std::fs::FileType) -> Self {
        if kind.is_symlink() {
            Self::Link
        } else if kind.is_dir() {
            Self::Folder
        } else if kind.is_file() {
            Self::File
        } else {
            Self::Other
        }
    }

    const fn word(&self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::File => "file",
            Self::Link => "link",
            Self::Other => "other",
        }
    }
}

/// Whether a walk goes on.
#[derive(PartialEq, Eq)]
enum Walk {
    On,
    Enough,
}

impl List {
    pub(super) fn run(
        &self,
        folders: &Folders,
        cancel: &CancellationToken,
    ) -> Result<Value, ToolError> {
        let depth = Some(self.depth.unwrap_or(1)).in_range("depth", DEPTH_MAX)?;
        let limit = self.limit.in_range("limit", ENTRIES_MAX)?;
        let mut entries = Vec::new();
        let walked = walk(folders, &self.path, depth, cancel, |entry| {
            if count(entries.len()) == limit {
                return Walk::Enough;
            }
            let name = entry.below.to_string_lossy();
            entries.push(match &entry.found {
                Found::Folder | Found::Link | Found::Other => {
                    json!({ "path": name, "kind": entry.found.word() })
                }
                Found::File => json!({
                    "path": name, "kind": "file",
                    "bytes": entry.metadata.len(), "modified_ms": modified_ms(entry.metadata),
                }),
            });
            Walk::On
        })?;
        Ok(json!({
            "path": walked.root.to_string_lossy(),
            "entries": entries,
            "truncated": walked.truncated,
            "unreadable": walked.unreadable,
        }))
    }
}

impl Read {
    pub(super) fn run(&self, folders: &Folders) -> Result<Value, ToolError> {
        let limit =
            Some(self.max_bytes.unwrap_or(READ_BYTES)).in_range("max_bytes", READ_BYTES_MAX)?;
        let mut opened = folders.open(&self.path)?;
        let fail = |error: io::Error| failed(&self.path, &error);
        let metadata = opened.file.metadata().map_err(fail)?;
        if metadata.is_dir() {
            let message = format!("\"{}\" is a folder: list it instead", self.path);
            return Err(ToolError::new(ToolErrorCode::BadArguments, message));
        }
        let path = opened.path.to_string_lossy().into_owned();
        opened
            .file
            .seek(SeekFrom::Start(self.offset))
            .map_err(fail)?;
        let mut bytes = Vec::new();
        (&opened.file)
            .take(limit.max(CHARACTER_BYTES_MAX))
            .read_to_end(&mut bytes)
            .map_err(fail)?;
        let whole_bytes = metadata.len().max(self.offset + count(bytes.len()));
        let Some(text) = text_of(&bytes) else {
            return Ok(json!({ "path": path, "bytes": whole_bytes, "binary": true }));
        };
        let next_offset = self.offset + count(text.len());
        Ok(json!({
            "path": path,
            "bytes": whole_bytes,
            "binary": false,
            "text": text,
            "truncated": next_offset < whole_bytes,
            "next_offset": next_offset,
        }))
    }
}

impl Search {
    pub(super) fn run(
        &self,
        folders: &Folders,
        cancel: &CancellationToken,
    ) -> Result<Value, ToolError> {
        let limit = self.limit.in_range("limit", MATCHES_MAX)?;
        if self.text.is_empty() {
            return Err(ToolError::new(
                ToolErrorCode::BadArguments,
                "text must not be empty",
            ));
        }
        let wanted = if self.ignore_case {
            self.text.to_lowercase()
        } else {
            self.text.clone()
        };
        let (mut matches, mut searched, mut skipped) = (Vec::new(), 0_u64, 0_u64);
        let walked = walk(folders, &self.path, DEPTH_MAX, cancel, |entry| {
            match entry.found {
                Found::File if entry.metadata.len() > SEARCH_FILE_BYTES_MAX => skipped += 1,
                Found::File if searched == SEARCH_FILES_MAX => return Walk::Enough,
                Found::File => match read_text(folders, &entry.path()) {
                    Some(text) => {
                        searched += 1;
                        for (index, line) in text.lines().enumerate() {
                            if !self.hits(line, &wanted) {
                                continue;
                            }
                            if count(matches.len()) == limit {
                                return Walk::Enough;
                            }
                            matches.push(json!({
                                "path": entry.below.to_string_lossy(),
                                "line": index + 1,
                                "text": cut_utf16(line, LINE_UTF16_MAX),
                            }));
                        }
                    }
                    None => skipped += 1,
                },
                Found::Folder | Found::Link | Found::Other => {}
            }
            Walk::On
        })?;
        Ok(json!({
            "path": walked.root.to_string_lossy(),
            "matches": matches,
            "files_searched": searched,
            "files_skipped": skipped,
            "truncated": walked.truncated,
            "unreadable": walked.unreadable,
        }))
    }

    fn hits(&self, line: &str, wanted: &str) -> bool {
        if self.ignore_case {
            line.to_lowercase().contains(wanted)
        } else {
            line.contains(wanted)
        }
    }
}

impl Stat {
    pub(super) fn run(&self, folders: &Folders) -> Result<Value, ToolError> {
        let opened = folders.open(&self.path)?;
        let metadata = opened
            .file
            .metadata()
            .map_err(|error| failed(&self.path, &error))?;
        Ok(json!({
            "path": opened.path.to_string_lossy(),
            "kind": Found::of(metadata.file_type()).word(),
            "bytes": metadata.len(),
            "modified_ms": modified_ms(&metadata),
        }))
    }
}

/// One thing met on a walk.
struct Entry<'a> {
    root: &'a Path,
    /// Path below the root of the walk.
    below: &'a Path,
    found: Found,
    metadata: &'a std::fs::Metadata,
}

impl Entry<'_> {
    fn path(&self) -> PathBuf {
        self.root.join(self.below)
    }
}

/// What a walk came to.
struct Walked {
    /// The folder's real path.
    root: PathBuf,
    /// Entries that could not be read.
    unreadable: u64,
    /// The visitor had enough, or a folder had more names than are read.
    truncated: bool,
}

/// Visits everything below a folder, parents first, names in order, links not followed.
fn walk(
    folders: &Folders,
    path: &str,
    depth_max: u64,
    cancel: &CancellationToken,
    mut visit: impl FnMut(&Entry<'_>) -> Walk,
) -> Result<Walked, ToolError> {
    let start = folders.open(path)?;
    let metadata = start
        .file
        .metadata()
        .map_err(|error| failed(path, &error))?;
    if !metadata.is_dir() {
        let message = format!("\"{path}\" is not a folder");
        return Err(ToolError::new(ToolErrorCode::BadArguments, message));
    }
    let Names { names, truncated } = start.names().map_err(|error| failed(path, &error))?;
    let mut walked = Walked {
        root: start.path.clone(),
        unreadable: 0,
        truncated,
    };
    let mut open: Vec<(PathBuf, std::vec::IntoIter<std::ffi::OsString>)> =
        vec![(PathBuf::new(), names.into_iter())];
    while let Some((folder, names)) = open.last_mut() {
        if cancel.is_cancelled() {
            return Err(ToolError::new(
                ToolErrorCode::Cancelled,
                "the call was cancelled",
            ));
        }
        let Some(name) = names.next() else {
            open.pop();
            continue;
        };
        let below = folder.join(name);
        let Ok(metadata) = walked.root.join(&below).symlink_metadata() else {
            walked.unreadable += 1;
            continue;
        };
        let found = Found::of(metadata.file_type());
        let is_folder = matches!(found, Found::Folder);
        let entry = Entry {
            root: &walked.root,
            below: &below,
            found,
            metadata: &metadata,
        };
        if visit(&entry) == Walk::Enough {
            walked.truncated = true;
            return Ok(walked);
        }
        if is_folder && count(open.len()) < depth_max {
            match subfolder(folders, &walked.root.join(&below)) {
                Some(Names { names, truncated }) => {
                    walked.truncated |= truncated;
                    open.push((below, names.into_iter()));
                }
                None => walked.unreadable += 1,
            }
        }
    }
    Ok(walked)
}

fn subfolder(folders: &Folders, path: &Path) -> Option<Names> {
    folders.open(path.to_str()?).ok()?.names().ok()
}

fn read_text(folders: &Folders, path: &Path) -> Option<String> {
    let Opened { file, .. } = folders.open(path.to_str()?).ok()?;
    let mut bytes = Vec::new();
    file.take(SEARCH_FILE_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;
    text_of(&bytes).map(str::to_owned)
}

/// The bytes as text, without a character that was cut at their end; `None` when they are binary.
fn text_of(bytes: &[u8]) -> Option<&str> {
    if bytes.iter().take(SNIFF_BYTES).any(|byte| *byte == 0) {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

fn modified_ms(metadata: &std::fs::Metadata) -> Option<i64> {
    let since_epoch = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_epoch.as_millis()).ok()
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
