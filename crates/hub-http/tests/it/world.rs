//! A hub on a loopback port, a connection, and a desktop that speaks the relay API.

use std::sync::Arc;

use callboard_ambient::{Clock, Entropy, ManualClock};
use callboard_domain::{GraphSessionId, Scope, Scopes, Timestamp};
use callboard_hub::Hub;
use callboard_hub_http::{HttpOptions, router, serve};
use callboard_store::{MemoryStore, Store};
use callboard_wire::WORKER_HEADER;
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Every protocol revision that the endpoint serves.
pub(crate) const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    MODERN,
];
/// The revision without a handshake.
pub(crate) const MODERN: &str = "2026-07-28";
/// The session that the world's desktop shares.
pub(crate) const SESSION: GraphSessionId = GraphSessionId::from_bytes([0xab; 16]);

/// When a world on a manual clock begins: 2027-01-15T08:00:00Z.
pub(crate) const START_SECONDS: i64 = 1_800_000_000;

pub(crate) struct World<S = MemoryStore> {
    pub(crate) hub: Arc<Hub<S>>,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) client: reqwest::Client,
    pub(crate) token: String,
    pub(crate) desktop_token: String,
    pub(crate) project_id: String,
    pub(crate) shutdown: CancellationToken,
    pub(crate) server: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    /// The tool's answer, after checking that text and structured content are the same JSON.
    pub(crate) fn tool(&self) -> Value {
        let result = &self.json()["result"];
        assert_eq!(result["isError"], json!(false), "{}", self.text);
        let text = result["content"][0]["text"].as_str().expect("text");
        let structured = &result["structuredContent"];
        assert_eq!(
            serde_json::from_str::<Value>(text).expect("JSON"),
            *structured
        );
        structured.clone()
    }

    /// The sentence of a tool error.
    pub(crate) fn tool_error(&self) -> String {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text);
        let result = &self.json()["result"];
        assert_eq!(result["isError"], json!(true), "{}", self.text);
        result["content"][0]["text"]
            .as_str()
            .expect("text")
            .to_owned()
    }

    pub(crate) fn error_code(&self) -> i64 {
        self.json()["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("no error: {}", self.text))
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with_options(HttpOptions::new(None, true).unwrap()).await
    }

    pub(crate) async fn with_options(options: HttpOptions) -> Self {
        let hub = Hub::new(MemoryStore::default(), Clock::system(), Entropy::system());
        Self::of(hub, options).await
    }

    /// A world whose clock only moves when told, and what moves it. Where several chats may claim
    /// a task, a claim lasts for `task_lease_ms`.
    pub(crate) async fn timed(task_lease_ms: u64) -> (Self, ManualClock) {
        let (clock, hands) = Clock::manual(Timestamp::from_millis(START_SECONDS * 1_000));
        let hub = Hub::new(MemoryStore::default(), clock, Entropy::system());
        let hub = hub.with_task_lease_ms(task_lease_ms);
        let options = HttpOptions::new(None, true).unwrap();
        (Self::of(hub, options).await, hands)
    }
}

impl<S: Store> World<S> {
    /// A world over another store.
    pub(crate) async fn over(store: S) -> Self {
        let hub = Hub::new(store, Clock::system(), Entropy::system());
        Self::of(hub, HttpOptions::new(None, true).unwrap()).await
    }

    async fn of(hub: Hub<S>, options: HttpOptions) -> Self {
        // Another test of this process may have installed it already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let hub = Arc::new(hub);
        let project = hub.create_project("Home").await.unwrap();
        let desktop = hub.create_desktop("laptop").await.unwrap();
        let connection = hub
            .create_connection("Claude", &["Home".to_owned()], Scopes::ALL)
            .await
            .unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, shutdown) = (listener.local_addr().unwrap(), CancellationToken::new());
        let router = router(Arc::clone(&hub), options, shutdown.clone());
        let server = tokio::spawn(serve(listener, router, shutdown.clone()));
        Self {
            hub,
            address,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            token: connection.token,
            desktop_token: desktop.token,
            project_id: project.id.to_string(),
            shutdown,
            server,
        }
    }

    /// A connection to the same project with other scopes.
    pub(crate) async fn connect(&self, name: &str, scopes: &[Scope]) -> String {
        let scopes = scopes.iter().copied().collect();
        self.hub
            .create_connection(name, &["Home".to_owned()], scopes)
            .await
            .unwrap()
            .token
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A bare POST to the endpoint with the usual headers and no token.
    pub(crate) fn post(&self, body: impl Into<String>) -> RequestBuilder {
        self.client
            .post(self.url("/mcp"))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(body.into())
    }

    /// A JSON-RPC request as a client of `revision` sends it.
    pub(crate) fn request(
        &self,
        revision: &str,
        method: &str,
        mut params: Value,
    ) -> RequestBuilder {
        if revision == MODERN {
            let said = &mut params["_meta"];
            said["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            said["io.modelcontextprotocol/clientInfo"] = json!({"name": "it", "version": "1"});
            said["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut request = self.post(message.to_string());
        if revision >= "2025-06-18" {
            request = request.header("mcp-protocol-version", revision);
        }
        if revision == MODERN {
            request = request.header("mcp-method", method);
            if let Some(name) = message["params"]["name"].as_str() {
                request = request.header("mcp-name", name);
            }
        }
        request
    }

    pub(crate) async fn rpc(&self, revision: &str, method: &str, params: Value) -> Answer {
        send(
            self.request(revision, method, params)
                .bearer_auth(&self.token),
        )
        .await
    }

    pub(crate) async fn call(&self, revision: &str, tool: &str, arguments: Value) -> Answer {
        self.call_as(&self.token, revision, tool, arguments).await
    }

    pub(crate) async fn call_as(
        &self,
        token: &str,
        revision: &str,
        tool: &str,
        arguments: Value,
    ) -> Answer {
        let params = json!({"name": tool, "arguments": arguments});
        send(
            self.request(revision, "tools/call", params)
                .bearer_auth(token),
        )
        .await
    }

    /// Waits until the hub holds a wake-up call of the world's desktop.
    pub(crate) async fn until_held(&self) {
        let desktop = self.hub.desktops().await.unwrap().remove(0).desktop;
        while !self.hub.presence().is_holding(desktop.id) {
            tokio::task::yield_now().await;
        }
    }

    /// Queues a run of the shared session and gives its command id.
    pub(crate) async fn queue(&self, key: &str) -> String {
        let arguments = json!({"graph_session_id": SESSION.to_string(), "idempotency_key": key});
        let answer = self
            .call(MODERN, "run_graph_session", arguments)
            .await
            .tool();
        answer["command_id"].as_str().unwrap().to_owned()
    }

    /// A relay call of the world's desktop.
    pub(crate) async fn relay(&self, path: &str, body: Value) -> Answer {
        let worker = "11111111-1111-4111-8111-111111111111";
        let url = self.url(&format!("/api/v1/external-assistants/graph-relays{path}"));
        let request = self.client.post(url).bearer_auth(&self.desktop_token);
        send(request.header(WORKER_HEADER, worker).body(body.to_string())).await
    }

    /// Shares [`SESSION`] and gives what waits.
    pub(crate) async fn share(&self) -> Value {
        let session = json!({
            "graph_session_id": SESSION.to_string(), "name": "Folder report",
            "description": "Reads a folder.", "slug": "folder-report", "version": 1,
            "status": "ready",
        });
        self.sync(json!([session])).await.json()
    }

    pub(crate) async fn sync(&self, sessions: Value) -> Answer {
        self.relay(
            "/sync",
            json!({"project_id": self.project_id, "sessions": sessions}),
        )
        .await
    }

    pub(crate) async fn start(&self, command_id: &str, execution_id: &str) -> Answer {
        let body = json!({"execution_id": execution_id});
        self.relay(&format!("/commands/{command_id}/start"), body)
            .await
    }

    pub(crate) async fn complete(&self, command_id: &str, body: Value) -> Answer {
        self.relay(&format!("/commands/{command_id}/complete"), body)
            .await
    }
}

pub(crate) async fn send(request: RequestBuilder) -> Answer {
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status(), response.headers().clone());
    Answer {
        status,
        headers,
        text: response.text().await.expect("a body"),
    }
}

/// An id that nobody ever made.
pub(crate) const UNKNOWN: &str = "00000000-0000-7000-8000-000000000000";
/// Two execution ids of the world's desktop.
pub(crate) const EXECUTION: &str = "22222222-2222-4222-8222-222222222222";
pub(crate) const OTHER_EXECUTION: &str = "33333333-3333-4333-8333-333333333333";
