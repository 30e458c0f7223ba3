//! The console's files, which are part of the binary.

use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use callboard_wire::Problem;
use http::{HeaderValue, header};

use crate::reply;

/// Where the stylesheet is; the version makes a browser fetch it anew after an update.
pub(crate) const STYLESHEET_PATH: &str =
    concat!("/assets/", env!("CARGO_PKG_VERSION"), "/console.css");
/// Where the icon is.
pub(crate) const ICON_PATH: &str = concat!("/assets/", env!("CARGO_PKG_VERSION"), "/icon.svg");
/// The route of both, for any version: an old page may still ask for its own.
pub(super) const ROUTE: &str = "/assets/{version}/{file}";

/// Name, media type and content.
const FILES: [(&str, &str, &str); 2] = [
    (
        "console.css",
        "text/css; charset=utf-8",
        include_str!("../../assets/console.css"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_str!("../../assets/icon.svg"),
    ),
];

pub(super) async fn file(Path((_version, name)): Path<(String, String)>) -> Response {
    let found = FILES.into_iter().find(|(known, ..)| *known == name);
    let Some((_, media_type, content)) = found else {
        let problem = Problem::new(404, "no_such_path", "There is nothing at this path.");
        return reply::problem(problem);
    };
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, "public, max-age=3600"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
