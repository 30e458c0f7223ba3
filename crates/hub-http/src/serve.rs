//! The router and the server around it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};
use callboard_domain::limits::{LARGE_BODIES_MAX, RELAY_BODY_BYTES_MAX, SHUTDOWN_DRAIN_MS};
use callboard_hub::Hub;
use callboard_store::Store;
use callboard_wire::Problem;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{HttpOptions, Shared, artifacts, console, guard, mcp, probes, relay, reply};

/// The path that the published system uses for its MCP endpoint.
const PUBLISHED_MCP_PATH: &str = "/api/v1/external-mcp";

/// All routes of the hub. Held calls answer as soon as `shutdown` is cancelled.
pub fn router<S: Store>(
    hub: Arc<Hub<S>>,
    options: HttpOptions,
    shutdown: CancellationToken,
) -> Router {
    let shared = Arc::new(Shared {
        hub,
        options,
        shutdown,
        large_bodies: Semaphore::new(LARGE_BODIES_MAX),
    });
    let relay = Router::new()
        .route("/sync", post(relay::sync::<S>))
        .route("/wait", post(relay::wait::<S>))
        .route("/commands/{command_id}/start", post(relay::start::<S>))
        .route("/commands/{command_id}/control", post(relay::control::<S>))
        .route(
            "/commands/{command_id}/complete",
            post(relay::complete::<S>),
        );
    let endpoint = mcp::endpoint(&shared);
    Router::new()
        .route("/healthz", get(probes::healthz))
        .route("/readyz", get(probes::readyz::<S>))
        .route("/api/v1/desktop", get(relay::desktop::<S>))
        .route(
            "/api/v1/artifacts/{task_id}/{claim_id}/{artifact_id}",
            get(artifacts::download::<S>),
        )
        .nest("/api/v1/external-assistants/graph-relays", relay)
        .merge(console::routes(&shared))
        .with_state(Arc::clone(&shared))
        .route_service("/mcp", endpoint.clone())
        .route_service(PUBLISHED_MCP_PATH, endpoint)
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(RELAY_BODY_BYTES_MAX))
        .layer(from_fn_with_state(shared, guard::own_host_only::<S>))
}

/// Serves `router` on `listener` until `shutdown` is cancelled and every open call has answered,
/// or [`SHUTDOWN_DRAIN_MS`] after it: a client that never finishes its request holds nothing up.
///
/// # Errors
/// What accepting connections fails with.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let stop = shutdown.clone().cancelled_owned();
    let drained = async {
        shutdown.cancelled().await;
        tokio::time::sleep(Duration::from_millis(SHUTDOWN_DRAIN_MS)).await;
    };
    tokio::select! {
        served = axum::serve(listener, router).with_graceful_shutdown(stop) => served,
        () = drained => Ok(()),
    }
}

async fn not_found() -> Response {
    reply::problem(Problem::new(
        404,
        "no_such_path",
        "There is nothing at this path.",
    ))
}

async fn method_not_allowed() -> Response {
    reply::problem(Problem::new(
        405,
        "method_not_allowed",
        "This path takes another method.",
    ))
}
