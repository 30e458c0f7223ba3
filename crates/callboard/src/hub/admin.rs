//! What the owner can ask of a hub on its own machine.

use callboard_domain::{Refusal, Scopes};
use callboard_hub::{Hub, HubError};
use callboard_store::{RunRow, Store};
use callboard_wire::rfc3339;
use serde::{Deserialize, Serialize};

use crate::chats::{self, ChangedTask, ChatAnswer, ChatRequest};

/// One request over the hub's socket: one JSON line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum AdminRequest {
    CreateProject {
        name: String,
    },
    ListProjects,
    CreateDesktop {
        name: String,
    },
    ListDesktops,
    RebindDesktop {
        name: String,
    },
    CreateToken {
        name: String,
        projects: Vec<String>,
        scopes: Vec<String>,
    },
    ListTokens,
    RevokeToken {
        name: String,
    },
    ResetPassword,
    Chats(ChatRequest),
}

impl AdminRequest {
    /// Whether it is a way to begin with a new hub.
    pub(crate) fn makes_something(&self) -> bool {
        match self {
            Self::CreateProject { .. } | Self::CreateDesktop { .. } | Self::CreateToken { .. } => {
                true
            }
            Self::ListProjects
            | Self::ListDesktops
            | Self::RebindDesktop { .. }
            | Self::ListTokens
            | Self::RevokeToken { .. }
            | Self::ResetPassword
            | Self::Chats(_) => false,
        }
    }
}

/// The answer: one JSON line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AdminAnswer {
    Project {
        project_id: String,
        name: String,
    },
    Projects {
        projects: Vec<ProjectLine>,
    },
    Secret {
        token: String,
        id: String,
        note: String,
    },
    SetupLink {
        url: String,
    },
    Desktops {
        desktops: Vec<DesktopLine>,
    },
    Tokens {
        tokens: Vec<TokenLine>,
    },
    Done {
        message: String,
    },
    Disconnected {
        name: String,
        runs: Vec<ChangedRun>,
        tasks: Vec<ChangedTask>,
    },
    Chats(Box<ChatAnswer>),
    Refused {
        message: String,
        #[serde(default)]
        hint: Option<String>,
    },
}

/// A run whose agent was disconnected, and where that left it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ChangedRun {
    pub(crate) command_id: String,
    pub(crate) status: String,
    pub(crate) cancel_requested: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProjectLine {
    pub(crate) id: String,
    pub(crate) name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DesktopLine {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) online: bool,
    pub(crate) last_seen_at: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TokenLine {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) scopes: String,
    pub(crate) projects: Vec<String>,
}

/// Does what was asked. `base` is where browsers reach the hub, while it runs.
pub(crate) async fn perform<S: Store>(
    hub: &Hub<S>,
    base: Option<&str>,
    request: AdminRequest,
) -> AdminAnswer {
    match answer(hub, base, request).await {
        Ok(answer) => answer,
        Err(error) => AdminAnswer::Refused {
            hint: hint(&error).map(str::to_owned),
            message: error.to_string(),
        },
    }
}

/// The command that helps with a refusal.
fn hint(error: &HubError) -> Option<&'static str> {
    if error.is(Refusal::ChatLinkNotFound) {
        Some("`callboard chat list` shows the linked chats")
    } else if error.is(Refusal::TaskNotFound) {
        Some("`callboard task list` shows the tasks")
    } else {
        None
    }
}

async fn answer<S: Store>(
    hub: &Hub<S>,
    base: Option<&str>,
    request: AdminRequest,
) -> Result<AdminAnswer, HubError> {
    match request {
        AdminRequest::CreateProject { name } => {
            let project = hub.create_project(&name).await?;
            let project_id = project.id.to_string();
            Ok(AdminAnswer::Project {
                project_id,
                name: project.name,
            })
        }
        AdminRequest::CreateDesktop { name } => {
            let created = hub.create_desktop(&name).await?;
            let (token, id) = (created.token, created.made.id.to_string());
            let note = DESKTOP_NOTE.to_owned();
            Ok(AdminAnswer::Secret { token, id, note })
        }
        AdminRequest::CreateToken {
            name,
            projects,
            scopes,
        } => {
            let created = hub
                .create_connection(&name, &projects, read_scopes(&scopes)?)
                .await?;
            let (token, id) = (created.token, created.made.id.to_string());
            let note = TOKEN_NOTE.to_owned();
            Ok(AdminAnswer::Secret { token, id, note })
        }
        AdminRequest::RebindDesktop { name } => {
            hub.rebind_desktop(&name).await?;
            let message = format!(
                "{name} is free: the next data folder that calls with its token is bound to it. \
                 Stop the desktop on the old machine first."
            );
            Ok(AdminAnswer::Done { message })
        }
        AdminRequest::RevokeToken { name } => {
            let changed = hub.revoke_connection(&name).await?;
            let run = |row: &RunRow| ChangedRun {
                command_id: row.command_id.to_string(),
                status: row.run.status().to_string(),
                cancel_requested: row.run.cancel_requested(),
            };
            Ok(AdminAnswer::Disconnected {
                name,
                runs: changed.runs.iter().map(run).collect(),
                tasks: changed.tasks.iter().map(ChangedTask::from).collect(),
            })
        }
        AdminRequest::ResetPassword => {
            let secret = hub.reset_password().await?;
            Ok(match base {
                Some(base) => AdminAnswer::SetupLink {
                    url: setup_link(base, &secret),
                },
                None => AdminAnswer::Done {
                    message: "The password is gone, and every browser is signed out. The hub does \
                              not run: it prints a link to set a new one when it starts."
                        .to_owned(),
                },
            })
        }
        AdminRequest::ListProjects => projects(hub).await,
        AdminRequest::ListDesktops => desktops(hub).await,
        AdminRequest::ListTokens => tokens(hub).await,
        AdminRequest::Chats(request) => {
            let answer = chats::answer(hub, request).await?;
            Ok(AdminAnswer::Chats(Box::new(answer)))
        }
    }
}

/// Where the console's password is set, with the secret of the one-time link.
pub(crate) fn setup_link(base: &str, secret: &str) -> String {
    format!("{base}/setup?link={secret}")
}

/// What to do with a fresh device token.
const DESKTOP_NOTE: &str = "This device token is shown once. Keep it in a file, then run on the \
                            desktop: callboard desktop run --hub URL --token-file FILE";
/// What to know of a fresh bearer token.
const TOKEN_NOTE: &str = "This bearer token is shown once; the hub keeps only its hash.";

async fn projects<S: Store>(hub: &Hub<S>) -> Result<AdminAnswer, HubError> {
    let line = |project: callboard_store::Project| ProjectLine {
        id: project.id.to_string(),
        name: project.name,
    };
    let projects = hub.projects().await?.into_iter().map(line).collect();
    Ok(AdminAnswer::Projects { projects })
}

async fn desktops<S: Store>(hub: &Hub<S>) -> Result<AdminAnswer, HubError> {
    let line = |summary: callboard_hub::DesktopSummary| DesktopLine {
        id: summary.desktop.id.to_string(),
        name: summary.desktop.name,
        online: summary.online,
        last_seen_at: summary.last_seen_at.map(rfc3339),
    };
    let desktops = hub.desktops().await?.into_iter().map(line).collect();
    Ok(AdminAnswer::Desktops { desktops })
}

async fn tokens<S: Store>(hub: &Hub<S>) -> Result<AdminAnswer, HubError> {
    let names = |projects: Vec<callboard_store::Project>| {
        projects.into_iter().map(|project| project.name).collect()
    };
    let line = |connection: callboard_store::Connection| TokenLine {
        id: connection.id.to_string(),
        name: connection.name,
        scopes: connection.scopes.to_string(),
        projects: names(connection.projects),
    };
    let tokens = hub.connections().await?.into_iter().map(line).collect();
    Ok(AdminAnswer::Tokens { tokens })
}

fn read_scopes(names: &[String]) -> Result<Scopes, HubError> {
    if names.is_empty() {
        return Ok(Scopes::ALL);
    }
    let scopes: Result<Scopes, _> = names.iter().map(|name| name.parse()).collect();
    scopes.map_err(|error: callboard_domain::ParseScopeError| HubError::Invalid(error.to_string()))
}
