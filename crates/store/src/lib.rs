//! What a store must do, and the in-memory store that is the model of it.
//!
//! A store offers coarse operations, one transaction each. It loads a row, applies the pure
//! decision of `callboard-domain` inside its own atomic section and stores the outcome; it never
//! compares a status itself. Every look-up carries the caller's identity in its key, so that
//! "not yours" and "does not exist" are the same empty row.

pub mod rules;

mod chat_rows;
mod columns;
mod error;
mod memory;
mod operations;
mod owner_rows;
mod rows;
mod task_columns;

pub use chat_rows::{
    Artifact, ArtifactKey, ArtifactReader, AssignTask, AssignedTask, Candidate, ChatLink, ChatRow,
    LinkKey, LinkedChat, NewArtifact, NewChatLink, OwnedTask, Revoked, Swept, TaskRow,
};
pub use columns::{ColumnError, RunColumns};
pub use error::StoreError;
pub use memory::MemoryStore;
pub use operations::Store;
pub use owner_rows::{NewSignIn, OwnedRun, RunCount, RunFilter, SignIn};
pub use rows::{
    Connection, Desktop, Handout, NewConnection, NewDesktop, NewProject, Project, QueueRun,
    QueuedRun, RunKey, RunRow, SessionRow, Synced, TokenHash,
};
pub use task_columns::TaskColumns;
