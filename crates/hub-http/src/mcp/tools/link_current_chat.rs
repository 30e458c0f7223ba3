//! `link_current_chat`: makes the conversation known to a project.

use callboard_domain::Scope;
use callboard_hub::NewLink;
use callboard_store::Store;
use callboard_wire::arguments::Values;
use callboard_wire::tools::link_current_chat;

use super::{Answering, Call, Hints, Spec, text};

pub(super) const SPEC: Spec = Spec {
    name: "link_current_chat",
    title: "Link this chat",
    description: "Links this conversation to a project, so that the owner can assign tasks to it. Link \
                  once, when the owner asks for it, and keep the chat_link_id; each conversation has \
                  a link of its own. Label and reference are what you say of yourself. Repeating the \
                  idempotency_key of an equal request returns the same link; the same key with a \
                  different request is refused. A project that is not yours gives `Project not found \
                  or access removed`. Once the owner revoked the link, the tools answer `Chat link \
                  not found or access removed` or `rejected: missing`: do not retry; link again with \
                  a new key only if the owner asks for it.",
    scope: Scope::Run,
    hints: Hints::Idempotent,
    arguments: link_current_chat::ARGUMENTS,
    holds_foreign_json: false,
};

pub(super) fn call<S: Store>(call: &Call<S>, values: Values) -> Answering<'_> {
    Box::pin(async move {
        let new = NewLink {
            project_id: values.text("project_id"),
            label: values.text("label"),
            reference: values.given_text("reference"),
            idempotency_key: values.text("idempotency_key"),
            host_hint: call.host_hint.as_deref(),
        };
        text(&call.shared.hub.link_current_chat(&call.caller, new).await?)
    })
}
