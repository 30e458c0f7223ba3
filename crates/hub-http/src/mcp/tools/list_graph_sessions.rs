//! `list_graph_sessions`: what the owner shares with a project.

use callboard_domain::Scope;
use callboard_store::Store;
use callboard_wire::arguments::Values;
use callboard_wire::tools::list_graph_sessions;

use super::{Answering, Call, Hints, Spec, text};

pub(super) const SPEC: Spec = Spec {
    name: "list_graph_sessions",
    title: "List Graph sessions",
    description: "Lists the Graphs that the owner shares with a project, and whether the desktop \
                  that runs each one is online. The list is what the desktop's last sync \
                  uploaded; it is empty until the owner shares something. A project that is not \
                  yours, or does not exist, gives `Project not found or access removed`.",
    scope: Scope::Read,
    hints: Hints::ReadOnly,
    arguments: list_graph_sessions::ARGUMENTS,
    holds_foreign_json: false,
};

pub(super) fn call<S: Store>(call: &Call<S>, values: Values) -> Answering<'_> {
    Box::pin(async move {
        let (project_id, limit) = (values.text("project_id"), values.integer("limit"));
        text(
            &call
                .shared
                .hub
                .list_graph_sessions(&call.caller, project_id, limit)
                .await?,
        )
    })
}
