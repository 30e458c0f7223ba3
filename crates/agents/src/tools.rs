//! The tools a Graph may call. Until approvals exist these are only the built-in, read-only
//! `files` server on folders the owner granted.

mod files;
mod folder;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use folder::Folders;

/// A tool as it is listed for a person or a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDescription {
    /// Full name, `mcp__server__tool`.
    pub name: &'static str,
    /// What it does, in one or two sentences.
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub arguments: Value,
}

/// Why a tool call failed; the stable word a script sees as `error.code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolErrorCode {
    /// The tool, or this use of it, is not allowed.
    ToolRefused,
    /// The arguments are wrong.
    BadArguments,
    /// The tool ran and failed.
    ToolFailed,
    /// The call was cancelled.
    Cancelled,
}

impl ToolErrorCode {
    /// The stable word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolRefused => "tool_refused",
            Self::BadArguments => "bad_arguments",
            Self::ToolFailed => "tool_failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for ToolErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed tool call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The stable word.
    pub code: ToolErrorCode,
    /// One sentence a stranger can act on.
    pub message: String,
}

impl ToolError {
    fn new(code: ToolErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// The tools of this desktop. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tools {
    folders: Arc<Folders>,
}

/// One operation of the `files` server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilesTool {
    List,
    Read,
    Search,
    Stat,
}

impl FilesTool {
    const ALL: [Self; 4] = [Self::List, Self::Read, Self::Search, Self::Stat];

    const fn name(self) -> &'static str {
        match self {
            Self::List => "mcp__files__list",
            Self::Read => "mcp__files__read",
            Self::Search => "mcp__files__search",
            Self::Stat => "mcp__files__stat",
        }
    }

    fn describe(self) -> ToolDescription {
        let path = json!({ "type": "string", "description": "absolute, ~/… or, with one granted folder, relative to it" });
        let (description, arguments) = match self {
            Self::List => (
                "Lists a granted folder, to a depth, without following links.",
                json!({ "type": "object", "required": ["path"], "additionalProperties": false, "properties": {
                    "path": path, "depth": { "type": "integer", "minimum": 1, "maximum": files::DEPTH_MAX },
                    "limit": { "type": "integer", "minimum": 1, "maximum": files::ENTRIES_MAX } } }),
            ),
            Self::Read => (
                "Reads a text file of a granted folder; says so when a file is binary.",
                json!({ "type": "object", "required": ["path"], "additionalProperties": false, "properties": {
                    "path": path, "offset": { "type": "integer", "minimum": 0 },
                    "max_bytes": { "type": "integer", "minimum": 1, "maximum": files::READ_BYTES_MAX } } }),
            ),
            Self::Search => (
                "Finds lines that contain a text in the text files below a granted folder.",
                json!({ "type": "object", "required": ["path", "text"], "additionalProperties": false, "properties": {
                    "path": path, "text": { "type": "string", "minLength": 1 },
                    "ignore_case": { "type": "boolean" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": files::MATCHES_MAX } } }),
            ),
            Self::Stat => (
                "Tells kind, size and time of change of one file or folder.",
                json!({ "type": "object", "required": ["path"], "additionalProperties": false, "properties": {
                    "path": path } }),
            ),
        };
        ToolDescription {
            name: self.name(),
            description,
            arguments,
        }
    }
}

impl Tools {
    /// Tools that read below `granted_folders` and nowhere else. `~/` is the home folder. A folder
    /// that does not exist yet is granted from the moment it does.
    pub fn new(granted_folders: Vec<PathBuf>) -> Self {
        Self {
            folders: Arc::new(Folders::new(granted_folders)),
        }
    }

    /// The same tools, which read nothing below `denied` even when a granted folder holds it. A
    /// folder of `except` that lies inside a denied one opens again when that folder, or one
    /// below it, is granted by itself. The grants stay shared with `self` and its clones.
    #[must_use]
    pub fn denying(self, denied: Vec<PathBuf>, except: Vec<PathBuf>) -> Self {
        Self {
            folders: Arc::new(self.folders.denying(denied, except)),
        }
    }

    /// Replaces the granted folders of these tools and all their clones. Calls under way open
    /// nothing any more outside the new ones; what they have read already is not taken back.
    pub fn set_folders(&self, granted_folders: Vec<PathBuf>) {
        self.folders.set_granted(granted_folders);
    }

    /// Every tool that can be called.
    pub fn list(&self) -> Vec<ToolDescription> {
        FilesTool::ALL
            .into_iter()
            .map(FilesTool::describe)
            .collect()
    }

    /// Calls a tool and waits for its end.
    ///
    /// # Errors
    /// [`ToolErrorCode::ToolRefused`] for every tool but the built-in ones and for paths outside
    /// the granted folders; [`ToolErrorCode::BadArguments`], [`ToolErrorCode::ToolFailed`] and
    /// [`ToolErrorCode::Cancelled`] as their names say.
    pub async fn call(
        &self,
        name: &str,
        arguments: &Value,
        cancel: CancellationToken,
    ) -> Result<Value, ToolError> {
        let Some(tool) = FilesTool::ALL.into_iter().find(|tool| tool.name() == name) else {
            let name = callboard_domain::cut_utf16(name, 100);
            return Err(ToolError::new(
                ToolErrorCode::ToolRefused,
                format!(
                    "tool \"{name}\" was refused: approvals do not exist yet, only read-only \
                     tools on granted folders run ({})",
                    FilesTool::ALL.map(FilesTool::name).join(", ")
                ),
            ));
        };
        let folders = Arc::clone(&self.folders);
        let work = plan(tool, arguments)?;
        let inner = cancel.clone();
        // Disk reads block; the closure looks at the token between entries.
        let task = tokio::task::spawn_blocking(move || work(&folders, &inner));
        let cancelled = || ToolError::new(ToolErrorCode::Cancelled, "the call was cancelled");
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            done = task => done.unwrap_or_else(|_| {
                Err(ToolError::new(ToolErrorCode::ToolFailed, "the tool stopped unexpectedly"))
            }),
        }
    }
}

type Work = Box<dyn FnOnce(&Folders, &CancellationToken) -> Result<Value, ToolError> + Send>;

fn plan(tool: FilesTool, arguments: &Value) -> Result<Work, ToolError> {
    Ok(match tool {
        FilesTool::List => {
            let arguments: files::List = parse(arguments)?;
            Box::new(move |folders, cancel| arguments.run(folders, cancel))
        }
        FilesTool::Read => {
            let arguments: files::Read = parse(arguments)?;
            Box::new(move |folders, _| arguments.run(folders))
        }
        FilesTool::Search => {
            let arguments: files::Search = parse(arguments)?;
            Box::new(move |folders, cancel| arguments.run(folders, cancel))
        }
        FilesTool::Stat => {
            let arguments: files::Stat = parse(arguments)?;
            Box::new(move |folders, _| arguments.run(folders))
        }
    })
}

fn parse<T: DeserializeOwned>(arguments: &Value) -> Result<T, ToolError> {
    T::deserialize(arguments).map_err(|error| {
        ToolError::new(
            ToolErrorCode::BadArguments,
            format!("the arguments are wrong: {error}"),
        )
    })
}

trait InRange: Sized {
    fn in_range(self, name: &str, max: u64) -> Result<u64, ToolError>;
}

impl InRange for Option<u64> {
    /// The value, or `max` when absent; refused when it is 0 or more than `max`.
    fn in_range(self, name: &str, max: u64) -> Result<u64, ToolError> {
        let value = self.unwrap_or(max);
        if (1..=max).contains(&value) {
            return Ok(value);
        }
        let message = format!("{name} must lie between 1 and {max}");
        Err(ToolError::new(ToolErrorCode::BadArguments, message))
    }
}
