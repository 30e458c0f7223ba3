//! What an operation gave, in a form that can be compared whole.

use callboard_domain::{CommandId, GraphSessionId, OwnerId, Refusal};
use callboard_store::{
    Connection, Desktop, OwnedRun, Project, QueuedRun, Revoked, RunCount, RunRow, SessionRow,
    StoreError, Swept, Synced,
};
use callboard_wire::relay::ControlInfo;

use super::chat_operation::ChatAnswer;

#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Refused(Refusal),
    NameTaken,
    Done,
    Flag(bool),
    Owner(OwnerId),
    Project(Project),
    Projects(Vec<Project>),
    Desktop(Option<Desktop>),
    Desktops(Vec<Desktop>),
    Connection(Option<Connection>),
    Connections(Vec<Connection>),
    Sessions(Option<Vec<SessionRow>>),
    Revoked(Option<Revoked>),
    Run(Option<RunRow>),
    Queued(QueuedRun),
    Completed(RunRow, bool),
    OwnedRuns(Vec<OwnedRun>),
    RunCounts(Vec<RunCount>),
    Swept(Swept),
    Chat(ChatAnswer),
    Synced {
        commands: Vec<(CommandId, GraphSessionId, String, String)>,
        control: Vec<ControlInfo>,
        changed: bool,
    },
}

impl Answer {
    /// Wraps the value of an operation, or how it was refused. No store here may be unavailable.
    pub(super) fn of<T>(result: Result<T, StoreError>, wrap: impl FnOnce(T) -> Self) -> Self {
        match result {
            Ok(value) => wrap(value),
            Err(StoreError::Refused(refusal)) => Self::Refused(refusal),
            Err(StoreError::NameTaken) => Self::NameTaken,
            Err(StoreError::Unavailable(source)) => panic!("the store is unavailable: {source}"),
        }
    }

    pub(super) fn synced(synced: Synced) -> Self {
        let commands = synced.handout.commands.into_iter().map(|command| {
            let arguments = command.arguments.get().to_owned();
            let (id, session) = (command.command_id, command.graph_session_id);
            (id, session, command.slug, arguments)
        });
        Self::Synced {
            commands: commands.collect(),
            control: synced.handout.control,
            changed: synced.changed,
        }
    }
}
