//! The command line.

mod bench;
mod chats;
mod sim;

use std::net::SocketAddr;
use std::path::PathBuf;

use callboard_domain::limits::{TASK_EXPIRY_MS, TASK_LEASE_MS_MIN};
use clap::{Args, Parser, Subcommand};

pub(crate) use bench::BenchArgs;
pub(crate) use chats::{ChatCommand, LinkArgs, SubmitArgs, TaskCommand, UploadArgs};
pub(crate) use sim::{BandsArgs, FuzzArgs, ReplayArgs, SimCommand, TablesArgs};

/// What a lease may be: as short as is of use, and no longer than a task lives.
pub(crate) const TASK_LEASE_SECONDS: std::ops::RangeInclusive<u64> =
    TASK_LEASE_MS_MIN / 1_000..=TASK_EXPIRY_MS / 1_000;

/// Lets AI chats start long work on machines nobody can reach.
#[derive(Debug, Parser)]
#[command(name = "callboard", version, about, propagate_version = true)]
#[command(after_help = "First steps: `callboard demo` shows it, `callboard up` starts it.")]
pub(crate) struct Cli {
    /// The data folder [default: the platform's, such as ~/.local/share/callboard]
    #[arg(long, global = true, value_name = "DIR", env = "CALLBOARD_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON value (JSON lines for streams) and nothing else
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start hub and desktop on this machine, and say how to connect a chat
    Up(UpArgs),
    /// Show it for real in a temporary folder: no network, no key, under 20 s
    Demo(DemoArgs),
    /// Run a hub, and manage its projects, desktops and tokens
    #[command(subcommand)]
    Hub(HubCommand),
    /// Run a desktop, and see how it does
    #[command(subcommand)]
    Desktop(DesktopCommand),
    /// Manage, share and run the Graphs of this desktop
    #[command(subcommand)]
    Graph(GraphCommand),
    /// Choose the projects that this desktop works for
    #[command(subcommand)]
    Project(ProjectCommand),
    /// Choose the folders that Graphs may read
    #[command(subcommand)]
    Folder(FolderCommand),
    /// See and cancel the runs of this desktop
    #[command(subcommand)]
    Runs(RunsCommand),
    /// See and unlink the chats that take tasks
    #[command(subcommand)]
    Chat(ChatCommand),
    /// Assign tasks to chats, and see what became of them
    #[command(subcommand)]
    Task(TaskCommand),
    /// Be the agent: list, start, read and cancel runs, and do a chat's tasks, over MCP
    Client(ClientArgs),
    /// Run hub, desktops and agents on a virtual clock: published tables, random bad days
    #[command(subcommand)]
    Sim(SimCommand),
    /// Measure this machine: ratios beside the published server, goals met or not
    Bench(BenchArgs),
    /// The sandbox process of one Graph run
    #[command(hide = true)]
    GraphChild,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) hub: HubArgs,
    /// A folder that Graphs may read; repeat for more (`callboard folder` changes it later)
    #[arg(long = "folder", value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) relay: RelayArgs,
}

/// How a hub is reached and what it allows: the same wherever one is served.
#[derive(Debug, Clone, Args)]
pub(crate) struct HubArgs {
    /// The configuration file [default: config.toml in the data folder, if there is one]
    #[arg(long, value_name = "FILE", env = "CALLBOARD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Where the hub listens [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDR", env = "CALLBOARD_HUB_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,
    /// The address that people use, such as https://hub.example.org
    #[arg(long, value_name = "URL", env = "CALLBOARD_HUB_PUBLIC_URL")]
    pub(crate) public_url: Option<String>,
    /// Whether listing the tools needs no token [default: true]
    #[arg(long, value_name = "BOOL", env = "CALLBOARD_HUB_PUBLIC_TOOL_LIST")]
    pub(crate) public_tool_list: Option<bool>,
    /// How long a claim lasts where another chat could take over [default: 1800]
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CALLBOARD_HUB_TASK_LEASE_SECONDS",
        value_parser = clap::value_parser!(u64).range(TASK_LEASE_SECONDS)
    )]
    pub(crate) task_lease_seconds: Option<u64>,
}

/// How a desktop comes for its work.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct RelayArgs {
    /// Ask every 20 s only, without the wake-up call
    #[arg(long)]
    pub(crate) poll_only: bool,
    /// How many commands run at a time [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) slots: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Let a Graph also ask a model: the base URL of an OpenAI-compatible server
    #[arg(long, value_name = "URL")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HubCommand {
    /// Serve the hub in the foreground
    Serve(ServeArgs),
    /// Projects: what connections and shares are granted to
    #[command(subcommand)]
    Project(HubProjectCommand),
    /// Desktops: machines that come for their work
    #[command(subcommand)]
    Desktop(HubDesktopCommand),
    /// Tokens: connected agents
    #[command(subcommand)]
    Token(HubTokenCommand),
    /// The password of the owner's console
    #[command(subcommand)]
    Password(HubPasswordCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum HubPasswordCommand {
    /// Take the password away, sign every browser out, and print a link that sets a new one
    Reset,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) hub: HubArgs,
    /// Print the configuration that these sources give, and stop
    #[arg(long)]
    pub(crate) print_config: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HubProjectCommand {
    /// Make a project
    Create {
        /// Its name
        name: String,
    },
    /// List the projects
    List,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HubDesktopCommand {
    /// Make a desktop and print its device token once
    Create {
        /// Its name
        name: String,
    },
    /// List the desktops and whether they are online
    List,
    /// Let another data folder use a desktop's identity
    Rebind {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum HubTokenCommand {
    /// Connect an agent and print its bearer token once
    Create {
        /// The agent's name, such as Claude
        #[arg(long)]
        name: String,
        /// A project that it may work in; repeat for more
        #[arg(long = "project", value_name = "NAME", required = true)]
        projects: Vec<String>,
        /// What it may do; repeat for more [default: both]
        #[arg(long = "scope", value_name = "SCOPE", value_parser = ["osfoundry:read", "osfoundry:run"])]
        scopes: Vec<String>,
    },
    /// List the connected agents
    List,
    /// Disconnect an agent: its token stops working, its queued runs are cancelled
    Revoke {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum DesktopCommand {
    /// Run the desktop in the foreground
    Run(DesktopRunArgs),
    /// Whether the desktop runs, reaches its hub, and what it does
    Status,
}

#[derive(Debug, Args)]
pub(crate) struct DesktopRunArgs {
    /// The hub's address, such as https://hub.example.org
    #[arg(long, value_name = "URL", env = "CALLBOARD_HUB_URL")]
    pub(crate) hub: String,
    /// The file that holds the device token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: PathBuf,
    /// The configuration file [default: config.toml in the data folder, if there is one]
    #[arg(long, value_name = "FILE", env = "CALLBOARD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) relay: RelayArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Add a Graph from a script
    Add {
        /// The script
        file: PathBuf,
        /// What it is called by [default: made from its name]
        #[arg(long)]
        slug: Option<String>,
    },
    /// List the Graphs
    List,
    /// Show one Graph and its script
    Show {
        /// Its slug
        slug: String,
    },
    /// Replace a Graph's script with FILE or in $EDITOR, or its slug
    Edit {
        /// Its slug
        slug: String,
        /// The new script
        file: Option<PathBuf>,
        /// What it is called by from now on; runs queued under the old slug end cancelled
        #[arg(long = "slug", value_name = "SLUG")]
        new_slug: Option<String>,
    },
    /// Remove a Graph
    Remove {
        /// Its slug
        slug: String,
    },
    /// Check a script without adding it
    Check {
        /// The script
        file: PathBuf,
    },
    /// Share a Graph with a project: its connected agents can run it
    Share {
        /// Its slug
        slug: String,
        /// The project's name or id
        #[arg(long, value_name = "NAME")]
        project: String,
    },
    /// Stop sharing a Graph with a project
    Unshare {
        /// Its slug
        slug: String,
        /// The project's name or id
        #[arg(long, value_name = "NAME")]
        project: String,
    },
    /// Run a Graph here and now
    Run {
        /// Its slug
        slug: String,
        /// Its arguments, a JSON object
        #[arg(long, value_name = "JSON", default_value = "{}")]
        args: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectCommand {
    /// List the hub's projects and which are enabled here
    List,
    /// Work for a project
    Enable {
        /// Its name or id
        project: String,
    },
    /// Stop working for a project
    Disable {
        /// Its name or id
        project: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FolderCommand {
    /// Let Graphs read a folder
    Grant {
        /// The folder
        folder: PathBuf,
    },
    /// List the granted folders
    List,
    /// Take a grant back
    Revoke {
        /// The folder
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the latest runs
    List,
    /// Show one run with its whole result
    Show {
        /// Its execution id, or the command id of a run from outside
        id: String,
    },
    /// Follow what happens, until interrupted
    Watch,
    /// Stop a run
    Cancel {
        /// Its execution id, or the command id of a run from outside
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// The MCP endpoint [default: as `callboard up` noted in the data folder]
    #[arg(long, global = true, value_name = "URL", env = "CALLBOARD_URL")]
    pub(crate) url: Option<String>,
    /// The bearer token [default: as `callboard up` noted in the data folder]
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        env = "CALLBOARD_TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<String>,
    #[command(subcommand)]
    pub(crate) command: ClientCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// List the projects and what is shared with them
    Sessions {
        /// Only this project, by name or id
        #[arg(long, value_name = "NAME")]
        project: Option<String>,
    },
    /// Start a run, and print its key and ticket
    Run {
        /// The Graph: its slug, name or graph_session_id
        session: String,
        /// Its arguments, a JSON object
        #[arg(long, value_name = "JSON", default_value = "{}")]
        args: String,
        /// The key of an earlier start whose answer got lost [default: a new one]
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
        /// Wait for the result and print it
        #[arg(long)]
        wait: bool,
    },
    /// Show one run
    Get {
        /// Its ticket
        command_id: String,
        /// Wait until it is over
        #[arg(long)]
        wait: bool,
    },
    /// Cancel a run
    Cancel {
        /// Its ticket
        command_id: String,
    },
    /// Link this conversation to a project, and print its chat_link_id
    Link(LinkArgs),
    /// Read what waits for this conversation
    Tasks {
        /// Its chat_link_id
        chat_link_id: String,
    },
    /// Claim a task, and print the claim_id that goes with its result
    Claim {
        /// This conversation's chat_link_id
        chat_link_id: String,
        /// The task
        task_id: String,
    },
    /// Submit the result of a claimed task; again after a lost answer is fine
    Submit(SubmitArgs),
    /// Attach a file to a claimed task; again after a lost answer is fine
    Upload(UploadArgs),
}
