//! A desktop from its opening to its end.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use callboard_agents::{Agents, Tools};
use callboard_ambient::{Clock, Entropy};
use callboard_domain::WorkerId;
use callboard_fleet::Fleet;
use callboard_relay::{Config, Relay};
use tokio::runtime::Handle;
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;

use crate::control::{self, Control, Socket};
use crate::daemon::{Announced, Daemon, Facts, Message};
use crate::database::{self, Database, OpenFailure};
use crate::engine::{Engine, Parts};
use crate::folder::{self, FolderLock, Privacy};
use crate::hub_client::HubClient;
use crate::{Activity, DesktopConfig, OpenError, RunError};

const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// Events that a slow watcher may fall behind.
const ACTIVITY_MAX: usize = 1_024;

/// An opened desktop: its folder is locked, its socket bound, nothing is called yet.
#[derive(Debug)]
pub struct Desktop {
    daemon: Daemon,
    control: Control,
    socket: Socket,
    lock: FolderLock,
}

impl Desktop {
    /// Opens the data folder, creating what is missing. Call it inside a Tokio runtime.
    ///
    /// # Errors
    /// See [`OpenError`]; each has a hint. Nothing of an existing folder was changed then, but for
    /// migrations of its database.
    pub async fn open(
        config: DesktopConfig,
        clock: Clock,
        entropy: Entropy,
    ) -> Result<Self, OpenError> {
        if config.slots == 0 {
            return Err(OpenError::NoSlots);
        }
        let lock = lock_folder(&config.data_dir).await?;
        let data_dir = config.data_dir.clone();
        let fresh_worker = WorkerId::from_bytes(entropy.uuid_v4()).to_string();
        // Opening can wait for the disk.
        let opened = tokio::task::spawn_blocking(move || open_database(&data_dir, fresh_worker));
        let (database, worker_id, folders) = opened.await.unwrap_or_else(|error| {
            let reason = error.to_string();
            let path = config.data_dir.clone();
            Err(OpenError::Database { path, reason })
        })?;
        let worker: WorkerId = worker_id.parse().map_err(|_| OpenError::Database {
            path: config.data_dir.clone(),
            reason: "its worker id is not a UUID".to_owned(),
        })?;
        let tidied_at = clock.now();
        let privacy = Privacy::new(&config.data_dir, &config.private_dirs, &config.open_dirs);
        let tools = Tools::new(folders.into_iter().map(Into::into).collect())
            .denying(privacy.private.clone(), privacy.open.clone());
        let hub = HubClient::new(&config.hub_url, &config.token, worker)?;
        let socket = control::listen(&config.data_dir)?;

        // Never full: its senders are calls, runs and control connections, and all are bounded.
        let (messages, inbox) = mpsc::channel();
        let (activity, _) = broadcast::channel(ACTIVITY_MAX);
        let checker = checker(&config, clock.clone());
        let control = Control::new(messages.clone(), activity.clone(), checker);
        let relay = Relay::new(relay_config(&config));
        let parts = Parts {
            launcher: config.launcher,
            agents: config.agents,
            limits: config.limits,
            clock: clock.clone(),
            handle: Handle::current(),
            messages: messages.clone(),
            activity: activity.clone(),
        };
        let daemon = Daemon {
            facts: Facts {
                data_dir: config.data_dir,
                privacy,
                hub_url: config.hub_url,
                worker_id,
                poll_only: config.poll_only,
                slots: config.slots,
                shutdown_grace_ms: config.shutdown_grace_ms,
                halt_before: config.halt_before,
            },
            database,
            relay,
            clock,
            entropy,
            hub,
            engine: Engine::new(parts, tools),
            handle: Handle::current(),
            inbox,
            messages,
            activity,
            calls: BTreeMap::new(),
            accepted_ms: BTreeMap::new(),
            begun_ms: BTreeMap::new(),
            records: BTreeMap::new(),
            local_runs: BTreeMap::new(),
            announced: Announced::default(),
            is_stopping: false,
            tidied_at,
        };
        Ok(Self {
            daemon,
            control,
            socket,
            lock,
        })
    }

    /// Asks this desktop, from the same process. Answers come while it runs.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// What happens from now on.
    pub fn activity(&self) -> broadcast::Receiver<Activity> {
        self.control.activity()
    }

    /// Works until `shutdown`: then begins nothing new, lets running work finish for the configured
    /// grace, and stops what is left with a stated reason.
    ///
    /// # Errors
    /// [`RunError`] when the owning thread could not be made or ended unexpectedly.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), RunError> {
        let Self {
            daemon,
            control,
            socket,
            lock,
        } = self;
        let messages = daemon.messages.clone();
        let _abandon = AbandonOnDrop(messages.clone());
        let (ended, mut end) = oneshot::channel();
        let thread = std::thread::Builder::new().name("desktop".to_owned());
        thread
            .spawn(move || {
                daemon.run();
                // The folder is free only when nothing can write to it any more.
                drop(lock);
                if ended.send(()).is_err() {
                    tracing::debug!("nobody waited for the desktop to end");
                }
            })
            .map_err(RunError::Thread)?;
        let stop_serving = CancellationToken::new();
        let serving = tokio::spawn(control::serve(socket, control, stop_serving.clone()));
        let outcome = tokio::select! {
            biased;
            outcome = &mut end => outcome,
            () = shutdown.cancelled() => {
                // A thread that is gone needs no telling.
                drop(messages.send(Message::Stop));
                end.await
            }
        };
        stop_serving.cancel();
        // It has nothing to say.
        drop(serving.await);
        outcome.map_err(|_| RunError::Crashed)
    }
}

/// Looks at sources; runs nothing.
fn checker(config: &DesktopConfig, clock: Clock) -> Fleet {
    let tools = Tools::new(Vec::new());
    Fleet::new(config.launcher.clone(), Agents::none(), tools, clock)
}

fn relay_config(config: &DesktopConfig) -> Config {
    Config {
        wake_up: !config.poll_only,
        slots: config.slots,
        sync_interval_ms: config.sync_interval_ms.max(1),
        control_interval_ms: config.control_interval_ms.max(1),
    }
}

/// Ends the owning thread when the future of [`Desktop::run`] is dropped half-way.
struct AbandonOnDrop(mpsc::Sender<Message>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        // A thread that has ended needs no telling.
        drop(self.0.send(Message::Abandon));
    }
}

/// A desktop that was killed while it started a script holds its lock until that process has
/// begun, so a lock that is taken is tried again for a moment.
async fn lock_folder(data_dir: &Path) -> Result<FolderLock, OpenError> {
    for _ in 1..LOCK_TRIES {
        match folder::take(data_dir) {
            Err(OpenError::InUse { .. }) => tokio::time::sleep(LOCK_PAUSE).await,
            taken => return taken,
        }
    }
    folder::take(data_dir)
}

type Stored = (Database, String, Vec<String>);

fn open_database(data_dir: &Path, fresh_worker: String) -> Result<Stored, OpenError> {
    let failed = |error: OpenFailure| match error {
        OpenFailure::Newer { found, known } => OpenError::Newer {
            path: data_dir.to_owned(),
            found,
            known,
        },
        OpenFailure::File(source) => OpenError::Folder {
            path: data_dir.to_owned(),
            source,
        },
        OpenFailure::Sqlite(error) => OpenError::Database {
            path: data_dir.to_owned(),
            reason: error.to_string(),
        },
    };
    let database = Database::open(&data_dir.join(database::FILE_NAME)).map_err(failed)?;
    let read = || {
        let worker_id = database.setting_or("worker_id", || fresh_worker)?;
        let folders = database.folders()?;
        // What cannot be read now could not be recovered at the start either.
        database.unfinished_rows()?;
        Ok((worker_id, folders))
    };
    let (worker_id, folders) = read().map_err(|error| failed(OpenFailure::Sqlite(error)))?;
    let folders = folders.into_iter().map(|(path, _)| path).collect();
    Ok((database, worker_id, folders))
}
