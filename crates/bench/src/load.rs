//! The load: kept-alive HTTP/1.1 connections that call one after the other, and how long it took.
//! The same code loads our hub and the baseline.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// Longest that one call may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The revision that the load speaks: without a handshake, so that a call is one request.
const REVISION: &str = "2026-07-28";

/// When something began, finer than the clock of `ambient`, which rounds to milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Began(Instant);

/// Now.
#[allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures what the clock of ambient rounds"
)]
pub(crate) fn now() -> Began {
    Began(Instant::now())
}

impl Began {
    /// The time since then.
    #[allow(
        clippy::disallowed_methods,
        reason = "a benchmark measures what the clock of ambient rounds"
    )]
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// How long things took, to three digits.
#[derive(Debug)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let longest = u64::try_from(PATIENCE.as_nanos())?;
        Ok(Self(Histogram::new_with_bounds(1, longest, 3)?))
    }

    /// Notes the time since `began`.
    pub(crate) fn since(&mut self, began: Began) {
        self.add(began.elapsed());
    }

    pub(crate) fn add(&mut self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanoseconds.max(1));
    }

    pub(crate) fn add_ms(&mut self, ms: f64) {
        self.add(Duration::from_secs_f64(ms.max(0.0) / 1_000.0));
    }

    pub(crate) fn merge(&mut self, other: &Self) -> anyhow::Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    /// The time in which this share was done, in milliseconds.
    #[allow(
        clippy::cast_precision_loss,
        reason = "nanoseconds of a minute at most"
    )]
    pub(crate) fn ms(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e6
    }
}

/// Who calls where.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    /// The bearer token; the baseline has none.
    pub(crate) token: Option<String>,
}

/// One client: a connection that stays.
#[derive(Debug)]
pub(crate) struct Caller {
    sender: SendRequest<Full<Bytes>>,
    endpoint: Endpoint,
}

impl Caller {
    pub(crate) async fn connect(endpoint: &Endpoint) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(endpoint.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self {
            sender,
            endpoint: endpoint.clone(),
        })
    }

    /// Posts JSON and gives status and body.
    pub(crate) async fn post(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let mut request = Request::post(path)
            .header(header::HOST, self.endpoint.address.to_string())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        if let Some(token) = &self.endpoint.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(body))?;
        let answer = async {
            self.sender.ready().await?;
            let response = self.sender.send_request(request).await?;
            let status = response.status();
            Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        Ok(answer.context("a call took longer than a minute")??)
    }

    /// Calls a tool of the hub and gives the result.
    pub(crate) async fn result(&mut self, tool: &str, arguments: Value) -> anyhow::Result<Value> {
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": {
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientCapabilities": {},
            }},
        });
        let headers = [
            ("mcp-protocol-version", REVISION),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        let (status, body) = self.post("/mcp", &headers, message.to_string()).await?;
        let mut answer: Value = serde_json::from_slice(&body)
            .with_context(|| format!("{tool} answered {status} without JSON"))?;
        Ok(answer["result"].take())
    }

    /// Calls a tool of the hub and gives its answer, which must be a good one.
    pub(crate) async fn tool(&mut self, tool: &str, arguments: Value) -> anyhow::Result<Value> {
        let mut result = self.result(tool, arguments).await?;
        anyhow::ensure!(
            result["isError"] == json!(false),
            "{tool} answered {result}"
        );
        Ok(result["structuredContent"].take())
    }

    /// Calls a tool of the baseline and gives its answer, which must be a good one.
    pub(crate) async fn published(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> anyhow::Result<Value> {
        let message = json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        });
        let (_, body) = self.post("/mcp", &[], message.to_string()).await?;
        let answer: Value = serde_json::from_slice(&body)?;
        let text = answer["result"]["content"][0]["text"].as_str();
        let answer: Value = serde_json::from_str(text.context("no text")?)?;
        anyhow::ensure!(answer.get("error").is_none(), "{tool} answered {answer}");
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_to_three_digits_and_none_is_lost() {
        let mut times = Latencies::new().expect("bounds");
        for ms in 1..=100 {
            times.add_ms(f64::from(ms));
        }
        times.add(Duration::from_secs(3_600));
        let mut all = Latencies::new().expect("bounds");
        all.merge(&times).expect("the same bounds");
        for (share, ms) in [(0.0, 1.0), (0.5, 51.0), (0.9, 91.0), (1.0, 60_000.0)] {
            let found = all.ms(share);
            assert!((found - ms).abs() <= ms / 100.0, "{share}: {found}");
        }
    }
}
