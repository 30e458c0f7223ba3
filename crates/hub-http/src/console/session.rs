//! Which browser asks, and from which page.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use callboard_domain::limits::SIGN_IN_MS;
use callboard_store::{SignIn, Store};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{Message, failed, page, see_other};
use crate::{HttpOptions, SharedHub};

/// The cookie's name. Where browsers come over TLS alone, its prefix binds it to this host.
fn cookie_name(options: &HttpOptions) -> &'static str {
    if options.is_public_over_tls() {
        "__Host-callboard"
    } else {
        "callboard"
    }
}

/// Lets signed-in browsers pass, with their [`SignIn`] among the request's extensions; others are
/// shown the door, and a page that they asked for afterwards.
pub(super) async fn signed_in_only<S: Store>(
    State(shared): State<SharedHub<S>>,
    mut request: Request,
    next: Next,
) -> Response {
    let token = token(&shared.options, request.headers()).map(str::to_owned);
    let found = match token {
        Some(token) => shared.hub.authenticate_browser(&token).await,
        None => Ok(None),
    };
    match found {
        Ok(Some(sign_in)) => {
            request.extensions_mut().insert(sign_in);
            next.run(request).await
        }
        Ok(None) => {
            let wanted = (request.method() == Method::GET)
                .then(|| request.uri().path_and_query())
                .flatten();
            let wanted = wanted.map_or("/", |wanted| wanted.as_str());
            see_other(&format!("/sign-in?next={}", encode(wanted)))
        }
        Err(error) => failed(&error),
    }
}

/// Refuses what another site's page asks a browser to send: every write must come from a page of
/// this hub. Browsers say so in `Sec-Fetch-Site`, older ones in `Origin`.
pub(super) async fn own_pages_only<S: Store>(
    State(shared): State<SharedHub<S>>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() == Method::GET || request.method() == Method::HEAD {
        return next.run(request).await;
    }
    let from_here = is_from_here(&shared.options, request.headers());
    if from_here {
        return next.run(request).await;
    }
    let message = Message {
        title: "That came from elsewhere",
        text: "Only a page of this console may send that. Nothing was changed.",
        href: "/",
        way_on: "To the console",
    };
    page(StatusCode::FORBIDDEN, &message)
}

fn is_from_here(options: &HttpOptions, headers: &HeaderMap) -> bool {
    let text = |name| {
        let value = headers.get(name);
        value.map(|value: &HeaderValue| value.to_str().unwrap_or_default())
    };
    let host = text(header::HOST).unwrap_or_default();
    match (text(SEC_FETCH_SITE), text(header::ORIGIN)) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => options.is_own_origin(origin, host),
        (None, None) => false,
    }
}

const SEC_FETCH_SITE: http::HeaderName = http::HeaderName::from_static("sec-fetch-site");

/// The token in the request's cookie.
fn token<'a>(options: &HttpOptions, headers: &'a HeaderMap) -> Option<&'a str> {
    let name = cookie_name(options);
    let cookies = headers.get_all(header::COOKIE).iter();
    let pairs = cookies.filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';'));
    pairs.find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

/// `response`, with the cookie of a browser that is signed in now.
pub(super) fn with_cookie(options: &HttpOptions, response: Response, token: &str) -> Response {
    let seconds = SIGN_IN_MS / 1_000;
    set_cookie(options, response, &format!("{token}; Max-Age={seconds}"))
}

/// `response`, which takes the cookie away.
pub(super) fn without_cookie(options: &HttpOptions, response: Response) -> Response {
    set_cookie(options, response, "; Max-Age=0")
}

fn set_cookie(options: &HttpOptions, mut response: Response, rest: &str) -> Response {
    let name = cookie_name(options);
    let secure = if options.is_public_over_tls() {
        "; Secure"
    } else {
        ""
    };
    let cookie = format!("{name}={rest}; Path=/; HttpOnly; SameSite=Lax{secure}");
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

/// The browser of a request that [`signed_in_only`] let pass.
pub(super) type Browser = axum::Extension<SignIn>;

/// A path of this hub, to go to after the door; anything else is the first page.
pub(super) fn own_path(wanted: &str) -> &str {
    let is_path = wanted.starts_with('/') && !wanted.starts_with("//");
    let is_plain = wanted
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_path && is_plain { wanted } else { "/" }
}

/// `text` as a value of a query.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_door_nobody_is_sent_to_another_site() {
        for wanted in ["/", "/runs?status=failed", "/runs/5b7d"] {
            assert_eq!(own_path(wanted), wanted);
        }
        for wanted in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "runs",
            "/a\r\nSet-Cookie: x=y",
            "/ü",
        ] {
            assert_eq!(own_path(wanted), "/", "{wanted}");
        }
    }

    #[test]
    fn a_query_value_cannot_leave_its_place() {
        assert_eq!(encode("/runs?a=b&c"), "/runs%3Fa%3Db%26c");
    }
}
