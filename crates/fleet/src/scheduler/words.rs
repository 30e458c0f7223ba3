//! The words that go into the scheduler and come out of it.

use std::fmt;

use callboard_domain::{Digest, Timestamp};

use crate::limits::{AGENT_CALLS, MAX_CONCURRENCY};

/// Number of a call within its run, given by the script in the order of its calls: each one is
/// larger than all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What a call is, independent of when it is made: the first 16 bytes of a digest over its kind
/// and its canonical arguments. Equal calls are interchangeable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key of a call. `identity` is canonical JSON without what is for display only.
    pub fn of(kind: &str, identity: &str) -> Self {
        let digest = Digest::of(&[kind.as_bytes(), identity.as_bytes()]);
        let mut key = [0; 16];
        key.copy_from_slice(&digest.as_bytes()[..16]);
        Self(key)
    }
}

/// The kinds of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// A model answers; counts against the cap and passes the gate.
    Agent,
    /// A tool runs; passes the gate.
    Tool,
    /// Time passes, in milliseconds.
    Sleep(u64),
}

/// One call that the script asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Number of the call.
    pub id: CallId,
    /// Its kind.
    pub kind: CallKind,
    /// What it is.
    pub key: Key,
    /// Tokens its first try may use at most: prompt estimate and longest answer.
    pub reserve_tokens: u64,
    /// Bytes that wait with it until it is dispatched.
    pub payload_bytes: u64,
}

/// Stable words for why a call or a run failed; a script sees them as `error.code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The provider failed, or none is configured.
    AgentFailed,
    /// The model declined.
    AgentRefused,
    /// No answer in time.
    AgentTimeout,
    /// No answer matched the schema.
    SchemaMismatch,
    /// The call itself is wrong.
    BadRequest,
    /// The tool may not be used.
    ToolRefused,
    /// The tool failed.
    ToolFailed,
    /// The arguments of a tool or of the run are wrong.
    BadArguments,
    /// The token cap is reached.
    BudgetExceeded,
    /// A limit on calls is reached.
    LimitExceeded,
    /// Quota or authentication: the run ends.
    ProviderLimit,
    /// The run was cancelled.
    Cancelled,
    /// The run took longer than it may.
    WallLimit,
    /// The script took more processor time than it may.
    CpuLimit,
    /// The script used more memory than it may.
    MemoryLimit,
    /// The script's process ended or did not answer.
    SandboxLost,
    /// The script waits for nothing that could happen.
    Deadlock,
    /// The script has a syntax error or threw one of its own.
    ScriptError,
    /// The result cannot be written as JSON.
    ResultNotJson,
    /// The result does not match `meta.result`.
    ResultMismatch,
    /// Every agent call failed.
    AllAgentsFailed,
}

impl Code {
    /// The stable word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentFailed => "agent_failed",
            Self::AgentRefused => "agent_refused",
            Self::AgentTimeout => "agent_timeout",
            Self::SchemaMismatch => "schema_mismatch",
            Self::BadRequest => "bad_request",
            Self::ToolRefused => "tool_refused",
            Self::ToolFailed => "tool_failed",
            Self::BadArguments => "bad_arguments",
            Self::BudgetExceeded => "budget_exceeded",
            Self::LimitExceeded => "limit_exceeded",
            Self::ProviderLimit => "provider_limit",
            Self::Cancelled => "cancelled",
            Self::WallLimit => "wall_limit",
            Self::CpuLimit => "cpu_limit",
            Self::MemoryLimit => "memory_limit",
            Self::SandboxLost => "sandbox_lost",
            Self::Deadlock => "deadlock",
            Self::ScriptError => "script_error",
            Self::ResultNotJson => "result_not_json",
            Self::ResultMismatch => "result_mismatch",
            Self::AllAgentsFailed => "all_agents_failed",
        }
    }

    /// Whether it passes through `parallel`, `pipeline`, `retry` and `on_error`: the run is over.
    pub const fn is_fatal(self) -> bool {
        matches!(
            self,
            Self::ProviderLimit | Self::Cancelled | Self::WallLimit
        )
    }

    /// Whether the same call might succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::AgentFailed | Self::AgentTimeout | Self::SchemaMismatch | Self::ToolFailed
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The stable word.
    pub code: Code,
    /// One sentence.
    pub message: String,
}

impl Fault {
    /// A fault with its sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// What a call came to: JSON text, or a fault.
pub type CallOutcome = Result<String, Fault>;

/// A call that ended, with what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// What it came to.
    pub outcome: CallOutcome,
    /// Tokens of all its tries, failed ones included.
    pub tokens: u64,
    /// What the provider says it cost, in US dollars.
    pub cost: Option<f64>,
}

/// A failure that `parallel`, `pipeline` or `on_error` turned into `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swallowed {
    /// The stable word, or `script_error` for what the script threw itself.
    pub code: String,
    /// The message, bounded.
    pub message: String,
    /// Label of the call.
    pub label: Option<String>,
    /// Phase of the call.
    pub phase: Option<String>,
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptEnd {
    /// It returned this JSON text.
    Returned(String),
    /// It threw, or was stopped. `code` is the script's own when it threw a `GraphError`.
    Failed {
        /// Stable word.
        code: String,
        /// Text for people.
        error: String,
    },
}

/// What happens to a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The script asks for calls: everything it issued before it had to wait.
    Requested(Vec<Request>),
    /// A call that was dispatched ended.
    Completed(CallId, Settled),
    /// A failure became `null`.
    Swallowed(Swallowed),
    /// Time passed.
    Tick,
    /// The owner, or the agent that started the run, cancels it.
    Cancel,
    /// The run is stopped by the engine itself.
    Stop(Fault),
    /// The script is over.
    Ended(ScriptEnd),
}

/// One row of the journal.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// A call is about to be dispatched. All start rows of a step are one wave.
    Start {
        /// What the call is.
        key: Key,
        /// The how manieth of its key, from 1.
        occurrence: u32,
        /// When.
        at: Timestamp,
    },
    /// A call is settled. Written before the script sees it.
    Done {
        /// What the call is.
        key: Key,
        /// The how manieth of its key, from 1.
        occurrence: u32,
        /// When.
        at: Timestamp,
        /// Tokens of all its tries.
        tokens: u64,
        /// What it came to.
        outcome: CallOutcome,
    },
}

/// The answer of a call, on its way to the script.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Which call.
    pub id: CallId,
    /// What it came to.
    pub outcome: CallOutcome,
    /// The run's clock when it was settled: what `now()` says from here on.
    pub at: Timestamp,
    /// Tokens of everything delivered so far, this included.
    pub spent_tokens: u64,
}

/// What the shell does, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Make these rows durable.
    Journal(Vec<Row>),
    /// Start this call.
    Dispatch(CallId),
    /// Abort this call; its end is reported all the same.
    Abort(CallId),
    /// Hand these answers to the script, in order.
    Deliver(Vec<Delivery>),
    /// The run is over and nothing of it is alive.
    Finished(Summary),
}

/// Agent and tool calls, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Dispatched.
    pub started: u64,
    /// Settled with an answer.
    pub succeeded: u64,
    /// Settled with a fault after they were dispatched.
    pub failed: u64,
    /// Never dispatched.
    pub refused: u64,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The script returned.
    Completed,
    /// It did not, or nothing it wanted worked.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How it ended.
    pub outcome: Outcome,
    /// What the script returned, as the engine's own JSON text. Kept beside an error when the
    /// script returned normally but the run counts as failed.
    pub result: Option<String>,
    /// Stable word for why it did not complete.
    pub code: Option<String>,
    /// The same for people.
    pub error: Option<String>,
    /// Tokens of all calls.
    pub tokens: u64,
    /// What the providers say it cost, in US dollars.
    pub cost: Option<f64>,
    /// Calls.
    pub counts: Counts,
    /// Failures that became `null`; the first [`crate::limits::FAILURES_MAX`].
    pub swallowed: Vec<Swallowed>,
}

/// The limits of one run, after defaults and hard limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Token cap; 0 lets no agent start, `None` is no cap.
    pub tokens: Option<u64>,
    /// Agent and tool calls at the same time.
    pub max_concurrency: u32,
    /// Agent calls in all.
    pub agents: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            tokens: None,
            max_concurrency: MAX_CONCURRENCY,
            agents: AGENT_CALLS,
        }
    }
}
