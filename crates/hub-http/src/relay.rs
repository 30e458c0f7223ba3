//! The relay API: one handler a call, each no more than reading, asking the hub, writing.
//!
//! What a desktop reports is carried out even when the desktop hangs up meanwhile: what was
//! committed is also signalled to whoever waits for it.

use std::future::Future;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use callboard_domain::{Refusal, WorkerId};
use callboard_hub::HubError;
use callboard_store::{Desktop, Store};
use callboard_wire::{Problem, WORKER_HEADER};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::SharedHub;
use crate::hold::until_done;
use crate::reply::{bearer, json, problem};

/// The body of a call, or why it could not be read.
type Body = Result<Bytes, BytesRejection>;
/// The command id in the path, or why it could not be read.
type Command = Result<Path<String>, PathRejection>;

/// `GET /api/v1/desktop`.
pub(crate) async fn desktop<S: Store>(
    State(shared): State<SharedHub<S>>,
    headers: HeaderMap,
) -> Response {
    carry_out(async move {
        let desktop = caller(&shared, &headers).await?;
        Ok(shared.hub.desktop_info(&desktop).await?)
    })
    .await
}

/// `POST …/sync`.
pub(crate) async fn sync<S: Store>(
    State(shared): State<SharedHub<S>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    carry_out(async move {
        let desktop = caller(&shared, &headers).await?;
        Ok(shared.hub.sync(&desktop, read(body)?).await?)
    })
    .await
}

/// `POST …/commands/{id}/start`.
pub(crate) async fn start<S: Store>(
    State(shared): State<SharedHub<S>>,
    command: Command,
    headers: HeaderMap,
    body: Body,
) -> Response {
    carry_out(async move {
        let desktop = caller(&shared, &headers).await?;
        Ok(shared
            .hub
            .start(&desktop, &named(command)?, read(body)?)
            .await?)
    })
    .await
}

/// `POST …/commands/{id}/control`.
pub(crate) async fn control<S: Store>(
    State(shared): State<SharedHub<S>>,
    command: Command,
    headers: HeaderMap,
    body: Body,
) -> Response {
    carry_out(async move {
        let desktop = caller(&shared, &headers).await?;
        Ok(shared
            .hub
            .control(&desktop, &named(command)?, read(body)?)
            .await?)
    })
    .await
}

/// `POST …/commands/{id}/complete`.
pub(crate) async fn complete<S: Store>(
    State(shared): State<SharedHub<S>>,
    command: Command,
    headers: HeaderMap,
    body: Body,
) -> Response {
    carry_out(async move {
        let desktop = caller(&shared, &headers).await?;
        Ok(shared
            .hub
            .complete(&desktop, &named(command)?, read(body)?)
            .await?)
    })
    .await
}

/// `POST …/wait`: the wake-up call. It writes nothing, so it ends with its caller.
pub(crate) async fn wait<S: Store>(
    State(shared): State<SharedHub<S>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let waited = async {
        let desktop = caller(&shared, &headers).await?;
        let request = read(body)?;
        let hub = &shared.hub;
        let _held = hub.presence().hold(desktop.id);
        let asked = |patience| std::future::ready(hub.wait(&desktop, &request, patience));
        let ends = [&shared.shutdown];
        Ok(until_done(hub.signals(), hub.clock(), &ends, asked).await?)
    };
    answer(waited.await)
}

/// Carries a call out to its end, whether or not its caller still listens.
async fn carry_out<T: Serialize + Send + 'static>(
    call: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Response {
    match tokio::spawn(call).await {
        Ok(result) => answer(result),
        Err(error) => {
            tracing::error!(%error, "a relay call ended unexpectedly");
            problem(Problem::new(
                500,
                "internal",
                "The hub failed. It is safe to try again.",
            ))
        }
    }
}

fn answer<T: Serialize>(result: Result<T, Problem>) -> Response {
    match result {
        Ok(body) => json(StatusCode::OK, &body),
        Err(refused) => problem(refused),
    }
}

/// The desktop that calls.
async fn caller<S: Store>(shared: &SharedHub<S>, headers: &HeaderMap) -> Result<Desktop, Problem> {
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
    let known = shared.hub.authenticate_desktop(token, worker_id).await?;
    known.ok_or_else(unauthorized)
}

/// The command that a path names; one that cannot be read is answered like an unknown one.
fn named(command: Command) -> Result<String, Refusal> {
    command.map(|Path(id)| id).map_err(|_| Refusal::RunNotFound)
}

fn read<T: DeserializeOwned>(body: Body) -> Result<T, Problem> {
    let body = body.map_err(|rejection| match rejection.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(413, "body_too_large", "The body is larger than 8 MiB.")
        }
        _ => Problem::new(
            400,
            "body_unreadable",
            "The body could not be read to its end.",
        ),
    })?;
    let read = serde_json::from_slice(&body);
    read.map_err(|error| {
        HubError::Invalid(format!("The body is not such a request: {error}.")).into()
    })
}
