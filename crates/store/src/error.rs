//! How an operation fails.

use callboard_domain::Refusal;

/// Why an operation gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The rules say no; nothing was stored.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A name that must be unique is taken.
    #[error("the name is already taken")]
    NameTaken,
    /// The storage failed; the operation may or may not have been stored, and repeating it is
    /// safe. The source is for the log, never for a caller.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Wraps a failure of the storage.
    pub fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable(source.into())
    }
}
