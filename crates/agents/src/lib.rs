//! What a Graph's agents and tools are: model providers behind one small trait, the retries and
//! repairs around them, and the built-in tool server. Knows nothing of scripts or runs.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod agents;
mod answer;
mod budget;
mod call;
mod config;
mod network;
mod provider;
mod request;
mod retry;
mod schema;
mod scripted;
mod tools;

pub use agents::Agents;
pub use answer::{AnswerError, parse_answer};
pub use budget::Budget;
pub use config::{ConfigError, ProviderConfig, ProviderKind};
pub use provider::{
    BoxFuture, Message, ModelProvider, ModelReply, ModelRequest, ProviderError, ProviderErrorKind,
    Role, StopReason,
};
pub use request::{
    AgentAnswer, AgentError, AgentErrorCode, AgentRequest, DEFAULT_MAX_TOKENS, Usage,
    estimate_text_tokens,
};
pub use schema::{SCHEMA_BYTES_MAX, Schema, SchemaError};
pub use scripted::{ScriptedProvider, ScriptedReply};
pub use tools::{ToolDescription, ToolError, ToolErrorCode, Tools};
