//! One task in each state, and one event of each kind.

use callboard_domain::limits::{ARTIFACTS_PER_CLAIM_MAX, TASK_EXPIRY_MS};
use callboard_domain::linked_task::{
    Event, Submission, Task, Upload, Uploaded, Verdict, decide, settle,
};
use callboard_domain::{ChatLinkId, ClaimId, Decision, Digest, Timestamp};

pub(crate) const T0: Timestamp = Timestamp::from_millis(1_000_000);
pub(crate) const LATER: Timestamp = T0.plus_ms(5_000);
pub(crate) const LEASE_MS: u64 = 60_000;

/// The chat whose claims are ours.
pub(crate) const US: ChatLinkId = ChatLinkId::from_bytes([1; 16]);
/// The other candidate, where there are two.
pub(crate) const RIVAL: ChatLinkId = ChatLinkId::from_bytes([2; 16]);
/// A chat that is no candidate.
pub(crate) const STRANGER: ChatLinkId = ChatLinkId::from_bytes([3; 16]);

/// The claim that we hold wherever a sample says so.
pub(crate) const OURS: ClaimId = ClaimId::from_bytes([11; 16]);
/// That of the rival.
pub(crate) const THEIRS: ClaimId = ClaimId::from_bytes([12; 16]);
/// An id that no sample holds a claim under.
pub(crate) const FRESH: ClaimId = ClaimId::from_bytes([13; 16]);

pub(crate) fn request(byte: u8) -> Digest {
    Digest::from_bytes([byte; 32])
}

pub(crate) fn claim(link_id: ChatLinkId, claim_id: ClaimId) -> Event {
    Event::Claim {
        link_id,
        claim_id,
        lease_ms: LEASE_MS,
    }
}

pub(crate) fn submit(link_id: ChatLinkId, claim_id: ClaimId, result: &str) -> Event {
    submit_as(Verdict::Completed, link_id, claim_id, result)
}

fn submit_as(verdict: Verdict, link_id: ChatLinkId, claim_id: ClaimId, result: &str) -> Event {
    Event::Submit(Submission {
        link_id,
        claim_id,
        verdict,
        result: result.to_owned(),
    })
}

/// A task that waits for `candidates`.
pub(crate) fn queued_for(candidates: &[ChatLinkId]) -> Task {
    Task::assigned(request(1), candidates.to_vec(), T0)
}

/// `task` moved by `event` at [`T0`].
pub(crate) fn after(task: &Task, event: &Event) -> Task {
    match decide(task, event, T0).unwrap() {
        Decision::Moved(next) => next,
        Decision::Replayed | Decision::Unchanged => panic!("{event:?} moves {task:?}"),
    }
}

/// Each state, in every form in which the answers differ.
pub(crate) fn states() -> Vec<(&'static str, Task)> {
    let (alone, shared) = (queued_for(&[US]), queued_for(&[US, RIVAL]));
    let ours = after(&shared, &claim(US, OURS));
    let theirs = after(&shared, &claim(RIVAL, THEIRS));
    let failed = submit_as(Verdict::Failed, US, OURS, "4");
    vec![
        ("queued, we alone", alone.clone()),
        ("queued, two candidates", shared.clone()),
        ("claimed by us alone", after(&alone, &claim(US, OURS))),
        ("claimed by us of two", ours.clone()),
        ("claimed by the other", theirs.clone()),
        (
            "queued after our claim lapsed",
            settle(&ours, T0.plus_ms(LEASE_MS)).unwrap(),
        ),
        ("completed by us", after(&ours, &submit(US, OURS, "4"))),
        ("failed by us", after(&ours, &failed)),
        (
            "completed by the other",
            after(&theirs, &submit(RIVAL, THEIRS, "4")),
        ),
        ("cancelled", after(&ours, &Event::Cancel)),
        (
            "cancelled, no candidate left",
            after(&alone, &Event::RevokeLink { link_id: US }),
        ),
        (
            "expired",
            settle(&ours, T0.plus_ms(TASK_EXPIRY_MS)).unwrap(),
        ),
    ]
}

pub(crate) fn events() -> Vec<(&'static str, Event)> {
    let assign = |byte| Event::Assign {
        request: request(byte),
    };
    let revoke = |link_id| Event::RevokeLink { link_id };
    vec![
        ("assign, same request", assign(1)),
        ("assign, other request", assign(2)),
        ("claim, we", claim(US, FRESH)),
        ("claim, the other", claim(RIVAL, FRESH)),
        ("claim, a stranger", claim(STRANGER, FRESH)),
        ("submit under our claim", submit(US, OURS, "4")),
        ("submit, other content", submit(US, OURS, "5")),
        (
            "submit, other status",
            submit_as(Verdict::Failed, US, OURS, "4"),
        ),
        ("submit, unknown claim", submit(US, FRESH, "4")),
        ("submit, their own claim", submit(RIVAL, THEIRS, "4")),
        ("submit, the other, our claim", submit(RIVAL, OURS, "4")),
        ("submit, a stranger", submit(STRANGER, OURS, "4")),
        ("cancel", Event::Cancel),
        ("revoke us", revoke(US)),
        ("revoke the other", revoke(RIVAL)),
        ("revoke a stranger", revoke(STRANGER)),
    ]
}

/// An upload, and what the claim uploaded before it.
pub(crate) struct Uploading {
    pub(crate) upload: Upload,
    pub(crate) before: Uploaded,
}

pub(crate) fn uploads() -> Vec<(&'static str, Uploading)> {
    let uploading = |link_id, claim_id, stored: Option<u8>, count| Uploading {
        upload: Upload {
            link_id,
            claim_id,
            content: request(7),
        },
        before: Uploaded {
            same_id: stored.map(request),
            of_claim: count,
            of_task: count,
        },
    };
    let (last, full) = (ARTIFACTS_PER_CLAIM_MAX - 1, ARTIFACTS_PER_CLAIM_MAX);
    vec![
        ("upload, new", uploading(US, OURS, None, 0)),
        ("upload, the last one", uploading(US, OURS, None, last)),
        ("upload, one too many", uploading(US, OURS, None, full)),
        ("upload, same again", uploading(US, OURS, Some(7), full)),
        ("upload, other content", uploading(US, OURS, Some(8), 1)),
        ("upload, unknown claim", uploading(US, FRESH, None, 0)),
        (
            "upload, the other, our claim",
            uploading(RIVAL, OURS, None, 0),
        ),
        ("upload, a stranger", uploading(STRANGER, OURS, None, 0)),
    ]
}
