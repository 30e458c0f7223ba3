//! How a use case fails, and what is said about it.

use callboard_domain::Refusal;
use callboard_store::StoreError;
use callboard_wire::Problem;
use callboard_wire::arguments::ArgumentError;

/// Why a use case gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The request does not fit its description; the sentence says what would.
    #[error("{0}")]
    Invalid(String),
    /// The storage failed. Logged where it was noticed; repeating the request is safe.
    #[error("The hub cannot reach its storage right now. Try again in a moment.")]
    Unavailable,
}

impl From<StoreError> for HubError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(refusal) => Self::Refused(refusal),
            StoreError::NameTaken => {
                Self::Invalid("That name is already taken. Choose another one.".to_owned())
            }
            StoreError::Unavailable(source) => {
                tracing::error!(error = %source, "the store failed");
                Self::Unavailable
            }
        }
    }
}

impl From<ArgumentError> for HubError {
    fn from(error: ArgumentError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<HubError> for Problem {
    fn from(error: HubError) -> Self {
        match error {
            HubError::Refused(refusal) => refusal.into(),
            HubError::Invalid(sentence) => Self::new(422, "invalid_request", &sentence),
            HubError::Unavailable => Self::new(503, "unavailable", &error.to_string()),
        }
    }
}
