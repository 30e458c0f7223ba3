//! The network between a desktop and its hub: it passes bytes on until it fails as it was told,
//! and then stays down until it is healed.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::process::within;

/// What gets lost, with everything after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// A call never reaches the hub.
    Call,
    /// The hub gets the call; its answer never comes back.
    Answer,
}

#[derive(Debug)]
struct State {
    /// What is lost next, and the part of the request that tells the call.
    fault: Mutex<Option<(Lost, &'static str)>>,
    /// Whether a fault has struck.
    down: watch::Sender<bool>,
}

/// The network.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) port: u16,
    state: Arc<State>,
}

impl Network {
    pub(crate) async fn start(hub_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            fault: Mutex::new(None),
            down: watch::Sender::new(false),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass_on(stream, hub_port, Arc::clone(&shared)));
            }
        });
        Self { port, state }
    }

    /// Loses the next call whose request contains `path`, or its answer.
    pub(crate) fn lose(&self, lost: Lost, path: &'static str) {
        *self.state.fault.lock().unwrap() = Some((lost, path));
    }

    /// Waits until it has lost what it was told to.
    pub(crate) async fn is_down(&self) {
        let mut down = self.state.down.subscribe();
        within("the network fails", down.wait_for(|down| *down))
            .await
            .unwrap();
    }

    pub(crate) fn heal(&self) {
        self.state.down.send_replace(false);
    }
}

/// One connection, until either side ends it or the network fails.
async fn pass_on(mut desktop: TcpStream, hub_port: u16, state: Arc<State>) {
    let mut down = state.down.subscribe();
    if *down.borrow_and_update() {
        return;
    }
    let Ok(mut hub) = TcpStream::connect(("127.0.0.1", hub_port)).await else {
        return;
    };
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            biased;
            () = failure(&mut down) => return,
            read = desktop.read(&mut asked) => {
                let Some(bytes) = some_of(&asked, read) else { return };
                let lost = struck(&state, bytes);
                if lost != Some(Lost::Call) && hub.write_all(bytes).await.is_err() {
                    return;
                }
                if lost.is_some() {
                    if lost == Some(Lost::Answer) {
                        // Its first byte says that the hub has done and stored what was asked.
                        drop(hub.read(&mut answered).await);
                    }
                    state.down.send_replace(true);
                    return;
                }
            }
            read = hub.read(&mut answered) => {
                let Some(bytes) = some_of(&answered, read) else { return };
                if desktop.write_all(bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn failure(down: &mut watch::Receiver<bool>) {
    drop(down.wait_for(|down| *down).await);
}

fn some_of(buffer: &[u8], read: std::io::Result<usize>) -> Option<&[u8]> {
    let length = read.ok().filter(|length| *length > 0)?;
    buffer.get(..length)
}

/// The fault that these bytes of a request trigger, once.
fn struck(state: &State, bytes: &[u8]) -> Option<Lost> {
    let mut fault = state.fault.lock().unwrap();
    let (lost, path) = (*fault)?;
    String::from_utf8_lossy(bytes).contains(path).then(|| {
        *fault = None;
        lost
    })
}
