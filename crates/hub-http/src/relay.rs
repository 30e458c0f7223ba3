//! The relay API: one handler a call, each no more than reading, asking the hub, writing.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use callboard_domain::WorkerId;
use callboard_hub::{HubError, Worker};
use callboard_store::Store;
use callboard_wire::{Problem, WORKER_HEADER};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::SharedHub;
use crate::hold::until_done;
use crate::reply::{bearer, json, problem};

/// `GET /api/v1/desktop`.
pub(crate) async fn desktop<S: Store>(
    State(shared): State<SharedHub<S>>,
    headers: HeaderMap,
) -> Response {
    answer(
        async {
            let worker = worker(&shared, &headers).await?;
            Ok(shared.hub.desktop_info(&worker).await?)
        }
        .await,
    )
}

/// `POST …/sync`.
pub(crate) async fn sync<S: Store>(
    State(shared): State<SharedHub<S>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(
        async {
            let worker = worker(&shared, &headers).await?;
            Ok(shared.hub.sync(&worker, read(&body)?).await?)
        }
        .await,
    )
}

/// `POST …/commands/{id}/start`.
pub(crate) async fn start<S: Store>(
    State(shared): State<SharedHub<S>>,
    Path(command_id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(
        async {
            let worker = worker(&shared, &headers).await?;
            Ok(shared.hub.start(&worker, &command_id, read(&body)?).await?)
        }
        .await,
    )
}

/// `POST …/commands/{id}/control`.
pub(crate) async fn control<S: Store>(
    State(shared): State<SharedHub<S>>,
    Path(command_id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(
        async {
            let worker = worker(&shared, &headers).await?;
            Ok(shared
                .hub
                .control(&worker, &command_id, read(&body)?)
                .await?)
        }
        .await,
    )
}

/// `POST …/commands/{id}/complete`.
pub(crate) async fn complete<S: Store>(
    State(shared): State<SharedHub<S>>,
    Path(command_id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(
        async {
            let worker = worker(&shared, &headers).await?;
            Ok(shared
                .hub
                .complete(&worker, &command_id, read(&body)?)
                .await?)
        }
        .await,
    )
}

/// `POST …/wait`: the wake-up call.
pub(crate) async fn wait<S: Store>(
    State(shared): State<SharedHub<S>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(
        async {
            let worker = worker(&shared, &headers).await?;
            let request = read(&body)?;
            let hub = &shared.hub;
            let _held = hub.presence().hold(worker.id, hub.clock().clone());
            let asked = |patience| std::future::ready(hub.wait(&worker, &request, patience));
            Ok(until_done(hub.signals(), hub.clock(), &shared.shutdown, asked).await?)
        }
        .await,
    )
}

fn answer<T: Serialize>(result: Result<T, Problem>) -> Response {
    match result {
        Ok(body) => json(StatusCode::OK, &body),
        Err(refused) => problem(refused),
    }
}

/// The desktop that calls.
async fn worker<S: Store>(shared: &SharedHub<S>, headers: &HeaderMap) -> Result<Worker, Problem> {
    let unauthorized = || {
        let detail = "The device token is missing, unknown or revoked. Make one on the hub with \
                      `callboard hub desktop create NAME`.";
        Problem::new(401, "unauthorized", detail)
    };
    let token = bearer(headers).ok_or_else(unauthorized)?;
    let worker_id: Option<WorkerId> = headers
        .get(WORKER_HEADER)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    let worker_id = worker_id.ok_or_else(|| {
        let detail = format!("The header `{WORKER_HEADER}` must name the data folder: a UUID.");
        Problem::new(400, "worker_missing", &detail)
    })?;
    shared
        .hub
        .authenticate_desktop(token, worker_id)
        .await?
        .ok_or_else(unauthorized)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, HubError> {
    serde_json::from_slice(body)
        .map_err(|error| HubError::Invalid(format!("The body is not such a request: {error}.")))
}
