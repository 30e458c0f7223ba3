//! What can be asked over the control socket, and what is answered. Times are RFC 3339 in UTC.

use callboard_fleet::{Meta, ScriptError};
use callboard_wire::RawValue;
use callboard_wire::relay::Progress;
use serde::{Deserialize, Serialize};

use crate::{Activity, RunStatus};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// How the desktop is. Answered by [`Response::Status`].
    Status,
    /// Check a Graph's source without saving it. Answered by [`Response::Checked`].
    GraphCheck {
        /// The source.
        source: String,
    },
    /// Save a new Graph. Answered by [`Response::Graph`].
    GraphAdd {
        /// The source.
        source: String,
        /// Its slug; made from `meta.name` when left out.
        slug: Option<String>,
    },
    /// Replace a Graph's source, its slug, or both. Answered by [`Response::Graph`].
    GraphEdit {
        /// The Graph.
        slug: String,
        /// The new source.
        source: Option<String>,
        /// The new slug. Runs queued under the old one end cancelled.
        new_slug: Option<String>,
    },
    /// All Graphs. Answered by [`Response::Graphs`].
    GraphList,
    /// One Graph with its source. Answered by [`Response::Graph`].
    GraphShow {
        /// The Graph.
        slug: String,
    },
    /// Remove a Graph and its shares. Answered by [`Response::Done`].
    GraphRemove {
        /// The Graph.
        slug: String,
    },
    /// Share a Graph with a project. Answered by [`Response::Done`].
    GraphShare {
        /// The Graph.
        slug: String,
        /// The project's name or id.
        project: String,
    },
    /// End a share. Answered by [`Response::Done`].
    GraphUnshare {
        /// The Graph.
        slug: String,
        /// The project's name or id.
        project: String,
    },
    /// Run a Graph here, without the hub. Answered by [`Response::Started`].
    GraphRun {
        /// The Graph.
        slug: String,
        /// Its arguments as the JSON text of an object; none when left out.
        arguments: Option<String>,
    },
    /// The owner's projects. Answered by [`Response::Projects`].
    ProjectList,
    /// Let chats of a project use what is shared with it. Answered by [`Response::Done`].
    ProjectEnable {
        /// The project's name or id.
        project: String,
    },
    /// Stop that. Answered by [`Response::Done`].
    ProjectDisable {
        /// The project's name or id.
        project: String,
    },
    /// The newest runs. Answered by [`Response::Runs`].
    RunList {
        /// How many at most.
        limit: usize,
    },
    /// One run with its result. Answered by [`Response::Run`].
    RunShow {
        /// Its execution or command, or the beginning or end of either.
        id: String,
    },
    /// Stop a run. Answered by [`Response::Done`] once the engine was told.
    RunCancel {
        /// Its execution or command, or the beginning or end of either.
        id: String,
    },
    /// Everything that happens from now on, until the connection ends. Answered by many
    /// [`Response::Activity`].
    Watch,
    /// Let the read-only `files` tools look into a folder. Answered by [`Response::Folders`].
    FolderGrant {
        /// The folder, absolute.
        path: String,
    },
    /// The granted folders. Answered by [`Response::Folders`].
    FolderList,
    /// Take a grant back. Answered by [`Response::Folders`].
    FolderRevoke {
        /// The folder, as it is listed.
        path: String,
    },
}

/// One answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// It is done, and there is nothing to say.
    Done,
    /// It is not done.
    Refused(Refused),
    /// How the desktop is.
    Status(Box<StatusReport>),
    /// The source is a Graph.
    Checked(Box<Meta>),
    /// One Graph.
    Graph(Box<GraphDetail>),
    /// Several Graphs, by slug.
    Graphs(Vec<GraphInfo>),
    /// The owner's projects, in the hub's order.
    Projects(Vec<ProjectInfo>),
    /// A run began here.
    Started {
        /// Its id in the history.
        execution_id: String,
    },
    /// Several runs, the newest first.
    Runs(Vec<RunSummary>),
    /// One run.
    Run(Box<RunDetail>),
    /// The granted folders.
    Folders(Vec<FolderInfo>),
    /// One event of a watched desktop.
    Activity(Activity),
}

/// Why something is not done, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// One sentence.
    pub message: String,
    /// One thing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where in the source, for a Graph that is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// A place in a Graph's source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Counted from 1.
    pub line: u32,
    /// In characters, counted from 1.
    pub column: u32,
    /// The text of the line.
    pub source_line: String,
}

impl Refused {
    /// A refusal with nothing but its sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            place: None,
        }
    }

    /// The same with one thing to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<ScriptError> for Refused {
    fn from(error: ScriptError) -> Self {
        let place = (error.line > 0).then_some(Place {
            line: error.line,
            column: error.column,
            source_line: error.source_line,
        });
        let message = match &place {
            Some(at) => format!("line {}, column {}: {}", at.line, at.column, error.message),
            None => error.message,
        };
        Self {
            message,
            hint: None,
            place,
        }
    }
}

impl From<Refused> for Response {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// How a desktop is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The name that the hub has for this desktop, once it told.
    pub name: Option<String>,
    /// The hub.
    pub hub: HubReport,
    /// `wake-up` or `poll-only`.
    pub mode: String,
    /// Whether the hub holds the wake-up call: `held`, `idle`, `reconnecting` or `off`.
    pub wake_up: String,
    /// Commands that may run at a time.
    pub slots: usize,
    /// Commands that hold a slot.
    pub busy_slots: usize,
    /// Commands that wait for one.
    pub waiting: usize,
    /// Runs that the owner started here.
    pub local_runs: usize,
    /// Saved Graphs.
    pub graphs: usize,
    /// Projects that are enabled here.
    pub projects_enabled: usize,
    /// Completions that the hub has yet to take.
    pub outbox_waiting: u64,
    /// Completions that it never will.
    pub outbox_parked: u64,
    /// Why no new work is fetched, if the disk is the reason.
    pub disk: Option<String>,
    /// Results that are held in memory until the disk takes them.
    pub unsaved_results: usize,
    /// When the last turn began.
    pub last_turn: Option<String>,
    /// The data folder.
    pub data_dir: String,
    /// The identity of the data folder.
    pub worker_id: String,
    /// The daemon's process.
    pub process: u32,
}

/// The hub, as a desktop knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubReport {
    /// Its address.
    pub url: String,
    /// It answers, and takes this desktop for its own.
    pub reachable: bool,
    /// One phrase, such as `reachable` or why not.
    pub state: String,
    /// It asked to be left alone for this long, in milliseconds.
    pub held_ms: Option<u64>,
}

/// A Graph in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphInfo {
    /// Its permanent id.
    pub graph_session_id: String,
    /// What it is called by here.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Saved versions of its source.
    pub version: u64,
    /// When it was last changed.
    pub updated_at: String,
    /// Names of the projects that it is shared with.
    pub shared_with: Vec<String>,
}

/// A Graph with its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphDetail {
    /// What a list shows.
    pub info: GraphInfo,
    /// The source.
    pub source: String,
}

/// A project of the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectInfo {
    /// Its id.
    pub project_id: String,
    /// Its name.
    pub name: String,
    /// The owner enabled it on this desktop.
    pub enabled: bool,
    /// Graphs that are shared with it.
    pub shared: u64,
    /// The hub still lists it.
    pub listed: bool,
    /// It was disabled here, and the hub has yet to hear of that.
    pub withdrawing: bool,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its id in the history; none for a command that never began.
    pub execution_id: Option<String>,
    /// The hub's command; none for a run that was started here.
    pub command_id: Option<String>,
    /// The Graph.
    pub slug: String,
    /// The version of its source that ran.
    pub version: Option<u64>,
    /// The project that the run is attributed to.
    pub project: Option<String>,
    /// Where it stands.
    pub status: RunStatus,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    pub finished_at: Option<String>,
    /// How long it lasted, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Tokens that it used.
    pub total_tokens: Option<u64>,
    /// Why it failed or was cancelled.
    pub error: Option<String>,
    /// Where its completion is, while the hub does not have it.
    pub delivery: Option<Delivery>,
}

/// A completion that the hub does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Whether it will be sent again.
    pub state: DeliveryState,
    /// The hub's sentence, for a parked one.
    pub reason: Option<String>,
}

/// What becomes of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is sent with the next turn.
    Waiting,
    /// The hub refused it for good.
    Parked,
}

/// A run with everything that is kept of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunDetail {
    /// What a list shows.
    pub summary: RunSummary,
    /// The channel that the run is attributed to.
    pub channel: String,
    /// Its arguments.
    pub arguments: Option<Box<RawValue>>,
    /// Its whole result, as the engine wrote it.
    pub result: Option<Box<RawValue>>,
    /// What the providers said it cost, in US dollars.
    pub reported_cost: Option<f64>,
    /// The present or last phase.
    pub phase: Option<String>,
    /// How far it is; none once it is over.
    pub progress: Option<Progress>,
    /// The phases that it went through, the last 500.
    pub phases: Vec<String>,
    /// What it logged, the last 500 lines.
    pub logs: Vec<String>,
}

/// A granted folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderInfo {
    /// The folder.
    pub path: String,
    /// When it was granted.
    pub granted_at: String,
}
