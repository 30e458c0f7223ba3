//! `list_projects` (ours): where this connected agent may work.

use callboard_domain::Scope;
use callboard_store::Store;
use callboard_wire::arguments::Values;
use callboard_wire::tools::list_projects;

use super::{Answering, Call, Hints, Spec, text};

pub(super) const SPEC: Spec = Spec {
    name: "list_projects",
    title: "List projects",
    description: "Lists the projects that the owner added this connected agent to. Use a \
                  project_id from here with list_graph_sessions.",
    scope: Scope::Read,
    hints: Hints::ReadOnly,
    arguments: list_projects::ARGUMENTS,
    holds_foreign_json: false,
};

pub(super) fn call<S: Store>(call: &Call<S>, _values: Values) -> Answering<'_> {
    Box::pin(async move { text(&call.shared.hub.list_projects(&call.caller)) })
}
