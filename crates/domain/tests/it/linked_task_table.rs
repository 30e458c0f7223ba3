//! The whole state × event table as one snapshot: a new state or rule shows every changed cell.

use std::fmt::Write as _;

use callboard_domain::linked_task::{Event, State, Task, decide, decide_upload};
use callboard_domain::{ChatLinkId, Decision, Refusal, Timestamp};

use crate::linked_task_samples::{
    LATER, RIVAL, STRANGER, T0, US, Uploading, events, states, uploads,
};

/// When a sample meets its events: after its last change, and before the next one that time alone
/// causes.
fn moment(task: &Task) -> Timestamp {
    LATER.max(task.updated_at)
}

fn name(link_id: ChatLinkId) -> &'static str {
    match link_id {
        US => "us",
        RIVAL => "the other",
        STRANGER => "a stranger",
        _ => "nobody",
    }
}

fn shown(task: &Task) -> String {
    let mut text = task.status().to_string();
    if let Some(claim) = task.claim() {
        write!(text, " by {}", name(claim.link_id)).unwrap();
    }
    if let State::Claimed { lease_until, .. } = &task.state {
        let until = if *lease_until == task.expires_at {
            "expiry".to_owned()
        } else {
            format!("{} ms", lease_until.millis_since(T0))
        };
        write!(text, " until {until}").unwrap();
    }
    let candidates: Vec<_> = task.candidates.iter().map(|link| name(*link)).collect();
    write!(text, " [{}]", candidates.join(", ")).unwrap();
    text
}

fn answer<T>(decision: Result<Decision<T>, Refusal>, shown: impl FnOnce(&T) -> String) -> String {
    match decision {
        Ok(Decision::Moved(next)) => format!("-> {}", shown(&next)),
        Ok(Decision::Replayed) => "replayed".into(),
        Ok(Decision::Unchanged) => "unchanged".into(),
        Err(refusal) => format!("refused: {refusal}"),
    }
}

fn cell(task: &Task, event: &Event) -> String {
    answer(decide(task, event, moment(task)), shown)
}

fn upload_cell(task: &Task, uploading: &Uploading) -> String {
    let decision = decide_upload(task, &uploading.upload, uploading.before, moment(task));
    answer(decision, |()| "stored".into())
}

#[test]
fn every_event_in_every_state() {
    let mut table = String::new();
    for (state, task) in states() {
        writeln!(table, "{state}: {}", shown(&task)).unwrap();
        for (name, event) in events() {
            writeln!(table, "  {name:<29} {}", cell(&task, &event)).unwrap();
        }
        for (name, uploading) in uploads() {
            writeln!(table, "  {name:<29} {}", upload_cell(&task, &uploading)).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
