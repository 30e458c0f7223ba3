//! Providers as people name them in the configuration: `[providers.NAME] kind, base_url, model,
//! api_key_env`.

use serde::{Deserialize, Serialize};

/// One `[providers.NAME]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The protocol, or the name of a local server whose address is known.
    pub kind: ProviderKind,
    /// Address up to and including the version, such as `http://127.0.0.1:8080/v1`. May be left
    /// out where the kind has a usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Model to use when a call names none.
    pub model: String,
    /// Environment variable that holds the key. Keys never stand in the file itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
}

/// Which protocol a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// The Chat Completions protocol, which most servers speak.
    OpenAi,
    /// The Messages protocol.
    Anthropic,
    /// Ollama's own protocol. Its Chat Completions endpoint silently cuts long prompts.
    Ollama,
    /// LM Studio on this machine.
    LmStudio,
    /// The server of llama.cpp on this machine.
    LlamaCpp,
    /// vLLM on this machine.
    Vllm,
}

/// The protocol proper, without presets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    ChatCompletions,
    Messages,
    Ollama,
}

impl ProviderKind {
    pub(crate) const fn protocol(self) -> Protocol {
        match self {
            Self::OpenAi | Self::LmStudio | Self::LlamaCpp | Self::Vllm => {
                Protocol::ChatCompletions
            }
            Self::Anthropic => Protocol::Messages,
            Self::Ollama => Protocol::Ollama,
        }
    }

    /// Where the provider usually listens: the vendors' documented defaults.
    const fn usual_base_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1/",
            Self::Anthropic => "https://api.anthropic.com/v1/",
            Self::Ollama => "http://127.0.0.1:11434/",
            Self::LmStudio => "http://127.0.0.1:1234/v1/",
            Self::LlamaCpp => "http://127.0.0.1:8080/v1/",
            Self::Vllm => "http://127.0.0.1:8000/v1/",
        }
    }
}

impl ProviderConfig {
    /// The address with the slash at its end that paths are appended to.
    pub(crate) fn endpoint(&self) -> String {
        let base = self
            .base_url
            .as_deref()
            .unwrap_or(self.kind.usual_base_url());
        format!("{}/", base.trim_end_matches('/'))
    }
}

/// Why the configured providers cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The variable that should hold a key is not set.
    #[error("provider \"{provider}\": the environment variable {variable} is not set")]
    KeyMissing {
        /// Name of the provider.
        provider: String,
        /// Name of the variable.
        variable: String,
    },
    /// The address is no HTTP address.
    #[error("provider \"{provider}\": base_url must begin with http:// or https://")]
    BadAddress {
        /// Name of the provider.
        provider: String,
    },
    /// The default provider is not among the configured ones.
    #[error("the default provider \"{name}\" is not configured; configured: {known}")]
    UnknownDefault {
        /// The name that was asked for.
        name: String,
        /// The configured names.
        known: String,
    },
    /// Several providers and no default.
    #[error("several providers are configured ({known}): say which one is the default")]
    NoDefault {
        /// The configured names.
        known: String,
    },
    /// The HTTP client could not be made.
    #[error("the HTTP client could not be made: {0}")]
    Client(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_knows_where_its_server_listens_and_an_address_of_ones_own_wins() {
        let config: ProviderConfig =
            serde_json::from_str(r#"{"kind":"llamacpp","model":"tiny"}"#).unwrap();
        assert_eq!(config.endpoint(), "http://127.0.0.1:8080/v1/");
        let text = r#"{"kind":"openai","model":"m","base_url":"https://example.org/api/v1"}"#;
        let config: ProviderConfig = serde_json::from_str(text).unwrap();
        assert_eq!(config.endpoint(), "https://example.org/api/v1/");
    }

    #[test]
    fn a_misspelt_key_in_the_configuration_is_refused() {
        let text = r#"{"kind":"openai","model":"m","api_key":"secret"}"#;
        assert!(serde_json::from_str::<ProviderConfig>(text).is_err());
    }
}
