//! What can happen to a task.

use crate::{ChatLinkId, ClaimId, Digest};

/// Something that happens to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An assignment with the idempotency key of this task.
    Assign {
        /// Digest of the request that came with the key.
        request: Digest,
    },
    /// A chat wants to do it.
    Claim {
        /// The chat.
        link_id: ChatLinkId,
        /// The id that the claim gets if it is new.
        claim_id: ClaimId,
        /// How long the claim lasts where somebody else could take over, in milliseconds.
        lease_ms: u64,
    },
    /// A chat says how it went.
    Submit(Submission),
    /// The owner takes it back.
    Cancel,
    /// A link is gone: its owner revoked it, or its connection.
    RevokeLink {
        /// The link.
        link_id: ChatLinkId,
    },
}

/// What a chat sends when it is done with a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The chat.
    pub link_id: ChatLinkId,
    /// The claim under which it worked.
    pub claim_id: ClaimId,
    /// How it went.
    pub verdict: Verdict,
    /// The result, already bounded.
    pub result: String,
}

/// How a chat says that a task went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Completed,
    /// It could not be done.
    Failed,
}

impl Verdict {
    /// Both, as their words.
    pub const WORDS: [&str; 2] = [Self::Completed.as_str(), Self::Failed.as_str()];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// The verdict that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Completed, Self::Failed]
            .into_iter()
            .find(|verdict| verdict.as_str() == word)
    }
}

impl Submission {
    /// SHA-256 of status and result (mission §4).
    pub fn digest(&self) -> Digest {
        Digest::of(&[self.verdict.as_str().as_bytes(), self.result.as_bytes()])
    }
}
