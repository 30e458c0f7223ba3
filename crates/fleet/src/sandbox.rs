//! Where a script runs, as its driver sees it. Today that is always a process of its own; the
//! trait leaves room for an engine in the same process under a virtual clock.

use std::future::Future;
use std::io;
use std::process::ExitStatus;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

use crate::frame::{FromScript, ToScript, decode, encode, length};
use crate::limits::{SLICE_CPU_MS, TOTAL_CPU_MS};
use crate::scheduler::{Code, Fault};

/// Frames from a script process that wait to be handled. It sends one for each it gets.
const FRAMES_WAITING_MAX: usize = 4;

/// A place where one script runs.
pub(crate) trait Sandbox: Send {
    /// Hands a frame over. The script's answer comes through [`Sandbox::receive`].
    fn send(&mut self, frame: &ToScript) -> Result<(), Fault>;

    /// The next frame, or why there will be none. May be dropped and called again.
    fn receive(&mut self) -> impl Future<Output = Result<FromScript, Fault>> + Send;

    /// Ends it, whatever it is doing, and waits until it is gone.
    fn kill(&mut self) -> impl Future<Output = ()> + Send;
}

/// A script process.
#[derive(Debug)]
pub(crate) struct ChildSandbox {
    child: Child,
    frames_out: mpsc::UnboundedSender<Vec<u8>>,
    frames_in: mpsc::Receiver<io::Result<FromScript>>,
}

impl ChildSandbox {
    pub(crate) fn new(mut child: Child) -> io::Result<Self> {
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the script process has no pipes"));
        };
        let (frames_out, outbox) = mpsc::unbounded_channel();
        let (inbox, frames_in) = mpsc::channel(FRAMES_WAITING_MAX);
        // Both end with the process's pipes.
        tokio::spawn(write_frames(input, outbox));
        tokio::spawn(read_frames(output, inbox));
        Ok(Self {
            child,
            frames_out,
            frames_in,
        })
    }
}

impl Sandbox for ChildSandbox {
    fn send(&mut self, frame: &ToScript) -> Result<(), Fault> {
        let bytes = encode(frame).map_err(|error| lost(&error.to_string()))?;
        // A process that is gone shows at the reading end, with its reason.
        drop(self.frames_out.send(bytes));
        Ok(())
    }

    async fn receive(&mut self) -> Result<FromScript, Fault> {
        match self.frames_in.recv().await {
            Some(Ok(frame)) => Ok(frame),
            Some(Err(error)) => Err(lost(&error.to_string())),
            None => Err(match self.child.wait().await {
                Ok(status) => explain(status),
                Err(error) => lost(&error.to_string()),
            }),
        }
    }

    async fn kill(&mut self) {
        if let Err(error) = self.child.kill().await {
            tracing::warn!(%error, "a script process could not be killed");
        }
    }
}

async fn write_frames(mut input: ChildStdin, mut frames: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(bytes) = frames.recv().await {
        if input.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn read_frames(mut output: ChildStdout, frames: mpsc::Sender<io::Result<FromScript>>) {
    loop {
        let frame = match read_frame(&mut output).await {
            Ok(Some(frame)) => Ok(frame),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let broken = frame.is_err();
        if frames.send(frame).await.is_err() || broken {
            return;
        }
    }
}

async fn read_frame(output: &mut ChildStdout) -> io::Result<Option<FromScript>> {
    let mut prefix = [0; 4];
    match output.read_exact(&mut prefix).await {
        Ok(_) => {}
        // The exit status says more than half a frame does.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = Vec::new();
    let wanted = length(prefix)?;
    let mut bounded = output.take(u64::try_from(wanted).unwrap_or(u64::MAX));
    bounded.read_to_end(&mut bytes).await?;
    if bytes.len() < wanted {
        return Ok(None);
    }
    decode(&bytes).map(Some)
}

fn lost(reason: &str) -> Fault {
    Fault::new(
        Code::SandboxLost,
        format!("the script's process was lost: {reason}"),
    )
}

/// What the end of a process that said nothing means.
fn explain(status: ExitStatus) -> Fault {
    use std::os::unix::process::ExitStatusExt as _;

    use nix::sys::signal::Signal;
    let signal = status
        .signal()
        .and_then(|number| Signal::try_from(number).ok());
    match signal {
        Some(Signal::SIGXCPU) => cpu_limit(false),
        Some(signal) => lost(&format!("it ended by {signal}")),
        None => lost(&status.to_string()),
    }
}

/// The fault of a script that took too much processor time.
pub(crate) fn cpu_limit(total: bool) -> Fault {
    let message = if total {
        format!(
            "the script took more than {} s of processor time",
            TOTAL_CPU_MS / 1_000
        )
    } else {
        format!(
            "the script ran for more than {} s of processor time without waiting for anything",
            SLICE_CPU_MS / 1_000
        )
    };
    Fault::new(Code::CpuLimit, message)
}
