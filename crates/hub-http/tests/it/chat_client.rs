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

/// A conversation that linked itself through a real client.
struct Linked {
    client: Client,
    link_id: String,
}

impl Client {
    async fn connect(world: &World, token: &str, revision: &ProtocolVersion) -> Self {
        let endpoint = StreamableHttpClientTransportConfig::with_uri(world.url("/mcp"));
        let endpoint = endpoint.auth_header(token);
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
        let client = Self(connecting.await.unwrap());
        let server = client.0.peer_info().unwrap();
        assert_eq!(server.protocol_version, *revision, "as it was asked for");
        client
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

impl Linked {
    async fn new(world: &World, token: &str, revision: &ProtocolVersion, key: &str) -> Self {
        let client = Client::connect(world, token, revision).await;
        let linked = client.call(LINK, world.link_arguments(key)).await.unwrap();
        let link_id = linked["chat_link_id"].as_str().unwrap().to_owned();
        Self { client, link_id }
    }

    /// The id of the one task that waits.
    async fn waiting(&self) -> String {
        let read = json!({"chat_link_id": self.link_id});
        let read = self.client.call(READ, read).await.unwrap();
        let tasks = read["tasks"].as_array().unwrap().iter();
        let waiting: Vec<_> = tasks.filter(|task| task["status"] == "queued").collect();
        assert_eq!(waiting.len(), 1, "{read}");
        waiting[0]["task_id"].as_str().unwrap().to_owned()
    }

    async fn claim(&self, task_id: &str) -> Result<Value, String> {
        let ids = json!({"chat_link_id": self.link_id, "task_id": task_id});
        self.client.call(CLAIM, ids).await
    }

    async fn submit(&self, task_id: &str, claim: &Value, result: &str) -> Result<Value, String> {
        let arguments = json!({
            "chat_link_id": self.link_id, "task_id": task_id, "claim_id": claim["claim_id"],
            "status": "completed", "result": result,
        });
        self.client.call(SUBMIT, arguments).await
    }
}

async fn assign(world: &World, chats: &[&Linked], key: &str) {
    let links: Vec<_> = chats.iter().map(|chat| chat.link_id.clone()).collect();
    let assigned = world.hub.assign_task(&links, "What is 2 + 2?", key).await;
    assert!(!assigned.unwrap().replayed);
}

fn refused(sentence: &str) -> Result<Value, String> {
    Err(sentence.to_owned())
}

fn ok() -> Result<Value, String> {
    Ok(json!({"ok": true}))
}

#[test]
fn the_client_knows_the_revisions_that_the_hub_serves() {
    let known = ProtocolVersion::KNOWN_VERSIONS;
    let names: Vec<_> = known.iter().map(ProtocolVersion::as_str).collect();
    assert_eq!(names, REVISIONS);
}

#[tokio::test]
async fn a_real_client_links_claims_and_answers_once_on_every_revision() {
    let world = World::new().await;
    for revision in ProtocolVersion::KNOWN_VERSIONS {
        let key = format!("conversation-{revision}");
        let chat = Linked::new(&world, &world.token, revision, &key).await;
        let tools = Box::pin(chat.client.0.list_all_tools()).await.unwrap();
        for name in [LINK, READ, CLAIM, SUBMIT, UPLOAD] {
            assert!(tools.iter().any(|tool| tool.name == name), "{name}");
        }
        assign(&world, &[&chat], &key).await;
        let task_id = chat.waiting().await;
        let claim = chat.claim(&task_id).await.unwrap();
        assert_eq!(chat.claim(&task_id).await.unwrap(), claim);
        assert_eq!(chat.submit(&task_id, &claim, "4").await, ok());
        for _ in 0..3 {
            let again = chat.submit(&task_id, &claim, "4").await;
            assert_eq!(again, Ok(json!({"ok": true, "replayed": true})));
        }
        let changed = chat.submit(&task_id, &claim, "5").await;
        assert_eq!(changed, refused("rejected: task is completed"));
        let stored = world.outcome(&task_id).await;
        assert_eq!(stored, ended("completed", Some("4")));
    }
}

/// The published take-over: a lease of 1 s, and a second chat that tries every 100 ms.
#[tokio::test]
async fn a_real_client_takes_over_when_a_lease_ends_on_every_revision() {
    for revision in ProtocolVersion::KNOWN_VERSIONS {
        let (world, hands) = World::timed(1_000).await;
        let other = world
            .connect("ChatGPT", &callboard_domain::Scope::ALL)
            .await;
        let first = Linked::new(&world, &world.token, revision, "conversation-1").await;
        let second = Linked::new(&world, &other, revision, "conversation-2").await;
        assign(&world, &[&first, &second], "assign-1").await;
        let task_id = first.waiting().await;
        let late = first.claim(&task_id).await.unwrap();
        let mut failed = 0;
        let current = loop {
            match second.claim(&task_id).await {
                Ok(claim) => break claim,
                claimed => assert_eq!(claimed, refused("not claimable: claimed")),
            }
            failed += 1;
            hands.advance_ms(100);
        };
        assert_eq!(failed, 10, "{revision}");
        assert_ne!(current["claim_id"], late["claim_id"]);
        let stale = refused("rejected: stale claim, task was re-claimed");
        assert_eq!(first.submit(&task_id, &late, "5").await, stale);
        assert_eq!(second.submit(&task_id, &current, "4").await, ok());
        let over = refused("rejected: task is completed");
        assert_eq!(first.submit(&task_id, &late, "5").await, over);
        let stored = world.outcome(&task_id).await;
        assert_eq!(stored, ended("completed", Some("4")));
    }
}

#[tokio::test]
async fn a_real_client_submits_to_a_cancelled_task_on_every_revision() {
    let world = World::new().await;
    for revision in ProtocolVersion::KNOWN_VERSIONS {
        let key = format!("conversation-{revision}");
        let chat = Linked::new(&world, &world.token, revision, &key).await;
        assign(&world, &[&chat], &key).await;
        let task_id = chat.waiting().await;
        let claim = chat.claim(&task_id).await.unwrap();
        world.hub.cancel_task(&task_id).await.unwrap();
        let rejected = refused("rejected: task is cancelled");
        assert_eq!(chat.submit(&task_id, &claim, "4").await, rejected);
        let over = refused("not claimable: cancelled");
        assert_eq!(chat.claim(&task_id).await, over);
        assert_eq!(world.outcome(&task_id).await, ended("cancelled", None));
    }
}
