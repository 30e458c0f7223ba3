//! Plain calls of tools, answered here: rmcp starts a service with tasks and channels of its own for
//! every request, which costs more than the call. Whatever is not plain goes to rmcp, which refuses
//! what is wrong; what both can answer, they answer with the same bytes.

use std::sync::Arc;

use axum::response::Response;
use callboard_store::{Connection, Store};
use http::{HeaderMap, StatusCode};
use rmcp::model::ClientCapabilities;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::envelope::{Envelope, ToolCall, rpc_error};
use super::handler::{host_hint, run, structured};
use super::tools::{Call, Hints, Tool};
use crate::{SharedHub, reply};

/// Revisions whose calls say nothing of themselves in `_meta`.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision whose calls do.
const MODERN: &str = "2026-07-28";

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A call about which there is nothing to say but its answer.
struct Plain<'a, S: 'static> {
    tool: &'static Tool<S>,
    arguments: Map<String, Value>,
    meta: Option<&'a Map<String, Value>>,
    is_modern: bool,
}

/// The answer of JSON-RPC, as rmcp writes it.
#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: ToolResult<'a>,
}

/// rmcp's `CallToolResult`, which can only hold structured content that was read into a tree.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [Text<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Structured<'a>>,
    is_error: bool,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Structured<'a> {
    /// JSON that the hub itself has just written.
    Own(&'a RawValue),
    /// JSON in which a Graph's result may stand.
    Foreign(Value),
}

/// Answers a plain call of a tool that `caller` may call; `None` for everything else.
pub(super) async fn answer<S: Store>(
    shared: &SharedHub<S>,
    headers: &HeaderMap,
    caller: &Connection,
    envelope: &Envelope,
) -> Option<Response> {
    let plain = plain::<S>(headers, envelope.call()?)?;
    // Ends with this future: whoever hangs up is not waited for.
    let hung_up = CancellationToken::new();
    let _at_end = hung_up.clone().drop_guard();
    let call = Call {
        shared: Arc::clone(shared),
        caller: caller.clone(),
        host_hint: plain.meta.and_then(host_hint),
        hung_up,
    };
    let (tool, arguments) = (plain.tool, plain.arguments);
    let ran = match tool.spec.hints {
        Hints::ReadOnly => Ok(run(tool, &call, arguments).await),
        // What is written is also signalled, though nobody listens to the answer any more.
        Hints::Destructive | Hints::Idempotent => {
            tokio::spawn(async move { run(tool, &call, arguments).await }).await
        }
    };
    let Ok(answer) = ran else {
        let message = "The call failed. Try again.";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        return Some(rpc_error(status, -32_603, message, &envelope.id()));
    };
    let structured_content = match &answer {
        Ok(text) if tool.spec.holds_foreign_json => structured(text).map(Structured::Foreign),
        Ok(text) => serde_json::from_str(text).ok().map(Structured::Own),
        Err(_) => None,
    };
    let (Ok(text) | Err(text)) = &answer;
    let reply = Reply {
        jsonrpc: "2.0",
        id: &envelope.id(),
        result: ToolResult {
            result_type: plain.is_modern.then_some("complete"),
            content: [Text {
                r#type: "text",
                text,
            }],
            structured_content,
            is_error: answer.is_err(),
        },
    };
    let mut response = reply::json(StatusCode::OK, &reply);
    // rmcp's answers have none, and a POST is not cached anyway.
    response.headers_mut().remove(http::header::CACHE_CONTROL);
    Some(response)
}

fn plain<'a, S: Store>(headers: &HeaderMap, call: &'a ToolCall) -> Option<Plain<'a, S>> {
    let tool = Tool::<S>::ALL
        .iter()
        .find(|tool| tool.spec.name == call.name)?;
    let is_known = |name: &String| ["name", "arguments", "_meta"].contains(&name.as_str());
    if !call.params.keys().all(is_known) {
        return None;
    }
    let arguments = match call.params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return None;
        }
    };
    let meta = match call.params.get("_meta") {
        None => None,
        Some(Value::Object(meta)) => Some(meta),
        Some(_) => return None,
    };
    let token = meta.and_then(|meta| meta.get("progressToken"));
    if !token.is_none_or(|token| token.is_string() || token.is_i64()) {
        return None;
    }
    let says_version = meta.is_some_and(|meta| meta.contains_key(META_VERSION));
    let is_modern = match only(headers, "mcp-protocol-version")? {
        None if !says_version => false,
        Some(version) if LEGACY.contains(&version) && !says_version => false,
        Some(MODERN) if says_itself(headers, meta?, &call.name) => true,
        Some(_) | None => return None,
    };
    Some(Plain {
        tool,
        arguments,
        meta,
        is_modern,
    })
}

/// Whether a call of the modern revision says of itself what it must, once and alike in both places.
fn says_itself(headers: &HeaderMap, meta: &Map<String, Value>, tool: &str) -> bool {
    let capabilities = match meta.get(META_CAPABILITIES) {
        Some(Value::Object(none)) if none.is_empty() => true,
        Some(some @ Value::Object(_)) => {
            serde_json::from_value::<ClientCapabilities>(some.clone()).is_ok()
        }
        Some(_) | None => false,
    };
    let is_parameter = |name: &http::HeaderName| name.as_str().starts_with("mcp-param-");
    capabilities
        && meta.get(META_VERSION).and_then(Value::as_str) == Some(MODERN)
        && only(headers, "mcp-method") == Some(Some("tools/call"))
        && only(headers, "mcp-name") == Some(Some(tool))
        && !headers.keys().any(is_parameter)
}

/// The one value of a header, as text; `Some(None)` when there is none, `None` for several, or for
/// one that is no text.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Some(None),
        (Some(value), None) => value.to_str().ok().map(Some),
        (Some(_), Some(_)) => None,
    }
}
