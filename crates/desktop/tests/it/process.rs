//! A desktop in a process of its own, which can be killed.

use std::path::Path;
use std::process::{ExitCode, Stdio};

use callboard_ambient::{Clock, Entropy};
use callboard_desktop::control::{Client, ConnectError, Watch};
use callboard_desktop::{Desktop, Step};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::here::config;

/// Makes the desktop's disk refuse every write that a file would grow by.
const FULL: &str = "full";
const ROOMY: &str = "roomy";

fn limit_files(full: bool) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    let soft = if full { 1 } else { hard };
    setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
}

/// What the desktop process does: works until its standard input ends or it is killed.
pub(crate) fn desktop_main(arguments: &[String]) -> ExitCode {
    let [data_dir, hub_url, halt_before @ ..] = arguments else {
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let ended = runtime.block_on(async {
        let mut config = config(Path::new(data_dir), hub_url);
        config.halt_before = halt_before.first().map(|step| step.parse().unwrap());
        config.shutdown_grace_ms = 0;
        let opened = Desktop::open(config, Clock::system(), Entropy::system()).await;
        let shutdown = CancellationToken::new();
        let run = tokio::spawn(opened.unwrap().run(shutdown.clone()));
        let mut commands = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(command)) = commands.next_line().await {
            limit_files(command == FULL);
        }
        shutdown.cancel();
        run.await
    });
    ExitCode::from(u8::from(!matches!(ended, Ok(Ok(())))))
}

/// A running desktop process.
pub(crate) struct Process {
    child: Child,
    pub(crate) id: u32,
}

impl Process {
    pub(crate) fn start(data_dir: &Path, hub_url: &str, halt_before: Option<Step>) -> Self {
        // A write beyond the limit is an error to the desktop only while its signal is ignored,
        // which a process inherits.
        let child = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .arg(crate::DESKTOP)
            .arg(data_dir)
            .arg(hub_url)
            .args(halt_before.map(Step::as_str))
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let id = child.id().unwrap();
        Self { child, id }
    }

    /// SIGKILL, and the end of the process.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// SIGSTOP or SIGCONT: what sleep looks like from outside.
    pub(crate) fn freeze(&self, frozen: bool) {
        use nix::sys::signal::{Signal, kill};
        let signal = if frozen {
            Signal::SIGSTOP
        } else {
            Signal::SIGCONT
        };
        let id = nix::unistd::Pid::from_raw(i32::try_from(self.id).unwrap());
        kill(id, signal).unwrap();
    }

    pub(crate) async fn fill_disk(&mut self, full: bool) {
        let line = format!("{}\n", if full { FULL } else { ROOMY });
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).await.unwrap();
    }

    /// Connects as the command line does, as soon as the desktop listens.
    pub(crate) async fn client(&mut self, data_dir: &Path) -> Client {
        loop {
            match Client::connect(data_dir).await {
                Ok(client) => return client,
                Err(ConnectError::NotRunning { .. }) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
            assert_eq!(self.child.try_wait().unwrap(), None, "the desktop runs");
        }
    }

    pub(crate) async fn watch(&mut self, data_dir: &Path) -> Watch {
        self.client(data_dir).await.watch().await.unwrap()
    }
}
