//! What holds for every history of a task.

use callboard_domain::limits::TASK_EXPIRY_MS;
use callboard_domain::linked_task::{
    Event, State, Status, Task, Upload, Uploaded, decide, decide_upload, next_due, settle,
};
use callboard_domain::{Decision, Refusal, Timestamp};
use proptest::prelude::*;

use crate::linked_task_histories::{CHATS, any_history, any_step, event, left_by, play, settled};
use crate::linked_task_samples::{FRESH, LEASE_MS, T0, US, claim, request, submit};

proptest! {
    #[test]
    fn a_terminal_state_never_changes(history in any_history()) {
        for step in play(&history).0 {
            let settled = step.settled();
            if settled.status().ended().is_some() {
                let kept = step.moved().is_none_or(|next| *next == settled);
                prop_assert!(kept, "{step:?}");
                let stored_as_ended = step.before == settled;
                prop_assert!(step.moved().is_none() || !stored_as_ended, "{step:?}");
            }
        }
    }

    #[test]
    fn the_claim_that_is_alive_is_the_last_one_that_was_granted(history in any_history()) {
        for step in play(&history).0 {
            if let Some(next) = step.moved()
                && let Some(claim) = next.claim()
            {
                prop_assert_eq!(Some(claim), step.granted.last(), "{:?}", &step);
                prop_assert!(next.is_for(claim.link_id));
            }
        }
    }

    #[test]
    fn a_claim_is_granted_only_while_nobody_has_the_task(history in any_history()) {
        let mut granted = 0;
        for step in play(&history).0 {
            if step.granted.len() > granted {
                prop_assert_eq!(step.settled().status(), Status::Queued, "{:?}", &step);
                granted = step.granted.len();
            }
        }
    }

    #[test]
    fn a_submit_is_accepted_once_and_only_under_the_claim_that_is_alive(history in any_history()) {
        let mut accepted = 0;
        for step in play(&history).0 {
            if let (Some(submission), Some(next)) = (step.submission(), step.moved()) {
                accepted += 1;
                let alive = step.settled();
                prop_assert_eq!(alive.status(), Status::Claimed, "{:?}", &step);
                let claim = alive.claim().expect("claimed");
                prop_assert_eq!((claim.id, claim.link_id), (submission.claim_id, submission.link_id));
                prop_assert!(alive.lease_until().is_some_and(|until| step.now < until));
                let outcome = next.outcome().expect("accepted");
                prop_assert_eq!(outcome.digest, submission.digest());
                prop_assert_eq!(&outcome.result, &submission.result);
            }
        }
        prop_assert!(accepted <= 1);
    }

    #[test]
    fn an_accepted_submit_is_a_replay_whenever_it_comes_again(
        history in any_history(), later in 0..2 * TASK_EXPIRY_MS,
    ) {
        let (played, left) = play(&history);
        let accepted = played.iter().find(|step| step.submission().is_some() && step.moved().is_some());
        if let Some(step) = accepted {
            let now = left.updated_at.plus_ms(later);
            prop_assert_eq!(decide(&left, &step.event, now), Ok(Decision::Replayed));
        }
    }

    #[test]
    fn only_what_was_accepted_is_replayed(history in any_history()) {
        let mut accepted = None;
        for step in play(&history).0 {
            let Some(submission) = step.submission() else { continue };
            if step.moved().is_some() {
                accepted = Some(submission.clone());
            } else if step.decision == Ok(Decision::Replayed) {
                prop_assert_eq!(Some(submission), accepted.as_ref());
            }
        }
    }

    #[test]
    fn a_repeated_claim_gives_the_same_claim_until_its_lease_ends(
        history in any_history(), pause in 0..3 * LEASE_MS, lease_ms in 1_000..2 * TASK_EXPIRY_MS,
    ) {
        let left = left_by(&history);
        if let State::Claimed { claim: held, lease_until } = &left.state {
            let now = left.updated_at.plus_ms(pause);
            let event = Event::Claim { link_id: held.link_id, claim_id: FRESH, lease_ms };
            let again = decide(&left, &event, now);
            // `Replayed` changes nothing, neither the claim nor its lease.
            prop_assert_eq!(again == Ok(Decision::Replayed), now < *lease_until);
        }
    }

    #[test]
    fn a_lease_ends_at_the_expiry_at_the_latest_and_then_for_a_sole_candidate(
        history in any_history(),
    ) {
        for step in play(&history).0 {
            let Some(next) = step.moved() else { continue };
            let Some(lease_until) = next.lease_until() else { continue };
            prop_assert!(lease_until <= next.expires_at);
            if let Event::Claim { lease_ms, .. } = step.event {
                let shared = step.now.plus_ms(lease_ms).min(next.expires_at);
                let alone = next.candidates.len() == 1;
                prop_assert_eq!(lease_until, if alone { next.expires_at } else { shared });
            } else {
                prop_assert_eq!(Some(lease_until), step.before.lease_until(), "only a claim sets it");
            }
        }
    }

    #[test]
    fn settling_twice_is_settling_once(history in any_history(), later in 0..2 * TASK_EXPIRY_MS) {
        let left = left_by(&history);
        let now = left.updated_at.plus_ms(later);
        let due = next_due(&left).filter(|due| *due <= now);
        let settled = settle(&left, now);
        prop_assert_eq!(settled.is_some(), due.is_some());
        if let Some(settled) = settled {
            prop_assert_eq!(settle(&settled, now), None);
            prop_assert!(next_due(&settled).is_none_or(|due| due > now));
        }
    }

    #[test]
    fn an_open_task_is_due_and_a_finished_one_is_not(history in any_history()) {
        let left = left_by(&history);
        prop_assert_eq!(next_due(&left).is_some(), left.status().ended().is_none());
        prop_assert_eq!(left.finished_at().is_some(), left.status().ended().is_some());
    }

    #[test]
    fn it_does_not_matter_in_how_many_steps_time_is_settled(
        history in any_history(), first in 0..TASK_EXPIRY_MS, second in 0..TASK_EXPIRY_MS,
    ) {
        let left = left_by(&history);
        let between = left.updated_at.plus_ms(first);
        let now = between.plus_ms(second);
        let at_once = settled(&left, now);
        let in_two = settled(&settled(&left, between), now);
        prop_assert_eq!(at_once.state, in_two.state);
    }

    #[test]
    fn an_event_after_a_late_settlement_equals_the_event_on_the_settled_task(
        history in any_history(), step in any_step(), later in 0..2 * TASK_EXPIRY_MS,
    ) {
        let (played, left) = play(&history);
        let granted = played.last().map_or(&[][..], |step| &step.granted);
        let event = event(&step, u8::MAX - 100, granted);
        let now = left.updated_at.plus_ms(later);
        let settled = settled(&left, now);
        let apply = |task: &Task| match decide(task, &event, now) {
            Ok(Decision::Moved(next)) => Ok(next),
            Ok(Decision::Replayed | Decision::Unchanged) => Ok(settled.clone()),
            Err(refusal) => Err(refusal),
        };
        prop_assert_eq!(apply(&left), apply(&settled));
    }

    #[test]
    fn time_on_a_task_never_runs_backwards(history in any_history(), skew in 0i64..100_000_000) {
        let (played, left) = play(&history);
        for step in played {
            if let Some(next) = step.moved() {
                prop_assert!(next.updated_at >= step.before.updated_at);
                prop_assert!(next.finished_at().is_none_or(|at| at >= next.assigned_at));
            }
        }
        let earlier = Timestamp::from_millis(left.updated_at.as_millis() - skew);
        for event in [claim(US, FRESH), Event::Cancel, Event::RevokeLink { link_id: US }] {
            if let Ok(Decision::Moved(next)) = decide(&left, &event, earlier) {
                prop_assert!(next.updated_at >= left.updated_at);
            }
        }
    }

    #[test]
    fn a_revoked_link_keeps_no_claim_and_no_candidacy_on_an_open_task(
        history in any_history(), chat in 0..CHATS.len(),
    ) {
        let left = left_by(&history);
        let link_id = CHATS[chat];
        let now = left.updated_at;
        let Ok(decision) = decide(&left, &Event::RevokeLink { link_id }, now) else {
            panic!("a revocation is never refused");
        };
        let concerned = left.status().ended().is_none() && left.is_for(link_id);
        prop_assert_eq!(decision != Decision::Unchanged, concerned);
        let Some(next) = decision.moved() else { return Ok(()) };
        if left.candidates == [link_id] {
            prop_assert_eq!(next.state, State::Cancelled { finished_at: now });
            return Ok(());
        }
        let others: Vec<_> = left.candidates.iter().filter(|other| **other != link_id).collect();
        prop_assert_eq!(next.candidates.iter().collect::<Vec<_>>(), others);
        if left.claim().is_some_and(|claim| claim.link_id == link_id) {
            prop_assert_eq!(next.state, State::Queued);
        } else {
            prop_assert_eq!(next.state, left.state);
        }
    }

    #[test]
    fn whoever_is_no_candidate_learns_nothing(history in any_history(), later in 0..TASK_EXPIRY_MS) {
        let left = left_by(&history);
        let now = left.updated_at.plus_ms(later);
        for chat in CHATS.into_iter().filter(|chat| !left.is_for(*chat)) {
            let held = left.claim().map_or(FRESH, |claim| claim.id);
            prop_assert_eq!(decide(&left, &claim(chat, FRESH), now), Err(Refusal::ClaimMissing));
            let submitted = decide(&left, &submit(chat, held, "0"), now);
            prop_assert_eq!(submitted, Err(Refusal::SubmitMissing));
        }
    }

    #[test]
    fn an_upload_passes_the_same_fence_as_a_submit(
        history in any_history(), ago in 0usize..3, chat in 0..CHATS.len(),
        later in prop_oneof![0..LEASE_MS, 0..2 * TASK_EXPIRY_MS],
    ) {
        let (played, left) = play(&history);
        let granted = played.last().map_or(&[][..], |step| &step.granted);
        let now = left.updated_at.plus_ms(later);
        let under = granted.iter().rev().nth(ago);
        let holder = under.map_or(CHATS[chat], |claim| claim.link_id);
        for link_id in [holder, CHATS[chat]] {
            let claim_id = under.map_or(FRESH, |claim| claim.id);
            let upload = Upload { link_id, claim_id, content: request(7) };
            let uploaded = decide_upload(&left, &upload, Uploaded::default(), now);
            let stored = |content| Uploaded { same_id: Some(content), of_claim: 1, of_task: 1 };
            let same = decide_upload(&left, &upload, stored(upload.content), now);
            let differs = decide_upload(&left, &upload, stored(request(8)), now);
            match &uploaded {
                // Not the chat's: what was stored under its claims does not matter.
                Err(Refusal::SubmitMissing) => prop_assert_eq!(&same, &uploaded),
                Err(_) => prop_assert_eq!(same, Ok(Decision::Replayed)),
                Ok(_) => {
                    prop_assert_eq!(same, Ok(Decision::Replayed));
                    prop_assert_eq!(&differs, &Err(Refusal::ArtifactDiffers));
                }
            }
            if uploaded.is_err() {
                prop_assert_eq!(&differs, &uploaded, "another id would not help");
            }
            // A result that no step submits, so that it is no replay.
            let submitted = decide(&left, &submit(link_id, claim_id, "new"), now);
            prop_assert_eq!(uploaded.map(|_| ()), submitted.map(|_| ()));
        }
    }

    #[test]
    fn a_task_that_nobody_finishes_expires_exactly_24_hours_after_it_was_assigned(
        history in any_history(), late in 0..TASK_EXPIRY_MS,
    ) {
        let left = left_by(&history);
        let expiry = T0.plus_ms(24 * 60 * 60 * 1_000);
        prop_assert_eq!(left.expires_at, expiry);
        if left.status().ended().is_none() {
            let just_before = settled(&left, T0.plus_ms(TASK_EXPIRY_MS - 1).max(left.updated_at));
            prop_assert_eq!(just_before.status().ended(), None);
            let after = settled(&left, expiry.plus_ms(late));
            prop_assert_eq!(after.state, State::Expired { finished_at: expiry });
        }
    }
}
