//! The outside of a JSON-RPC message: enough to know who must answer it and how.

use std::borrow::Cow;

use axum::response::Response;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::reply;

/// What the edge needs to know of a message.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
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

impl<'a> Envelope<'a> {
    /// Reads the outside of `body`.
    ///
    /// # Errors
    /// [`Malformed`] for what is not JSON, a batch, or no JSON-RPC 2.0 message.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, Malformed> {
        let malformed = |code, message, id| Malformed {
            code,
            message,
            id,
            status: StatusCode::BAD_REQUEST,
        };
        let parse_error = || malformed(-32_700, "Parse error: the body is not JSON.", Value::Null);
        let text = std::str::from_utf8(body).map_err(|_| parse_error())?;
        if text.trim_start().starts_with('[') {
            serde_json::from_str::<&RawValue>(text).map_err(|_| parse_error())?;
            let message = "Invalid request: send one message a POST, not a batch.";
            return Err(malformed(-32_600, message, Value::Null));
        }
        let envelope: Self = match serde_json::from_str(text) {
            Ok(envelope) => envelope,
            Err(error) if error.is_data() => {
                let message = "Invalid request: this is not a JSON-RPC 2.0 message.";
                return Err(malformed(-32_600, message, Value::Null));
            }
            Err(_) => return Err(parse_error()),
        };
        envelope
            .check()
            .map_err(|message| malformed(-32_600, message, envelope.id()))?;
        envelope.check_call()?;
        Ok(envelope)
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.jsonrpc.as_deref() != Some("2.0") {
            return Err("Invalid request: `jsonrpc` must be \"2.0\".");
        }
        if self.method.is_none() {
            return Err("Invalid request: `method` is missing. This server takes no responses.");
        }
        match self.id() {
            Value::Null | Value::String(_) => {}
            Value::Number(number) if !number.is_f64() => {}
            Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err("Invalid request: `id` must be text or a whole number.");
            }
        }
        if self.id.is_some_and(|id| id.get() == "null") {
            return Err("Invalid request: `id` must not be null.");
        }
        if self
            .params
            .is_some_and(|params| !params.get().starts_with('{'))
        {
            return Err("Invalid request: `params` must be an object.");
        }
        Ok(())
    }

    /// A tool call must name its tool, and its arguments are an object.
    fn check_call(&self) -> Result<(), Malformed> {
        if self.method() != "tools/call" || self.id.is_none() {
            return Ok(());
        }
        let malformed = |status, code, message| Malformed {
            code,
            message,
            id: self.id(),
            status,
        };
        let params = self.params.map_or("{}", RawValue::get);
        // Half of a surrogate pair is well-formed text that no JSON value holds.
        let params: Value = serde_json::from_str(params).map_err(|_| {
            let message = "Parse error: a text holds half of a surrogate pair.";
            malformed(StatusCode::BAD_REQUEST, -32_700, message)
        })?;
        if !params.get("name").is_some_and(Value::is_string) {
            let message = "Invalid params: `name` must be the name of a tool.";
            return Err(malformed(StatusCode::OK, -32_602, message));
        }
        match params.get("arguments") {
            None | Some(Value::Object(_) | Value::Null) => Ok(()),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                let message = "Invalid params: `arguments` must be an object.";
                Err(malformed(StatusCode::OK, -32_602, message))
            }
        }
    }

    /// The method; empty for none.
    pub(super) fn method(&self) -> &str {
        self.method.as_deref().unwrap_or_default()
    }

    /// The id as JSON; null for a notification.
    pub(super) fn id(&self) -> Value {
        self.id
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }

    /// Whether nobody waits for an answer.
    pub(super) fn is_notification(&self) -> bool {
        self.id.is_none()
    }

    /// The tool that a `tools/call` names.
    pub(super) fn tool(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Call {
            name: String,
        }
        let params = self.params.filter(|_| self.method() == "tools/call")?;
        serde_json::from_str::<Call>(params.get())
            .ok()
            .map(|call| call.name)
    }
}
