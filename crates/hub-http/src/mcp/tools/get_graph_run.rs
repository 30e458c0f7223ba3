//! `get_graph_run`: status, progress and result.

use callboard_domain::Scope;
use callboard_store::Store;
use callboard_wire::arguments::Values;
use callboard_wire::tools::get_graph_run;

use super::{Answering, Call, Hints, Spec, text};
use crate::hold::until_done;

pub(super) const SPEC: Spec = Spec {
    name: "get_graph_run",
    title: "Read a Graph run",
    description: "Reads status, progress and result of a run started by this connected agent. \
                  With wait_seconds (at most 40) it answers as soon as the status changes. A \
                  result of at most 100,000 characters comes whole; a longer one stays on the \
                  desktop and result_truncated is true. The statuses completed, failed, cancelled \
                  and expired are final. Any other command_id gives `Graph run not found or \
                  access removed`.",
    scope: Scope::Read,
    hints: Hints::ReadOnly,
    arguments: get_graph_run::ARGUMENTS,
    holds_foreign_json: true,
};

pub(super) fn call<S: Store>(call: &Call<S>, values: Values) -> Answering<'_> {
    Box::pin(async move {
        let (hub, caller) = (&call.shared.hub, &call.caller);
        let command_id = values.text("command_id");
        let wait_seconds = values.integer("wait_seconds").unwrap_or(0);
        let seen = Some(values.text("seen_status")).filter(|seen| !seen.is_empty());
        let asked = |patience| hub.get_graph_run(caller, command_id, wait_seconds, seen, patience);
        let ends = [&call.shared.shutdown, &call.hung_up];
        text(&until_done(hub.signals(), hub.clock(), &ends, asked).await?)
    })
}
