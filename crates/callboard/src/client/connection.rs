//! A connection to an MCP endpoint, as a chat has it.

use std::path::Path;
use std::time::Duration;

use callboard_wire::tools::{get_graph_run, list_graph_sessions};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ContentBlock, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService, ServiceError,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::{Failure, root_cause};
use crate::paths;

/// How long an answer may take: longer than the hub ever holds a call, which is 40 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a chat connects, as `callboard up` keeps it (mode 0600).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConnectionFile {
    /// The MCP endpoint.
    pub(crate) url: String,
    /// The bearer token.
    pub(crate) token: String,
}

impl ConnectionFile {
    /// Reads the file of a data folder, if there is one.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(paths::connection_file(data)).ok()?;
        serde_json::from_str(&text).ok()
    }
}

/// A connected agent.
#[derive(Debug)]
pub(crate) struct Chat {
    service: RunningService<RoleClient, ()>,
    url: String,
}

/// Why a call gave no answer.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The tool said no.
    Refused(String),
    /// The answer got lost, or none came.
    Lost(String),
}

impl Chat {
    /// Connects with what was given, and for the rest with what `callboard up` noted.
    pub(crate) async fn connect_as(
        data: &Path,
        url: Option<String>,
        token: Option<String>,
    ) -> Result<Self, Failure> {
        let noted = ConnectionFile::read(data);
        let (noted_url, noted_token) = noted.map(|noted| (noted.url, noted.token)).unzip();
        let missing = |what: &str| {
            Failure::usage(format!(
                "no {what}, and no `callboard up` has run in {}",
                data.display()
            ))
            .hint("start `callboard up`, or name the endpoint with --url and --token")
        };
        let url = url.or(noted_url).ok_or_else(|| missing("endpoint"))?;
        let token = token.or(noted_token).ok_or_else(|| missing("token"))?;
        let token = token.trim();
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::usage(
                "this is no token: it has white space or other signs in it",
            )
            .hint(TOKEN_HINT));
        }
        Self::connect(url.trim(), token).await
    }

    /// Connects, with the newest revision that both sides speak.
    pub(crate) async fn connect(url: &str, token: &str) -> Result<Self, Failure> {
        let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
        let transport = StreamableHttpClientTransport::with_client(http_client(url)?, config);
        let lifecycle = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        };
        let connecting = Box::pin(().serve_with_lifecycle(transport, lifecycle));
        let service = tokio::time::timeout(PATIENCE, connecting).await;
        let service = service.map_err(|_| {
            Failure::cannot_start(format!("{url} accepts connections and does not answer"))
                .hint("is it the MCP endpoint of a hub? `callboard up` starts one here")
        })?;
        let service = service.map_err(|error| no_connection(url, &error))?;
        Ok(Self {
            service,
            url: url.to_owned(),
        })
    }

    /// Calls a tool and gives its JSON text.
    pub(crate) async fn call(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Result<String, CallError> {
        let mut request = CallToolRequestParams::new(tool);
        if let Value::Object(fields) = arguments {
            request = request.with_arguments(fields);
        }
        // The client's future is large, and it is awaited in many places.
        let answering = Box::pin(self.service.call_tool(request));
        let answered = tokio::time::timeout(PATIENCE, answering).await;
        let answered = answered.map_err(|_| {
            let seconds = PATIENCE.as_secs();
            CallError::Lost(format!("it took longer than {seconds} s"))
        })?;
        let result = answered.map_err(|error| match refused(&error) {
            Some(sentence) => CallError::Refused(sentence),
            None => CallError::Lost(root_cause(&error)),
        })?;
        let text = result.content.iter().find_map(ContentBlock::as_text);
        let text = text.map(|text| text.text.clone()).unwrap_or_default();
        if result.is_error == Some(true) {
            Err(CallError::Refused(text))
        } else {
            Ok(text)
        }
    }

    /// Calls a tool and reads its answer.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        tool: &'static str,
        arguments: Value,
    ) -> Result<T, Failure> {
        let text = self
            .call(tool, arguments)
            .await
            .map_err(|error| match error {
                CallError::Refused(sentence) => Failure::failed(sentence),
                CallError::Lost(why) => {
                    Failure::cannot_start(format!("no answer from {}: {why}", self.url))
                }
            })?;
        serde_json::from_str(&text).map_err(|error| {
            Failure::failed(format!("{tool} answered with something else: {error}"))
        })
    }

    /// What is shared with a project.
    pub(crate) async fn sessions(
        &self,
        project_id: &str,
    ) -> Result<list_graph_sessions::Answer, Failure> {
        self.ask("list_graph_sessions", json!({"project_id": project_id}))
            .await
    }

    /// How a run stands now.
    pub(crate) async fn read_run(
        &self,
        command_id: &str,
    ) -> Result<get_graph_run::Answer, Failure> {
        self.ask("get_graph_run", json!({"command_id": command_id}))
            .await
    }

    /// How a run stands as soon as its status is another one than in `seen`, or after
    /// `wait_seconds`.
    pub(crate) async fn read_run_after(
        &self,
        seen: &get_graph_run::Answer,
        wait_seconds: u64,
    ) -> Result<get_graph_run::Answer, Failure> {
        let arguments = json!({
            "command_id": seen.command_id.to_string(),
            "wait_seconds": wait_seconds,
            "seen_status": seen.status,
        });
        self.ask("get_graph_run", arguments).await
    }
}

/// An HTTP client for one endpoint.
fn http_client(endpoint: &str) -> Result<reqwest::Client, Failure> {
    let wrong = |error: &dyn std::error::Error| {
        Failure::usage(format!(
            "\"{endpoint}\" is not the address of a hub: {error}"
        ))
        .hint("give it as --url https://hub.example.org/mcp")
    };
    let url = reqwest::Url::parse(endpoint).map_err(|error| wrong(&error))?;
    let mut client = reqwest::Client::builder()
        // The token goes to the address that was named, nowhere else.
        .redirect(reqwest::redirect::Policy::none())
        // A pooled connection whose last answer was not read to its end stalls the next call.
        .pool_max_idle_per_host(0);
    if is_this_machine(&url) {
        client = client.no_proxy();
    }
    client.build().map_err(|error| wrong(&error))
}

fn is_this_machine(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Why there is no connection.
fn no_connection(url: &str, error: &ClientInitializeError) -> Failure {
    if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = error {
        return no_connection(url, fallback);
    }
    if error.is_authorization_required() {
        return Failure::failed(format!("{url} does not know this token")).hint(TOKEN_HINT);
    }
    let ClientInitializeError::TransportError { error, .. } = error else {
        let why = root_cause(error);
        let why = match http_status(&why) {
            Some(status) => format!("it answers {status}"),
            None => why,
        };
        return Failure::failed(format!("{url} is no MCP endpoint: {why}")).hint(ENDPOINT_HINT);
    };
    let cause = match http_error(error) {
        Some(StreamableHttpError::UnexpectedServerResponse(response)) => {
            let status = http_status(response).unwrap_or("something else");
            return Failure::failed(format!("{url} is no MCP endpoint: it answers {status}"))
                .hint(ENDPOINT_HINT);
        }
        Some(StreamableHttpError::Client(error)) => root_cause(error),
        Some(_) | None => root_cause(&*error.error),
    };
    Failure::cannot_start(format!("cannot reach {url}: {cause}"))
        .hint("is the hub running? `callboard up` starts one here")
}

/// How to come to a token.
const TOKEN_HINT: &str = "on the hub, `callboard hub token list` shows the connected agents and `callboard hub token \
     create` makes a new token";
/// What an endpoint looks like.
const ENDPOINT_HINT: &str = "the endpoint of a hub is its address and /mcp";

/// The sentence of an answer that says no. Everything else may or may not have been carried out.
fn refused(error: &ServiceError) -> Option<String> {
    if let ServiceError::McpError(error) = error {
        return Some(error.message.to_string());
    }
    let ServiceError::TransportSend(error) = error else {
        return None;
    };
    let error = http_error(error)?;
    if let StreamableHttpError::AuthRequired(_) = error {
        return Some("the hub knows this token no longer: its owner disconnected it".to_owned());
    }
    if let StreamableHttpError::InsufficientScope(error) = error {
        let scope = error.get_required_scope().unwrap_or("that this takes");
        return Some(format!(
            "this token lacks the scope {scope}: the hub's owner can make another"
        ));
    }
    if let StreamableHttpError::UnexpectedServerResponse(response) = error {
        let status = http_status(response)?;
        let refused = format!("the hub refused the request: {status}");
        return status.starts_with("HTTP 4").then_some(refused);
    }
    None
}

/// `HTTP 404 Not Found` out of what rmcp says of a response; the body that follows it says nothing
/// more to people.
fn http_status(said: &str) -> Option<&str> {
    let status = &said[said.find("HTTP ")?..];
    status.split(':').next()
}

/// What the HTTP client met; the transport's error does not give it as its source.
fn http_error(error: &DynamicTransportError) -> Option<&StreamableHttpError<reqwest::Error>> {
    error.error.downcast_ref()
}
