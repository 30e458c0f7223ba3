//! The hub as rmcp sees it.

use std::sync::Arc;

use callboard_domain::cut_utf16;
use callboard_store::{Connection, Store};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tracing::Instrument as _;

use super::tools::{Call, Tool};
use crate::SharedHub;

/// How to work with tickets, for a model.
const INSTRUCTIONS: &str = "\
Callboard runs the owner's saved Graphs on the owner's own desktop, which may be offline, and lets the owner leave tasks for a chat.
1. list_projects, then list_graph_sessions: what you may run. An empty list means that nothing is shared yet.
2. run_graph_session returns a ticket (command_id), not a result. Choose a new idempotency_key for each run you intend, and repeat the same key after a lost response.
3. get_graph_run with wait_seconds up to 40 waits for the next change of status; repeat it until the status is completed, failed, cancelled or expired.
4. cancel_graph_run stops a run you started. Do not start a run again because it is slow: it stays queued until the desktop is back.
5. When asked to link this chat: link_current_chat once. When asked to check your tasks: read_linked_chat_tasks, claim_linked_chat_task, do the work, submit_linked_chat_result once. A rejected result stays rejected.";

/// How long a client may keep the list of tools: it changes only with the hub's version.
const TOOL_LIST_TTL_MS: u64 = 300_000;

/// Serves one request.
pub(super) struct Handler<S> {
    shared: SharedHub<S>,
}

impl<S> Handler<S> {
    pub(super) fn new(shared: SharedHub<S>) -> Self {
        Self { shared }
    }
}

impl<S: Store> ServerHandler for Handler<S> {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new("callboard", env!("CARGO_PKG_VERSION"));
        config.server_info.title = Some("Callboard".to_owned());
        config.instructions = Some(INSTRUCTIONS.to_owned());
        config
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Tool::<S>::ALL
            .iter()
            .map(|tool| tool.spec.describe())
            .collect();
        let mut list = ListToolsResult::with_all_items(tools);
        list.ttl_ms = Some(TOOL_LIST_TTL_MS);
        let public = self.shared.options.public_tool_list();
        list.cache_scope = Some(if public {
            CacheScope::Public
        } else {
            CacheScope::Private
        });
        Ok(list)
    }

    /// A method that rmcp knows arrives here when its params do not fit it.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        const KNOWN: [&str; 5] = [
            "initialize",
            "server/discover",
            "ping",
            "tools/list",
            "tools/call",
        ];
        let method = request.method.as_str();
        if KNOWN.contains(&method) {
            let message = format!("Invalid params: they do not fit `{method}`.");
            return Err(ErrorData::invalid_params(message, None));
        }
        let message = format!("There is no method `{}`.", cut_utf16(method, 64));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::<S>::ALL
            .iter()
            .find(|tool| tool.spec.name == request.name)
        else {
            return Err(ErrorData::invalid_params("There is no such tool.", None));
        };
        let caller = context
            .extensions
            .get::<http::request::Parts>()
            .and_then(|parts| parts.extensions.get::<Connection>());
        let Some(caller) = caller else {
            // The edge lets no call without a connection pass.
            return Err(ErrorData::internal_error("The caller is unknown.", None));
        };
        if !caller.scopes.contains(tool.spec.scope) {
            // The edge answers this with 403 before it comes here.
            return Err(ErrorData::invalid_request("The scope is missing.", None));
        }
        let call = Call {
            shared: Arc::clone(&self.shared),
            caller: caller.clone(),
            host_hint: host_hint(&context.meta),
            hung_up: context.ct.clone(),
        };
        let arguments = request.arguments.unwrap_or_default();
        let result = match run(tool, &call, arguments).await {
            Ok(text) => success(text),
            Err(sentence) => CallToolResult::error(vec![ContentBlock::text(sentence)]),
        };
        Ok(result.into())
    }
}

/// Calls a tool: its answer as JSON text, or the sentence of a business error.
pub(super) async fn run<S: Store>(
    tool: &Tool<S>,
    call: &Call<S>,
    arguments: Map<String, Value>,
) -> Result<String, String> {
    let span = tracing::info_span!("mcp.call", tool = tool.spec.name);
    let answered = tool.answer(call, arguments).instrument(span).await;
    answered.map_err(|error| error.to_string())
}

/// What ChatGPT (`openai/session`) and Codex (`threadId`) say of the conversation that a call comes
/// from. It correlates, and permits nothing: anybody can send any.
pub(super) fn host_hint(meta: &Map<String, Value>) -> Option<String> {
    let named = |name| meta.get(name).and_then(Value::as_str);
    let hint = named("openai/session").or_else(|| named("threadId"));
    hint.map(str::to_owned)
}

/// Deepest structured content, in levels: readers commonly stop at 128, and the message around it
/// takes a few.
const STRUCTURED_DEPTH_MAX: usize = 120;

/// The same JSON as text and as structured content; the text is the exact one.
fn success(text: String) -> CallToolResult {
    let structured = structured(&text);
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = structured;
    result
}

/// An answer as structured content; `None` for one that only its text can hold: a number out of
/// range, or deep nesting.
pub(super) fn structured(text: &str) -> Option<Value> {
    let structured = serde_json::from_str(text).ok();
    structured.filter(|value| is_within(value, STRUCTURED_DEPTH_MAX))
}

/// Whether `value` has at most `levels` levels.
fn is_within(value: &Value, levels: usize) -> bool {
    let inside = |value: &Value| levels > 0 && is_within(value, levels - 1);
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(items) => items.iter().all(inside),
        Value::Object(fields) => fields.values().all(inside),
    }
}
