//! `list_graph_sessions`: what the owner shares with a project.

use callboard_domain::ProjectId;
use callboard_domain::limits::LIST_LIMIT_MAX;
use serde::{Deserialize, Serialize};

use crate::arguments::{Argument, Kind};
use crate::as_text;
use crate::relay::SessionInfo;

/// What it takes.
pub const ARGUMENTS: &[Argument] = &[
    super::PROJECT_ID,
    Argument {
        name: "limit",
        description: "How many sessions to return at most; 50 when left out.",
        kind: Kind::Integer {
            min: 1,
            max: LIST_LIMIT_MAX,
        },
        required: false,
    },
];

/// What it answers. Empty until the owner shares a session from a desktop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The project that was asked for.
    #[serde(with = "as_text")]
    pub project_id: ProjectId,
    /// What the last sync of each desktop uploaded.
    pub sessions: Vec<Session>,
}

/// A shared session and the desktop that runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// What the desktop uploaded.
    #[serde(flatten)]
    pub session: SessionInfo,
    /// Where it would run.
    pub desktop: Desktop,
}

/// The desktop of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desktop {
    /// The name its owner gave it.
    pub name: String,
    /// It called within 60 s, or holds a wake-up call.
    pub online: bool,
    /// RFC 3339; left out for a desktop that never called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen_at: Option<String>,
}
