//! Who may call the hub at all.

use callboard_hub_http::HttpOptions;
use reqwest::StatusCode;
use serde_json::json;

use crate::world::{MODERN, World, send};

#[tokio::test]
async fn the_public_name_is_served_and_foreign_hosts_and_origins_are_403_on_every_route() {
    let options = HttpOptions::new(Some("https://hub.example.test"), true).unwrap();
    let world = World::with_options(options).await;
    let loopback = world.address.to_string();
    for (host, origin, expected) in [
        ("hub.example.test", None, StatusCode::OK),
        ("hub.example.test:443", None, StatusCode::OK),
        (loopback.as_str(), None, StatusCode::OK),
        (
            "hub.example.test",
            Some("https://hub.example.test"),
            StatusCode::OK,
        ),
        ("evil.example", None, StatusCode::FORBIDDEN),
        (
            "hub.example.test",
            Some("https://evil.example"),
            StatusCode::FORBIDDEN,
        ),
    ] {
        let mcp = world.request(MODERN, "tools/list", json!({}));
        let health = world.client.get(world.url("/healthz"));
        for request in [mcp, health] {
            let request = request.header("host", host);
            let request = match origin {
                Some(origin) => request.header("origin", origin),
                None => request,
            };
            assert_eq!(send(request).await.status, expected, "{host} {origin:?}");
        }
    }
}

#[tokio::test]
async fn the_probes_answer_and_readiness_ends_with_the_shutdown() {
    let world = World::new().await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(
            send(world.client.get(world.url(path))).await.status,
            StatusCode::OK
        );
    }
    let unknown = send(world.client.get(world.url("/nowhere"))).await;
    assert_eq!(
        (unknown.status, unknown.json()["code"].as_str()),
        (StatusCode::NOT_FOUND, Some("no_such_path"))
    );
}
