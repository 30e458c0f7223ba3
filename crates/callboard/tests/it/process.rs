//! Processes of the binary: commands that end, and servers that are watched, signalled and killed.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longest that anything is waited for. A loaded machine takes a few seconds.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The pause between two looks at something that has no event.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What a caller's own shell may have set.
const VARIABLES: [&str; 10] = [
    "CALLBOARD_DATA",
    "CALLBOARD_CONFIG",
    "CALLBOARD_URL",
    "CALLBOARD_TOKEN",
    "CALLBOARD_LOG",
    "CALLBOARD_HUB_URL",
    "CALLBOARD_HUB_LISTEN",
    "CALLBOARD_HUB_PUBLIC_URL",
    "CALLBOARD_HUB_PUBLIC_TOOL_LIST",
    "CALLBOARD_HUB_TASK_LEASE_SECONDS",
];

/// Looks again and again until there is something, or it has taken too long.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    within(what, looking).await
}

/// Waits for something that ends by itself.
pub(crate) async fn within<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let waited = timeout(WAIT_MAX, waiting).await;
    waited.unwrap_or_else(|_| panic!("{what}: not within {} s", WAIT_MAX.as_secs()))
}

/// The binary with a data folder, and nothing of the caller's environment that it would read.
pub(crate) fn callboard(data: &Path) -> Command {
    let built = env!("CARGO_BIN_EXE_callboard").into();
    let binary = std::env::var_os("CALLBOARD_BIN").unwrap_or(built);
    let mut command = Command::new(binary);
    command.arg("--data").arg(data).kill_on_drop(true);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// Runs a command to its end.
pub(crate) async fn run(command: Command) -> Outcome {
    run_into(Stdio::piped(), command).await
}

/// The same with another stdout.
pub(crate) async fn run_into(stdout: Stdio, command: Command) -> Outcome {
    run_between(Stdio::null(), stdout, command).await
}

/// The same with both ends.
pub(crate) async fn run_between(stdin: Stdio, stdout: Stdio, mut command: Command) -> Outcome {
    command.stdin(stdin).stdout(stdout);
    let shown = format!("{command:?}");
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let ended = within(&shown, child.wait_with_output()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome {
        code: ended.status.code(),
        stdout: text(ended.stdout),
        stderr: text(ended.stderr),
        command: shown,
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    #[expect(dead_code, reason = "a failed assertion shows it")]
    command: String,
}

impl Outcome {
    /// A command that must have done what it was told.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// The one JSON value on stdout.
    pub(crate) fn json(&self) -> Value {
        let value = serde_json::from_str(&self.stdout);
        value.unwrap_or_else(|error| panic!("stdout is not one JSON value ({error}): {self:#?}"))
    }

    /// A failure as it is shown to people: what happened, perhaps one thing to do, and no more.
    pub(crate) fn refused(&self, code: i32, message: &str, hint: &str) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        // Before it stands at most what a command noted on its way.
        let error = self
            .stderr
            .find("error: ")
            .unwrap_or_else(|| panic!("{self:#?}"));
        let (notes, error) = self.stderr.split_at(error);
        assert!(notes.is_empty() || notes.ends_with('\n'), "{self:#?}");
        assert!(error.contains(message), "{message:?}: {self:#?}");
        let hints: Vec<_> = error.lines().filter(|l| l.starts_with("hint:  ")).collect();
        assert!(hints.len() <= 1, "{self:#?}");
        assert!(hints.concat().contains(hint), "hint {hint:?}: {self:#?}");
        self.no_panic();
    }

    /// A failure as it is told to programs.
    pub(crate) fn fails(&self, code: i32, message: &str) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        let told = self.json();
        let error = told["error"].as_str().unwrap_or_default();
        assert!(error.contains(message), "{message:?}: {self:#?}");
        self.no_panic();
    }

    /// No failure looks like a fault of the program.
    pub(crate) fn no_panic(&self) {
        for text in ["panicked", "RUST_BACKTRACE", "stack backtrace"] {
            assert!(!self.stderr.contains(text), "{self:#?}");
        }
    }
}

/// A server in a process of its own. What it prints goes to files, so that it never waits for a
/// reader. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    id: i32,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    pub(crate) fn start(mut command: Command, logs: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let stdout = logs.join(format!("{number}.stdout"));
        let stderr = logs.join(format!("{number}.stderr"));
        let file = |path| std::fs::File::create(path).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(file(&stdout))
            .stderr(file(&stderr));
        let child = command.spawn().unwrap();
        let id = child.id().unwrap().try_into().unwrap();
        Self {
            child,
            id,
            stdout,
            stderr,
        }
    }

    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    /// Everything that it printed so far.
    pub(crate) fn said(&self) -> String {
        let text = |path| std::fs::read_to_string(path).unwrap();
        text(&self.stdout) + &text(&self.stderr)
    }

    /// What it printed on stdout so far.
    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(&self.stdout).unwrap()
    }

    /// Waits until it has printed `text`; false when it ended without.
    pub(crate) async fn says_or_ends(&mut self, text: &str) -> bool {
        until(text, async || {
            let ended = self.child.try_wait().unwrap().is_some();
            let said = self.said().contains(text);
            (said || ended).then_some(said)
        })
        .await
    }

    pub(crate) async fn says(&mut self, text: &str) {
        let said = self.says_or_ends(text).await;
        assert!(said, "it ended before {text:?}: {}", self.said());
    }

    /// The processes that it has started and that are there still.
    pub(crate) fn children(&self) -> Vec<i32> {
        let entries = std::fs::read_dir("/proc").unwrap();
        let ids = entries.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        ids.filter(|id| parent_of(*id) == Some(self.id)).collect()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id), signal).unwrap();
    }

    /// SIGKILL, and the end of the process.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        within("the end of a process", self.child.wait())
            .await
            .unwrap()
    }

    /// SIGTERM, and an orderly end.
    pub(crate) async fn stop(mut self) {
        self.signal(Signal::SIGTERM);
        let status = self.ended().await;
        assert!(status.success(), "{status}: {}", self.said());
    }
}

/// The parent of a process that runs; none for one that is gone or waits to be buried.
pub(crate) fn parent_of(id: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before it is in parentheses and can hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok();
    parent.filter(|_| state != "Z")
}
