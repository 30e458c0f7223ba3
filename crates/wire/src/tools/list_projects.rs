//! `list_projects`: where this connected agent may work.

use serde::{Deserialize, Serialize};

use crate::arguments::Argument;
use crate::relay::ProjectInfo;

/// It takes nothing.
pub const ARGUMENTS: &[Argument] = &[];

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The projects that this connection was added to, in the order in which it was.
    pub projects: Vec<ProjectInfo>,
}
