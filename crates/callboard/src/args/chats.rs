//! The command line of linked chats: the owner's side and the agent's.

use std::path::PathBuf;

use callboard_domain::limits::TASKS_LISTED_MAX;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ChatCommand {
    /// List the chats that linked themselves
    List,
    /// Unlink a chat: what it claimed goes back to the task's other chats, tasks that name only this
    /// one are cancelled, and it can submit nothing more
    Revoke {
        /// Its label or chat_link_id
        chat: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Assign a task to a chat; with several, the first that claims it does it
    Assign {
        /// The chat's label or chat_link_id; up to 8, separated by commas
        #[arg(value_name = "CHAT[,CHAT...]")]
        chats: String,
        /// What to do, in quotes; `-` reads it from the standard input
        #[arg(allow_hyphen_values = true)]
        text: String,
        /// The key of an earlier assignment whose answer got lost [default: a new one]
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// List the tasks, latest first
    List {
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = limit)]
        limit: usize,
    },
    /// Show one task with its result and files
    Show {
        /// Its id
        task_id: String,
        /// Save the files that were uploaded for it into this folder
        #[arg(long, value_name = "DIR")]
        save: Option<PathBuf>,
    },
    /// Take a task back
    Cancel {
        /// Its id
        task_id: String,
    },
}

/// As many tasks as a list may show.
fn limit(text: &str) -> Result<usize, String> {
    let found = text.parse().ok();
    found
        .filter(|limit| (1..=TASKS_LISTED_MAX).contains(limit))
        .ok_or_else(|| format!("a number from 1 to {TASKS_LISTED_MAX} is expected"))
}

#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// What the owner calls this conversation by
    pub(crate) label: String,
    /// The project, by name or id [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Where the owner finds this conversation
    #[arg(long, value_name = "TEXT")]
    pub(crate) reference: Option<String>,
    /// The key of an earlier link whose answer got lost [default: a new one]
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// This conversation's chat_link_id
    pub(crate) chat_link_id: String,
    /// The task
    pub(crate) task_id: String,
    /// What `claim` printed
    pub(crate) claim_id: String,
    /// The result, in quotes; `-` reads it from the standard input
    #[arg(allow_hyphen_values = true)]
    pub(crate) result: String,
    /// Say that the task could not be done
    #[arg(long)]
    pub(crate) failed: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UploadArgs {
    /// This conversation's chat_link_id
    pub(crate) chat_link_id: String,
    /// The task
    pub(crate) task_id: String,
    /// What `claim` printed
    pub(crate) claim_id: String,
    /// The file
    pub(crate) file: PathBuf,
    /// Its media type [default: told by the file's name]
    #[arg(long, value_name = "TYPE")]
    pub(crate) media_type: Option<String>,
    /// The id of an earlier upload whose answer got lost [default: the file's name]
    #[arg(long, value_name = "ID")]
    pub(crate) artifact_id: Option<String>,
}
