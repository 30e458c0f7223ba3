//! A connection to an MCP endpoint, as a chat has it.

use std::path::Path;

use callboard_wire::tools::{get_graph_run, list_graph_sessions};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ContentBlock, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::{Failure, root_cause};
use crate::paths;

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
        Self::connect(&url, &token).await
    }

    /// Connects, with the newest revision that both sides speak.
    pub(crate) async fn connect(url: &str, token: &str) -> Result<Self, Failure> {
        let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(token);
        let transport = StreamableHttpClientTransport::from_config(config);
        let lifecycle = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        };
        let service = Box::pin(().serve_with_lifecycle(transport, lifecycle)).await;
        let service = service.map_err(|error| match error.is_authorization_required() {
            true => Failure::failed(format!("{url} does not know this token")).hint(
                "`callboard hub token list` shows the connected agents; make a new one there",
            ),
            false => Failure::cannot_start(format!("cannot reach {url}: {}", root_cause(&error)))
                .hint("is the hub running? `callboard up` starts one here"),
        })?;
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
        let answered = Box::pin(self.service.call_tool(request)).await;
        let result = answered.map_err(|error| {
            if let ServiceError::McpError(error) = error {
                CallError::Refused(error.to_string())
            } else {
                CallError::Lost(root_cause(&error))
            }
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
