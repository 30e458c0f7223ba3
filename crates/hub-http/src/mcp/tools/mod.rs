//! The tools: one file each, and the one ordered list of them.

mod cancel_graph_run;
mod claim_linked_chat_task;
mod get_graph_run;
mod link_current_chat;
mod list_graph_sessions;
mod list_projects;
mod read_linked_chat_tasks;
mod run_graph_session;
mod submit_linked_chat_result;
mod upload_linked_chat_artifact;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use callboard_domain::Scope;
use callboard_hub::HubError;
use callboard_store::{Connection, Store};
use callboard_wire::arguments::{self, Argument, Values};
use rmcp::model::{MetaObject, ToolAnnotations};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::SharedHub;

/// What is published about a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// For a model: what it does, what it returns, what is refused.
    pub(super) description: &'static str,
    pub(super) scope: Scope,
    pub(super) hints: Hints,
    pub(super) arguments: &'static [Argument],
    /// JSON that a Graph wrote may stand in its answer.
    pub(super) holds_foreign_json: bool,
}

/// What a host may assume of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) enum Hints {
    /// Changes nothing.
    ReadOnly,
    /// May have effects in the world; the same call again has no further ones.
    Destructive,
    /// Changes something of the hub's own; the same call again changes nothing more.
    Idempotent,
}

/// A tool of a hub over the store `S`.
pub(super) struct Tool<S> {
    pub(super) spec: &'static Spec,
    call: for<'a> fn(&'a Call<S>, Values) -> Answering<'a>,
}

/// The answer as JSON text, to come.
type Answering<'a> = Pin<Box<dyn Future<Output = Result<String, HubError>> + Send + 'a>>;

/// One call of a tool.
pub(super) struct Call<S> {
    pub(super) shared: SharedHub<S>,
    pub(super) caller: Connection,
    /// The host's own name for the conversation, if it sent one.
    pub(super) host_hint: Option<String>,
    /// Cancelled when nobody waits for the answer any more.
    pub(super) hung_up: CancellationToken,
}

impl<S: Store> Tool<S> {
    /// Every tool, in the order in which `tools/list` gives them.
    pub(super) const ALL: &'static [Self] = &[
        Self {
            spec: &list_projects::SPEC,
            call: list_projects::call::<S>,
        },
        Self {
            spec: &list_graph_sessions::SPEC,
            call: list_graph_sessions::call::<S>,
        },
        Self {
            spec: &run_graph_session::SPEC,
            call: run_graph_session::call::<S>,
        },
        Self {
            spec: &get_graph_run::SPEC,
            call: get_graph_run::call::<S>,
        },
        Self {
            spec: &cancel_graph_run::SPEC,
            call: cancel_graph_run::call::<S>,
        },
        Self {
            spec: &link_current_chat::SPEC,
            call: link_current_chat::call::<S>,
        },
        Self {
            spec: &read_linked_chat_tasks::SPEC,
            call: read_linked_chat_tasks::call::<S>,
        },
        Self {
            spec: &claim_linked_chat_task::SPEC,
            call: claim_linked_chat_task::call::<S>,
        },
        Self {
            spec: &submit_linked_chat_result::SPEC,
            call: submit_linked_chat_result::call::<S>,
        },
        Self {
            spec: &upload_linked_chat_artifact::SPEC,
            call: upload_linked_chat_artifact::call::<S>,
        },
    ];

    /// Reads the arguments and calls the tool.
    pub(super) async fn answer(
        &self,
        call: &Call<S>,
        given: Map<String, Value>,
    ) -> Result<String, HubError> {
        let values = arguments::read(self.spec.arguments, given)?;
        (self.call)(call, values).await
    }
}

/// The scope that a tool needs; `None` for a name that is no tool.
pub(super) fn scope_of<S: Store>(name: &str) -> Option<Scope> {
    let found = Tool::<S>::ALL.iter().find(|tool| tool.spec.name == name);
    found.map(|tool| tool.spec.scope)
}

impl Spec {
    /// The tool as `tools/list` shows it.
    pub(super) fn describe(&self) -> rmcp::model::Tool {
        let schemes = json!([{"type": "oauth2", "scopes": [self.scope.as_str()]}]);
        let mut meta = MetaObject::default();
        meta.insert("securitySchemes".to_owned(), schemes);
        let schema = Arc::new(arguments::input_schema(self.arguments));
        let mut tool = rmcp::model::Tool::new(self.name, self.description, schema);
        tool.title = Some(self.title.to_owned());
        tool.annotations = Some(self.hints.annotations());
        tool.meta = Some(meta);
        tool
    }
}

impl Hints {
    fn annotations(self) -> ToolAnnotations {
        let (read_only, destructive, idempotent, open_world) = match self {
            Self::ReadOnly => (true, false, true, false),
            Self::Destructive => (false, true, true, true),
            Self::Idempotent => (false, false, true, false),
        };
        ToolAnnotations::new()
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world)
    }
}

/// An answer as its JSON text.
fn text<T: Serialize>(answer: &T) -> Result<String, HubError> {
    serde_json::to_string(answer).map_err(|error| {
        tracing::error!(%error, "an answer could not be written as JSON");
        HubError::Unavailable
    })
}
