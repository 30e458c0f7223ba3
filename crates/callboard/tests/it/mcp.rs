//! MCP calls byte by byte, for what no well-behaved client does.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::process::within;

/// An HTTP answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// The session id that it gave, in case it did.
    pub(crate) session: Option<String>,
}

/// A POST of `message` to the endpoint of the hub on `port`, as bytes.
pub(crate) fn request(
    token: &str,
    revision: &str,
    session: Option<&str>,
    message: &Value,
) -> String {
    let session = session.map(|id| format!("mcp-session-id: {id}\r\n"));
    let body = message.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: {revision}\r\n{}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        session.unwrap_or_default(),
        body.len()
    )
}

/// A call of a tool as JSON-RPC.
pub(crate) fn call(tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

/// Sends a request and reads its answer.
pub(crate) async fn send(port: u16, request: &str) -> Answer {
    let exchange = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = within("an answer of the hub", exchange).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let session = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
        session: session.map(|(_, id)| id.to_owned()),
    }
}

/// The content of a tool's good answer.
pub(crate) fn content(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    let result = &answer.body["result"];
    assert_ne!(result["isError"], true, "{answer:?}");
    result["structuredContent"].clone()
}
