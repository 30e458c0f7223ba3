//! `upload_linked_chat_artifact`: attaches a file to a claimed task.

use callboard_domain::Scope;
use callboard_hub::NewUpload;
use callboard_store::Store;
use callboard_wire::arguments::Values;
use callboard_wire::tools::upload_linked_chat_artifact;

use super::{Answering, Call, Hints, Spec, text};

pub(super) const SPEC: Spec = Spec {
    name: "upload_linked_chat_artifact",
    title: "Upload a file for a task",
    description: "Attaches a file to a task that this conversation has claimed; upload before you submit. \
                  Give the content as text or content_base64, at most 5 MB, and a media_type: text, \
                  images, audio, video, and the usual documents, data and archives; programs are \
                  refused. A retry uses the same artifact_id: the same content answers ok with \
                  replayed; other content under the same artifact_id is rejected. At most 20 files a \
                  claim and 100 a task. A cancelled, expired, revoked or mismatched claim is rejected with the words \
                  of submit_linked_chat_result.",
    scope: Scope::Run,
    hints: Hints::Idempotent,
    arguments: upload_linked_chat_artifact::ARGUMENTS,
    holds_foreign_json: false,
};

pub(super) fn call<S: Store>(call: &Call<S>, values: Values) -> Answering<'_> {
    Box::pin(async move {
        let content = upload_linked_chat_artifact::content(
            values.given_text("text"),
            values.given_text("content_base64"),
        )?;
        let new = NewUpload {
            chat_link_id: values.text("chat_link_id"),
            task_id: values.text("task_id"),
            claim_id: values.text("claim_id"),
            artifact_id: values.text("artifact_id"),
            name: values.text("name"),
            media_type: values.text("media_type"),
            content,
        };
        let answer = call
            .shared
            .hub
            .upload_linked_chat_artifact(&call.caller, new);
        text(&answer.await?)
    })
}
