//! Histories of a task: steps drawn at random, played on the machine.

use callboard_domain::limits::TASK_EXPIRY_MS;
use callboard_domain::linked_task::{
    Claim, Event, Status, Submission, Task, Verdict, decide, settle,
};
use callboard_domain::{ChatLinkId, ClaimId, Decision, Refusal, Timestamp};
use proptest::prelude::*;

use crate::linked_task_samples::{FRESH, LEASE_MS, RIVAL, STRANGER, T0, US, queued_for, request};

/// Chats that take part: the task names one or more of the first three, never the stranger.
const OTHER_RIVAL: ChatLinkId = ChatLinkId::from_bytes([4; 16]);
pub(crate) const CHATS: [ChatLinkId; 4] = [US, RIVAL, OTHER_RIVAL, STRANGER];

/// A step of a history. What depends on the steps before it is named by its place among them.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Assign(u8),
    Claim {
        chat: usize,
        lease_ms: u64,
    },
    /// Under the claim that was granted so many claims ago; `chat` instead of its holder.
    Submit {
        ago: usize,
        chat: Option<usize>,
        verdict: Verdict,
        result: u8,
    },
    Cancel,
    Revoke(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct History {
    candidates: Vec<ChatLinkId>,
    steps: Vec<(u64, Step)>,
}

pub(crate) fn any_step() -> impl Strategy<Value = Step> {
    let chat = 0..CHATS.len();
    let verdict = prop_oneof![4 => Just(Verdict::Completed), 1 => Just(Verdict::Failed)];
    let impostor = prop_oneof![4 => Just(None), 1 => chat.clone().prop_map(Some)];
    let submit = (0usize..3, impostor, verdict, 0u8..2);
    prop_oneof![
        1 => (1u8..3).prop_map(Step::Assign),
        6 => (chat.clone(), 1_000..2 * LEASE_MS)
            .prop_map(|(chat, lease_ms)| Step::Claim { chat, lease_ms }),
        4 => submit.prop_map(|(ago, chat, verdict, result)| Step::Submit {
            ago,
            chat,
            verdict,
            result,
        }),
        1 => Just(Step::Cancel),
        2 => chat.prop_map(Step::Revoke),
    ]
}

pub(crate) fn any_history() -> impl Strategy<Value = History> {
    let pause = prop_oneof![
        12 => 0..LEASE_MS / 2,
        4 => LEASE_MS..2 * LEASE_MS,
        1 => 0..2 * TASK_EXPIRY_MS,
    ];
    let steps = proptest::collection::vec((pause, any_step()), 0..24);
    let candidates = Just(CHATS[..3].to_vec()).prop_shuffle();
    (candidates, 1usize..4, steps).prop_map(|(mut candidates, count, steps)| {
        candidates.truncate(count);
        History { candidates, steps }
    })
}

/// One event of a history as it was played.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) before: Task,
    pub(crate) event: Event,
    pub(crate) now: Timestamp,
    pub(crate) decision: Result<Decision<Task>, Refusal>,
    /// The claims that were granted by then, this event included.
    pub(crate) granted: Vec<Claim>,
}

impl Played {
    /// The task as time alone had left it when the event came.
    pub(crate) fn settled(&self) -> Task {
        settled(&self.before, self.now)
    }

    pub(crate) fn moved(&self) -> Option<&Task> {
        match &self.decision {
            Ok(Decision::Moved(next)) => Some(next),
            Ok(Decision::Replayed | Decision::Unchanged) | Err(_) => None,
        }
    }

    pub(crate) fn submission(&self) -> Option<&Submission> {
        match &self.event {
            Event::Submit(submission) => Some(submission),
            Event::Assign { .. }
            | Event::Claim { .. }
            | Event::Cancel
            | Event::RevokeLink { .. } => None,
        }
    }
}

pub(crate) fn settled(task: &Task, now: Timestamp) -> Task {
    settle(task, now).unwrap_or_else(|| task.clone())
}

/// The event of a step after the claims in `granted`. Each claim that is asked for has an id of its
/// own, as those of a hub have.
pub(crate) fn event(step: &Step, number: u8, granted: &[Claim]) -> Event {
    match *step {
        Step::Assign(byte) => Event::Assign {
            request: request(byte),
        },
        Step::Claim { chat, lease_ms } => Event::Claim {
            link_id: CHATS[chat],
            claim_id: ClaimId::from_bytes([100 + number; 16]),
            lease_ms,
        },
        Step::Submit {
            ago,
            chat,
            verdict,
            result,
        } => {
            let under = granted.iter().rev().nth(ago);
            let holder = under.map_or(US, |claim| claim.link_id);
            Event::Submit(Submission {
                link_id: chat.map_or(holder, |chat| CHATS[chat]),
                claim_id: under.map_or(FRESH, |claim| claim.id),
                verdict,
                result: result.to_string(),
            })
        }
        Step::Cancel => Event::Cancel,
        Step::Revoke(chat) => Event::RevokeLink {
            link_id: CHATS[chat],
        },
    }
}

/// Plays a history from the assignment on and gives each event and what is left in the end.
pub(crate) fn play(history: &History) -> (Vec<Played>, Task) {
    let (mut task, mut now) = (queued_for(&history.candidates), T0);
    let (mut played, mut granted) = (Vec::new(), Vec::new());
    for (number, (pause_ms, step)) in (0u8..).zip(&history.steps) {
        now = now.plus_ms(*pause_ms);
        let event = event(step, number, &granted);
        let decision = decide(&task, &event, now);
        let before = task.clone();
        if let Ok(Decision::Moved(next)) = &decision {
            task = next.clone();
            if matches!(event, Event::Claim { .. }) {
                granted.push(*task.claim().expect("a claim that moves a task is granted"));
            }
        }
        let granted = granted.clone();
        played.push(Played {
            before,
            event,
            now,
            decision,
            granted,
        });
    }
    (played, task)
}

pub(crate) fn left_by(history: &History) -> Task {
    play(history).1
}

#[test]
fn the_histories_reach_every_state_and_a_second_claim() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut statuses, mut claims) = (std::collections::BTreeSet::new(), 0);
    for _ in 0..500 {
        let history = any_history().new_tree(&mut runner).unwrap().current();
        let (played, left) = play(&history);
        statuses.insert(left.status());
        claims = claims.max(played.last().map_or(0, |step| step.granted.len()));
    }
    assert_eq!(statuses, Status::ALL.into_iter().collect());
    assert!(claims >= 3, "{claims}");
}
