//! The life of one task for linked chats, as a pure machine.
//!
//! [`decide`] answers an event, [`settle`] applies what time alone caused, [`next_due`] says when
//! to look again, [`decide_upload`] guards artifacts with the same fence. A store loads a [`Task`],
//! calls one of them and stores the outcome, all in one transaction; nothing else moves a task.

mod artifact;
mod decide;
mod event;
mod host;
mod state;

pub use artifact::{Upload, Uploaded, decide_upload, is_media_type_admitted};
pub use decide::{decide, next_due, settle};
pub use event::{Event, Submission, Verdict};
pub use host::{Host, status_text};
pub use state::{Claim, Ended, Outcome, State, Status, Task};
