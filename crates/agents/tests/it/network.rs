//! The wire of OpenAI-compatible, Anthropic and Ollama servers.

use std::collections::BTreeMap;

use callboard_agents::{
    AgentErrorCode, AgentRequest, Agents, ConfigError, ProviderConfig, ProviderKind,
};
use callboard_ambient::{Clock, Entropy};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::server::{Reply, Server};

fn config(kind: ProviderKind, base_url: &str) -> BTreeMap<String, ProviderConfig> {
    let config = ProviderConfig {
        kind,
        base_url: Some(base_url.to_owned()),
        model: "tiny".to_owned(),
        api_key_env: None,
    };
    BTreeMap::from([("local".to_owned(), config)])
}

fn agents(kind: ProviderKind, base_url: &str) -> Agents {
    let entropy = Entropy::seeded(1, "jitter");
    Agents::from_config(&config(kind, base_url), None, Clock::system(), entropy).unwrap()
}

fn completion(text: &str) -> String {
    json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "tiny",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": text } }],
        "usage": { "prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16 },
    })
    .to_string()
}

fn ask(prompt: &str) -> AgentRequest {
    AgentRequest {
        prompt: prompt.to_owned(),
        max_tokens: Some(64),
        ..AgentRequest::default()
    }
}

#[tokio::test]
async fn a_chat_completion_is_asked_for_and_its_usage_counted() {
    let server = Server::start(vec![Reply("200 OK", "", completion("{\"ok\":true}"))]).await;
    let request = AgentRequest {
        schema: Some(
            json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] }),
        ),
        model: Some("other".to_owned()),
        ..ask("\u{d55c}")
    };
    let answer = agents(ProviderKind::OpenAi, &server.base_url)
        .run(request, CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(answer.value, Some(json!({ "ok": true })));
    assert_eq!(
        (
            answer.usage.input_tokens,
            answer.usage.output_tokens,
            answer.usage.estimated
        ),
        (11, 5, false)
    );
    let seen = &server.seen()[0];
    assert!(
        seen.head.starts_with("POST /v1/chat/completions "),
        "{}",
        seen.head
    );
    assert_eq!(seen.body["model"], "other");
    assert_eq!(seen.body["max_tokens"], 64);
    assert_eq!(seen.body["response_format"]["type"], "json_schema");
    assert!(
        seen.body["messages"][0]["content"]
            .to_string()
            .contains('\u{d55c}')
    );
}

#[tokio::test]
async fn a_model_whose_name_ends_like_an_effort_keeps_its_name() {
    let server = Server::start(vec![Reply("200 OK", "", completion("hi"))]).await;
    let agents = agents(ProviderKind::OpenAi, &server.base_url);
    for (model, effort, sent) in [
        ("qwen-max", None, json!(null)),
        ("team::model-high", Some("low".to_owned()), json!("low")),
    ] {
        let model = Some(model.to_owned());
        let request = AgentRequest {
            model: model.clone(),
            effort,
            ..ask("x")
        };
        agents.run(request, CancellationToken::new()).await.unwrap();
        let seen = server.seen().pop().unwrap();
        assert_eq!(
            (seen.body["model"].as_str(), &seen.body["reasoning_effort"]),
            (model.as_deref(), &sent)
        );
    }
    let request = AgentRequest {
        effort: Some("huge".to_owned()),
        ..ask("x")
    };
    let error = agents
        .run(request, CancellationToken::new())
        .await
        .unwrap_err();
    assert!(error.message.contains("effort \"huge\""), "{error}");
}

#[tokio::test]
async fn anthropic_and_ollama_speak_their_own_protocols() {
    let message = json!({
        "id": "m", "type": "message", "role": "assistant", "model": "tiny", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "hello" }],
        "usage": { "input_tokens": 8, "output_tokens": 3 },
    });
    let server = Server::start(vec![Reply("200 OK", "", message.to_string())]).await;
    let answer = agents(ProviderKind::Anthropic, &server.base_url)
        .run(ask("x"), CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((answer.text.as_str(), answer.usage.total()), ("hello", 11));
    assert!(server.seen()[0].head.starts_with("POST /v1/messages "));

    let chat = json!({
        "model": "tiny", "created_at": "2026-11-30T00:00:00Z", "done": true, "done_reason": "stop",
        "message": { "role": "assistant", "content": "hello" },
        "prompt_eval_count": 7, "eval_count": 2,
    });
    let server = Server::start(vec![Reply("200 OK", "", chat.to_string())]).await;
    let base_url = server.base_url.trim_end_matches("/v1");
    let answer = agents(ProviderKind::Ollama, base_url)
        .run(ask("x"), CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((answer.text.as_str(), answer.usage.total()), ("hello", 9));
    assert!(server.seen()[0].head.starts_with("POST /api/chat "));
}

#[tokio::test]
async fn a_server_without_usage_is_charged_by_estimate() {
    let body = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "tiny",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "12345678" } }],
    });
    let server = Server::start(vec![Reply("200 OK", "", body.to_string())]).await;
    let answer = agents(ProviderKind::OpenAi, &server.base_url)
        .run(ask("1234"), CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((answer.usage.total(), answer.usage.estimated), (3, true));
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_and_then_answered() {
    let limited = Reply(
        "429 Too Many Requests",
        "retry-after: 0\r\n",
        r#"{"error":{"message":"slow down"}}"#.to_owned(),
    );
    let server = Server::start(vec![limited, Reply("200 OK", "", completion("fine"))]).await;
    let answer = agents(ProviderKind::OpenAi, &server.base_url)
        .run(ask("x"), CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.usage.total()),
        ("fine", 16),
        "a 429 costs nothing"
    );
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn failures_say_what_they_are_and_never_show_the_key() {
    for (status, headers, body, code, words) in [
        (
            "401 Unauthorized",
            "",
            r#"{"error":{"message":"bad key","type":"auth"}}"#,
            AgentErrorCode::ProviderLimit,
            "bad key (auth)",
        ),
        (
            "429 Too Many Requests",
            "",
            r#"{"error":{"message":"pay","type":"insufficient_quota"}}"#,
            AgentErrorCode::ProviderLimit,
            "pay",
        ),
        (
            "429 Too Many Requests",
            "retry-after: 7200\r\n",
            r#"{"error":{"message":"later"}}"#,
            AgentErrorCode::ProviderLimit,
            "asked to wait 7200 s",
        ),
        (
            "400 Bad Request",
            "",
            r#"{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}"#,
            AgentErrorCode::AgentFailed,
            "too long (exceed_context_size_error)",
        ),
        (
            "404 Not Found",
            "",
            "no such page",
            AgentErrorCode::AgentFailed,
            "no such page",
        ),
    ] {
        let server = Server::start(vec![Reply(status, headers, body.to_owned())]).await;
        let error = agents(ProviderKind::OpenAi, &server.base_url)
            .run(ask("x"), CancellationToken::new())
            .await
            .unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(error.message.contains(words), "{error}");
        assert_eq!(
            (server.seen().len(), error.usage.total()),
            (1, 0),
            "{status}"
        );
    }
}

#[tokio::test]
async fn a_hung_server_is_left_when_the_call_is_cancelled() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let cancel = CancellationToken::new();
    let agents = agents(ProviderKind::OpenAi, &base_url);
    let run = agents.run(ask("x"), cancel.clone());
    let watch = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut first = [0; 1];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut first)
            .await
            .unwrap();
        cancel.cancel();
        let mut rest = Vec::new();
        // The end of the stream: the connection was closed, so the server can stop generating.
        tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest)
            .await
            .unwrap();
    };
    let (outcome, ()) = tokio::join!(run, watch);
    assert_eq!(outcome.unwrap_err().code, AgentErrorCode::Cancelled);
}

#[test]
fn a_configuration_that_cannot_work_is_refused_at_start() {
    let build = |providers: &BTreeMap<String, ProviderConfig>, default| {
        Agents::from_config(providers, default, Clock::system(), Entropy::system()).map(|_| ())
    };
    let mut providers = config(ProviderKind::OpenAi, "localhost:8080");
    assert!(matches!(
        build(&providers, None),
        Err(ConfigError::BadAddress { .. })
    ));
    providers = config(ProviderKind::OpenAi, "http://127.0.0.1:1/v1");
    assert!(matches!(
        build(&providers, Some("other")),
        Err(ConfigError::UnknownDefault { .. })
    ));
    providers.insert("second".to_owned(), providers["local"].clone());
    assert!(matches!(
        build(&providers, None),
        Err(ConfigError::NoDefault { .. })
    ));
    assert_eq!(build(&providers, Some("second")), Ok(()));
    if let Some(second) = providers.get_mut("second") {
        second.api_key_env = Some("CALLBOARD_TEST_VARIABLE_THAT_IS_NOT_SET".to_owned());
    }
    assert!(matches!(
        build(&providers, Some("local")),
        Err(ConfigError::KeyMissing { .. })
    ));
}
