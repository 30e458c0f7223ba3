//! `callboard up`: hub and desktop on one machine, and how to connect a chat.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use callboard_ambient::{Clock, Entropy};
use callboard_desktop::control::{Control, Request, Response};
use callboard_desktop::{Activity, RunStatus};
use callboard_domain::Scopes;
use callboard_hub::{Hub, HubError};
use callboard_store_sqlite::SqliteStore;
use chrono::{DateTime, Local};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::args::UpArgs;
use crate::client::ConnectionFile;
use crate::config::Config;
use crate::desktop::{self, DesktopStart, RunningDesktop, accepted, short};
use crate::failure::Failure;
use crate::hub::{self, HubConfig};
use crate::output::Output;
use crate::{logging, paths};

/// The project that a fresh data folder gets.
const PROJECT: &str = "Home";
/// The desktop that a fresh data folder gets.
const DESKTOP: &str = "this-machine";
/// The connected agent that a fresh data folder gets.
const AGENT: &str = "chat";
/// How long a fresh desktop may take to hear of its projects.
const FIRST_CONTACT: Duration = Duration::from_secs(20);

/// The Graphs that a fresh data folder gets, and whether each is shared.
pub(crate) const EXAMPLES: [(&str, &str, bool); 3] = [
    (
        "folder-report",
        include_str!("../../../examples/graphs/folder-report.js"),
        true,
    ),
    (
        "hello",
        include_str!("../../../examples/graphs/hello.js"),
        true,
    ),
    (
        "summarise",
        include_str!("../../../examples/graphs/summarise.js"),
        false,
    ),
];

/// Starts both, and works until SIGINT or SIGTERM.
pub(crate) async fn run(data: &Path, arguments: UpArgs, output: &Output) -> Result<(), Failure> {
    logging::start("warn");
    let config = Config::read(data, arguments.hub.config.as_ref())?;
    // What is wrong with the configuration is said before anything is made.
    config.agents(&Clock::system(), &Entropy::system())?;
    let hub_config = HubConfig::of(arguments.hub, config.hub.clone())?;
    let listen = hub_config.listen;
    paths::make_private_dir(data)?;
    let hub = hub::open_hub(data, hub_config.task_lease_ms())?;
    let listener = hub::bind(listen).await?;
    let address = hub::here(listener.local_addr().unwrap_or(listen));
    let (hub_shutdown, desktop_shutdown) = (CancellationToken::new(), CancellationToken::new());
    let mut server = hub::start(Arc::clone(&hub), data, &hub_config, listener, &hub_shutdown)?;
    let connection = connection(data, &hub, address).await?;
    let begin = DesktopStart {
        hub_url: format!("http://{address}"),
        token: device_token(data, &hub).await?,
        relay: arguments.relay,
        config: &config,
    };
    let desktop = desktop::start(data, begin, &desktop_shutdown).await?;
    if !paths::set_up_file(data).exists() {
        set_up(data, &desktop.control, arguments.folders.is_empty()).await?;
        // Last, so that a first start that was broken off is made up for by the next one.
        paths::write_private(&paths::set_up_file(data), "")?;
    }
    for folder in &arguments.folders {
        let path = desktop::absolute(folder)?;
        accepted(desktop.control.call(Request::FolderGrant { path }).await)?;
    }
    let places = Places {
        hub: address,
        console: hub::console(&hub, &hub_config.base(address)).await?,
    };
    greet(data, &places, &connection, &desktop.control, output).await?;
    // The hub stays until the desktop is done, so that the last results reach it.
    let worked = tokio::select! {
        worked = work_until_stopped(desktop, &desktop_shutdown, *output) => worked,
        ended = &mut server => {
            let why = ended.map_or_else(|error| error.to_string(), |served| format!("{served:?}"));
            return Err(Failure::failed(format!("the hub stopped: {why}")));
        }
    };
    hub_shutdown.cancel();
    hub::ended(server).await?;
    worked
}

/// How a chat connects: as noted earlier, or with a new token where that one no longer works.
async fn connection(
    data: &Path,
    hub: &Hub<SqliteStore>,
    address: SocketAddr,
) -> Result<ConnectionFile, Failure> {
    let url = format!("http://{address}/mcp");
    let noted = ConnectionFile::read(data).map(|noted| noted.token);
    let token = match noted {
        Some(token)
            if hub
                .authenticate_connection(&token)
                .await
                .map_err(failed)?
                .is_some() =>
        {
            token
        }
        Some(_) | None => {
            if hub.projects().await.map_err(failed)?.is_empty() {
                hub.create_project(PROJECT).await.map_err(failed)?;
            }
            let projects: Vec<_> = hub
                .projects()
                .await
                .map_err(failed)?
                .into_iter()
                .map(|p| p.name)
                .collect();
            let taken: Vec<_> = hub
                .connections()
                .await
                .map_err(failed)?
                .into_iter()
                .map(|c| c.name)
                .collect();
            let name = free_name(AGENT, &taken);
            hub.create_connection(&name, &projects, Scopes::ALL)
                .await
                .map_err(failed)?
                .token
        }
    };
    let connection = ConnectionFile { url, token };
    let text = serde_json::to_string_pretty(&connection).unwrap_or_default();
    paths::write_private(&paths::connection_file(data), &(text + "\n"))?;
    Ok(connection)
}

/// The device token of this machine's desktop: as noted earlier, or a new desktop's.
async fn device_token(data: &Path, hub: &Hub<SqliteStore>) -> Result<String, Failure> {
    let dir = paths::desktop_dir(data);
    paths::make_private_dir(&dir)?;
    let file = dir.join("device-token");
    let noted = std::fs::read_to_string(&file).unwrap_or_default();
    if hub.knows_device_token(noted.trim()).await.map_err(failed)? {
        return Ok(noted.trim().to_owned());
    }
    let desktops = hub.desktops().await.map_err(failed)?;
    let taken: Vec<_> = desktops
        .into_iter()
        .map(|summary| summary.desktop.name)
        .collect();
    let created = hub
        .create_desktop(&free_name(DESKTOP, &taken))
        .await
        .map_err(failed)?;
    paths::write_private(&file, &(created.token.clone() + "\n"))?;
    Ok(created.token)
}

fn free_name(wanted: &str, taken: &[String]) -> String {
    let numbered = (2..).map(|number| format!("{wanted} {number}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    names
        .find(|name| !taken.contains(name))
        .unwrap_or_else(|| wanted.to_owned())
}

fn failed(error: HubError) -> Failure {
    Failure::failed(error.to_string())
}

/// Gives a fresh data folder its example Graphs and something to read.
async fn set_up(data: &Path, desktop: &Control, with_welcome: bool) -> Result<(), Failure> {
    tokio::time::timeout(FIRST_CONTACT, projects_known(desktop))
        .await
        .map_err(|_| {
            Failure::cannot_start("the desktop did not hear from its hub within 20 s")
        })??;
    let Response::Graphs(present) = accepted(desktop.call(Request::GraphList).await)? else {
        return Err(Failure::failed("the desktop did not list its Graphs"));
    };
    for (slug, source, shared) in EXAMPLES {
        let (slug, source) = (slug.to_owned(), source.to_owned());
        let there = present.iter().find(|graph| graph.slug == slug);
        if there.is_none() {
            let add = Request::GraphAdd {
                source,
                slug: Some(slug.clone()),
            };
            accepted(desktop.call(add).await)?;
        }
        if shared && there.is_none_or(|graph| graph.shared_with.is_empty()) {
            let project = PROJECT.to_owned();
            accepted(desktop.call(Request::GraphShare { slug, project }).await)?;
        }
    }
    if with_welcome {
        let path = desktop::absolute(&welcome(data)?)?;
        accepted(desktop.call(Request::FolderGrant { path }).await)?;
    }
    accepted(
        desktop
            .call(Request::ProjectEnable {
                project: PROJECT.to_owned(),
            })
            .await,
    )?;
    Ok(())
}

/// Waits until the desktop knows its owner's projects.
pub(crate) async fn projects_known(desktop: &Control) -> Result<(), Failure> {
    let mut activity = desktop.activity();
    loop {
        if let Response::Projects(projects) = accepted(desktop.call(Request::ProjectList).await)?
            && !projects.is_empty()
        {
            return Ok(());
        }
        // Each answer of the hub is an event; one that was missed is made up for by the next.
        tokio::select! {
            _ = activity.recv() => {}
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
}

/// A folder to try folder-report on, for an owner who granted none.
fn welcome(data: &Path) -> Result<PathBuf, Failure> {
    let folder = paths::welcome_dir(data);
    paths::make_private_dir(&folder)?;
    let text = "Graphs can read this folder, and no other, until you grant more:\n\n    \
                callboard folder grant ~/notes\n    callboard folder list\n";
    paths::write_private(&folder.join("read-me.txt"), text)?;
    Ok(folder)
}

/// Where things are.
struct Places {
    hub: SocketAddr,
    console: String,
}

async fn greet(
    data: &Path,
    places: &Places,
    connection: &ConnectionFile,
    desktop: &Control,
    output: &Output,
) -> Result<(), Failure> {
    let Response::Graphs(graphs) = accepted(desktop.call(Request::GraphList).await)? else {
        return Err(Failure::failed("the desktop did not list its Graphs"));
    };
    let Response::Folders(folders) = accepted(desktop.call(Request::FolderList).await)? else {
        return Err(Failure::failed("the desktop did not list its folders"));
    };
    let shared = graphs
        .iter()
        .filter(|graph| !graph.shared_with.is_empty())
        .count();
    let folder = folders
        .first()
        .map_or("~/notes", |folder| folder.path.as_str());
    let lines = || {
        let readable: Vec<_> = folders.iter().map(|folder| folder.path.as_str()).collect();
        vec![
            format!(
                "callboard {} · data in {}",
                env!("CARGO_PKG_VERSION"),
                data.display()
            ),
            String::new(),
            format!("  hub       http://{}", places.hub),
            format!("  console   {}", places.console),
            format!("  desktop   {} Graphs, {shared} shared", graphs.len()),
            format!(
                "  folders   {}",
                if readable.is_empty() {
                    "none granted".into()
                } else {
                    readable.join(", ")
                }
            ),
            String::new(),
            "Connect a chat:".to_owned(),
            format!(
                "  claude mcp add --transport http callboard {} --header \"Authorization: Bearer {}\"",
                connection.url, connection.token
            ),
            format!(
                "Then ask it:  \"List my Callboard Graphs and run folder-report on {folder}.\""
            ),
            format!("Or yourself:  {}", try_it(data, folder)),
            String::new(),
        ]
    };
    output.data(connection, lines);
    Ok(())
}

/// A command line that runs the first example.
fn try_it(data: &Path, folder: &str) -> String {
    let default = paths::data_dir(None).ok();
    let place = match default {
        Some(default) if default == data => String::new(),
        Some(_) | None => format!(" --data {}", data.display()),
    };
    format!("callboard{place} client run folder-report --args '{{\"folder\":\"{folder}\"}}' --wait")
}

/// Shows what a desktop does until SIGINT or SIGTERM, lets running work finish, and stops at once
/// on a second signal.
pub(crate) async fn work_until_stopped(
    running: RunningDesktop,
    shutdown: &CancellationToken,
    output: Output,
) -> Result<(), Failure> {
    let RunningDesktop {
        mut activity,
        mut work,
        ..
    } = running;
    let mut stop = Box::pin(until_stopped());
    loop {
        tokio::select! {
            biased;
            () = &mut stop => {
                if shutdown.is_cancelled() {
                    return Err(Failure::failed("stopped at once; unfinished runs end as `desktop restarted`"));
                }
                shutdown.cancel();
                output.note("stopping: running work has 30 s to finish (again stops now)");
                stop = Box::pin(until_stopped());
            }
            ended = &mut work => {
                return RunningDesktop::outcome(ended);
            }
            event = activity.recv() => match event {
                Ok(event) => show(&event, &output),
                // Lines that nobody could read fast enough are not worth stopping for.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            },
        }
    }
}

/// Waits for SIGINT or SIGTERM.
pub(crate) async fn until_stopped() {
    let (interrupt, terminate) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    match (interrupt, terminate) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        // Without handlers the signals end the process, as they do by default.
        (Err(_), _) | (_, Err(_)) => std::future::pending().await,
    }
}

fn show(event: &Activity, output: &Output) {
    if output.is_json() {
        output.data(event, Vec::new);
    } else if let Some(line) = line(event) {
        output.line(line);
    }
}

/// An event as one line, if it is worth one.
pub(crate) fn line(event: &Activity) -> Option<String> {
    let now = DateTime::from_timestamp_millis(Clock::system().now().as_millis())?;
    let time = now.with_timezone(&Local).format("%H:%M:%S");
    let text = match event {
        Activity::Accepted { command_id, slug } => {
            format!("run {}  accepted · {slug}", short(command_id))
        }
        Activity::Started {
            command_id,
            execution_id,
            after_ms,
            ..
        } => {
            let id = command_id.as_deref().unwrap_or(execution_id);
            format!("run {}  started after {after_ms} ms", short(id))
        }
        Activity::Ended {
            execution_id,
            command_id,
            slug,
            status,
            duration_ms,
            total_tokens,
            error,
        } => {
            let id = command_id
                .as_deref()
                .or(execution_id.as_deref())
                .unwrap_or(slug);
            let status = match status {
                RunStatus::Running => "running",
                RunStatus::Completed => "completed",
                RunStatus::Failed => "failed",
                RunStatus::Cancelled => "cancelled",
            };
            let duration = duration_ms
                .map(|ms| format!(" · {}.{} s", ms / 1_000, ms % 1_000 / 100))
                .unwrap_or_default();
            let tokens = total_tokens
                .map(|tokens| format!(" · {tokens} tokens"))
                .unwrap_or_default();
            let error = error.as_deref().and_then(|error| error.lines().next());
            let error = error.map(|error| format!(" · {error}")).unwrap_or_default();
            format!("run {}  {status}{duration}{tokens}{error}", short(id))
        }
        Activity::Refused {
            command_id, reason, ..
        } => {
            format!("run {}  not started: {reason}", short(command_id))
        }
        Activity::Parked { command_id, reason } => {
            format!(
                "run {}  the hub refused its result: {reason}",
                short(command_id)
            )
        }
        Activity::Hub {
            reachable: false,
            state,
        } => format!("hub       {state}"),
        Activity::Hub {
            reachable: true, ..
        } => "hub       reachable".to_owned(),
        Activity::DiskTrouble { reason } => {
            format!("disk      {reason}; no new work until it is well")
        }
        Activity::Halted { step } => format!("halted    before {step}"),
        Activity::Phase { .. }
        | Activity::Log { .. }
        | Activity::Progress { .. }
        | Activity::Delivered { .. } => return None,
    };
    Some(format!("{time}  {text}"))
}
