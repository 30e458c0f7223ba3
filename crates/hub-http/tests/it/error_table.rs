//! Every row of the protocol's error table, on each revision that has it.

use reqwest::StatusCode;
use reqwest::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use crate::world::{MODERN, REVISIONS, World, send};

fn challenge(answer: &crate::world::Answer) -> &str {
    answer.headers[WWW_AUTHENTICATE].to_str().unwrap()
}

#[tokio::test]
async fn an_unknown_method_is_404_and_32601_on_the_newest_revision_and_32601_before() {
    let world = World::new().await;
    for revision in REVISIONS {
        let answer = world.rpc(revision, "no/such/method", json!({})).await;
        assert_eq!(answer.error_code(), -32_601, "{revision}");
        let expected = if revision == MODERN {
            StatusCode::NOT_FOUND
        } else {
            StatusCode::OK
        };
        assert_eq!(answer.status, expected, "{revision}");
    }
}

#[tokio::test]
async fn an_unknown_tool_is_invalid_params_with_200() {
    let world = World::new().await;
    for revision in REVISIONS {
        let answer = world.call(revision, "no_such_tool", json!({})).await;
        assert_eq!(
            (answer.status, answer.error_code()),
            (StatusCode::OK, -32_602),
            "{revision}"
        );
    }
}

#[tokio::test]
async fn a_call_that_names_no_tool_is_invalid_params() {
    let world = World::new().await;
    for params in [
        json!({}),
        json!({"name": 5}),
        json!({"name": "list_projects", "arguments": 5}),
    ] {
        for revision in REVISIONS {
            let answer = world.rpc(revision, "tools/call", params.clone()).await;
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
            assert_eq!(answer.error_code(), -32_602, "{}", answer.text);
            assert_eq!(answer.json()["id"], 1);
        }
    }
}

#[tokio::test]
async fn params_that_do_not_fit_a_known_method_are_invalid_params() {
    let world = World::new().await;
    for (method, params) in [
        ("initialize", "{}"),
        ("initialize", r#"{"protocolVersion":5}"#),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}","params":{params}}}"#);
        let answer = send(world.post(body).bearer_auth(&world.token)).await;
        assert_eq!(answer.error_code(), -32_602, "{}", answer.text);
        assert_eq!(answer.json()["id"], "a");
    }
}

#[tokio::test]
async fn what_no_json_value_holds_is_told_as_such() {
    let world = World::new().await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for arguments in [
        r#"{"a":1e400}"#,
        r#"{"a":"\ud83d"}"#,
        &format!(r#"{{"a":{deep}}}"#),
    ] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"list_projects","arguments":{arguments}}}}}"#
        );
        let answer = send(world.post(body).bearer_auth(&world.token)).await;
        assert_eq!(
            (answer.status, answer.error_code()),
            (StatusCode::BAD_REQUEST, -32_700)
        );
        assert!(answer.text.contains("surrogate pair"), "{}", answer.text);
        assert_eq!(answer.json()["id"], 7);
    }
}

#[tokio::test]
async fn a_business_error_is_a_result_and_never_a_protocol_error() {
    let world = World::new().await;
    for revision in REVISIONS {
        let error = world
            .call(revision, "get_graph_run", json!({"command_id": "x"}))
            .await;
        assert_eq!(
            error.tool_error(),
            "Graph run not found or access removed",
            "{revision}"
        );
        let error = world
            .call(revision, "get_graph_run", json!({}))
            .await
            .tool_error();
        assert_eq!(
            error, "`command_id` is required: an id, as text.",
            "{revision}"
        );
    }
}

#[tokio::test]
async fn without_a_token_only_the_beginning_and_the_tool_list_are_answered() {
    let world = World::new().await;
    for revision in REVISIONS {
        let params = json!({"name": "list_projects", "arguments": {}});
        let answer = send(world.request(revision, "tools/call", params)).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{revision}");
        assert_eq!(challenge(&answer), "Bearer");
        let listed = send(world.request(revision, "tools/list", json!({}))).await;
        assert_eq!(listed.status, StatusCode::OK, "{revision}: {}", listed.text);
        let other = send(world.request(revision, "resources/list", json!({}))).await;
        assert_eq!(other.status, StatusCode::UNAUTHORIZED, "{revision}");
    }
}

#[tokio::test]
async fn a_bad_token_is_401_even_where_none_is_needed() {
    let world = World::new().await;
    for token in ["cb_wrong", &world.desktop_token] {
        let request = world
            .request(MODERN, "tools/list", json!({}))
            .bearer_auth(token);
        let answer = send(request).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert_eq!(challenge(&answer), "Bearer error=\"invalid_token\"");
    }
    let request = world
        .request(MODERN, "tools/list", json!({}))
        .header("authorization", "Basic eA==");
    assert_eq!(send(request).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_hidden_tool_list_needs_a_token() {
    let options = callboard_hub_http::HttpOptions::new(None, false).unwrap();
    let world = World::with_options(options).await;
    let answer = send(world.request(MODERN, "tools/list", json!({}))).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        world.rpc(MODERN, "tools/list", json!({})).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_missing_scope_is_403_and_names_it() {
    let world = World::new().await;
    let reader = world
        .connect("reader", &[callboard_domain::Scope::Read])
        .await;
    for revision in REVISIONS {
        let arguments = json!({"command_id": "x"});
        let answer = world
            .call_as(&reader, revision, "cancel_graph_run", arguments)
            .await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{revision}");
        let expected = "Bearer error=\"insufficient_scope\", scope=\"osfoundry:run\"";
        assert_eq!(challenge(&answer), expected);
        let read = world
            .call_as(&reader, revision, "list_projects", json!({}))
            .await
            .tool();
        assert_eq!(read["projects"][0]["name"], "Home");
    }
}

#[tokio::test]
async fn headers_that_are_missing_or_contradict_the_body_are_32020() {
    let world = World::new().await;
    let list = || {
        world
            .request(MODERN, "tools/list", json!({}))
            .bearer_auth(&world.token)
    };
    let without_method = {
        let mut request = list().build().unwrap();
        request.headers_mut().remove("mcp-method");
        request
    };
    let other_method = {
        let mut request = list().build().unwrap();
        request
            .headers_mut()
            .insert("mcp-method", "tools/call".parse().unwrap());
        request
    };
    let other_name = {
        let params = json!({"name": "list_projects", "arguments": {}});
        let request = world
            .request(MODERN, "tools/call", params)
            .bearer_auth(&world.token);
        let mut request = request.build().unwrap();
        request
            .headers_mut()
            .insert("mcp-name", "get_graph_run".parse().unwrap());
        request
    };
    let without_version = {
        let mut request = list().build().unwrap();
        request.headers_mut().remove("mcp-protocol-version");
        request
    };
    let other_version = {
        let mut request = list().build().unwrap();
        let older = "2025-11-25".parse().unwrap();
        request.headers_mut().insert("mcp-protocol-version", older);
        request
    };
    let (without_name, malformed_name) = {
        let params = json!({"name": "list_projects", "arguments": {}});
        let request = world
            .request(MODERN, "tools/call", params)
            .bearer_auth(&world.token);
        let mut without = request.build().unwrap();
        let mut malformed = without.try_clone().unwrap();
        without.headers_mut().remove("mcp-name");
        let broken = "=?base64?!!!?=".parse().unwrap();
        malformed.headers_mut().insert("mcp-name", broken);
        (without, malformed)
    };
    for request in [
        without_method,
        other_method,
        other_name,
        without_version,
        other_version,
        without_name,
        malformed_name,
    ] {
        let response = world.client.execute(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"]["code"], -32_020, "{body}");
    }
}

#[tokio::test]
async fn an_unknown_version_is_32022_and_names_those_that_are_served() {
    let world = World::new().await;
    let mut request = world
        .request(MODERN, "tools/list", json!({}))
        .bearer_auth(&world.token)
        .build()
        .unwrap();
    let body = String::from_utf8(request.body().unwrap().as_bytes().unwrap().to_vec()).unwrap();
    *request.body_mut() = Some(body.replace(MODERN, "2099-01-01").into());
    request
        .headers_mut()
        .insert("mcp-protocol-version", "2099-01-01".parse().unwrap());
    let response = world.client.execute(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], -32_022, "{body}");
    assert_eq!(body["error"]["data"]["requested"], "2099-01-01");
    let supported = body["error"]["data"]["supported"].as_array().unwrap();
    assert!(supported.contains(&json!(MODERN)), "{body}");
}

#[tokio::test]
async fn a_missing_meta_key_is_invalid_params_with_400() {
    let world = World::new().await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
    }}});
    let request = world
        .post(message.to_string())
        .bearer_auth(&world.token)
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "tools/list");
    let answer = send(request).await;
    assert_eq!(
        (answer.status, answer.error_code()),
        (StatusCode::BAD_REQUEST, -32_602)
    );
}

#[tokio::test]
async fn what_is_no_message_gets_400_and_a_json_rpc_error() {
    let world = World::new().await;
    for (body, code) in [
        ("{\"jsonrpc\":\"2.0\",", -32_700),
        ("", -32_700),
        ("null", -32_600),
        ("\"text\"", -32_600),
        ("{}", -32_600),
        ("[]", -32_600),
        (
            "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            -32_600,
        ),
        (
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
            -32_600,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32_600,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
            -32_600,
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}",
            -32_600,
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", -32_600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", -32_600),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"\\ud83d\"}}",
            -32_700,
        ),
    ] {
        let answer = send(world.post(body).bearer_auth(&world.token)).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{body}: {}",
            answer.text
        );
        assert_eq!(answer.error_code(), code, "{body}: {}", answer.text);
        assert_eq!(answer.headers[CONTENT_TYPE], "application/json");
    }
    let request = world
        .post("")
        .body(vec![b'"', 0xff, b'"'])
        .bearer_auth(&world.token);
    assert_eq!(send(request).await.error_code(), -32_700);
}

#[tokio::test]
async fn other_http_methods_are_405_and_say_post() {
    let world = World::new().await;
    for path in ["/mcp", "/api/v1/external-mcp"] {
        for request in [
            world.client.get(world.url(path)),
            world.client.delete(world.url(path)),
        ] {
            let answer = send(request.bearer_auth(&world.token)).await;
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
            assert_eq!(answer.headers[ALLOW], "POST");
        }
    }
}

#[tokio::test]
async fn sloppy_accept_headers_are_served_and_impossible_ones_are_406() {
    let world = World::new().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let with = |accept: Option<&str>| {
        let request = world
            .client
            .post(world.url("/mcp"))
            .header("content-type", "application/json; charset=utf-8");
        let request = match accept {
            Some(accept) => request.header("accept", accept),
            None => request,
        };
        send(request.body(ping))
    };
    for accept in [
        "*/*",
        "application/json",
        "text/event-stream",
        "application/json;q=0.9, */*",
    ] {
        assert_eq!(with(Some(accept)).await.status, StatusCode::OK, "{accept}");
    }
    assert_eq!(with(None).await.status, StatusCode::OK);
    assert_eq!(
        with(Some("text/html")).await.status,
        StatusCode::NOT_ACCEPTABLE
    );
}

#[tokio::test]
async fn a_body_beyond_eight_mebibytes_is_413_and_another_content_type_415() {
    let world = World::new().await;
    let long = format!(
        "{{\"jsonrpc\":\"2.0\",\"x\":\"{}\"}}",
        "a".repeat(8 * 1024 * 1024)
    );
    let answer = send(world.post(long).bearer_auth(&world.token)).await;
    assert_eq!(
        (answer.status, answer.error_code()),
        (StatusCode::PAYLOAD_TOO_LARGE, -32_600)
    );
    let request = world
        .client
        .post(world.url("/mcp"))
        .header("content-type", "text/plain")
        .body("{}");
    let answer = send(request).await;
    assert_eq!(
        (answer.status, answer.error_code()),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, -32_600)
    );
}

#[tokio::test]
async fn a_name_header_in_base64_is_read() {
    let world = World::new().await;
    let params = json!({"name": "list_projects", "arguments": {}});
    let request = world
        .request(MODERN, "tools/call", params)
        .bearer_auth(&world.token);
    let mut request = request.build().unwrap();
    let encoded = "=?base64?bGlzdF9wcm9qZWN0cw==?=".parse().unwrap();
    request.headers_mut().insert("mcp-name", encoded);
    assert_eq!(
        world.client.execute(request).await.unwrap().status(),
        StatusCode::OK
    );
}
