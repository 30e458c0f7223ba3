//! `callboard hub serve`, and the hub inside `callboard up`.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use callboard_ambient::{Clock, Entropy};
use callboard_domain::limits::{SWEEP_INTERVAL_MS, TASK_LEASE_MS_DEFAULT};
use callboard_hub::Hub;
use callboard_hub_http::{HttpOptions, router, serve};
use callboard_store_sqlite::SqliteStore;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::admin::setup_link;
use super::socket;
use crate::args::{HubArgs, ServeArgs, TASK_LEASE_SECONDS};
use crate::config::{Config, DEFAULT_LISTEN, HubSection};
use crate::failure::{Failure, chain};
use crate::output::Output;
use crate::{logging, paths};

/// The hub's configuration after file, environment and flags.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct HubConfig {
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// The address that people use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_url: Option<String>,
    /// Whether listing the tools needs no token.
    pub(crate) public_tool_list: bool,
    /// How long a claim lasts where another chat could take over, in seconds.
    pub(crate) task_lease_seconds: u64,
}

impl HubConfig {
    /// What the flags and the environment say, else the file, and defaults for the rest.
    pub(crate) fn of(arguments: HubArgs, file: HubSection) -> Result<Self, Failure> {
        let lease = arguments
            .task_lease_seconds
            .or(file.task_lease_seconds)
            .unwrap_or(TASK_LEASE_MS_DEFAULT / 1_000);
        if !TASK_LEASE_SECONDS.contains(&lease) {
            return Err(Failure::usage(format!(
                "[hub] task_lease_seconds must be {} to {}, and is {lease}",
                TASK_LEASE_SECONDS.start(),
                TASK_LEASE_SECONDS.end()
            )));
        }
        let config = Self {
            listen: arguments.listen.or(file.listen).unwrap_or(DEFAULT_LISTEN),
            public_url: arguments.public_url.or(file.public_url),
            public_tool_list: arguments
                .public_tool_list
                .or(file.public_tool_list)
                .unwrap_or(true),
            task_lease_seconds: lease,
        };
        config.options()?;
        Ok(config)
    }

    /// Where browsers reach a hub that listens on `address`.
    pub(crate) fn base(&self, address: SocketAddr) -> String {
        match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{}", here(address)),
        }
    }

    /// The lease in the hub's own unit.
    pub(crate) fn task_lease_ms(&self) -> u64 {
        self.task_lease_seconds.saturating_mul(1_000)
    }

    fn options(&self) -> Result<HttpOptions, Failure> {
        HttpOptions::new(self.public_url.as_deref(), self.public_tool_list)
            .map_err(|error| Failure::usage(error.to_string()))
    }
}

/// Runs the hub in the foreground until SIGINT or SIGTERM.
pub(super) async fn run(data: &Path, arguments: ServeArgs, output: &Output) -> Result<(), Failure> {
    let file = Config::read(data, arguments.hub.config.as_ref())?.hub;
    let config = HubConfig::of(arguments.hub, file)?;
    if arguments.print_config {
        let text = toml::to_string(&config).map_err(|error| Failure::failed(error.to_string()))?;
        output.data(&config, || text.lines().map(str::to_owned).collect());
        return Ok(());
    }
    logging::start("info");
    // The lock first: who has this folder open already is the better news than his port.
    let hub = open_hub(data, config.task_lease_ms())?;
    let listener = bind(config.listen).await?;
    let address = listener.local_addr().unwrap_or(config.listen);
    let shutdown = CancellationToken::new();
    let server = start(Arc::clone(&hub), data, &config, listener, &shutdown)?;
    output.note(format!(
        "hub       http://{address}   data in {}",
        data.display()
    ));
    output.note(format!("mcp       http://{address}/mcp"));
    output.note(format!(
        "console   {}",
        console(&hub, &config.base(address)).await?
    ));
    crate::up::until_stopped().await;
    output.note("stopping: open calls are answered first");
    shutdown.cancel();
    ended(server).await
}

/// Where the owner finds the console: the one-time link while it has no password.
pub(crate) async fn console(hub: &Hub<SqliteStore>, base: &str) -> Result<String, Failure> {
    let stored = hub.password().await;
    let stored = stored.map_err(|error| Failure::cannot_start(error.to_string()))?;
    Ok(match stored {
        Some(_) => base.to_owned(),
        None => format!(
            "{}   (works once, for a day: choose a password)",
            setup_link(base, &hub.make_setup_link())
        ),
    })
}

/// The address under which this machine reaches a listener.
pub(crate) fn here(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, bound.port())
}

/// Takes the address to listen on.
pub(crate) async fn bind(listen: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(listen).await.map_err(|error| {
        let failure = Failure::cannot_start(format!("cannot listen on {listen}: {error}"));
        if error.kind() != ErrorKind::AddrInUse {
            return failure.hint("choose another address with --listen");
        }
        let port = listen
            .port()
            .checked_add(1)
            .unwrap_or(DEFAULT_LISTEN.port());
        let other = SocketAddr::new(listen.ip(), port);
        failure.hint(format!(
            "another program has that port: choose one with --listen {other}"
        ))
    })
}

/// Opens the hub of a data folder.
pub(crate) fn open_hub(data: &Path, task_lease_ms: u64) -> Result<Arc<Hub<SqliteStore>>, Failure> {
    paths::make_private_dir(&paths::hub_dir(data))?;
    let store = SqliteStore::open(&paths::hub_database(data)).map_err(|error| {
        Failure::cannot_start(chain(&error))
            .hint("choose another folder with --data, or stop what uses this one")
    })?;
    let hub = Hub::new(store, Clock::system(), Entropy::system());
    Ok(Arc::new(hub.with_task_lease_ms(task_lease_ms)))
}

/// Starts the server, the sweeper and the hub's own socket; gives what ends with the server.
pub(crate) fn start(
    hub: Arc<Hub<SqliteStore>>,
    data: &Path,
    config: &HubConfig,
    listener: TcpListener,
    shutdown: &CancellationToken,
) -> Result<JoinHandle<std::io::Result<()>>, Failure> {
    let options = config.options()?;
    let address = listener.local_addr().unwrap_or(config.listen);
    let base = config.base(address);
    socket::serve(Arc::clone(&hub), data, base, shutdown.clone())?;
    tokio::spawn(sweep(Arc::clone(&hub), shutdown.clone()));
    let routes = router(hub, options, shutdown.clone());
    Ok(tokio::spawn(serve(listener, routes, shutdown.clone())))
}

/// The outcome of a server that was told to stop.
pub(crate) async fn ended(server: JoinHandle<std::io::Result<()>>) -> Result<(), Failure> {
    match server.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::failed(format!("the hub stopped: {error}"))),
        Err(error) => Err(Failure::failed(format!("the hub stopped: {error}"))),
    }
}

/// Stores what time causes, at a steady pace, and the last signs of life before the end.
async fn sweep(hub: Arc<Hub<SqliteStore>>, shutdown: CancellationToken) {
    let mut stopping = false;
    while !stopping {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => stopping = true,
            () = tokio::time::sleep(Duration::from_millis(SWEEP_INTERVAL_MS)) => {}
        }
        // A failure was logged where it was noticed; the next sweep finds what this one missed.
        while let Ok(true) = hub.sweep().await {}
    }
}
