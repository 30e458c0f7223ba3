//! What goes into a step and what comes out of it.

use callboard_domain::graph_run::Completion;
use callboard_domain::{
    CommandId, ExecutionId, FinalStatus, Grant, GraphSessionId, ProjectId, Refusal, Report,
    Timestamp,
};
use callboard_wire::relay::{
    CompleteResponse, ControlResponse, DesktopInfo, StartRequest, StartResponse, SyncRequest,
    SyncResponse, WaitRequest, WaitResponse,
};

/// The present instant on both clocks. Deadlines use the monotonic one; the wall clock tells
/// that the machine slept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall time, which may jump.
    pub wall: Timestamp,
    /// Milliseconds of a clock that never runs backwards.
    pub monotonic_ms: u64,
}

/// A queued run as the relay remembers it: everything but its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The command's id. Being a UUID, it can stand in the channel `graph:external:<id>`.
    pub id: CommandId,
    /// The project whose sync handed it out.
    pub project_id: ProjectId,
    /// The session to run.
    pub graph_session_id: GraphSessionId,
    /// The session's slug when the command was queued.
    pub slug: String,
}

/// Tells one call to the hub from every other of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub(crate) u64);

/// A request to the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// `GET /desktop`.
    WhoAmI,
    /// `POST …/sync`.
    Sync(SyncRequest),
    /// `POST …/commands/{id}/start`.
    Start(CommandId, StartRequest),
    /// `POST …/commands/{id}/control`; the shell adds the run's present phase and progress.
    Control(CommandId, ExecutionId),
    /// `POST …/commands/{id}/complete` with the completion that the outbox holds.
    Complete(CommandId),
    /// `POST …/wait`.
    Wait(WaitRequest),
}

/// What the hub answered to a [`Call`] of the same name.
#[derive(Debug, Clone)]
pub enum Answer {
    /// To [`Call::WhoAmI`].
    WhoAmI(DesktopInfo),
    /// To [`Call::Sync`].
    Sync(SyncResponse),
    /// To [`Call::Start`].
    Start(StartResponse),
    /// To [`Call::Control`].
    Control(ControlResponse),
    /// To [`Call::Complete`].
    Complete(CompleteResponse),
    /// To [`Call::Wait`].
    Wait(WaitResponse),
}

/// Why a call brought no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The hub's own refusal: a `Problem` with a code of the rules.
    Refused(Refusal),
    /// Any other HTTP answer, also one that only something on the way can have made up.
    Status {
        /// The HTTP status.
        status: u16,
        /// For people: what it was.
        reason: String,
        /// The `Retry-After` of the answer, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// No answer at all: no connection, cut off, or not in time.
    NoAnswer {
        /// For people: what went wrong.
        reason: String,
    },
}

/// How the engine ended an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How it ended, before the relay decides about a cancel.
    pub status: FinalStatus,
    /// Result, error, tokens and cost, not yet bounded.
    pub report: Report,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// The process began. The first input of a [`crate::Relay`].
    Boot,
    /// Time passed. Harmless at any moment, due at [`crate::Relay::next_deadline_ms`].
    Tick,
    /// The owner changed what is shared, or enabled or disabled a project.
    SharingChanged,
    /// A call ended. Every [`Output::Send`] is answered once, unless it was abandoned or the
    /// process stopped.
    Answered {
        /// Which call.
        call: CallId,
        /// What came of it.
        answer: Result<Answer, Failure>,
    },
    /// The answer to [`Output::RecordRunning`].
    Decided {
        /// The command.
        command_id: CommandId,
        /// Given: the row now says `running`. Withdrawn: it is as before.
        grant: Grant,
    },
    /// The engine ended an execution.
    Finished {
        /// The execution.
        execution_id: ExecutionId,
        /// How it ended.
        outcome: Outcome,
    },
    /// The owner stops an execution here, on the desktop.
    OwnerCancel {
        /// The execution.
        execution_id: ExecutionId,
    },
    /// The disk refused an output; it and those after it were not performed.
    NotPerformed {
        /// The refused output, then the rest of its step.
        outputs: Vec<Output>,
        /// For people: what the disk said.
        reason: String,
    },
    /// The owner stops the desktop: begin nothing new, let running work finish.
    Drain,
    /// The time for finishing is up: stop what still runs, with a stated reason.
    GraceOver,
}

/// Something the shell does. The order within a step is binding, and each `Record`, `Park`,
/// `Delete` and `Acknowledge` is durable before the next output is performed.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Insert the command's row: `starting` under this execution id, with its arguments.
    RecordStarting {
        /// The command.
        command: Command,
        /// The run's arguments as JSON text.
        arguments: String,
        /// The id it will run under.
        execution_id: ExecutionId,
    },
    /// In one transaction: read the command's consent, and only if it is given, turn its row to
    /// `running`. Answer with [`Input::Decided`].
    RecordRunning {
        /// The command.
        command: Command,
        /// The granted execution.
        execution_id: ExecutionId,
    },
    /// In one transaction: turn the command's row to `done` (inserting it if there is none) and
    /// put the completion into the outbox.
    RecordDone {
        /// The command.
        command: Command,
        /// What the hub will be told, already bounded.
        completion: Completion,
    },
    /// Turn the command's row to `done` without a completion: the hub refused the start.
    RecordRefused {
        /// The command.
        command: Command,
        /// Why.
        refusal: Refusal,
    },
    /// The hub has the completion: take it out of the outbox.
    DeleteCompletion {
        /// The command.
        command_id: CommandId,
    },
    /// The hub will never take the completion: keep it, with the reason, and do not send it again.
    ParkCompletion {
        /// The command.
        command_id: CommandId,
        /// Why.
        refusal: Refusal,
    },
    /// The hub knows that this project is disabled here.
    AcknowledgeDisabled {
        /// The project.
        project_id: ProjectId,
    },
    /// Remember who the hub says this desktop is, and its owner's projects.
    RecordDesktop {
        /// The hub's words.
        info: DesktopInfo,
    },
    /// Call the hub, without waiting for the answer.
    Send {
        /// The name under which the answer is handed in.
        call: CallId,
        /// The request.
        request: Call,
    },
    /// Drop a call that is under way; its answer is of no use any more.
    Abandon {
        /// Which call.
        call: CallId,
    },
    /// Hand the script to the engine.
    BeginExecution {
        /// The command.
        command_id: CommandId,
        /// The execution.
        execution_id: ExecutionId,
    },
    /// Ask the engine to stop an execution. Given at most once for each.
    StopExecution {
        /// The execution.
        execution_id: ExecutionId,
    },
}

impl Output {
    /// The entry that this output takes out of what is resent.
    pub(crate) const fn leaving_outbox(&self) -> Option<CommandId> {
        match self {
            Self::DeleteCompletion { command_id } | Self::ParkCompletion { command_id, .. } => {
                Some(*command_id)
            }
            Self::RecordStarting { .. }
            | Self::RecordRunning { .. }
            | Self::RecordDone { .. }
            | Self::RecordRefused { .. }
            | Self::AcknowledgeDisabled { .. }
            | Self::RecordDesktop { .. }
            | Self::Send { .. }
            | Self::Abandon { .. }
            | Self::BeginExecution { .. }
            | Self::StopExecution { .. } => None,
        }
    }
}
