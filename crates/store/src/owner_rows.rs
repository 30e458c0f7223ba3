//! What the owner sees and keeps, as plain values: every command of the hub, and the console's
//! sign-ins.

use callboard_domain::graph_run::Status;
use callboard_domain::{CommandId, OwnerId, SignInId, Timestamp};

use crate::{RunRow, TokenHash};

/// A command as its owner sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedRun {
    /// The command. In a list without its arguments and its result.
    pub row: RunRow,
    /// The name of its project.
    pub project_name: String,
    /// The name of the connection that started it, revoked or not.
    pub connection_name: String,
    /// The name of its desktop.
    pub desktop_name: String,
    /// What the session is called, while its desktop still shares it.
    pub session_name: Option<String>,
}

/// Which of the owner's commands a list holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunFilter {
    /// Only those that are stored with this status.
    pub status: Option<Status>,
    /// Only those that were queued before this one; none, when the owner has no such command.
    pub before: Option<CommandId>,
}

/// How many of the owner's commands are stored with a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCount {
    /// The status.
    pub status: Status,
    /// How many.
    pub count: u64,
}

/// A browser that is signed in to the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// Its id.
    pub id: SignInId,
    /// Who signed in.
    pub owner_id: OwnerId,
    /// What the browser called itself.
    pub user_agent: String,
    /// When.
    pub signed_in_at: Timestamp,
    /// From then on it counts no more.
    pub expires_at: Timestamp,
}

/// A sign-in to be kept.
#[derive(Debug, Clone)]
pub struct NewSignIn {
    /// The row.
    pub sign_in: SignIn,
    /// Hash of the browser's cookie.
    pub token_hash: TokenHash,
}
