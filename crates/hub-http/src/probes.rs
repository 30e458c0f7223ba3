//! `/healthz` and `/readyz`.

use axum::extract::State;
use axum::response::Response;
use callboard_store::Store;
use callboard_wire::Problem;
use http::StatusCode;
use serde_json::json;

use crate::SharedHub;
use crate::reply::{json, problem};

/// The process answers.
pub(crate) async fn healthz() -> Response {
    json(
        StatusCode::OK,
        &json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}),
    )
}

/// The hub can do its work: it is not stopping and its store answers.
pub(crate) async fn readyz<S: Store>(State(shared): State<SharedHub<S>>) -> Response {
    if shared.shutdown.is_cancelled() {
        return problem(Problem::new(503, "stopping", "The hub is stopping."));
    }
    match shared.hub.ready().await {
        Ok(()) => json(StatusCode::OK, &json!({"status": "ready"})),
        Err(error) => problem(error.into()),
    }
}
