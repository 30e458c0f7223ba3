//! The owner's console: pages that the server writes, for one browser session at a time.
//!
//! Whatever a chat, an agent or a desktop said is text here: templates escape it, and no page has a
//! script or a style of its own that could be written into it.

pub(crate) mod assets;

mod door;
mod runs;
mod session;
mod sign_ins;
mod words;

use askama::Template;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use callboard_domain::Refusal;
use callboard_hub::HubError;
use callboard_store::Store;
use http::{HeaderValue, StatusCode, header};

use crate::SharedHub;

/// Largest form, in bytes.
const FORM_BYTES_MAX: usize = 256 * 1_024;

/// What a page may load: its own stylesheet, and nothing of anybody else.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; frame-ancestors 'none'; \
                      base-uri 'none'";

/// The console's routes. All but the door ask for a sign-in.
pub(crate) fn routes<S: Store>(shared: &SharedHub<S>) -> Router<SharedHub<S>> {
    let inside = Router::new()
        .route("/", get(runs::overview))
        .route("/runs", get(runs::list::<S>))
        .route("/runs/{command_id}", get(runs::one::<S>))
        .route(
            "/runs/{command_id}/cancel",
            get(runs::ask_cancel::<S>).post(runs::cancel::<S>),
        )
        .route("/sign-ins", get(sign_ins::list::<S>))
        .route("/sign-ins/{id}/end", post(sign_ins::end::<S>))
        .route("/sign-out", post(sign_ins::sign_out::<S>))
        .layer(from_fn_with_state(
            shared.clone(),
            session::signed_in_only::<S>,
        ));
    let door = Router::new()
        .route(
            "/sign-in",
            get(door::sign_in_page::<S>).post(door::sign_in::<S>),
        )
        .route("/setup", get(door::setup_page::<S>).post(door::set_up::<S>));
    inside
        .merge(door)
        .layer(from_fn_with_state(
            shared.clone(),
            session::own_pages_only::<S>,
        ))
        .layer(from_fn(guarded))
        .route(assets::ROUTE, get(assets::file))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
}

/// Sets what every page of the console carries.
async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A page that says one thing and offers one way on.
#[derive(Template)]
#[template(path = "message.html")]
struct Message<'a> {
    title: &'a str,
    text: &'a str,
    href: &'a str,
    way_on: &'a str,
}

fn page(status: StatusCode, template: &impl Template) -> Response {
    let (status, text) = match template.render() {
        Ok(text) => (status, text),
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            let text = "The page could not be written.".to_owned();
            (StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, html);
    response
}

/// Sends the browser to `path` of this hub, with a GET.
fn see_other(path: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(value) = HeaderValue::from_str(path) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

/// What went wrong, as a page.
fn failed(error: &HubError) -> Response {
    let (status, title, text) = match error {
        HubError::Refused(Refusal::RunNotFound) => (
            StatusCode::NOT_FOUND,
            "There is no such run",
            "No run of this hub has that id.".to_owned(),
        ),
        HubError::Refused(_) => (StatusCode::CONFLICT, "That does not go", error.to_string()),
        HubError::Invalid(_) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "That does not go",
            error.to_string(),
        ),
        HubError::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Not now",
            error.to_string(),
        ),
    };
    let message = Message {
        title,
        text: &text,
        href: "/runs",
        way_on: "All runs",
    };
    page(status, &message)
}
