//! The one trait a model provider implements, and the words it speaks. Retries, budgets and
//! schema checks are not its business.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::Usage;

/// A boxed future that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The script's prompt, or our request to repair an answer.
    User,
    /// An earlier answer of the model.
    Assistant,
}

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub text: String,
}

/// One call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The conversation so far; the last message is the user's.
    pub messages: Vec<Message>,
    /// Model to use instead of the provider's own.
    pub model: Option<String>,
    /// Reasoning effort by its usual word.
    pub effort: Option<String>,
    /// Schema that the server should constrain the answer to, where it can.
    pub schema: Option<Value>,
    /// Longest answer, in tokens. Always sent, so that the reservation is a bound.
    pub max_tokens: u32,
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    Finished,
    /// It reached `max_tokens`, so the answer is cut off.
    MaxTokens,
    /// The provider's filter or the model itself declined.
    Refused,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// The text.
    pub text: String,
    /// Why it ended.
    pub stop: StopReason,
    /// Tokens as the server reported them.
    pub usage: Option<Usage>,
    /// Cost in US dollars as the server reported it.
    pub cost: Option<f64>,
}

/// What kind of failure a provider met, which decides whether another try makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// Too many requests; the server may have said when to come back, in milliseconds from now.
    RateLimited {
        /// The wait that the server asked for.
        retry_after_ms: Option<u64>,
    },
    /// The server failed or was busy (5xx).
    Unavailable {
        /// The wait that the server asked for.
        retry_after_ms: Option<u64>,
    },
    /// No connection could be made.
    Unreachable,
    /// The server did not answer in time.
    TimedOut,
    /// Authentication or quota: no further call will succeed.
    Limit,
    /// The server will not take this request, however often it is sent.
    Rejected,
}

/// A failed model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What kind of failure it is.
    pub kind: ProviderErrorKind,
    /// One sentence; never holds a key.
    pub message: String,
    /// Tokens the failed call used, where the server said so.
    pub usage: Option<Usage>,
}

/// Something that answers prompts.
pub trait ModelProvider: Send + Sync + fmt::Debug {
    /// Calls the model once. Dropping the future, or `cancel`, ends the call at the server's side
    /// as far as the protocol allows.
    ///
    /// # Errors
    /// [`ProviderError`] with the kind that tells whether to try again.
    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>>;
}
