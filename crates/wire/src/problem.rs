//! How the hub says no over HTTP.

use callboard_domain::Refusal;
use serde::{Deserialize, Serialize};

/// The media type of a [`Problem`] (RFC 9457).
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// The body of a refused or failed request, in the shape of RFC 9457. Never built from a source
/// error, so it holds no path, SQL or id that the caller did not send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `urn:callboard:problem:` and the code. Its presence tells the hub's own answer from one
    /// that something on the way made up.
    #[serde(rename = "type")]
    pub kind: String,
    /// The HTTP status, repeated.
    pub status: u16,
    /// A stable name for programs.
    pub code: String,
    /// One sentence for people.
    pub detail: String,
}

const KIND_PREFIX: &str = "urn:callboard:problem:";

impl Problem {
    /// A problem that is not a refusal of the rules.
    pub fn new(status: u16, code: &str, detail: &str) -> Self {
        let kind = format!("{KIND_PREFIX}{code}");
        Self {
            kind,
            status,
            code: code.to_owned(),
            detail: detail.to_owned(),
        }
    }

    /// The refusal that this problem carries, if it is the hub's own word.
    pub fn refusal(&self) -> Option<Refusal> {
        let own = self.kind.strip_prefix(KIND_PREFIX) == Some(self.code.as_str());
        Refusal::from_code(&self.code).filter(|_| own)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::RunNotFound
            | Refusal::SessionNotFound
            | Refusal::ProjectNotFound
            | Refusal::ChatLinkNotFound
            | Refusal::TaskNotFound
            | Refusal::ArtifactNotFound
            | Refusal::ClaimMissing
            | Refusal::SubmitMissing => 404,
            Refusal::KeyReused
            | Refusal::RunOver
            | Refusal::RunTaken
            | Refusal::StaleExecution
            | Refusal::CompletionDiffers
            | Refusal::DesktopInUse
            | Refusal::LinkKeyReused
            | Refusal::TaskKeyReused
            | Refusal::TooManyLinks
            | Refusal::TooManyTasks
            | Refusal::TooManyArtifacts
            | Refusal::ClaimTaken
            | Refusal::ClaimOver(_)
            | Refusal::SubmitOver(_)
            | Refusal::SubmitLapsed
            | Refusal::SubmitStale
            | Refusal::ArtifactDiffers => 409,
            Refusal::CompletionWithoutExecution
            | Refusal::TooManySessions
            | Refusal::CandidatesApart => 422,
            Refusal::ReportTooLong => 413,
        };
        Self::new(status, refusal.code(), refusal.public_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_survives_the_wire_and_a_foreign_body_is_none() {
        for refusal in Refusal::ALL {
            let json = serde_json::to_string(&Problem::from(refusal)).expect("serialises");
            let back: Problem = serde_json::from_str(&json).expect("parses");
            assert_eq!(back.refusal(), Some(refusal));
        }
        let proxy = Problem {
            kind: "about:blank".into(),
            ..Problem::from(Refusal::RunOver)
        };
        assert_eq!(proxy.refusal(), None);
    }
}
