//! The command line's side of the socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::{Request, Response};
use crate::{Activity, folder};

/// Longest that one answer is waited for: far more than a full disk or a long history takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Why there is no desktop to talk to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing listens there.
    #[error("no desktop is running on {}", data_dir.display())]
    NotRunning {
        /// The data folder.
        data_dir: PathBuf,
    },
    /// The socket is there and cannot be used.
    #[error("cannot talk to the desktop on {}: {reason}", data_dir.display())]
    Unusable {
        /// The data folder.
        data_dir: PathBuf,
        /// Why.
        reason: String,
    },
}

impl ConnectError {
    /// One thing to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NotRunning { .. } => {
                "start it with `callboard desktop run --hub URL --token-file FILE`, or start hub \
                 and desktop together with `callboard up`"
            }
            Self::Unusable { .. } => "run the command as the user that the desktop runs as",
        }
    }
}

/// Why a request brought no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The desktop ended the connection.
    #[error("the desktop stopped before it answered")]
    Ended,
    /// It runs and does not answer.
    #[error("the desktop runs but gave no answer within {} s", ANSWER_TIMEOUT.as_secs())]
    TimedOut,
    /// The desktop does not let this one watch.
    #[error("{0}")]
    Refused(String),
    /// The connection broke.
    #[error("the connection to the desktop broke: {0}")]
    Broken(#[from] io::Error),
    /// The desktop is of another version.
    #[error("the desktop's answer cannot be read; is it of another version? ({0})")]
    Unreadable(#[from] serde_json::Error),
}

/// A connection to a running desktop.
#[derive(Debug)]
pub struct Client {
    answers: Lines<BufReader<OwnedReadHalf>>,
    requests: OwnedWriteHalf,
    patience: Duration,
    /// An answer is owed that nobody waits for any more.
    owes_answer: bool,
}

impl Client {
    /// Connects to the desktop that uses `data_dir`.
    ///
    /// # Errors
    /// [`ConnectError::NotRunning`] when there is none, [`ConnectError::Unusable`] when its socket
    /// cannot be opened.
    pub async fn connect(data_dir: &Path) -> Result<Self, ConnectError> {
        let data_dir = data_dir.to_owned();
        let unusable = |reason| ConnectError::Unusable {
            data_dir: data_dir.clone(),
            reason,
        };
        let path = folder::socket_path(&data_dir).map_err(unusable)?;
        match UnixStream::connect(&path).await {
            Ok(stream) => {
                let (answers, requests) = stream.into_split();
                let answers = BufReader::new(answers).lines();
                Ok(Self {
                    answers,
                    requests,
                    patience: ANSWER_TIMEOUT,
                    owes_answer: false,
                })
            }
            Err(error) if nothing_listens(&error) => Err(ConnectError::NotRunning { data_dir }),
            Err(error) => Err(unusable(error.to_string())),
        }
    }

    /// Asks one thing. A refusal is an answer: [`Response::Refused`].
    ///
    /// # Errors
    /// No answer, or none that can be read. After [`CallError::TimedOut`] this connection is of no
    /// more use.
    pub async fn call(&mut self, request: &Request) -> Result<Response, CallError> {
        if std::mem::replace(&mut self.owes_answer, true) {
            return Err(CallError::TimedOut);
        }
        let patience = self.patience;
        let asked = async {
            self.send(request).await?;
            self.receive().await?.ok_or(CallError::Ended)
        };
        let answer = timeout(patience, asked).await;
        let answer = answer.map_err(|_| CallError::TimedOut)?;
        self.owes_answer = false;
        answer
    }

    /// Watches what happens from now on.
    ///
    /// # Errors
    /// The connection broke, or too many watch already.
    pub async fn watch(mut self) -> Result<Watch, CallError> {
        // The answer comes when the desktop listens, so that nothing after it is missed.
        if let Response::Refused(refused) = self.call(&Request::Watch).await? {
            return Err(CallError::Refused(refused.message));
        }
        Ok(Watch { client: self })
    }

    async fn send(&mut self, request: &Request) -> Result<(), CallError> {
        let mut line = serde_json::to_string(request)?;
        line.push('\n');
        Ok(self.requests.write_all(line.as_bytes()).await?)
    }

    async fn receive(&mut self) -> Result<Option<Response>, CallError> {
        match self.answers.next_line().await? {
            Some(line) => Ok(Some(serde_json::from_str(&line)?)),
            None => Ok(None),
        }
    }
}

fn nothing_listens(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

/// The events of a desktop, as they happen.
#[derive(Debug)]
pub struct Watch {
    client: Client,
}

impl Watch {
    /// The next event; `None` when the desktop stopped.
    ///
    /// # Errors
    /// The connection broke, or an event cannot be read.
    pub async fn next(&mut self) -> Result<Option<Activity>, CallError> {
        loop {
            let Some(response) = self.client.receive().await? else {
                return Ok(None);
            };
            if let Response::Activity(activity) = response {
                return Ok(Some(activity));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_desktop_that_never_answers_is_not_waited_for_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder::socket_path(folder.path()).unwrap();
        // It takes connections and answers nothing.
        let _frozen = tokio::net::UnixListener::bind(path).unwrap();
        let mut client = Client::connect(folder.path()).await.unwrap();
        client.patience = Duration::from_millis(20);
        for _ in 0..2 {
            let error = client.call(&Request::Status).await.unwrap_err();
            assert_eq!(
                error.to_string(),
                "the desktop runs but gave no answer within 30 s"
            );
        }
    }
}
