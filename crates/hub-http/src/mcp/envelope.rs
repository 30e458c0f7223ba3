//! The outside of a JSON-RPC message: enough to know who must answer it and how.

use std::borrow::Cow;

use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::reply;

/// What the edge needs to know of a message.
#[derive(Debug)]
pub(super) struct Envelope {
    method: String,
    /// Absent for a notification.
    id: Option<Value>,
    call: Option<ToolCall>,
}

/// The params of a `tools/call`.
#[derive(Debug)]
pub(super) struct ToolCall {
    /// The tool's name.
    pub(super) name: String,
    /// All of the params, the name included.
    pub(super) params: Map<String, Value>,
}

/// The members of a message. Null is a value here, not "left out".
#[derive(Debug, Deserialize)]
struct Members<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A message that no handler should see, as its JSON-RPC error.
#[derive(Debug)]
pub(super) struct Malformed {
    code: i64,
    message: &'static str,
    id: Value,
    status: StatusCode,
}

impl Malformed {
    /// The error as a response.
    pub(super) fn into_response(self) -> Response {
        rpc_error(self.status, self.code, self.message, &self.id)
    }
}

/// A JSON-RPC error as a response.
pub(super) fn rpc_error(status: StatusCode, code: i64, message: &str, id: &Value) -> Response {
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    reply::json(status, &error)
}

impl Envelope {
    /// Reads the outside of `body`.
    ///
    /// # Errors
    /// [`Malformed`] for what is not JSON, a batch, or no JSON-RPC 2.0 message.
    pub(super) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let no_id = Value::Null;
        let parse_error =
            || malformed(-32_700, "Parse error: the body is not JSON.", no_id.clone());
        let text = std::str::from_utf8(body).map_err(|_| parse_error())?;
        if text.trim_start().starts_with('[') {
            serde_json::from_str::<&RawValue>(text).map_err(|_| parse_error())?;
            let message = "Invalid request: send one message a POST, not a batch.";
            return Err(malformed(-32_600, message, no_id));
        }
        let members: Members<'_> = match serde_json::from_str(text) {
            Ok(members) => members,
            Err(error) if error.is_data() => {
                let message = "Invalid request: this is not a JSON-RPC 2.0 message.";
                return Err(malformed(-32_600, message, no_id));
            }
            Err(_) => return Err(parse_error()),
        };
        members.check()
    }

    /// The method.
    pub(super) fn method(&self) -> &str {
        &self.method
    }

    /// The id as JSON; null for a notification.
    pub(super) fn id(&self) -> Value {
        self.id.clone().unwrap_or_default()
    }

    /// Whether nobody waits for an answer.
    pub(super) fn is_notification(&self) -> bool {
        self.id.is_none()
    }

    /// The tool that a `tools/call` names.
    pub(super) fn tool(&self) -> Option<&str> {
        self.call.as_ref().map(|call| call.name.as_str())
    }

    /// The `tools/call` that this is, if it is one.
    pub(super) fn call(&self) -> Option<&ToolCall> {
        self.call.as_ref()
    }
}

impl Members<'_> {
    fn check(self) -> Result<Envelope, Malformed> {
        let read =
            |raw: &RawValue| -> Value { serde_json::from_str(raw.get()).unwrap_or_default() };
        let id = self.id.map(read);
        let said_id = id.clone().unwrap_or_default();
        let invalid = |message| malformed(-32_600, message, said_id.clone());
        if self.jsonrpc.as_deref() != Some("2.0") {
            return Err(invalid("Invalid request: `jsonrpc` must be \"2.0\"."));
        }
        let Some(method) = self.method else {
            let message = "Invalid request: `method` is missing. This server takes no responses.";
            return Err(invalid(message));
        };
        let readable = |id: &Value| id.is_string() || id.is_i64();
        if !id.as_ref().is_none_or(readable) {
            let message = "Invalid request: `id` must be text or a whole number.";
            return Err(malformed(-32_600, message, Value::Null));
        }
        if self
            .params
            .is_some_and(|params| !params.get().starts_with('{'))
        {
            return Err(invalid("Invalid request: `params` must be an object."));
        }
        let calls_a_tool = method == "tools/call" && id.is_some();
        let call = match self.params.map(RawValue::get).filter(|_| calls_a_tool) {
            None if calls_a_tool => Some(named_tool("{}", &said_id)?),
            None => None,
            Some(params) => Some(named_tool(params, &said_id)?),
        };
        let method = method.into_owned();
        Ok(Envelope { method, id, call })
    }
}

/// The tool of a call. A call must name one, and its arguments are an object.
fn named_tool(params: &str, id: &Value) -> Result<ToolCall, Malformed> {
    let refused = |message| Malformed {
        code: -32_602,
        message,
        id: id.clone(),
        status: StatusCode::OK,
    };
    // Well-formed text that no JSON value holds.
    let params: Map<String, Value> = serde_json::from_str(params).map_err(|_| {
        let message = "Parse error: the params hold half of a surrogate pair, a number out of \
                       range, or are nested too deeply.";
        malformed(-32_700, message, id.clone())
    })?;
    let arguments = params.get("arguments");
    if !arguments.is_none_or(|given| given.is_object() || given.is_null()) {
        return Err(refused("Invalid params: `arguments` must be an object."));
    }
    let name = params.get("name").and_then(Value::as_str);
    let name = name.map(str::to_owned);
    let name = name.ok_or_else(|| refused("Invalid params: `name` must be the name of a tool."))?;
    Ok(ToolCall { name, params })
}

fn malformed(code: i64, message: &'static str, id: Value) -> Malformed {
    let status = StatusCode::BAD_REQUEST;
    Malformed {
        code,
        message,
        id,
        status,
    }
}
