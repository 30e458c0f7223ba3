//! The published sequence with a real MCP client, as it connects on each protocol revision.

use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ClientConfig, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

use crate::chat_world::{CLAIM, LINK, READ, SUBMIT, UPLOAD, ended};
use crate::world::{MODERN, REVISIONS, World};

struct Client(RunningService<RoleClient, ClientConfig>);

impl Client {
    async fn connect(world: &World, revision: &ProtocolVersion) -> Self {
        let endpoint = StreamableHttpClientTransportConfig::with_uri(world.url("/mcp"));
        let endpoint = endpoint.auth_header(world.token.as_str());
        let http = world.client.clone();
        let transport = StreamableHttpClientTransport::with_client(http, endpoint);
        let lifecycle = if revision.as_str() == MODERN {
            let preferred_versions = vec![revision.clone()];
            ClientLifecycleMode::Discover { preferred_versions }
        } else {
            ClientLifecycleMode::Initialize
        };
        let config = ClientConfig::default().with_protocol_version(revision.clone());
        let connecting = Box::pin(config.serve_with_lifecycle(transport, lifecycle));
        Self(connecting.await.unwrap())
    }

    /// What the tool answered, or the sentence with which it refused.
    async fn call(&self, tool: &'static str, arguments: Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object")
        };
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = Box::pin(self.0.call_tool(request)).await.unwrap();
        if result.is_error == Some(true) {
            return Err(result.content[0].as_text().unwrap().text.clone());
        }
        Ok(result.structured_content.unwrap())
    }
}

#[tokio::test]
async fn a_real_client_links_claims_and_answers_once_on_every_revision() {
    let world = World::new().await;
    let known = ProtocolVersion::KNOWN_VERSIONS;
    let names: Vec<_> = known.iter().map(ProtocolVersion::as_str).collect();
    assert_eq!(names, REVISIONS);
    for revision in known {
        let client = Client::connect(&world, revision).await;
        let server = client.0.peer_info().unwrap();
        assert_eq!(server.protocol_version, *revision);
        let tools = Box::pin(client.0.list_all_tools()).await.unwrap();
        for name in [LINK, READ, CLAIM, SUBMIT, UPLOAD] {
            assert!(tools.iter().any(|tool| tool.name == name), "{name}");
        }
        let link = world.link_arguments(&format!("conversation-{revision}"));
        let linked = client.call(LINK, link).await.unwrap();
        let link_id = &linked["chat_link_id"];
        let links = [link_id.as_str().unwrap().to_owned()];
        let key = format!("assign-{revision}");
        let assigned = world.hub.assign_task(&links, "What is 2 + 2?", &key);
        assigned.await.unwrap();

        let read = client.call(READ, json!({"chat_link_id": link_id})).await;
        let task_id = &read.unwrap()["tasks"][0]["task_id"];
        let mut ids = json!({"chat_link_id": link_id, "task_id": task_id});
        let claim = client.call(CLAIM, ids.clone()).await.unwrap();
        assert_eq!(client.call(CLAIM, ids.clone()).await.unwrap(), claim);
        ids["claim_id"] = claim["claim_id"].clone();
        let submit = |result: &str| {
            let mut arguments = ids.clone();
            (arguments["status"], arguments["result"]) = (json!("completed"), json!(result));
            client.call(SUBMIT, arguments)
        };
        let mut answers = Vec::new();
        for result in ["4", "4", "4", "4", "5"] {
            answers.push(submit(result).await);
        }
        let replayed = Ok(json!({"ok": true, "replayed": true}));
        let rejected = Err("rejected: task is completed".to_owned());
        assert_eq!(answers[0], Ok(json!({"ok": true})));
        assert_eq!(
            answers[1..4],
            [replayed.clone(), replayed.clone(), replayed]
        );
        assert_eq!(answers[4], rejected);
        let stored = world.outcome(task_id.as_str().unwrap()).await;
        assert_eq!(stored, ended("completed", Some("4")));
    }
}
