//! What happens to a request before and after rmcp.

use std::future::Future;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use callboard_domain::limits::{
    BODY_BYTES_MAX, LARGE_BODY_BYTES, OPEN_BODY_BYTES_MAX, REQUEST_READ_MS_MAX,
};
use callboard_store::{Connection, Store};
use callboard_wire::Problem;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::sync::SemaphorePermit;

use super::envelope::{Envelope, rpc_error};
use super::{direct, tools};
use crate::access::{identify, no_token, require};
use crate::{Shared, SharedHub, reply};

/// Answers one HTTP request to the endpoint; `rmcp` answers the MCP message in it.
pub(super) async fn handle<S: Store, Answering: Future<Output = Response>>(
    shared: &SharedHub<S>,
    request: Request,
    rmcp: impl FnOnce(Request) -> Answering,
) -> Response {
    if request.method() != Method::POST {
        let mut response = rpc_error(
            StatusCode::METHOD_NOT_ALLOWED,
            -32_600,
            "This endpoint takes POST only.",
            &Value::Null,
        );
        response
            .headers_mut()
            .insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let (mut parts, body) = request.into_parts();
    if let Err(refused) = negotiate(&mut parts.headers) {
        return *refused;
    }
    // Before the body: what a stranger sends takes no room.
    let connection = match identify(shared, &parts.headers).await {
        Ok(connection) => connection,
        Err(refused) => return *refused,
    };
    let (body, _place) = match read(shared, body, connection.is_some()).await {
        Ok(read) => read,
        Err(refused) => return *refused,
    };
    let envelope = match Envelope::read(&body) {
        Ok(envelope) => envelope,
        Err(malformed) => return malformed.into_response(),
    };
    if let Err(refused) = authorize(shared, connection.as_ref(), &envelope) {
        return *refused;
    }
    if let Some(connection) = connection {
        let answered = direct::answer(shared, &parts.headers, &connection, &envelope).await;
        if let Some(response) = answered {
            return response;
        }
        parts.extensions.insert(connection);
    }
    let response = rmcp(Request::from_parts(parts, Body::from(body))).await;
    complete(&envelope, response).await
}

/// Reads a request's body: of a stranger only a short one, and of the others a large one as soon as
/// there is a place for it, which is kept until the request is answered.
async fn read<S>(
    shared: &Shared<S>,
    body: Body,
    known: bool,
) -> Result<(Bytes, Option<SemaphorePermit<'_>>), Box<Response>> {
    let refused = |status, message| Box::new(rpc_error(status, -32_600, message, &Value::Null));
    let patience = Duration::from_millis(REQUEST_READ_MS_MAX);
    let mut place = None;
    if known
        && body
            .size_hint()
            .upper()
            .is_none_or(|upper| upper > LARGE_BODY_BYTES as u64)
    {
        let free = tokio::time::timeout(patience, shared.large_bodies.acquire()).await;
        let busy = |_| Box::new(reply::problem(Problem::new(503, "busy", BUSY)));
        // The semaphore is never closed.
        place = free.map_err(busy)?.ok();
    }
    let bytes_max = if known {
        BODY_BYTES_MAX
    } else {
        OPEN_BODY_BYTES_MAX
    };
    let reading = axum::body::to_bytes(body, bytes_max);
    match tokio::time::timeout(patience, reading).await {
        Ok(Ok(read)) if read.len() > LARGE_BODY_BYTES => Ok((read, place)),
        Ok(Ok(read)) => Ok((read, None)),
        Ok(Err(_)) if known => Err(refused(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE)),
        // What needs no token is short.
        Ok(Err(_)) => Err(no_token()),
        Err(_) => Err(refused(StatusCode::REQUEST_TIMEOUT, TOO_SLOW)),
    }
}

const TOO_LARGE: &str = "The request is larger than 8 MiB, or was cut off.";
const TOO_SLOW: &str = "The request did not arrive within 30 s.";
const BUSY: &str = "The hub is busy with other large requests. Try again in a few seconds.";

/// Serves every client that takes JSON or an event stream, however it says so; rmcp insists on
/// both names.
fn negotiate(headers: &mut HeaderMap) -> Result<(), Box<Response>> {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let accepted = text(header::ACCEPT).is_none_or(|accept| {
        let accept = accept.to_ascii_lowercase();
        [
            "*/*",
            "application/*",
            "application/json",
            "text/event-stream",
        ]
        .iter()
        .any(|kind| accept.contains(kind))
    });
    if !accepted {
        let message = "This endpoint answers with application/json.";
        let refused = rpc_error(StatusCode::NOT_ACCEPTABLE, -32_600, message, &Value::Null);
        return Err(Box::new(refused));
    }
    let sent_json = text(header::CONTENT_TYPE).is_some_and(|sent| {
        let essence = sent.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    });
    if !sent_json {
        let message = "Send the message with Content-Type: application/json.";
        let refused = rpc_error(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            -32_600,
            message,
            &Value::Null,
        );
        return Err(Box::new(refused));
    }
    let both = HeaderValue::from_static("application/json, text/event-stream");
    headers.insert(header::ACCEPT, both);
    Ok(())
}

/// Whether a caller may ask this. `None` is one without a token.
fn authorize<S: Store>(
    shared: &Shared<S>,
    connection: Option<&Connection>,
    envelope: &Envelope,
) -> Result<(), Box<Response>> {
    match connection {
        Some(connection) => require(connection, envelope.tool().and_then(tools::scope_of::<S>)),
        None if is_open(envelope, shared.options.public_tool_list()) => Ok(()),
        None => Err(no_token()),
    }
}

/// What a caller without a token may ask: how to begin, and what there is.
fn is_open(envelope: &Envelope, public_tool_list: bool) -> bool {
    match envelope.method() {
        "initialize" | "server/discover" | "ping" => true,
        "tools/list" => public_tool_list,
        method => envelope.is_notification() && method.starts_with("notifications/"),
    }
}

/// Adds to an answer what rmcp has no field for, and turns what rmcp says as plain text into a
/// JSON-RPC error.
async fn complete(envelope: &Envelope, response: Response) -> Response {
    let json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if json && envelope.method() != "tools/list" {
        return response;
    }
    let plain_error = !json && response.status().is_client_error();
    if !json && !plain_error {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, BODY_BYTES_MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    if plain_error {
        let message = String::from_utf8_lossy(&bytes);
        // The content type was looked at before: what rmcp finds unsupported is the message.
        let status = match parts.status {
            StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
            status => status,
        };
        return rpc_error(status, -32_600, &message, &envelope.id());
    }
    let Ok(mut answer) = serde_json::from_slice::<Value>(&bytes) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    add_security_schemes(&mut answer);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(answer.to_string()))
}

/// Hosts look for `securitySchemes` beside the other fields of a tool; MCP has no such field.
fn add_security_schemes(answer: &mut Value) {
    let tools = answer
        .pointer_mut("/result/tools")
        .and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten() {
        let schemes = tool
            .pointer("/_meta/securitySchemes")
            .cloned()
            .unwrap_or(json!([]));
        if let Some(fields) = tool.as_object_mut() {
            fields.insert("securitySchemes".to_owned(), schemes);
        }
    }
}
