//! Which connection calls, and whether it may.

use axum::response::Response;
use callboard_domain::Scope;
use callboard_store::{Connection, Store};
use http::{HeaderMap, HeaderValue, header};

use crate::Shared;
use crate::reply::{self, bearer};

/// The connection of a request's bearer token, which must have the scope `needed`; otherwise the
/// response that says what is missing.
pub(crate) async fn caller<S: Store>(
    shared: &Shared<S>,
    headers: &HeaderMap,
    needed: Option<Scope>,
) -> Result<Connection, Box<Response>> {
    let connection = identify(shared, headers).await?;
    let connection = connection.ok_or_else(no_token)?;
    require(&connection, needed)?;
    Ok(connection)
}

/// The connection of a request's bearer token; `None` when the request has no token.
pub(crate) async fn identify<S: Store>(
    shared: &Shared<S>,
    headers: &HeaderMap,
) -> Result<Option<Connection>, Box<Response>> {
    if !headers.contains_key(header::AUTHORIZATION) {
        return Ok(None);
    }
    let token = bearer(headers).ok_or_else(|| unauthorized(INVALID_TOKEN))?;
    match shared.hub.authenticate_connection(token).await {
        Ok(Some(connection)) => Ok(Some(connection)),
        Ok(None) => Err(unauthorized(INVALID_TOKEN)),
        Err(error) => Err(Box::new(reply::problem(error.into()))),
    }
}

/// Refuses a connection that lacks the scope `needed`.
pub(crate) fn require(connection: &Connection, needed: Option<Scope>) -> Result<(), Box<Response>> {
    match needed.filter(|scope| !connection.scopes.contains(*scope)) {
        None => Ok(()),
        Some(scope) => Err(insufficient_scope(scope)),
    }
}

/// The response to a request that needs a token and has none.
pub(crate) fn no_token() -> Box<Response> {
    unauthorized(BEARER)
}

const BEARER: &str = "Bearer";
const INVALID_TOKEN: &str = "Bearer error=\"invalid_token\"";

fn unauthorized(challenge: &str) -> Box<Response> {
    let problem = callboard_wire::Problem::new(
        401,
        "unauthorized",
        "A valid bearer token is needed. Make one on the hub with `callboard hub token create`.",
    );
    Box::new(challenged(reply::problem(problem), challenge))
}

fn insufficient_scope(scope: Scope) -> Box<Response> {
    let scope = scope.as_str();
    let detail = format!("This connection lacks the scope {scope}. Its owner can grant it.");
    let problem = callboard_wire::Problem::new(403, "insufficient_scope", &detail);
    let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
    Box::new(challenged(reply::problem(problem), &challenge))
}

fn challenged(mut response: Response, challenge: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(challenge) {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, value);
    }
    response
}
