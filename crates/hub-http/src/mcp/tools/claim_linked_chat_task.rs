//! `claim_linked_chat_task`: takes a task, for one conversation alone.

use callboard_domain::Scope;
use callboard_store::Store;
use callboard_wire::arguments::Values;
use callboard_wire::tools::claim_linked_chat_task;

use super::{Answering, Call, Hints, Spec, text};

pub(super) const SPEC: Spec = Spec {
    name: "claim_linked_chat_task",
    title: "Claim a task",
    description: "Claims a waiting task for this conversation alone, and returns the claim_id that goes \
                  with the result, and lease_until in epoch seconds: submit before then. While the \
                  task is alive, claiming it again returns the same claim. Refused are: `not \
                  claimable: missing` (no such task for this chat), `not claimable: claimed` (another \
                  chat has it; leave it), `not claimable: completed`, `failed`, `cancelled` or \
                  `expired` (it is over: do not retry). A chat_link_id that is unknown or revoked \
                  gives `Chat link not found or access removed`.",
    scope: Scope::Run,
    hints: Hints::Idempotent,
    arguments: claim_linked_chat_task::ARGUMENTS,
    holds_foreign_json: false,
};

pub(super) fn call<S: Store>(call: &Call<S>, values: Values) -> Answering<'_> {
    Box::pin(async move {
        let answer = call.shared.hub.claim_linked_chat_task(
            &call.caller,
            values.text("chat_link_id"),
            values.text("task_id"),
        );
        text(&answer.await?)
    })
}
