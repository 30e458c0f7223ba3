//! Refuses requests that were not meant for this hub: the guard against DNS rebinding.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use callboard_store::Store;
use callboard_wire::Problem;
use http::header;

use crate::reply::problem;
use crate::{HttpOptions, SharedHub};

/// Lets a request pass whose `Host`, and `Origin` if there is one, belong to this hub.
pub(crate) async fn own_host_only<S: Store>(
    State(shared): State<SharedHub<S>>,
    request: Request,
    next: Next,
) -> Response {
    match refusal(&shared.options, &request) {
        Some(refused) => refused,
        None => next.run(request).await,
    }
}

fn refusal(options: &HttpOptions, request: &Request) -> Option<Response> {
    let text = |name| {
        request
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let host = text(header::HOST).or(request
        .uri()
        .authority()
        .map(|authority| authority.as_str()));
    let host = host.unwrap_or_default();
    if !options.serves_host(host) {
        return Some(forbidden(
            "host_not_served",
            "This hub is not known under that name. Set public_url to the address that people use.",
        ));
    }
    let foreign = text(header::ORIGIN).is_some_and(|origin| !options.serves_origin(origin, host));
    foreign.then(|| {
        forbidden(
            "origin_not_served",
            "Pages of other sites may not call this hub.",
        )
    })
}

fn forbidden(code: &str, detail: &str) -> Response {
    problem(Problem::new(403, code, detail))
}
