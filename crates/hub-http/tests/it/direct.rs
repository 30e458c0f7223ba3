//! Plain calls are answered without rmcp: with the bytes that rmcp would send.

use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::chat_world::{CLAIM, LINK, READ, SUBMIT};
use crate::world::{MODERN, REVISIONS, UNKNOWN, World, send};

/// A member that no call has: rmcp ignores it, and the hub leaves the call to rmcp.
const ODD: &str = "odd";

/// Status, headers without the date, body.
type Seen = (u16, Vec<(String, Vec<u8>)>, String);

impl World {
    async fn seen(&self, revision: &str, tool: &str, arguments: &Value, odd: bool) -> Seen {
        let mut params = json!({"name": tool, "arguments": arguments});
        if odd {
            params[ODD] = json!(true);
        }
        let request = self.request(revision, "tools/call", params);
        let answer = send(request.bearer_auth(&self.token)).await;
        let told = |headers: &HeaderMap| {
            let told = headers.iter().filter(|(name, _)| *name != "date");
            let told = told.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
            let mut told: Vec<_> = told.collect();
            told.sort();
            told
        };
        (answer.status.as_u16(), told(&answer.headers), answer.text)
    }
}

#[tokio::test]
async fn a_plain_call_gets_the_bytes_that_rmcp_would_send() {
    let world = World::new().await;
    let chat = world.link("conversation-1").await;
    let work = world.work(&chat).await;
    world
        .assign(&[&chat], "Second \u{1F600} \"quoted\"\n")
        .await;
    let link = json!({"chat_link_id": chat.link_id});
    let claim = json!({"chat_link_id": chat.link_id, "task_id": work.task_id});
    let calls = [
        ("list_projects", json!({})),
        ("list_projects", Value::Null),
        ("list_projects", json!({"unknown": 1})),
        (
            "list_graph_sessions",
            json!({"project_id": world.project_id}),
        ),
        (
            "list_graph_sessions",
            json!({"project_id": world.project_id, "limit": 10.0}),
        ),
        ("get_graph_run", json!({"command_id": UNKNOWN})),
        ("get_graph_run", json!({"command_id": 7})),
        ("cancel_graph_run", json!({"command_id": UNKNOWN})),
        (LINK, world.link_arguments("conversation-1")),
        (READ, link),
        (READ, json!({"chat_link_id": UNKNOWN})),
        (CLAIM, claim),
        (SUBMIT, work.result("completed", "")),
        (SUBMIT, work.result("done", "4")),
        ("no_such_tool", json!({})),
    ];
    for revision in REVISIONS {
        for (tool, arguments) in &calls {
            let plain = world.seen(revision, tool, arguments, false).await;
            let odd = world.seen(revision, tool, arguments, true).await;
            assert_eq!(plain, odd, "{revision} {tool} {arguments}");
        }
    }
}

/// What is not plain is rmcp's to refuse, on the revision that asks a call to say what it is.
#[tokio::test]
async fn a_call_that_contradicts_itself_is_refused() {
    let world = World::new().await;
    let params = json!({"name": "list_projects", "arguments": {}});
    let call = |revision| {
        let request = world.request(revision, "tools/call", params.clone());
        request.bearer_auth(&world.token)
    };
    assert_eq!(send(call(MODERN)).await.status.as_u16(), 200);
    for (name, value) in [
        ("mcp-name", "cancel_graph_run"),
        ("mcp-method", "tools/list"),
    ] {
        let refused = send(call(MODERN).header(name, value)).await;
        assert_eq!(refused.status.as_u16(), 400, "{name}: {}", refused.text);
    }
    let silent = world.post(
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string(),
    );
    let silent = silent.header("mcp-protocol-version", MODERN);
    let refused = send(silent.bearer_auth(&world.token)).await;
    assert_eq!(refused.status.as_u16(), 400, "{}", refused.text);
}
