//! A small HTTP server on loopback that answers from a list and keeps what it was sent.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// One answer: status line, extra headers, body.
#[derive(Debug, Clone)]
pub(crate) struct Reply(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) String,
);

/// A request as it came: head and body.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: serde_json::Value,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) base_url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers in order; the last answer repeats.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let log = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, replies) = (Arc::clone(&log), replies.clone());
                tokio::spawn(async move {
                    drop(serve(stream, &log, &replies).await);
                });
            }
        });
        Self { base_url, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Seen>>,
    replies: &[Reply],
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length:")?
                        .trim()
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                let seen = Seen {
                    head: head.to_owned(),
                    body: serde_json::from_str(body).unwrap_or_default(),
                };
                let earlier = {
                    let mut log = log.lock().unwrap();
                    log.push(seen);
                    log.len() - 1
                };
                let Reply(status, headers, body) = &replies[earlier.min(replies.len() - 1)];
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}",
                    body.len()
                );
                return stream.write_all(answer.as_bytes()).await;
            }
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
}
