//! The configured agents: which provider a call goes to, and what it reserves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use callboard_ambient::{Clock, Entropy};
use callboard_domain::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::budget::Uncapped;
use crate::call::Call;
use crate::network::NetworkProvider;
use crate::{
    AgentAnswer, AgentError, AgentErrorCode, AgentRequest, Budget, ConfigError, DEFAULT_MAX_TOKENS,
    ModelProvider, ProviderConfig, Schema, ScriptedProvider, Usage, estimate_text_tokens,
};

/// Longest time for all tries of a call that names none, in milliseconds.
const TIMEOUT_MS: u64 = 600_000;

/// The configured agents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Agents {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    providers: BTreeMap<String, Provider>,
    default: Option<String>,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
}

#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) model: Box<dyn ModelProvider>,
    /// Nobody calls this provider before then: all agents share one answer to a 429.
    pub(crate) not_before: Mutex<Option<Timestamp>>,
}

impl Agents {
    /// Agents that call the configured providers. `default` names the one used by calls without
    /// a profile; it may be left out when there is exactly one. Keys are read from the
    /// environment here, once.
    ///
    /// # Errors
    /// Every variant of [`ConfigError`].
    pub fn from_config(
        providers: &BTreeMap<String, ProviderConfig>,
        default: Option<&str>,
        clock: Clock,
        entropy: Entropy,
    ) -> Result<Self, ConfigError> {
        let known = || providers.keys().cloned().collect::<Vec<_>>().join(", ");
        let default = match default {
            Some(name) if !providers.contains_key(name) => {
                return Err(ConfigError::UnknownDefault {
                    name: name.to_owned(),
                    known: known(),
                });
            }
            Some(name) => Some(name.to_owned()),
            None if providers.len() > 1 => return Err(ConfigError::NoDefault { known: known() }),
            None => providers.keys().next().cloned(),
        };
        let mut models = BTreeMap::new();
        for (name, config) in providers {
            let provider = NetworkProvider::new(name, config, clock.clone())?;
            models.insert(name.clone(), Provider::new(provider));
        }
        Ok(Self::new(models, default, clock, entropy))
    }

    /// Agents that answer from a script.
    pub fn scripted(provider: ScriptedProvider) -> Self {
        Self::with_provider("scripted", provider, Clock::system(), Entropy::system())
    }

    /// Agents that all use one provider.
    pub fn with_provider(
        name: &str,
        provider: impl ModelProvider + 'static,
        clock: Clock,
        entropy: Entropy,
    ) -> Self {
        let models = BTreeMap::from([(name.to_owned(), Provider::new(provider))]);
        Self::new(models, Some(name.to_owned()), clock, entropy)
    }

    /// No agents: each call fails with a reason that tells how to configure a provider.
    pub fn none() -> Self {
        Self::new(BTreeMap::new(), None, Clock::system(), Entropy::system())
    }

    fn new(
        providers: BTreeMap<String, Provider>,
        default: Option<String>,
        clock: Clock,
        entropy: Entropy,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                providers,
                default,
                clock,
                entropy,
            }),
        }
    }

    /// Tokens to reserve before a call is dispatched: the estimate of what the model reads in the
    /// first try, and all that it may write. Further tries are a matter of [`Budget`].
    pub fn estimate_tokens(request: &AgentRequest) -> u64 {
        let schema = request
            .schema
            .as_ref()
            .map_or(0, |schema| estimate_text_tokens(&schema.to_string()));
        estimate_text_tokens(&request.prompt)
            .saturating_add(schema)
            .saturating_add(u64::from(request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS)))
    }

    /// Runs one agent call to its end without a budget. `cancel` aborts what is in flight.
    ///
    /// # Errors
    /// [`AgentError`] with the code a script sees, and the tokens of every try.
    pub async fn run(
        &self,
        request: AgentRequest,
        cancel: CancellationToken,
    ) -> Result<AgentAnswer, AgentError> {
        self.run_within(&Uncapped, request, cancel).await
    }

    /// Runs one agent call to its end; `budget` is asked before every try but the first. `cancel`
    /// aborts what is in flight.
    ///
    /// # Errors
    /// [`AgentError`] with the code a script sees, and the tokens of every try.
    pub async fn run_within(
        &self,
        budget: &dyn Budget,
        request: AgentRequest,
        cancel: CancellationToken,
    ) -> Result<AgentAnswer, AgentError> {
        let fail = |code, message| AgentError {
            code,
            message,
            usage: Usage::default(),
        };
        let provider = self.provider(request.profile.as_deref())?;
        let schema = match &request.schema {
            Some(schema) => Some(
                Schema::object(schema)
                    .map_err(|error| fail(AgentErrorCode::BadRequest, error.to_string()))?,
            ),
            None => None,
        };
        let timeout_ms = request.timeout_ms.unwrap_or(TIMEOUT_MS);
        let call = Call::new(provider, &self.shared, budget, &cancel, timeout_ms);
        Box::pin(call.run(request, schema)).await
    }

    fn provider(&self, profile: Option<&str>) -> Result<&Provider, AgentError> {
        let providers = &self.shared.providers;
        let name = profile.or(self.shared.default.as_deref());
        let message = match name {
            Some(name) => match providers.get(name) {
                Some(provider) => return Ok(provider),
                None if providers.is_empty() => NO_PROVIDER.to_owned(),
                None => format!(
                    "no provider is named \"{name}\"; configured: {}",
                    providers.keys().cloned().collect::<Vec<_>>().join(", ")
                ),
            },
            None => NO_PROVIDER.to_owned(),
        };
        let code = match profile {
            Some(_) if !providers.is_empty() => AgentErrorCode::BadRequest,
            Some(_) | None => AgentErrorCode::AgentFailed,
        };
        Err(AgentError {
            code,
            message,
            usage: Usage::default(),
        })
    }
}

const NO_PROVIDER: &str = "no model provider is configured: add a [providers.NAME] table with \
                           kind and model to the desktop's configuration";

impl Provider {
    fn new(model: impl ModelProvider + 'static) -> Self {
        Self {
            model: Box::new(model),
            not_before: Mutex::new(None),
        }
    }
}
