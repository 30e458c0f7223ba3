//! The bad network of the demo: passes HTTP calls on to the hub, and loses what it is told to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::failure::Failure;

/// Longest body that passes, in bytes; the demo's are far shorter.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// A network path to the hub.
#[derive(Debug, Clone)]
pub(super) struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    hub: SocketAddr,
    client: reqwest::Client,
    plan: Mutex<Option<Fault>>,
    happened: Notify,
}

/// What gets lost next; once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The hub gets the first call whose body holds this text; its answer is lost.
    AnswerTo(&'static str),
    /// Calls whose path ends so do not reach the hub, until the fault is lifted.
    CallsTo(&'static str),
}

impl Link {
    /// Opens a path to the hub on a loopback port of its own.
    pub(super) async fn open(hub: SocketAddr) -> Result<(Self, SocketAddr), Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::cannot_start(format!("cannot open the demo's network path: {error}"))
        };
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(|error| failed(&error))?;
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        let client = reqwest::Client::builder().no_proxy().build();
        let client = client.map_err(|error| failed(&error))?;
        let (plan, happened) = (Mutex::new(None), Notify::new());
        let link = Self(Arc::new(Inner {
            hub,
            client,
            plan,
            happened,
        }));
        tokio::spawn(link.clone().accept(listener));
        Ok((link, address))
    }

    /// Loses something from now on.
    pub(super) fn lose(&self, fault: Fault) {
        *self.0.plan.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// Loses nothing from now on.
    pub(super) fn heal(&self) {
        *self.0.plan.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits until something was lost.
    pub(super) async fn lost(&self) {
        self.0.happened.notified().await;
    }

    async fn accept(self, listener: TcpListener) {
        // Ends with the demo's runtime.
        while let Ok((stream, _)) = listener.accept().await {
            let link = self.clone();
            tokio::spawn(async move {
                let service = hyper::service::service_fn(move |request| {
                    let link = link.clone();
                    async move { link.pass(request).await }
                });
                let http = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                // An error here is a connection that was cut on purpose, or by its client.
                drop(http.serve_connection(TokioIo::new(stream), service).await);
            });
        }
    }

    /// Passes a call on. An error cuts the connection, so that the caller sees no answer at all.
    async fn pass(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Cut> {
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX)
            .collect()
            .await
            .map_err(|_| Cut)?
            .to_bytes();
        let path = parts
            .uri
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned();
        if let Some(Fault::CallsTo(suffix)) = self.planned()
            && path.ends_with(suffix)
        {
            self.0.happened.notify_one();
            // The caller waits, as it does when a network swallows what it sends.
            return std::future::pending::<Result<_, Infallible>>()
                .await
                .map_err(|_| Cut);
        }
        let lose = matches!(self.planned(), Some(Fault::AnswerTo(text)) if holds(&body, text));
        let mut headers = parts.headers;
        headers.remove(http::header::HOST);
        let url = format!("http://{}{path}", self.0.hub);
        let call = self
            .0
            .client
            .request(parts.method, url)
            .headers(headers)
            .body(body);
        let answer = call.send().await.map_err(|_| Cut)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer.bytes().await.map_err(|_| Cut)?;
        if lose {
            self.heal();
            self.0.happened.notify_one();
            return Err(Cut);
        }
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
            .headers_mut()
            .remove(http::header::TRANSFER_ENCODING);
        Ok(response)
    }

    fn planned(&self) -> Option<Fault> {
        *self.0.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection ends here.
#[derive(Debug, thiserror::Error)]
#[error("the connection was cut")]
struct Cut;

fn holds(body: &[u8], text: &str) -> bool {
    body.windows(text.len())
        .any(|window| window == text.as_bytes())
}
