//! A model server on loopback that counts what it is asked and answers when it is let: the only
//! thing that a Graph can do to the world here, so it tells how often one really ran.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::process::until;

/// The server.
#[derive(Debug)]
pub(crate) struct Model {
    port: u16,
    asked: Arc<AtomicUsize>,
    open: watch::Sender<bool>,
}

impl Model {
    /// A server that answers at once.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let (open, gate) = watch::channel(true);
        let counter = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&counter), gate.clone()));
            }
        });
        Self { port, asked, open }
    }

    /// The configuration of a desktop that uses it.
    pub(crate) fn config(&self) -> String {
        format!(
            "[desktop]\ndefault_provider = \"counting\"\n\n[providers.counting]\n\
             kind = \"openai\"\nbase_url = \"http://127.0.0.1:{}/v1\"\nmodel = \"tiny\"\n",
            self.port
        )
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Waits until it was asked so often.
    pub(crate) async fn is_asked(&self, times: usize) {
        until("the model is asked", async || {
            (self.asked() >= times).then_some(())
        })
        .await;
    }

    /// Keeps every caller waiting from now on.
    pub(crate) fn hold(&self) {
        self.open.send_replace(false);
    }

    /// Answers who waits, and from now on everybody at once.
    pub(crate) fn release(&self) {
        self.open.send_replace(true);
    }
}

/// One call a connection. A caller that goes away is no concern.
async fn answer(mut stream: TcpStream, asked: Arc<AtomicUsize>, mut gate: watch::Receiver<bool>) {
    if read_request(&mut stream).await.is_none() {
        return;
    }
    asked.fetch_add(1, Ordering::SeqCst);
    if gate.wait_for(|open| *open).await.is_err() {
        return;
    }
    let message = json!({"role": "assistant", "content": "well"});
    let body = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "tiny",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
    })
    .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    drop(stream.write_all((head + &body).as_bytes()).await);
}

async fn read_request(stream: &mut TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length:").nth(1)?;
        let length: usize = length.lines().next()?.trim().parse().ok()?;
        if body.len() >= length {
            return Some(());
        }
    }
}
