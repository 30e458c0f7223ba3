//! One agent call as the engine sees it: the request, the answer, the failure and what it cost.

use std::fmt;

use serde_json::Value;

/// Output bound that is sent, and reserved against the token cap, when a call names none.
///
/// Our choice: long enough for a page of prose, short enough that eight calls in flight reserve
/// less than a cap of 50,000.
pub const DEFAULT_MAX_TOKENS: u32 = 4_096;

/// What a script asks of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentRequest {
    /// The text that the model reads.
    pub prompt: String,
    /// Model to use instead of the provider's own.
    pub model: Option<String>,
    /// Name of the provider in the configuration; the default provider when absent.
    pub profile: Option<String>,
    /// How hard a reasoning model should think: `low`, `medium`, `high` and so on.
    pub effort: Option<String>,
    /// JSON Schema (draft 2020-12, object at the root) that the answer must satisfy.
    pub schema: Option<Value>,
    /// Longest answer, in tokens; [`DEFAULT_MAX_TOKENS`] when absent.
    pub max_tokens: Option<u32>,
    /// Longest time for all tries together, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// Tokens that one or several model calls used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read by the model.
    pub input_tokens: u64,
    /// Tokens written by the model, reasoning included.
    pub output_tokens: u64,
    /// Some of the numbers are estimates, because a server reported none.
    pub estimated: bool,
}

impl Usage {
    /// Tokens in both directions, which is what a token cap counts.
    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The sum of two usages; an estimate on either side makes the sum one.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            estimated: self.estimated || other.estimated,
        }
    }
}

/// What an agent answered.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentAnswer {
    /// The model's own text.
    pub text: String,
    /// The parsed and checked object, when the request named a schema.
    pub value: Option<Value>,
    /// Tokens of every try that led to this answer.
    pub usage: Usage,
    /// What the provider says it cost, in US dollars.
    pub cost: Option<f64>,
}

/// Why an agent call failed; the stable word a script sees as `error.code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentErrorCode {
    /// The provider failed, or none is configured.
    AgentFailed,
    /// The model declined to answer.
    AgentRefused,
    /// No answer within the time allowed.
    AgentTimeout,
    /// No answer matched the schema within the allowed tries.
    SchemaMismatch,
    /// The request itself is wrong (schema, effort, unknown provider).
    BadRequest,
    /// Quota, authentication or repeated rate limiting: further calls would fail as well.
    ProviderLimit,
    /// The run's budget allowed no further try.
    BudgetExceeded,
    /// The call was cancelled.
    Cancelled,
}

impl AgentErrorCode {
    /// The stable word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentFailed => "agent_failed",
            Self::AgentRefused => "agent_refused",
            Self::AgentTimeout => "agent_timeout",
            Self::SchemaMismatch => "schema_mismatch",
            Self::BadRequest => "bad_request",
            Self::ProviderLimit => "provider_limit",
            Self::BudgetExceeded => "budget_exceeded",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for AgentErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed agent call. The tokens of its tries count all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AgentError {
    /// The stable word.
    pub code: AgentErrorCode,
    /// One sentence a stranger can act on.
    pub message: String,
    /// Tokens of the failed tries.
    pub usage: Usage,
}

/// A rough number of tokens in `text`: four ASCII characters a token, one token for every other
/// character. Servers that report no usage are charged by it.
pub fn estimate_text_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text
        .chars()
        .filter(|character| !character.is_ascii())
        .count();
    u64::try_from(ascii.div_ceil(4) + other).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangul_is_charged_a_token_a_syllable_and_english_a_quarter_of_its_letters() {
        assert_eq!(estimate_text_tokens(""), 0);
        assert_eq!(estimate_text_tokens("abcde"), 2);
        assert_eq!(estimate_text_tokens(&"\u{d55c}".repeat(5)), 5);
    }

    #[test]
    fn one_estimate_makes_the_whole_sum_an_estimate() {
        let reported = Usage {
            input_tokens: 3,
            output_tokens: 4,
            estimated: false,
        };
        let guessed = Usage {
            input_tokens: u64::MAX,
            output_tokens: 1,
            estimated: true,
        };
        let sum = reported.plus(guessed);
        assert!(sum.estimated);
        assert_eq!(sum.total(), u64::MAX);
    }
}
