//! `callboard desktop run`, and the desktop inside `callboard up`.

use std::path::{Path, PathBuf};

use callboard_ambient::{Clock, Entropy};
use callboard_desktop::control::Control;
use callboard_desktop::{Activity, Desktop, DesktopConfig, OpenError, RunError, Step};
use callboard_fleet::Launcher;
use tokio::sync::broadcast;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::args::{DesktopRunArgs, RelayArgs};
use crate::config::Config;
use crate::failure::Failure;
use crate::output::Output;
use crate::{logging, paths, up};

/// For tests that kill the process at an exact point: the step before which the desktop halts.
const HALT_VARIABLE: &str = "CALLBOARD_HALT_BEFORE";

/// What a desktop needs beside its data folder.
#[derive(Debug)]
pub(crate) struct DesktopStart<'a> {
    pub(crate) hub_url: String,
    pub(crate) token: String,
    pub(crate) relay: RelayArgs,
    pub(crate) config: &'a Config,
}

/// A desktop that works.
#[derive(Debug)]
pub(crate) struct RunningDesktop {
    /// Asks it, from this process.
    pub(crate) control: Control,
    /// What it does from now on.
    pub(crate) activity: broadcast::Receiver<Activity>,
    /// Ends when it does.
    pub(crate) work: JoinHandle<Result<(), RunError>>,
}

impl RunningDesktop {
    /// How its work ended.
    pub(crate) fn outcome(ended: Result<Result<(), RunError>, JoinError>) -> Result<(), Failure> {
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::failed(error.to_string())),
            Err(error) => Err(Failure::failed(format!("the desktop stopped: {error}"))),
        }
    }
}

/// Opens the data folder and starts working.
pub(crate) async fn start(
    data: &Path,
    start: DesktopStart<'_>,
    shutdown: &CancellationToken,
) -> Result<RunningDesktop, Failure> {
    let (clock, entropy) = (Clock::system(), Entropy::system());
    let launcher = launcher()?;
    let section = &start.config.desktop;
    let dir = paths::desktop_dir(data);
    let mut config = DesktopConfig::new(dir, start.hub_url, start.token, launcher);
    config.agents = start.config.agents(&clock, &entropy)?;
    config.poll_only = start.relay.poll_only || section.poll_only;
    let slots = start.relay.slots.or(section.slots).unwrap_or(1);
    config.slots = usize::try_from(slots).unwrap_or(1);
    // Tokens and databases lie there: no grant reaches them, only the folder made for it.
    config.private_dirs = vec![data.to_owned()];
    config.open_dirs = vec![paths::welcome_dir(data)];
    config.halt_before = halt_step()?;
    let desktop = Desktop::open(config, clock, entropy)
        .await
        .map_err(|error| not_opened(&error))?;
    let (control, activity) = (desktop.control(), desktop.activity());
    let work = tokio::spawn(desktop.run(shutdown.clone()));
    Ok(RunningDesktop {
        control,
        activity,
        work,
    })
}

fn not_opened(error: &OpenError) -> Failure {
    let failure = match error {
        OpenError::BadHub { .. } | OpenError::BadToken | OpenError::NoSlots => {
            Failure::usage(error.to_string())
        }
        OpenError::Folder { .. }
        | OpenError::InUse { .. }
        | OpenError::Newer { .. }
        | OpenError::Database { .. }
        | OpenError::Socket { .. } => Failure::cannot_start(error.to_string()),
    };
    failure.hint(error.hint())
}

/// How a run's sandbox process is started: this very program again. On Linux by the link to the
/// running file, so that a binary that was replaced meanwhile does not start.
pub(super) fn launcher() -> Result<Launcher, Failure> {
    let own = PathBuf::from("/proc/self/exe");
    let program = if own.exists() {
        // The link names the starter's file only as long as it is resolved there.
        PathBuf::from(format!("/proc/{}/exe", std::process::id()))
    } else {
        std::env::current_exe()
            .map_err(|error| Failure::cannot_start(format!("cannot find this program: {error}")))?
    };
    let arguments = vec!["graph-child".into()];
    Ok(Launcher { program, arguments })
}

fn halt_step() -> Result<Option<Step>, Failure> {
    let named = std::env::var(HALT_VARIABLE).ok();
    let step = named.as_deref().map(str::parse).transpose();
    step.map_err(|error| Failure::usage(format!("{HALT_VARIABLE}: {error}")))
}

/// Runs the desktop in the foreground until SIGINT or SIGTERM.
pub(super) async fn run(
    data: &Path,
    arguments: DesktopRunArgs,
    output: &Output,
) -> Result<(), Failure> {
    let config = Config::read(data, arguments.config.as_ref())?;
    let token = std::fs::read_to_string(&arguments.token_file).map_err(|error| {
        Failure::usage(format!(
            "cannot read {}: {error}",
            arguments.token_file.display()
        ))
        .hint("`callboard hub desktop create NAME` prints a device token once")
    })?;
    logging::start("info");
    let shutdown = CancellationToken::new();
    let begin = DesktopStart {
        hub_url: arguments.hub,
        token: token.trim().to_owned(),
        relay: arguments.relay,
        config: &config,
    };
    let running = start(data, begin, &shutdown).await?;
    output.note(format!("desktop   working; data in {}", data.display()));
    up::work_until_stopped(running, &shutdown, *output).await
}
