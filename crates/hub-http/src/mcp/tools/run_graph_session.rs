//! `run_graph_session`: queues a run and returns its ticket.

use callboard_domain::Scope;
use callboard_store::Store;
use callboard_wire::arguments::Values;
use callboard_wire::tools::run_graph_session;

use super::{Answering, Call, Hints, Spec, text};

pub(super) const SPEC: Spec = Spec {
    name: "run_graph_session",
    title: "Run a Graph session",
    description: "Queues a run of a Graph on the owner's online desktop in a connected project, \
                  and returns a command_id before the Graph starts. Read progress and result with \
                  get_graph_run. The desktop can go offline: then the run stays queued, and \
                  starting it again would only queue a second one. Local tool approvals still \
                  apply. Repeating the idempotency_key of an equal request returns the same \
                  command; the same key with a different request is refused. A session that is \
                  not shared with you gives `Graph session not found or access removed`.",
    scope: Scope::Run,
    hints: Hints::Destructive,
    arguments: run_graph_session::ARGUMENTS,
    holds_foreign_json: false,
};

pub(super) fn call<S: Store>(call: &Call<S>, values: Values) -> Answering<'_> {
    Box::pin(async move {
        let answer = call.shared.hub.run_graph_session(
            &call.caller,
            values.text("graph_session_id"),
            values.object("arguments"),
            values.text("idempotency_key"),
        );
        text(&answer.await?)
    })
}
