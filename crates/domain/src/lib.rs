//! The rules of Callboard, written once: ids, limits, bounded text and the pure state machines.
//!
//! Nothing here can do anything but think: no async, no clock, no randomness, no storage, no
//! serialisation. Whatever needs one of those lives in a larger ring and calls in here.

pub mod limits;

mod decision;
mod digest;
mod ids;
mod refusal;
mod report;
mod scope;
mod sharing;
mod text;
mod time;

pub mod graph_run;
pub mod linked_task;

pub use decision::Decision;
pub use digest::Digest;
pub use ids::{
    ChatLinkId, ClaimId, CommandId, ConnectionId, DesktopId, ExecutionId, GraphSessionId, OwnerId,
    ParseIdError, ProjectId, SignInId, TaskId, WorkerId,
};
pub use refusal::Refusal;
pub use report::{FinalStatus, Report, bound_error, bound_report};
pub use scope::{ParseScopeError, Scope, Scopes};
pub use sharing::{Consent, Grant};
pub use text::{
    TextBound, TextUnit, cut_utf16, ends_line, is_blank, is_deceptive, mend_surrogates, utf16_len,
};
pub use time::Timestamp;
