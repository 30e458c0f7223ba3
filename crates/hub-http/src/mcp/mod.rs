//! The MCP endpoint: rmcp for the protocol, and around it one edge that knows tokens, is lenient
//! where clients are sloppy, and adds what rmcp has no field for.

mod direct;
mod edge;
mod envelope;
mod handler;
mod tools;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use callboard_domain::limits::BODY_BYTES_MAX;
use callboard_store::Store;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tower::util::BoxCloneSyncService;

use crate::SharedHub;

/// The endpoint as a service. It keeps no session: every request stands alone, so a restart of the
/// hub is nothing that a client notices.
pub(crate) fn endpoint<S: Store>(
    shared: &SharedHub<S>,
) -> BoxCloneSyncService<Request, Response, Infallible> {
    // The hub's own guard has already looked at Host and Origin.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let for_handlers = Arc::clone(shared);
    let rmcp = StreamableHttpService::new(
        move || Ok(handler::Handler::new(Arc::clone(&for_handlers))),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let shared = Arc::clone(shared);
    BoxCloneSyncService::new(tower::service_fn(move |request: Request| {
        let (shared, rmcp) = (Arc::clone(&shared), rmcp.clone());
        async move {
            let through =
                |request: Request| async move { rmcp.handle(request).await.map(Body::new) };
            Ok(edge::handle(&shared, request, through).await)
        }
    }))
}
