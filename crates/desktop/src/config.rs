//! What a desktop needs to begin.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use callboard_agents::Agents;
use callboard_domain::limits::{CONTROL_INTERVAL_MS, SHUTDOWN_GRACE_MS, SYNC_INTERVAL_MS};
use callboard_fleet::{Launcher, Limits};
use callboard_relay::Output;

/// Everything that a desktop is told at its start.
#[derive(Debug, Clone)]
pub struct DesktopConfig {
    /// The data folder; created when it does not exist.
    pub data_dir: PathBuf,
    /// Folders with secrets of this product: no Graph reads below them, whatever is granted. The
    /// data folder is always one of them.
    pub private_dirs: Vec<PathBuf>,
    /// Folders inside private ones that can be granted all the same.
    pub open_dirs: Vec<PathBuf>,
    /// The hub, such as `https://hub.example.org`.
    pub hub_url: String,
    /// The device token.
    pub token: String,
    /// Poll every 20 s instead of holding a wake-up call.
    pub poll_only: bool,
    /// Commands that run at a time, at least 1.
    pub slots: usize,
    /// How to start a script's process.
    pub launcher: Launcher,
    /// The model providers.
    pub agents: Agents,
    /// The owner's limits of each run.
    pub limits: Limits,
    /// Time between two turns, in milliseconds; published: 20 s.
    pub sync_interval_ms: u64,
    /// Time between two control polls of a run, in milliseconds; published: 3 s.
    pub control_interval_ms: u64,
    /// Longest that running work is waited for at the end, in milliseconds.
    pub shutdown_grace_ms: u64,
    /// Wait forever before the first output of this kind, so that a test can kill the process
    /// exactly there.
    pub halt_before: Option<Step>,
}

impl DesktopConfig {
    /// A desktop with the published intervals, one slot, no model provider and the wake-up on.
    pub fn new(data_dir: PathBuf, hub_url: String, token: String, launcher: Launcher) -> Self {
        Self {
            private_dirs: vec![data_dir.clone()],
            open_dirs: Vec::new(),
            data_dir,
            hub_url,
            token,
            poll_only: false,
            slots: 1,
            launcher,
            agents: Agents::none(),
            limits: Limits::default(),
            sync_interval_ms: SYNC_INTERVAL_MS,
            control_interval_ms: CONTROL_INTERVAL_MS,
            shutdown_grace_ms: SHUTDOWN_GRACE_MS,
            halt_before: None,
        }
    }
}

/// A step of a run that a crash can come before. Each but the calls is durable once performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The command's row `starting` is written.
    RecordStarting,
    /// The hub is asked for the start.
    SendStart,
    /// The row turns to `running`, if consent is given.
    RecordRunning,
    /// The engine gets the script.
    BeginExecution,
    /// The row turns to `done`, the completion goes into the outbox.
    RecordDone,
    /// The completion is sent.
    SendComplete,
    /// The hub's answer is there; the completion leaves the outbox.
    DeleteCompletion,
}

impl Step {
    /// Every step, in the order of a run.
    pub const ALL: [Self; 7] = [
        Self::RecordStarting,
        Self::SendStart,
        Self::RecordRunning,
        Self::BeginExecution,
        Self::RecordDone,
        Self::SendComplete,
        Self::DeleteCompletion,
    ];

    /// The name of the step.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RecordStarting => "record-starting",
            Self::SendStart => "send-start",
            Self::RecordRunning => "record-running",
            Self::BeginExecution => "begin-execution",
            Self::RecordDone => "record-done",
            Self::SendComplete => "send-complete",
            Self::DeleteCompletion => "delete-completion",
        }
    }

    /// The step that an output is.
    pub(crate) const fn of(output: &Output) -> Option<Self> {
        use callboard_relay::Call;
        match output {
            Output::RecordStarting { .. } => Some(Self::RecordStarting),
            Output::RecordRunning { .. } => Some(Self::RecordRunning),
            Output::RecordDone { .. } => Some(Self::RecordDone),
            Output::DeleteCompletion { .. } => Some(Self::DeleteCompletion),
            Output::BeginExecution { .. } => Some(Self::BeginExecution),
            Output::Send { request, .. } => match request {
                Call::Start(..) => Some(Self::SendStart),
                Call::Complete(_) => Some(Self::SendComplete),
                Call::WhoAmI | Call::Sync(_) | Call::Control(..) | Call::Wait(_) => None,
            },
            Output::RecordRefused { .. }
            | Output::ParkCompletion { .. }
            | Output::AcknowledgeDisabled { .. }
            | Output::RecordDesktop { .. }
            | Output::Abandon { .. }
            | Output::StopExecution { .. } => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no step is called \"{0}\"")]
pub struct ParseStepError(String);

impl FromStr for Step {
    type Err = ParseStepError;

    fn from_str(text: &str) -> Result<Self, ParseStepError> {
        let named = Self::ALL.into_iter().find(|step| step.as_str() == text);
        named.ok_or_else(|| ParseStepError(text.to_owned()))
    }
}
