//! The desktop's side of the socket.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use callboard_domain::limits::SCRIPT_BYTES_MAX;
use callboard_fleet::Fleet;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Refused, Request, Response};
use crate::daemon::Message;
use crate::operations::{Operation, Save};
use crate::{Activity, OpenError, folder};

/// Longest request line: a script in which each byte is escaped, and room for the rest.
const REQUEST_BYTES_MAX: usize = 6 * SCRIPT_BYTES_MAX + 64 * 1024;
/// Connections that ask, at a time; further ones wait.
const CONNECTIONS_MAX: usize = 64;
/// Connections that watch, at a time; further ones are refused. They stay for hours, so they take
/// nothing from those that ask.
const WATCHERS_MAX: usize = 64;
/// Longest that the other end may leave a connection idle, or an answer unread.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks a desktop of the same process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Control {
    messages: mpsc::Sender<Message>,
    activity: broadcast::Sender<Activity>,
    /// Checks sources; runs nothing.
    checker: Fleet,
}

impl Control {
    pub(crate) const fn new(
        messages: mpsc::Sender<Message>,
        activity: broadcast::Sender<Activity>,
        checker: Fleet,
    ) -> Self {
        Self {
            messages,
            activity,
            checker,
        }
    }

    /// Asks one thing. [`Request::Watch`] has no single answer and is refused here: use
    /// [`Control::activity`].
    pub async fn call(&self, request: Request) -> Response {
        match self.operation(request).await {
            Ok(operation) => self.operate(operation).await,
            Err(answer) => *answer,
        }
    }

    /// What happens from now on.
    pub fn activity(&self) -> broadcast::Receiver<Activity> {
        self.activity.subscribe()
    }

    /// What the owning thread has to do for a request; or the answer, where it has nothing to do.
    async fn operation(&self, request: Request) -> Result<Operation, Box<Response>> {
        let answer = |response: Response| Box::new(response);
        Ok(match request {
            Request::GraphCheck { source } => {
                let meta = self.check(&source).await?;
                return Err(answer(Response::Checked(Box::new(meta))));
            }
            Request::GraphAdd { source, slug } => {
                let meta = self.check(&source).await?;
                Operation::Add(Save { meta, source, slug })
            }
            Request::GraphEdit {
                slug,
                source: Some(source),
                new_slug,
            } => {
                let meta = self.check(&source).await?;
                let save = Save {
                    meta,
                    source,
                    slug: new_slug,
                };
                Operation::Replace(slug, save)
            }
            Request::Watch => {
                let refused = Refused::new("watching has no single answer");
                return Err(answer(refused.into()));
            }
            plain @ (Request::Status
            | Request::GraphEdit { source: None, .. }
            | Request::GraphList
            | Request::GraphShow { .. }
            | Request::GraphRemove { .. }
            | Request::GraphShare { .. }
            | Request::GraphUnshare { .. }
            | Request::GraphRun { .. }
            | Request::ProjectList
            | Request::ProjectEnable { .. }
            | Request::ProjectDisable { .. }
            | Request::RunList { .. }
            | Request::RunShow { .. }
            | Request::RunCancel { .. }
            | Request::FolderGrant { .. }
            | Request::FolderList
            | Request::FolderRevoke { .. }) => Operation::Plain(plain),
        })
    }

    async fn check(&self, source: &str) -> Result<callboard_fleet::Meta, Box<Response>> {
        let checked = Box::pin(self.checker.check(source)).await;
        checked.map_err(|error| Box::new(Refused::from(error).into()))
    }

    async fn operate(&self, operation: Operation) -> Response {
        let (reply, answer) = oneshot::channel();
        let operation = Box::new(operation);
        let stopped = || Response::from(Refused::new("the desktop is stopping"));
        let message = Message::Operate { operation, reply };
        if self.messages.send(message).is_err() {
            return stopped();
        }
        answer.await.unwrap_or_else(|_| stopped())
    }
}

/// The bound socket; its file goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A file that is left behind is replaced by the next desktop.
        drop(std::fs::remove_file(&self.path));
    }
}

/// Binds the socket of a data folder that the caller has locked: whatever is there is stale.
pub(crate) fn listen(data_dir: &Path) -> Result<Socket, OpenError> {
    let path = folder::socket_path(data_dir).map_err(|reason| OpenError::Socket {
        path: data_dir.join("control.sock"),
        reason,
    })?;
    bind(&path)
        .map(|listener| Socket {
            listener,
            path: path.clone(),
        })
        .map_err(|error| OpenError::Socket {
            path,
            reason: error.to_string(),
        })
}

/// Made in a folder that only the owner can enter and moved when its mode is set, so that it can
/// never be opened by another user, and a stale one is replaced in one step.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let private = folder.join(format!(".c{}", std::process::id()));
    let made = private.join("s");
    // A crash right here may have left them, and process ids come again, above all in containers.
    drop(std::fs::remove_file(&made));
    drop(std::fs::remove_dir(&private));
    std::fs::DirBuilder::new().mode(0o700).create(&private)?;
    let bound = UnixListener::bind(&made).and_then(|listener| {
        std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&made, path)?;
        Ok(listener)
    });
    // Only the empty folder is left when all went well.
    drop(std::fs::remove_file(&made));
    std::fs::remove_dir(&private)?;
    bound
}

/// Answers until `stop`.
pub(crate) async fn serve(socket: Socket, control: Control, stop: CancellationToken) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let watchers = Arc::new(Semaphore::new(WATCHERS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = socket.listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a control connection failed");
                continue;
            }
        };
        let visit = Visit {
            control: control.clone(),
            permit,
            watchers: Arc::clone(&watchers),
            patience: PATIENCE,
        };
        let stop = stop.clone();
        tokio::spawn(async move {
            let ended = tokio::select! {
                biased;
                () = stop.cancelled() => Ok(()),
                ended = converse(stream, visit) => ended,
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a control connection ended");
            }
        });
    }
}

/// One connection, and what it holds.
#[derive(Debug)]
struct Visit {
    control: Control,
    /// Among those that ask.
    permit: OwnedSemaphorePermit,
    watchers: Arc<Semaphore>,
    patience: Duration,
}

async fn converse(stream: UnixStream, visit: Visit) -> io::Result<()> {
    let (requests, answers) = stream.into_split();
    let mut requests = BufReader::new(requests);
    let mut answers = Answers {
        stream: answers,
        patience: visit.patience,
    };
    loop {
        let mut line = Vec::new();
        let limit = u64::try_from(REQUEST_BYTES_MAX).unwrap_or(u64::MAX);
        let mut bounded = (&mut requests).take(limit);
        let read = timeout(visit.patience, bounded.read_until(b'\n', &mut line));
        if read.await?? == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') && line.len() >= REQUEST_BYTES_MAX {
            let refused = Refused::new(format!("a request has at most {REQUEST_BYTES_MAX} bytes"));
            return answers.send(&refused.into()).await;
        }
        let response = match serde_json::from_slice(&line) {
            Ok(Request::Watch) => match Arc::clone(&visit.watchers).try_acquire_owned() {
                Ok(_watching) => {
                    drop(visit.permit);
                    return watch(requests, answers, visit.control.activity()).await;
                }
                Err(_) => too_many_watchers(),
            },
            Ok(request) => Box::pin(visit.control.call(request)).await,
            Err(error) => Refused::new(format!("the request cannot be read: {error}")).into(),
        };
        answers.send(&response).await?;
    }
}

fn too_many_watchers() -> Response {
    let message = format!("{WATCHERS_MAX} others watch this desktop already");
    Refused::new(message).hint("end one of them").into()
}

/// Tells what happens until the other end is gone, which is seen at once also while nothing
/// happens.
async fn watch(
    mut requests: BufReader<OwnedReadHalf>,
    mut answers: Answers,
    mut activity: broadcast::Receiver<Activity>,
) -> io::Result<()> {
    answers.send(&Response::Done).await?;
    let mut ignored = [0; 256];
    loop {
        tokio::select! {
            biased;
            event = activity.recv() => match event {
                Ok(event) => answers.send(&Response::Activity(event)).await?,
                // A slow watcher misses events rather than holding up the desktop.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return Ok(()),
            },
            read = requests.read(&mut ignored) => if read? == 0 {
                return Ok(());
            },
        }
    }
}

/// The way back to the other end.
#[derive(Debug)]
struct Answers {
    stream: OwnedWriteHalf,
    patience: Duration,
}

impl Answers {
    async fn send(&mut self, response: &Response) -> io::Result<()> {
        let mut line = serde_json::to_vec(response)?;
        line.push(b'\n');
        timeout(self.patience, self.stream.write_all(&line)).await?
    }
}

#[cfg(test)]
mod tests {
    use callboard_agents::{Agents, Tools};
    use callboard_ambient::Clock;
    use callboard_fleet::Launcher;

    use super::*;

    fn visit(connections: &Arc<Semaphore>) -> Visit {
        let (messages, _) = mpsc::channel();
        let (activity, _) = broadcast::channel(1);
        let launcher = Launcher {
            program: "/bin/false".into(),
            arguments: Vec::new(),
        };
        let tools = Tools::new(Vec::new());
        let checker = Fleet::new(launcher, Agents::none(), tools, Clock::system());
        Visit {
            control: Control::new(messages, activity, checker),
            permit: Arc::clone(connections).try_acquire_owned().unwrap(),
            watchers: Arc::new(Semaphore::new(1)),
            patience: Duration::from_millis(20),
        }
    }

    #[tokio::test]
    async fn a_connection_that_says_nothing_gives_its_place_back() {
        let connections = Arc::new(Semaphore::new(1));
        let (_silent, served) = UnixStream::pair().unwrap();
        let ended = converse(served, visit(&connections)).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(connections.available_permits(), 1);
    }

    #[tokio::test]
    async fn a_watcher_that_reads_nothing_is_cut_off() {
        let connections = Arc::new(Semaphore::new(1));
        let visit = visit(&connections);
        let (activity, _) = broadcast::channel(4_096);
        let visit = Visit {
            control: Control {
                activity: activity.clone(),
                ..visit.control.clone()
            },
            ..visit
        };
        let (mut deaf, served) = UnixStream::pair().unwrap();
        deaf.write_all(b"\"watch\"\n").await.unwrap();
        let conversation = tokio::spawn(converse(served, visit));
        while activity.receiver_count() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(connections.available_permits(), 1, "a watcher asks nothing");
        for _ in 0..4_000 {
            let reason = "x".repeat(1_000);
            activity.send(Activity::DiskTrouble { reason }).unwrap();
        }
        let ended = conversation.await.unwrap();
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
