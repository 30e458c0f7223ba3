//! What a step may look at: the disk as it is now, and a source of ids and randomness.

use callboard_domain::{CommandId, Consent, ExecutionId, ProjectId};
use callboard_wire::relay::SessionInfo;

use crate::Command;

/// Where a command stands on the desktop's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The hub is being asked for the start of this execution.
    Starting(ExecutionId),
    /// The engine has, or is about to get, the script.
    Running(ExecutionId),
    /// Over; what there is to say went into the outbox in the same transaction.
    Done,
}

/// A command whose row says that it is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The command.
    pub command: Command,
    /// Its execution.
    pub execution_id: ExecutionId,
    /// The row says `running`, not `starting`.
    pub running: bool,
}

/// A project that the hub must hear about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectView {
    /// The project.
    pub project_id: ProjectId,
    /// The owner enabled it on this desktop. If not, the hub has yet to acknowledge that.
    pub enabled: bool,
    /// What is shared with it.
    pub sessions: Vec<SessionInfo>,
}

/// Reads of the desktop's disk. Each sees everything that was performed before the step.
pub trait View {
    /// The command's row.
    fn seen(&self, command_id: CommandId) -> Option<Seen>;
    /// All rows that are not `done`, oldest first.
    fn unfinished(&self) -> Vec<Unfinished>;
    /// The outbox without parked entries, oldest first.
    fn outbox(&self) -> Vec<CommandId>;
    /// The enabled projects, and the disabled ones that the hub has not acknowledged.
    fn projects(&self) -> Vec<ProjectView>;
    /// What the owner agrees to at this instant.
    fn consent(&self, command: &Command) -> Consent;
}

/// Ids and randomness.
pub trait Draw {
    /// A new execution id.
    fn execution_id(&mut self) -> ExecutionId;
    /// A number drawn evenly from `0..bound`; zero when `bound` is zero.
    fn below(&mut self, bound: u64) -> u64;
}
