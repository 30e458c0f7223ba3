//! `callboard client …`: the agent's side, over MCP, for people and scripts.

mod chats;
mod connection;
mod follow;

use std::path::Path;

use callboard_ambient::Entropy;
use callboard_domain::CommandId;
use callboard_wire::tools::{
    cancel_graph_run, get_graph_run, list_graph_sessions, list_projects, run_graph_session,
};
use serde_json::{Map, Value, json};

use crate::args::{ClientArgs, ClientCommand};
use crate::failure::Failure;
use crate::output::{Output, table};

pub(crate) use connection::{CallError, Chat, ConnectionFile};
use follow::follow;

/// Runs one of the agent's commands.
pub(crate) async fn run(
    data: &Path,
    arguments: ClientArgs,
    output: &Output,
) -> Result<(), Failure> {
    let chat = Chat::connect_as(data, arguments.url, arguments.token).await?;
    match arguments.command {
        ClientCommand::Sessions { project } => sessions(&chat, project.as_deref(), output).await,
        ClientCommand::Run {
            session,
            args,
            idempotency_key,
            wait,
        } => {
            let arguments = read_arguments(&args)?;
            let key = idempotency_key.unwrap_or_else(fresh_key);
            start(&chat, &session, arguments, key, wait, output).await
        }
        ClientCommand::Get { command_id, wait } => {
            let run = if wait {
                follow(&chat, &command_id, output).await?
            } else {
                chat.read_run(&command_id).await?
            };
            output.value(&json(&run));
            finish(&run, wait)
        }
        ClientCommand::Cancel { command_id } => {
            let answer: cancel_graph_run::Answer = chat
                .ask("cancel_graph_run", json!({"command_id": command_id}))
                .await?;
            output.data(&answer, || match answer.status.as_str() {
                "running" => vec!["asked to stop; the desktop stops it within seconds".to_owned()],
                status => vec![status.to_owned()],
            });
            Ok(())
        }
        ClientCommand::Link(arguments) => chats::link(&chat, arguments, output).await,
        ClientCommand::Tasks { chat_link_id } => chats::tasks(&chat, chat_link_id, output).await,
        ClientCommand::Claim {
            chat_link_id,
            task_id,
        } => chats::claim(&chat, chat_link_id, task_id, output).await,
        ClientCommand::Submit(arguments) => chats::submit(&chat, arguments, output).await,
        ClientCommand::Upload(arguments) => chats::upload(&chat, arguments, output).await,
    }
}

/// A new idempotency key.
pub(crate) fn fresh_key() -> String {
    CommandId::from_bytes(Entropy::system().uuid_v4()).to_string()
}

/// The arguments of a Graph from the command line.
pub(crate) fn read_arguments(text: &str) -> Result<Map<String, Value>, Failure> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Failure::usage(
            "--args must be a JSON object, such as '{\"folder\":\"~/notes\"}'",
        )),
        Err(error) => Err(Failure::usage(format!("--args is not JSON: {error}"))),
    }
}

async fn sessions(chat: &Chat, project: Option<&str>, output: &Output) -> Result<(), Failure> {
    let mut found: Vec<list_graph_sessions::Answer> = Vec::new();
    let mut rows = Vec::new();
    for listed in projects(chat, project).await? {
        let shared = chat.sessions(&listed.project_id.to_string()).await?;
        for entry in &shared.sessions {
            let state = if entry.desktop.online {
                "online"
            } else {
                "offline"
            };
            rows.push(vec![
                entry.session.slug.clone(),
                format!("v{}", entry.session.version),
                entry.session.status.clone(),
                listed.name.clone(),
                format!("{} ({state})", entry.desktop.name),
                entry.session.graph_session_id.to_string(),
            ]);
        }
        found.push(shared);
    }
    output.data(&found, || table(&rows));
    if rows.is_empty() {
        output.note(
            "Nothing is shared yet. On the desktop: callboard graph share SLUG --project NAME",
        );
    }
    Ok(())
}

async fn projects(
    chat: &Chat,
    wanted: Option<&str>,
) -> Result<Vec<callboard_wire::relay::ProjectInfo>, Failure> {
    let listed: list_projects::Answer = chat.ask("list_projects", json!({})).await?;
    let Some(wanted) = wanted else {
        return Ok(listed.projects);
    };
    let matches: Vec<_> = listed
        .projects
        .into_iter()
        .filter(|project| project.name == wanted || project.project_id.to_string() == wanted)
        .collect();
    if matches.is_empty() {
        return Err(
            Failure::failed(format!("this connection has no project `{wanted}`"))
                .hint("`callboard client sessions` lists what it has"),
        );
    }
    Ok(matches)
}

/// The session that a slug, a name or an id means.
async fn find_session(chat: &Chat, wanted: &str) -> Result<String, Failure> {
    if wanted.starts_with("gs_") {
        return Ok(wanted.to_owned());
    }
    let mut matches = Vec::new();
    for project in projects(chat, None).await? {
        let shared = chat.sessions(&project.project_id.to_string()).await?;
        matches.extend(
            shared
                .sessions
                .into_iter()
                .filter(|entry| entry.session.slug == wanted || entry.session.name == wanted)
                .map(|entry| entry.session.graph_session_id),
        );
    }
    matches.sort_unstable();
    matches.dedup();
    match matches.as_slice() {
        [only] => Ok(only.to_string()),
        [] => Err(
            Failure::failed(format!("no shared Graph is called `{wanted}`"))
                .hint("`callboard client sessions` lists what is shared"),
        ),
        [..] => Err(
            Failure::failed(format!("several shared Graphs are called `{wanted}`"))
                .hint("use the graph_session_id that `callboard client sessions` shows"),
        ),
    }
}

async fn start(
    chat: &Chat,
    session: &str,
    arguments: Map<String, Value>,
    key: String,
    wait: bool,
    output: &Output,
) -> Result<(), Failure> {
    let session_id = find_session(chat, session).await?;
    // Printed before the call: it is what a lost answer needs.
    output.note(format!(
        "key        {key}   (reuse it with --idempotency-key if this answer gets lost)"
    ));
    let ticket: run_graph_session::Answer = chat
        .ask(
            "run_graph_session",
            json!({"graph_session_id": session_id, "arguments": arguments, "idempotency_key": key}),
        )
        .await
        .map_err(|failure| {
            let again = "it may have been queued: run this again with --idempotency-key";
            failure.if_lost(format!("{again} {key}"))
        })?;
    let command_id = ticket.command_id.to_string();
    if !wait {
        output.data(&json!({"idempotency_key": key, "ticket": ticket}), || {
            vec![
                format!("ticket     {command_id}"),
                format!("status     {}", ticket.status),
            ]
        });
        output.note(format!(
            "read it with: callboard client get {command_id} --wait"
        ));
        return Ok(());
    }
    output.note(format!("ticket     {command_id}"));
    let run = follow(chat, &command_id, output).await.map_err(|failure| {
        let read = "the run does not depend on this: callboard client get";
        failure.if_lost(format!("{read} {command_id} --wait"))
    })?;
    if output.is_json() {
        output.value(&json(&run));
    } else if let Some(result) = &run.result {
        output.line(result.get());
    }
    finish(&run, true)
}

/// The exit of a command that waited for a run: 0 only for a completed one.
fn finish(run: &get_graph_run::Answer, waited: bool) -> Result<(), Failure> {
    if !waited || run.status == "completed" {
        return Ok(());
    }
    let ended = match run.status.as_str() {
        "failed" => "the run failed",
        "cancelled" => "the run was cancelled",
        "expired" => "the run expired",
        _ => "the run is not over",
    };
    let reason = run.error.as_deref().map(|error| format!(": {error}"));
    Err(Failure::failed(format!("{ended}{}", reason.unwrap_or_default())).told())
}

fn json<T: serde::Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
