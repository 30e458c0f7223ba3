//! `submit_linked_chat_result`: answers a claimed task, once.

use callboard_domain::Scope;
use callboard_store::Store;
use callboard_wire::arguments::Values;
use callboard_wire::tools::submit_linked_chat_result;

use super::{Answering, Call, Hints, Spec, text};

pub(super) const SPEC: Spec = Spec {
    name: "submit_linked_chat_result",
    title: "Submit the result of a task",
    description: "Stores the result of a claimed task, once. status is completed or failed; result is \
                  text of at most 20,000 characters. Repeating the same submit after a lost response \
                  is fine and answers ok with replayed. A cancelled, expired, revoked or mismatched \
                  claim cannot complete. Rejected are: `rejected: missing` (no such task or link), \
                  `rejected: task is completed`, `failed`, `cancelled` or `expired` (it is over and \
                  the stored result stays: do not resend, do not correct it), `rejected: claim \
                  lapsed, claim the task again` (claim it once more, then submit with the new \
                  claim_id), `rejected: stale claim, task was re-claimed` (this claim_id is not the \
                  present one: claim the task again; if it is yours you get the right claim_id, \
                  and `not claimable: claimed` means that another chat works on it: stop).",
    scope: Scope::Run,
    hints: Hints::Idempotent,
    arguments: submit_linked_chat_result::ARGUMENTS,
    holds_foreign_json: false,
};

pub(super) fn call<S: Store>(call: &Call<S>, values: Values) -> Answering<'_> {
    Box::pin(async move {
        let answer = call.shared.hub.submit_linked_chat_result(
            &call.caller,
            values.text("chat_link_id"),
            values.text("task_id"),
            values.text("claim_id"),
            values.text("status"),
            values.text("result"),
        );
        text(&answer.await?)
    })
}
