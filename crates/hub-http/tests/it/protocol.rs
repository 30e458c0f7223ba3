//! Handshake, discovery and the list of tools.

use reqwest::StatusCode;
use serde_json::{Map, Value, json};

use crate::world::{MODERN, REVISIONS, World, send};

#[tokio::test]
async fn each_older_revision_is_negotiated_as_asked_for() {
    let world = World::new().await;
    for revision in REVISIONS.into_iter().filter(|revision| *revision != MODERN) {
        let params = json!({
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "it", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let answer = send(world.post(message.to_string())).await;
        let result = &answer.json()["result"];
        assert_eq!(result["protocolVersion"], revision, "{}", answer.text);
        assert_eq!(result["serverInfo"]["name"], "callboard");
        assert!(result["capabilities"]["tools"].is_object());
        let instructions = result["instructions"].as_str().unwrap();
        let numbered = instructions.lines().skip(1);
        let numbers: Vec<_> = numbered
            .map(|line| line.split_once(". ").unwrap().0)
            .collect();
        assert_eq!(
            numbers,
            ["1", "2", "3", "4", "5"],
            "what it is, and five lines"
        );
        assert!(
            !answer.headers.contains_key("mcp-session-id"),
            "no session is ever minted"
        );
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = send(world.post(ready.to_string())).await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (StatusCode::ACCEPTED, "")
        );
    }
}

#[tokio::test]
async fn the_newest_revision_discovers_without_a_token() {
    let world = World::new().await;
    let answer = send(world.request(MODERN, "server/discover", json!({}))).await;
    let result = &answer.json()["result"];
    assert_eq!(result["supportedVersions"], json!(REVISIONS));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "callboard"
    );
}

#[tokio::test]
async fn an_old_session_id_is_ignored_and_the_token_still_works() {
    let world = World::new().await;
    for session in ["0123456789abcdef", "gone"] {
        let params = json!({"name": "list_projects", "arguments": {}});
        let request = world
            .request("2025-06-18", "tools/call", params)
            .bearer_auth(&world.token);
        let answer = send(request.header("mcp-session-id", session)).await;
        assert_eq!(answer.tool()["projects"][0]["name"], "Home");
    }
}

#[tokio::test]
async fn both_paths_serve_the_same_endpoint() {
    let world = World::new().await;
    let request = world
        .request(MODERN, "tools/list", json!({}))
        .build()
        .unwrap();
    let mut other = request.try_clone().unwrap();
    *other.url_mut() = world.url("/api/v1/external-mcp").parse().unwrap();
    let mut bodies = Vec::new();
    for request in [request, other] {
        bodies.push(
            world
                .client
                .execute(request)
                .await
                .unwrap()
                .text()
                .await
                .unwrap(),
        );
    }
    assert_eq!(bodies[0], bodies[1]);
}

#[tokio::test]
async fn the_published_list_of_tools() {
    let world = World::new().await;
    let answer = send(world.request(MODERN, "tools/list", json!({})))
        .await
        .json();
    insta::assert_snapshot!(serde_json::to_string_pretty(&answer["result"]).unwrap());
    for revision in REVISIONS {
        let older = send(world.request(revision, "tools/list", json!({})))
            .await
            .json();
        assert_eq!(
            older["result"]["tools"], answer["result"]["tools"],
            "{revision}"
        );
    }
}

/// What some host refuses in a schema, together with the tool or with all of them.
fn assert_every_host_takes(schema: &Value, path: &str) {
    const KEYWORDS: [&str; 10] = [
        "type",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
    ];
    let fields = schema
        .as_object()
        .unwrap_or_else(|| panic!("{path} is no object: {schema}"));
    for (keyword, value) in fields {
        assert!(KEYWORDS.contains(&keyword.as_str()), "{path}/{keyword}");
        match keyword.as_str() {
            "type" | "description" => assert!(value.is_string(), "{path}/{keyword}"),
            "properties" => {
                for (name, property) in value.as_object().unwrap() {
                    assert_every_host_takes(property, &format!("{path}/{name}"));
                }
            }
            "required" | "enum" => {
                let names = value.as_array().unwrap();
                assert!(
                    !names.is_empty() && names.iter().all(Value::is_string),
                    "{path}"
                );
            }
            _ => {}
        }
    }
    assert!(fields.contains_key("type"), "{path} has no type");
}

#[tokio::test]
async fn every_tool_uses_only_what_every_host_takes() {
    let world = World::new().await;
    let answer = send(world.request(MODERN, "tools/list", json!({})))
        .await
        .json();
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert!(tools.len() >= 5);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!("callboard".len() + 1 + name.len() <= 60, "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(
            tool["inputSchema"]["additionalProperties"],
            json!(false),
            "{name}"
        );
        assert_every_host_takes(&tool["inputSchema"], name);
        assert_eq!(
            tool["securitySchemes"], tool["_meta"]["securitySchemes"],
            "{name}"
        );
        assert_eq!(tool["securitySchemes"][0]["type"], "oauth2", "{name}");
        let scope = tool["securitySchemes"][0]["scopes"][0].as_str().unwrap();
        let read_only = tool["annotations"]["readOnlyHint"] == json!(true);
        assert_eq!(scope == "osfoundry:read", read_only, "{name}");
    }
}

#[tokio::test]
async fn the_start_tool_promises_what_was_published() {
    let world = World::new().await;
    let answer = send(world.request(MODERN, "tools/list", json!({})))
        .await
        .json();
    let tools = answer["result"]["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let start = tool("run_graph_session");
    let schema = &start["inputSchema"];
    assert_eq!(
        schema["required"],
        json!(["graph_session_id", "idempotency_key"])
    );
    let key: &Map<String, Value> = schema["properties"]["idempotency_key"].as_object().unwrap();
    assert_eq!(
        (&key["minLength"], &key["maxLength"]),
        (&json!(8), &json!(128))
    );
    assert_eq!(start["annotations"]["destructiveHint"], json!(true));
    for words in [
        "Queues",
        "online desktop",
        "get_graph_run",
        "go offline",
        "Local tool approvals",
    ] {
        assert!(
            start["description"].as_str().unwrap().contains(words),
            "{words}"
        );
    }
    for name in ["get_graph_run", "cancel_graph_run"] {
        let description = tool(name)["description"].as_str().unwrap();
        assert!(
            description.contains("started by this connected agent"),
            "{name}"
        );
    }
    let limit = &tool("list_graph_sessions")["inputSchema"]["properties"]["limit"];
    assert_eq!(
        (&limit["minimum"], &limit["maximum"]),
        (&json!(1), &json!(50))
    );
}
