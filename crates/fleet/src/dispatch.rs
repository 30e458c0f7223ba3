//! Turns what a script asks for into requests of the scheduler, and performs what it dispatches.

use std::time::Duration;

use callboard_agents::{
    AgentAnswer, AgentError, AgentErrorCode, AgentRequest, Agents, Budget, ToolError,
    ToolErrorCode, Tools,
};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::limits::CALL_JSON_BYTES_MAX;
use crate::scheduler::{CallId, CallKind, Code, Fault, Key, Request, Settled};

/// What a dispatched call does. JSON stays text until then: parsed, it takes many times the memory.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    Agent {
        /// Without its schema.
        request: Box<AgentRequest>,
        schema: Option<String>,
    },
    Tool {
        name: String,
        arguments: String,
        timeout_ms: Option<u64>,
    },
    /// The scheduler's own timer.
    Sleep,
}

#[derive(Debug, Deserialize)]
struct CallAct {
    id: u64,
    kind: String,
    identity: Value,
}

#[derive(Debug, Deserialize)]
struct AgentIdentity {
    prompt: String,
    schema: Option<Value>,
    model: Option<String>,
    effort: Option<String>,
    profile: Option<String>,
    max_tokens: Option<u32>,
    timeout_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct ToolIdentity {
    name: String,
    arguments: Value,
    timeout_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct SleepIdentity {
    ms: u64,
}

/// A call that is too long to be read: what must be known to refuse it.
#[derive(Debug, Deserialize)]
struct LongCallAct {
    id: u64,
    kind: String,
}

/// Reads one call out of a script's JSON text. One that is longer than [`CALL_JSON_BYTES_MAX`] has
/// no payload: the scheduler refuses it for its size.
pub(crate) fn read_call(json: &str) -> Result<(Request, Option<Payload>), serde_json::Error> {
    if json.len() > CALL_JSON_BYTES_MAX {
        return read_long_call(json).map(|request| (request, None));
    }
    let act: CallAct = serde_json::from_str(json)?;
    let key = Key::of(&act.kind, &canonical(&act.identity));
    let (kind, reserve_tokens, payload) = match act.kind.as_str() {
        "agent" => {
            let identity: AgentIdentity = serde_json::from_value(act.identity)?;
            let mut request = AgentRequest {
                prompt: identity.prompt,
                model: identity.model,
                profile: identity.profile,
                effort: identity.effort,
                schema: identity.schema,
                max_tokens: identity.max_tokens,
                timeout_ms: identity.timeout_ms,
            };
            let reserve = Agents::estimate_tokens(&request);
            let schema = request.schema.take().map(|schema| schema.to_string());
            let request = Box::new(request);
            (CallKind::Agent, reserve, Payload::Agent { request, schema })
        }
        "tool" => {
            let ToolIdentity {
                name,
                arguments,
                timeout_ms,
            } = serde_json::from_value(act.identity)?;
            (
                CallKind::Tool,
                0,
                Payload::Tool {
                    name,
                    arguments: arguments.to_string(),
                    timeout_ms,
                },
            )
        }
        "sleep" => {
            let SleepIdentity { ms } = serde_json::from_value(act.identity)?;
            (CallKind::Sleep(ms), 0, Payload::Sleep)
        }
        other => return Err(serde::de::Error::custom(format!("unknown call `{other}`"))),
    };
    Ok((
        Request {
            id: CallId(act.id),
            kind,
            key,
            reserve_tokens,
            payload_bytes: payload.bytes(),
        },
        Some(payload),
    ))
}

fn read_long_call(json: &str) -> Result<Request, serde_json::Error> {
    let LongCallAct { id, kind } = serde_json::from_str(json)?;
    Ok(Request {
        id: CallId(id),
        key: Key::of(&kind, json),
        kind: if kind == "agent" {
            CallKind::Agent
        } else {
            CallKind::Tool
        },
        reserve_tokens: 0,
        payload_bytes: u64::try_from(json.len()).unwrap_or(u64::MAX),
    })
}

impl Payload {
    fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Agent { request, schema } => {
                let AgentRequest {
                    prompt,
                    model,
                    profile,
                    effort,
                    ..
                } = request.as_ref();
                let optional = [model, profile, effort, schema];
                let optional = optional.into_iter().flatten().map(String::len);
                prompt.len() + optional.sum::<usize>()
            }
            Self::Tool {
                name, arguments, ..
            } => name.len() + arguments.len(),
            Self::Sleep => 0,
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// JSON text with sorted keys: `{a, b}` and `{b, a}` are the same call.
fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| name.as_str());
            text.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(name.clone()).to_string());
                text.push(':');
                write_canonical(member, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
        }
    }
}

/// Performs a dispatched call to its end.
pub(crate) async fn perform(
    payload: Payload,
    agents: Agents,
    tools: Tools,
    budget: &dyn Budget,
    cancel: CancellationToken,
) -> Settled {
    match payload {
        Payload::Agent {
            mut request,
            schema,
        } => {
            request.schema = match schema.as_deref().map(serde_json::from_str).transpose() {
                Ok(schema) => schema,
                Err(error) => return unreadable(&error),
            };
            agent(agents.run_within(budget, *request, cancel).await)
        }
        Payload::Tool {
            name,
            arguments,
            timeout_ms,
        } => match serde_json::from_str(&arguments) {
            Ok(arguments) => tool(&name, &arguments, timeout_ms, &tools, cancel).await,
            Err(error) => unreadable(&error),
        },
        Payload::Sleep => Settled {
            outcome: Ok("null".to_owned()),
            tokens: 0,
            cost: None,
        },
    }
}

fn unreadable(error: &serde_json::Error) -> Settled {
    let message = format!("the call's arguments cannot be read: {error}");
    Settled {
        outcome: Err(Fault::new(Code::BadArguments, message)),
        tokens: 0,
        cost: None,
    }
}

fn agent(outcome: Result<AgentAnswer, AgentError>) -> Settled {
    match outcome {
        Ok(AgentAnswer {
            text,
            value,
            usage,
            cost,
        }) => Settled {
            outcome: Ok(value.unwrap_or(Value::String(text)).to_string()),
            tokens: usage.total(),
            cost,
        },
        Err(AgentError {
            code,
            message,
            usage,
        }) => {
            let code = match code {
                AgentErrorCode::AgentFailed => Code::AgentFailed,
                AgentErrorCode::AgentRefused => Code::AgentRefused,
                AgentErrorCode::AgentTimeout => Code::AgentTimeout,
                AgentErrorCode::SchemaMismatch => Code::SchemaMismatch,
                AgentErrorCode::BadRequest => Code::BadRequest,
                AgentErrorCode::ProviderLimit => Code::ProviderLimit,
                AgentErrorCode::BudgetExceeded => Code::BudgetExceeded,
                AgentErrorCode::Cancelled => Code::Cancelled,
            };
            Settled {
                outcome: Err(Fault::new(code, message)),
                tokens: usage.total(),
                cost: None,
            }
        }
    }
}

async fn tool(
    name: &str,
    arguments: &Value,
    timeout_ms: Option<u64>,
    tools: &Tools,
    cancel: CancellationToken,
) -> Settled {
    // Dropping the call on time-out also tells it to stop reading.
    let stop = cancel.child_token();
    let _stop_at_end = stop.clone().drop_guard();
    let call = tools.call(name, arguments, stop);
    let outcome = match timeout_ms {
        Some(ms) => match tokio::time::timeout(Duration::from_millis(ms), call).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ToolError {
                code: ToolErrorCode::ToolFailed,
                message: format!("tool \"{name}\" gave no answer within {ms} ms"),
            }),
        },
        None => call.await,
    };
    let outcome = outcome.map(|value| value.to_string()).map_err(|error| {
        let code = match error.code {
            ToolErrorCode::ToolRefused => Code::ToolRefused,
            ToolErrorCode::BadArguments => Code::BadArguments,
            ToolErrorCode::ToolFailed => Code::ToolFailed,
            ToolErrorCode::Cancelled => Code::Cancelled,
        };
        Fault::new(code, error.message)
    });
    Settled {
        outcome,
        tokens: 0,
        cost: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_too_long_is_not_read_and_carries_a_size_that_is_refused() {
        let long = "[],".repeat(CALL_JSON_BYTES_MAX / 3);
        let json = format!(
            r#"{{"id":7,"kind":"tool","identity":{{"name":"t","arguments":{{"a":[{long}1]}}}}}}"#
        );
        let (request, payload) = read_call(&json).unwrap();
        assert_eq!((request.id, request.kind), (CallId(7), CallKind::Tool));
        assert!(payload.is_none());
        assert!(request.payload_bytes > crate::limits::CALL_BYTES_MAX);
    }

    #[test]
    fn the_order_of_members_does_not_make_another_call_and_display_does_not_either() {
        let read = |json: &str| read_call(json).unwrap().0.key;
        let one = read(
            r#"{"id":1,"kind":"tool","identity":{"name":"t","arguments":{"a":1,"b":[{"c":2,"d":3}]}},"label":"x"}"#,
        );
        let two = read(
            r#"{"id":2,"kind":"tool","identity":{"arguments":{"b":[{"d":3,"c":2}],"a":1},"name":"t"}}"#,
        );
        let other = read(
            r#"{"id":2,"kind":"tool","identity":{"arguments":{"b":[{"d":3,"c":2}],"a":2},"name":"t"}}"#,
        );
        assert_eq!(one, two);
        assert_ne!(one, other);
    }
}
