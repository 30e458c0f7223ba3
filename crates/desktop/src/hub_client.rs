//! Calls to the hub over HTTP. Connections go out only.

use std::time::Duration;

use callboard_domain::limits::{BODY_BYTES_MAX, WAKE_HOLD_MS_MAX};
use callboard_domain::{CommandId, WorkerId};
use callboard_relay::{Answer, Failure};
use callboard_wire::relay::{ControlRequest, StartRequest, SyncRequest, WaitRequest};
use callboard_wire::{Problem, WORKER_HEADER};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::OpenError;

/// Longest that one call may take. A hub that needs more is as good as silent.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for a completion, whose body is large.
const COMPLETE_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for the wake-up call: the hub's hold, and a call's time on top.
const WAIT_TIMEOUT: Duration = Duration::from_millis(WAKE_HOLD_MS_MAX + 10_000);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer that is read: 50 commands of a sync, each with its longest arguments.
const ANSWER_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;

/// A call with everything that it carries.
#[derive(Debug)]
pub(crate) enum Request {
    WhoAmI,
    Sync(SyncRequest),
    Start(CommandId, StartRequest),
    Control(CommandId, ControlRequest),
    /// The body as it lies in the outbox.
    Complete(CommandId, String),
    Wait(WaitRequest),
}

/// The hub, as one desktop calls it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct HubClient {
    http: Client,
    base: Url,
}

impl HubClient {
    pub(crate) fn new(hub_url: &str, token: &str, worker: WorkerId) -> Result<Self, OpenError> {
        let bad = |reason: String| OpenError::BadHub {
            url: hub_url.to_owned(),
            reason,
        };
        let mut base: Url = hub_url.parse().map_err(|error| bad(format!("{error}")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(bad("it must begin with https:// or http://".to_owned()));
        }
        base.set_query(None);
        base.set_fragment(None);
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        // Installed once a process; a second time is refused, and that is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut http = Client::builder()
            .default_headers(headers(token, worker)?)
            .connect_timeout(CONNECT_TIMEOUT)
            // The token goes to the address that the owner named, nowhere else.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&base) {
            http = http.no_proxy();
        } else if base.scheme() == "http" {
            tracing::warn!("the hub's address is not https: the device token travels in the clear");
        }
        let http = http.build().map_err(|error| bad(innermost(&error)))?;
        Ok(Self { http, base })
    }

    /// Makes one call.
    pub(crate) async fn call(&self, request: Request) -> Result<Answer, Failure> {
        let command = |id: CommandId, verb: &str| format!("commands/{id}/{verb}");
        match request {
            Request::WhoAmI => {
                let request = self.http.request(Method::GET, self.url("api/v1/desktop")?);
                let answer = self.send(request.timeout(CALL_TIMEOUT)).await?;
                read(&answer).map(Answer::WhoAmI)
            }
            Request::Sync(body) => {
                let answer = self.post("sync", &body, CALL_TIMEOUT).await?;
                read(&answer).map(Answer::Sync)
            }
            Request::Start(id, body) => {
                let answer = self
                    .post(&command(id, "start"), &body, CALL_TIMEOUT)
                    .await?;
                read(&answer).map(Answer::Start)
            }
            Request::Control(id, body) => {
                let answer = self
                    .post(&command(id, "control"), &body, CALL_TIMEOUT)
                    .await?;
                read(&answer).map(Answer::Control)
            }
            Request::Complete(id, body) => {
                let answer = self
                    .post_text(&command(id, "complete"), body, COMPLETE_TIMEOUT)
                    .await?;
                read(&answer).map(Answer::Complete)
            }
            Request::Wait(body) => {
                let answer = self.post("wait", &body, WAIT_TIMEOUT).await?;
                read(&answer).map(Answer::Wait)
            }
        }
    }

    fn url(&self, path: &str) -> Result<Url, Failure> {
        self.base.join(path).map_err(|error| Failure::NoAnswer {
            reason: error.to_string(),
        })
    }

    async fn post<T: Serialize>(
        &self,
        path: &str,
        body: &T,
        timeout: Duration,
    ) -> Result<Vec<u8>, Failure> {
        let body = serde_json::to_string(body).map_err(|error| Failure::NoAnswer {
            reason: error.to_string(),
        })?;
        self.post_text(path, body, timeout).await
    }

    async fn post_text(
        &self,
        path: &str,
        body: String,
        timeout: Duration,
    ) -> Result<Vec<u8>, Failure> {
        let path = format!("api/v1/external-assistants/graph-relays/{path}");
        let request = self
            .http
            .request(Method::POST, self.url(&path)?)
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        self.send(request.timeout(timeout)).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Vec<u8>, Failure> {
        let response = request.send().await.map_err(|error| self.silent(&error))?;
        let status = response.status();
        let retry_after_ms = retry_after_ms(response.headers());
        let body = match body_of(response).await {
            Ok(body) => body,
            Err(BodyError::Cut(error)) => return Err(self.silent(&error)),
            Err(BodyError::TooLong) => {
                let reason = format!("its answer is longer than {ANSWER_BYTES_MAX} bytes");
                return Err(Failure::NoAnswer { reason });
            }
        };
        if status.is_success() {
            return Ok(body);
        }
        let problem = serde_json::from_slice::<Problem>(&body).ok();
        if let Some(refusal) = problem.as_ref().and_then(Problem::refusal) {
            return Err(Failure::Refused(refusal));
        }
        let reason = match problem {
            Some(problem) => problem.detail,
            None if status.is_redirection() => {
                "it points to another address; give that one as the hub's".to_owned()
            }
            None => status
                .canonical_reason()
                .unwrap_or("not the hub's answer")
                .to_owned(),
        };
        Err(Failure::Status {
            status: status.as_u16(),
            reason,
            retry_after_ms,
        })
    }

    fn silent(&self, error: &reqwest::Error) -> Failure {
        let host = self.base.as_str().trim_end_matches('/');
        let reason = if error.is_timeout() {
            format!("cannot reach the hub at {host}: no answer in time")
        } else {
            format!("cannot reach the hub at {host}: {}", innermost(error))
        };
        Failure::NoAnswer { reason }
    }
}

fn headers(token: &str, worker: WorkerId) -> Result<HeaderMap, OpenError> {
    let token = token.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(OpenError::BadToken);
    }
    let mut bearer =
        HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| OpenError::BadToken)?;
    bearer.set_sensitive(true);
    let worker = HeaderValue::from_str(&worker.to_string()).map_err(|_| OpenError::BadToken)?;
    Ok(HeaderMap::from_iter([
        (reqwest::header::AUTHORIZATION, bearer),
        (HeaderName::from_static(WORKER_HEADER), worker),
    ]))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// What is at the bottom of an error says more than its layers.
fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Seconds, or a date: then counted from the answer's own, so that no clock here has to be right.
fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let text = |name| Some(headers.get(name)?.to_str().ok()?.trim());
    let wanted = text(RETRY_AFTER)?;
    if let Ok(seconds) = wanted.parse::<u64>() {
        return Some(seconds.saturating_mul(1_000));
    }
    let until = httpdate::parse_http_date(wanted).ok()?;
    let sent = httpdate::parse_http_date(text(DATE)?).ok()?;
    let wait = until.duration_since(sent).unwrap_or_default();
    u64::try_from(wait.as_millis()).ok()
}

enum BodyError {
    Cut(reqwest::Error),
    TooLong,
}

async fn body_of(mut response: Response) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Cut)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// A success that is not the hub's JSON comes from something on the way, such as a sign-in page.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|_| Failure::NoAnswer {
        reason: "something else than the hub answered".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: WorkerId = WorkerId::from_bytes([1; 16]);

    #[test]
    fn an_address_that_is_no_hub_and_a_token_that_is_none_are_refused() {
        for url in ["hub.example.org", "ftp://hub.example.org", "", "http://"] {
            let refused = HubClient::new(url, "cb_1", WORKER).unwrap_err();
            assert!(matches!(refused, OpenError::BadHub { .. }), "{url}");
        }
        for token in ["", " \n", "a\u{7f}b", "ü\n"] {
            let refused = HubClient::new("http://127.0.0.1:1", token, WORKER);
            assert!(matches!(refused, Err(OpenError::BadToken)), "{token:?}");
        }
    }

    #[test]
    fn a_hub_below_a_path_keeps_it() {
        let client = HubClient::new("https://example.org/hub", "cb_1", WORKER).unwrap();
        let url = client.url("api/v1/desktop").unwrap();
        assert_eq!(url.as_str(), "https://example.org/hub/api/v1/desktop");
    }

    #[test]
    fn retry_after_is_read_in_seconds_and_as_a_date() {
        let read = |retry_after: &'static str, date: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after));
            if let Some(date) = date {
                headers.insert(DATE, HeaderValue::from_static(date));
            }
            retry_after_ms(&headers)
        };
        let noon = Some("Fri, 27 Nov 2026 12:00:00 GMT");
        assert_eq!(read(" 30 ", None), Some(30_000));
        assert_eq!(read("18446744073709551615", None), Some(u64::MAX));
        assert_eq!(read("Fri, 27 Nov 2026 12:01:30 GMT", noon), Some(90_000));
        assert_eq!(read("Fri, 27 Nov 2026 11:00:00 GMT", noon), Some(0));
        assert_eq!(read("Fri, 27 Nov 2026 12:01:30 GMT", None), None);
        assert_eq!(read("soon", noon), None);
        assert_eq!(read("-1", noon), None);
        assert_eq!(retry_after_ms(&HeaderMap::new()), None);
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (url, expected) in [
            ("http://127.0.0.1:8787", true),
            ("http://[::1]:8787", true),
            ("http://localhost", true),
            ("http://127.0.0.1.example.org", false),
        ] {
            assert_eq!(is_loopback(&url.parse().unwrap()), expected, "{url}");
        }
    }

    #[tokio::test]
    async fn a_hub_that_is_not_there_is_named_with_the_reason() {
        // Bound and dropped again, so that nothing listens there.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let client = HubClient::new(&url, "cb_1", WORKER).unwrap();
        let Err(Failure::NoAnswer { reason }) = client.call(Request::WhoAmI).await else {
            panic!("no answer expected");
        };
        assert!(
            reason.starts_with(&format!("cannot reach the hub at {url}: ")),
            "{reason}"
        );
        assert!(reason.contains("refused"), "{reason}");
    }
}
