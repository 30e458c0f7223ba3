//! The hub as rmcp sees it.

use std::sync::Arc;

use callboard_store::{Connection, Store};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use tracing::Instrument as _;

use super::tools::{Call, Tool};
use crate::SharedHub;

/// How to work with tickets, for a model.
const INSTRUCTIONS: &str = "\
Callboard runs the owner's saved Graphs on the owner's own desktop, which may be offline.
1. list_projects, then list_graph_sessions: what you may run. An empty list means that nothing is shared yet.
2. run_graph_session returns a ticket (command_id), not a result. Choose a new idempotency_key for each run you intend, and repeat the same key after a lost response.
3. get_graph_run with wait_seconds up to 40 waits for the next change of status; repeat it until the status is completed, failed, cancelled or expired.
4. cancel_graph_run stops a run you started. Do not start a run again because it is slow: it stays queued until the desktop is back.";

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
        list.cache_scope = Some(CacheScope::Public);
        Ok(list)
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
        let call = Call {
            shared: Arc::clone(&self.shared),
            caller: caller.clone(),
        };
        let span = tracing::info_span!("mcp.call", tool = tool.spec.name);
        let arguments = request.arguments.unwrap_or_default();
        let answered = tool.answer(&call, arguments).instrument(span).await;
        let result = match answered {
            Ok(text) => success(text)?,
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
        };
        Ok(result.into())
    }
}

/// The same JSON as text and as structured content; the text is the exact one.
fn success(text: String) -> Result<CallToolResult, ErrorData> {
    let structured = serde_json::from_str(&text).map_err(|error| {
        tracing::error!(%error, "an answer is not JSON");
        ErrorData::internal_error("The answer could not be written.", None)
    })?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured);
    Ok(result)
}
