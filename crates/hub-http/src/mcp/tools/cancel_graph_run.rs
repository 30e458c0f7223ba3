//! `cancel_graph_run`: asks a run to stop.

use callboard_domain::Scope;
use callboard_store::Store;
use callboard_wire::arguments::Values;
use callboard_wire::tools::cancel_graph_run;

use super::{Answering, Call, Hints, Spec, text};

pub(super) const SPEC: Spec = Spec {
    name: "cancel_graph_run",
    title: "Cancel a Graph run",
    description: "Stops a run started by this connected agent. A queued run is cancelled at once \
                  and never starts. A running one is asked to stop: the desktop sees that within \
                  seconds, and get_graph_run shows when it ended. Cancelling again, or cancelling \
                  a run that is over, changes nothing and answers with its real status. Any other \
                  command_id gives `Graph run not found or access removed`.",
    scope: Scope::Run,
    hints: Hints::Idempotent,
    arguments: cancel_graph_run::ARGUMENTS,
    holds_foreign_json: false,
};

pub(super) fn call<S: Store>(call: &Call<S>, values: Values) -> Answering<'_> {
    Box::pin(async move {
        let command_id = values.text("command_id");
        text(
            &call
                .shared
                .hub
                .cancel_graph_run(&call.caller, command_id)
                .await?,
        )
    })
}
