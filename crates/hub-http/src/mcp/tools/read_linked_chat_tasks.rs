//! `read_linked_chat_tasks`: what waits for this conversation.

use callboard_domain::Scope;
use callboard_store::Store;
use callboard_wire::arguments::Values;
use callboard_wire::tools::read_linked_chat_tasks;

use super::{Answering, Call, Hints, Spec, text};

pub(super) const SPEC: Spec = Spec {
    name: "read_linked_chat_tasks",
    title: "Read the tasks of this chat",
    description: "Reads the tasks of this conversation, only within this connection and project: first \
                  the ones it has claimed, then the ones that wait (status queued, oldest first, at \
                  most 20), each with its text; then at most 5 that are over, without it. An empty \
                  list means that nothing waits: say so, and do not poll. Claim a waiting task with \
                  claim_linked_chat_task before you work on it. A chat_link_id that is unknown or \
                  revoked gives `Chat link not found or access removed`.",
    scope: Scope::Read,
    hints: Hints::ReadOnly,
    arguments: read_linked_chat_tasks::ARGUMENTS,
    holds_foreign_json: false,
};

pub(super) fn call<S: Store>(call: &Call<S>, values: Values) -> Answering<'_> {
    Box::pin(async move {
        let chat_link_id = values.text("chat_link_id");
        let answer = call
            .shared
            .hub
            .read_linked_chat_tasks(&call.caller, chat_link_id);
        text(&answer.await?)
    })
}
