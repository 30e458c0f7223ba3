//! Starts script processes from one thread that lasts as long as the engine: the parent-death
//! signal fires when the spawning *thread* ends, and runtimes end threads as they like.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How to start a script process: the binary itself with a hidden argument, so that
/// [`crate::child_main`] gets to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

struct Order {
    handle: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// The handle of the spawning thread, which ends with the last handle.
#[derive(Debug, Clone)]
pub(crate) struct Spawner {
    orders: mpsc::Sender<Order>,
}

impl Spawner {
    pub(crate) fn start(launcher: Launcher) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel::<Order>();
        std::thread::Builder::new()
            .name("graph-spawner".to_owned())
            .spawn(move || {
                while let Ok(Order { handle, reply }) = inbox.recv() {
                    let _entered = handle.enter();
                    // A receiver that is gone drops the child, which kills it.
                    drop(reply.send(spawn(&launcher)));
                }
            })?;
        Ok(Self { orders })
    }

    /// Starts one process. Its standard input and output are pipes.
    pub(crate) async fn spawn(&self) -> io::Result<Child> {
        let (reply, answer) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts script processes is gone");
        self.orders
            .send(Order {
                handle: Handle::current(),
                reply,
            })
            .map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

fn spawn(launcher: &Launcher) -> io::Result<Child> {
    Command::new(&launcher.program)
        .args(&launcher.arguments)
        .env_clear()
        // Dates in a Graph must read the same on every machine.
        .env("TZ", "UTC")
        .current_dir("/")
        // Ctrl-C in a terminal goes to the engine, which decides how long its runs go on.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}
