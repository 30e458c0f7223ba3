//! Providers over HTTP, through `genai`. Only the wire: one call, and what its failure means.

use std::net::IpAddr;
use std::time::Duration;

use callboard_ambient::Clock;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatResponse, ChatResponseFormat, JsonSpec,
    ReasoningEffort,
};
use genai::resolver::{AuthData, Endpoint};
use genai::webc::Error as WebError;
use genai::{Client, ModelIden, ServiceTarget};
use tokio_util::sync::CancellationToken;

use crate::config::Protocol;
use crate::retry::parse_retry_after;
use crate::{
    BoxFuture, ConfigError, Message, ModelProvider, ModelReply, ModelRequest, ProviderConfig,
    ProviderError, ProviderErrorKind, Role, StopReason, Usage,
};

/// Longest time to open a connection, in milliseconds (our choice).
const CONNECT_TIMEOUT_MS: u64 = 10_000;
/// Longest part of a server's error text that is passed on, in UTF-16 units.
const SERVER_TEXT_UTF16_MAX: usize = 300;

/// One configured provider.
#[derive(Debug)]
pub(crate) struct NetworkProvider {
    client: Client,
    kind: AdapterKind,
    endpoint: String,
    model: String,
    key: Key,
    clock: Clock,
}

/// A key that never shows in debug output.
struct Key(String);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

impl NetworkProvider {
    pub(crate) fn new(
        name: &str,
        config: &ProviderConfig,
        clock: Clock,
    ) -> Result<Self, ConfigError> {
        let endpoint = config.endpoint();
        if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
            return Err(ConfigError::BadAddress {
                provider: name.to_owned(),
            });
        }
        let key = match &config.api_key_env {
            Some(variable) => std::env::var(variable).map_err(|_| ConfigError::KeyMissing {
                provider: name.to_owned(),
                variable: variable.clone(),
            })?,
            // Local servers want the header but not what stands in it.
            None => "none".to_owned(),
        };
        Ok(Self {
            client: Client::builder()
                .with_reqwest(http_client(&endpoint)?)
                .build()
                .map_err(client_error)?,
            kind: match config.kind.protocol() {
                Protocol::ChatCompletions => AdapterKind::OpenAI,
                Protocol::Messages => AdapterKind::Anthropic,
                Protocol::Ollama => AdapterKind::Ollama,
            },
            endpoint,
            model: config.model.clone(),
            key: Key(key),
            clock,
        })
    }

    async fn call(&self, request: &ModelRequest) -> Result<ModelReply, ProviderError> {
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(self.endpoint.clone()),
            auth: AuthData::from_single(self.key.0.clone()),
            model: ModelIden::new(
                self.kind,
                request.model.clone().unwrap_or_else(|| self.model.clone()),
            ),
        };
        let messages = request.messages.iter().map(chat_message).collect();
        let mut options = chat_options(request)?;
        if self.kind == AdapterKind::OpenAI {
            options = options.with_extra_body(exact_model(&target.model.model_name, request));
        }
        let response = self
            .client
            .exec_chat(target, ChatRequest::new(messages), Some(&options))
            .await
            .map_err(|error| self.explain(&error))?;
        Ok(reply(&response))
    }

    /// Turns the library's error into what it means for another try.
    fn explain(&self, error: &genai::Error) -> ProviderError {
        let retry_after_ms = error
            .headers()
            .and_then(|headers| headers.get("retry-after"))
            .and_then(|value| value.to_str().ok())
            .and_then(|value| parse_retry_after(value, self.clock.now()));
        let Some(status) = error.status() else {
            return self.explain_transport(error);
        };
        let body = server_text(error);
        let quota = body.contains("insufficient_quota") || body.contains("credit balance");
        let kind = match status.as_u16() {
            401..=403 => ProviderErrorKind::Limit,
            429 if quota => ProviderErrorKind::Limit,
            429 => ProviderErrorKind::RateLimited { retry_after_ms },
            408 => ProviderErrorKind::TimedOut,
            500..=599 => ProviderErrorKind::Unavailable { retry_after_ms },
            _ => ProviderErrorKind::Rejected,
        };
        ProviderError {
            kind,
            message: format!("{} answered {status}: {body}", self.endpoint),
            usage: None,
        }
    }

    fn explain_transport(&self, error: &genai::Error) -> ProviderError {
        let mut source: Option<&(dyn std::error::Error + 'static)> =
            transport_error(error).map(|error| error as &(dyn std::error::Error + 'static));
        let (timed_out, connecting) = transport_error(error).map_or((false, false), |error| {
            (error.is_timeout(), error.is_connect())
        });
        let mut cause = None;
        while let Some(inner) = source {
            cause = Some(inner.to_string());
            source = inner.source();
        }
        let endpoint = &self.endpoint;
        let (kind, message) = if timed_out {
            (
                ProviderErrorKind::TimedOut,
                format!("{endpoint} did not answer in time"),
            )
        } else if connecting {
            let cause = cause.unwrap_or_else(|| "no reason given".to_owned());
            let message = format!("cannot reach {endpoint} ({cause}): is the server running?");
            (ProviderErrorKind::Unreachable, message)
        } else if let Some(cause) = cause {
            let message = format!("the connection to {endpoint} broke: {cause}");
            (
                ProviderErrorKind::Unavailable {
                    retry_after_ms: None,
                },
                message,
            )
        } else {
            let text = error.to_string();
            let text = callboard_domain::cut_utf16(&text, SERVER_TEXT_UTF16_MAX);
            (ProviderErrorKind::Rejected, format!("{endpoint}: {text}"))
        };
        ProviderError {
            kind,
            message,
            usage: None,
        }
    }
}

impl ModelProvider for NetworkProvider {
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        // Dropping the future closes the connection, which ends generation at the server.
        Box::pin(self.call(request))
    }
}

fn client_error(error: impl std::fmt::Display) -> ConfigError {
    ConfigError::Client(error.to_string())
}

fn http_client(endpoint: &str) -> Result<reqwest::Client, ConfigError> {
    // The error says that a provider is installed already, which is just as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut client = reqwest::Client::builder()
        .connect_timeout(Duration::from_millis(CONNECT_TIMEOUT_MS))
        .redirect(reqwest::redirect::Policy::none());
    if is_loopback(endpoint) {
        // A proxy has its own loopback, where no server of this machine listens.
        client = client.no_proxy();
    }
    client.build().map_err(client_error)
}

/// Whether an address names this machine itself.
fn is_loopback(endpoint: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(endpoint) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

fn chat_message(message: &Message) -> ChatMessage {
    match message.role {
        Role::User => ChatMessage::user(message.text.clone()),
        Role::Assistant => ChatMessage::assistant(message.text.clone()),
    }
}

fn chat_options(request: &ModelRequest) -> Result<ChatOptions, ProviderError> {
    let mut options = ChatOptions::default().with_max_tokens(request.max_tokens);
    if let Some(schema) = &request.schema {
        let format = JsonSpec::new("answer", schema.clone());
        options = options.with_response_format(ChatResponseFormat::JsonSpec(format));
    }
    if let Some(word) = &request.effort {
        let effort = ReasoningEffort::from_keyword(word).ok_or_else(|| ProviderError {
            kind: ProviderErrorKind::Rejected,
            message: format!(
                "effort \"{word}\" is not one of none, minimal, low, medium, high, xhigh, max"
            ),
            usage: None,
        })?;
        options = options.with_reasoning_effort(effort);
    }
    Ok(options)
}

/// The library takes the end of a name such as `qwen-max` for a reasoning effort. What is said
/// here is sent as it stands.
fn exact_model(model: &str, request: &ModelRequest) -> serde_json::Value {
    let looks_like_effort = model
        .rsplit_once('-')
        .is_some_and(|(_, end)| ReasoningEffort::from_keyword(end).is_some());
    if looks_like_effort && request.effort.is_none() {
        return serde_json::json!({ "model": model, "reasoning_effort": null });
    }
    serde_json::json!({ "model": model })
}

fn reply(response: &ChatResponse) -> ModelReply {
    use genai::chat::StopReason as Wire;
    let stop = match &response.stop_reason {
        Some(Wire::MaxTokens(_)) => StopReason::MaxTokens,
        Some(Wire::ContentFilter(_)) => StopReason::Refused,
        Some(Wire::Completed(_) | Wire::ToolCall(_) | Wire::StopSequence(_) | Wire::Other(_))
        | None => StopReason::Finished,
    };
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let usage = match (
        count(response.usage.prompt_tokens),
        count(response.usage.completion_tokens),
    ) {
        (None, None) => None,
        (input, output) => Some(Usage {
            input_tokens: input.unwrap_or(0),
            output_tokens: output.unwrap_or(0),
            estimated: input.is_none() || output.is_none(),
        }),
    };
    ModelReply {
        text: response.texts().concat(),
        stop,
        usage,
        cost: None,
    }
}

/// What the server said in its error body, bounded.
fn server_text(error: &genai::Error) -> String {
    let body = if let Some(WebError::ResponseFailedStatus { body, .. }) = web_error(error) {
        body.as_str()
    } else if let genai::Error::HttpError { body, .. } = error {
        body.as_str()
    } else {
        "no details"
    };
    let parsed = serde_json::from_str::<serde_json::Value>(body).ok();
    let message = parsed.and_then(|value| {
        let error = value.get("error").unwrap_or(&value);
        let text = error.get("message").or(Some(error))?.as_str()?;
        let kind = error
            .get("type")
            .or(error.get("code"))
            .and_then(|kind| kind.as_str());
        Some(kind.map_or(text.to_owned(), |kind| format!("{text} ({kind})")))
    });
    let text = message.as_deref().unwrap_or(body).trim();
    callboard_domain::cut_utf16(text, SERVER_TEXT_UTF16_MAX).to_owned()
}

fn transport_error(error: &genai::Error) -> Option<&reqwest::Error> {
    if let Some(WebError::Reqwest(error)) = web_error(error) {
        Some(error)
    } else {
        None
    }
}

fn web_error(error: &genai::Error) -> Option<&WebError> {
    if let genai::Error::WebModelCall { webc_error, .. }
    | genai::Error::WebAdapterCall { webc_error, .. } = error
    {
        return Some(webc_error);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_from_what_only_looks_like_it() {
        for near in [
            "http://localhost:11434/v1/",
            "http://127.0.0.1:1/",
            "http://127.8.8.8/",
            "http://[::1]:8080/",
            "http://[::ffff:127.0.0.1]/",
            "http://LOCALHOST./",
        ] {
            assert!(is_loopback(near), "{near}");
        }
        for far in [
            "https://api.example.org/v1/",
            "http://localhost.example.org/",
            "http://127.0.0.1.example.org/",
            "http://10.0.0.1/",
            "http://localhost@example.org/",
            "http://",
        ] {
            assert!(!is_loopback(far), "{far}");
        }
    }
}
