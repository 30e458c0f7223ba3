//! The rows that operations take and give, as plain values.

use callboard_domain::graph_run::Run;
use callboard_domain::{
    CommandId, ConnectionId, DesktopId, Digest, GraphSessionId, OwnerId, ProjectId, Scopes,
    Timestamp, WorkerId,
};
use callboard_wire::relay::{CommandInfo, ControlInfo, Progress, SessionInfo};

/// SHA-256 of a bearer token; the token itself is never stored.
pub type TokenHash = Digest;

/// A project of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The project's id.
    pub id: ProjectId,
    /// Whose it is.
    pub owner_id: OwnerId,
    /// Its name, unique among the owner's projects.
    pub name: String,
}

/// A project to be made.
#[derive(Debug, Clone)]
pub struct NewProject {
    /// The row.
    pub project: Project,
    /// When.
    pub now: Timestamp,
}

/// A machine that comes for its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desktop {
    /// The desktop's id.
    pub id: DesktopId,
    /// Whose it is.
    pub owner_id: OwnerId,
    /// Its name, unique among the owner's desktops.
    pub name: String,
    /// The data folder that the identity is bound to, once it called.
    pub worker_id: Option<WorkerId>,
    /// Its last sign of life that was stored.
    pub last_seen_at: Option<Timestamp>,
}

/// A desktop to be made.
#[derive(Debug, Clone)]
pub struct NewDesktop {
    /// The desktop's id.
    pub id: DesktopId,
    /// Whose it is.
    pub owner_id: OwnerId,
    /// Its name.
    pub name: String,
    /// Hash of its device token.
    pub token_hash: TokenHash,
    /// When.
    pub now: Timestamp,
}

/// One grant of one client: a connected agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// The connection's id.
    pub id: ConnectionId,
    /// Whose workspace it works in.
    pub owner_id: OwnerId,
    /// Its name, unique among the owner's connections.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// The projects it was added to, first added first.
    pub projects: Vec<Project>,
}

/// A connection to be made.
#[derive(Debug, Clone)]
pub struct NewConnection {
    /// The connection's id.
    pub id: ConnectionId,
    /// Whose workspace it works in.
    pub owner_id: OwnerId,
    /// Its name.
    pub name: String,
    /// Hash of its bearer token.
    pub token_hash: TokenHash,
    /// What it may do.
    pub scopes: Scopes,
    /// The projects it is added to, in this order.
    pub projects: Vec<ProjectId>,
    /// When.
    pub now: Timestamp,
}

/// A session as the last sync of its desktop uploaded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// What was uploaded.
    pub session: SessionInfo,
    /// The project it is shared with.
    pub project_id: ProjectId,
    /// The desktop that runs it.
    pub desktop_id: DesktopId,
    /// That desktop's name.
    pub desktop_name: String,
    /// That desktop's last stored sign of life.
    pub desktop_last_seen_at: Option<Timestamp>,
}

/// A command as its connection finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// The connection that asks.
    pub connection_id: ConnectionId,
    /// The command it asks for.
    pub command_id: CommandId,
}

/// A request to queue a run.
#[derive(Debug, Clone)]
pub struct QueueRun {
    /// The id that the command gets if it is new.
    pub command_id: CommandId,
    /// The connection that asks.
    pub connection_id: ConnectionId,
    /// The session to run.
    pub graph_session_id: GraphSessionId,
    /// The connection's own key for this request.
    pub idempotency_key: String,
    /// The Graph's arguments: the text of a JSON object.
    pub arguments: String,
    /// Digest of session and arguments, by meaning.
    pub request: Digest,
    /// When.
    pub now: Timestamp,
}

/// The command of a request to queue a run.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedRun {
    /// The command, new or of the first request with this key.
    pub row: RunRow,
    /// Whether the key was there already.
    pub replayed: bool,
}

/// A command and what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// The command's id.
    pub command_id: CommandId,
    /// The connection that started it.
    pub connection_id: ConnectionId,
    /// The project it is attributed to.
    pub project_id: ProjectId,
    /// The desktop that it waits for or runs on.
    pub desktop_id: DesktopId,
    /// The session.
    pub graph_session_id: GraphSessionId,
    /// The session's slug when the command was queued.
    pub slug: String,
    /// The Graph's arguments: the text of a JSON object.
    pub arguments: String,
    /// Where it stands, settled at the time of the operation.
    pub run: Run,
    /// What a running Graph said it is doing.
    pub phase: Option<String>,
    /// How far a running Graph said it is.
    pub progress: Option<Progress>,
    /// The desktop's last stored sign of life.
    pub desktop_last_seen_at: Option<Timestamp>,
}

/// What waits for one desktop in one project.
#[derive(Debug, Clone, Default)]
pub struct Handout {
    /// Queued commands, oldest first.
    pub commands: Vec<CommandInfo>,
    /// Running commands that somebody asked to stop.
    pub control: Vec<ControlInfo>,
}

/// The answer of a sync.
#[derive(Debug, Clone, Default)]
pub struct Synced {
    /// What waits.
    pub handout: Handout,
    /// Whether the list of sessions differed from the stored one, so that something was written.
    pub changed: bool,
}
