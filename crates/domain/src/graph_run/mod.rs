//! The life of one queued Graph run, as a pure machine.
//!
//! [`decide`] answers an event, [`settle`] applies what time alone caused, [`sweep`] also gives up
//! runs of lost desktops, [`next_sweep`] says when to look again. A store loads a [`Run`], calls one of them and stores the outcome, all in one
//! transaction; nothing else moves a run.

mod decide;
mod event;
mod state;

pub use decide::{decide, next_due, next_sweep, settle, sweep};
pub use event::{Completion, Event, LostDesktop};
pub use state::{End, Execution, Run, State, Status};
