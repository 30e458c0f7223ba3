//! What the owner can ask of a hub on its own machine.

use callboard_domain::Scopes;
use callboard_hub::{Hub, HubError};
use callboard_store::Store;
use callboard_wire::rfc3339;
use serde::{Deserialize, Serialize};

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
    Desktops {
        desktops: Vec<DesktopLine>,
    },
    Tokens {
        tokens: Vec<TokenLine>,
    },
    Done {
        message: String,
    },
    Refused {
        message: String,
    },
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

/// Does what was asked.
pub(crate) async fn perform<S: Store>(hub: &Hub<S>, request: AdminRequest) -> AdminAnswer {
    match answer(hub, request).await {
        Ok(answer) => answer,
        Err(error) => AdminAnswer::Refused {
            message: error.to_string(),
        },
    }
}

async fn answer<S: Store>(hub: &Hub<S>, request: AdminRequest) -> Result<AdminAnswer, HubError> {
    Ok(match request {
        AdminRequest::CreateProject { name } => {
            let project = hub.create_project(&name).await?;
            AdminAnswer::Project {
                project_id: project.id.to_string(),
                name: project.name,
            }
        }
        AdminRequest::ListProjects => {
            let projects = hub.projects().await?.into_iter();
            let line = |p: callboard_store::Project| ProjectLine {
                id: p.id.to_string(),
                name: p.name,
            };
            AdminAnswer::Projects {
                projects: projects.map(line).collect(),
            }
        }
        AdminRequest::CreateDesktop { name } => {
            let created = hub.create_desktop(&name).await?;
            let note = "This device token is shown once. Keep it in a file, then run on the \
                        desktop: callboard desktop run --hub URL --token-file FILE";
            AdminAnswer::Secret {
                token: created.token,
                id: created.made.id.to_string(),
                note: note.to_owned(),
            }
        }
        AdminRequest::ListDesktops => {
            let line = |summary: callboard_hub::DesktopSummary| DesktopLine {
                id: summary.desktop.id.to_string(),
                name: summary.desktop.name,
                online: summary.online,
                last_seen_at: summary.last_seen_at.map(rfc3339),
            };
            AdminAnswer::Desktops {
                desktops: hub.desktops().await?.into_iter().map(line).collect(),
            }
        }
        AdminRequest::RebindDesktop { name } => {
            hub.rebind_desktop(&name).await?;
            let message = format!(
                "{name} is free: the next data folder that calls with its token is bound to it"
            );
            AdminAnswer::Done { message }
        }
        AdminRequest::CreateToken {
            name,
            projects,
            scopes,
        } => {
            let created = hub
                .create_connection(&name, &projects, read_scopes(&scopes)?)
                .await?;
            let note = "This bearer token is shown once; the hub keeps only its hash.".to_owned();
            AdminAnswer::Secret {
                token: created.token,
                id: created.made.id.to_string(),
                note,
            }
        }
        AdminRequest::ListTokens => {
            let line = |connection: callboard_store::Connection| TokenLine {
                id: connection.id.to_string(),
                name: connection.name,
                scopes: connection.scopes.to_string(),
                projects: connection
                    .projects
                    .into_iter()
                    .map(|project| project.name)
                    .collect(),
            };
            AdminAnswer::Tokens {
                tokens: hub.connections().await?.into_iter().map(line).collect(),
            }
        }
        AdminRequest::RevokeToken { name } => {
            let changed = hub.revoke_connection(&name).await?;
            let message = match changed {
                0 => format!("{name} is disconnected"),
                1 => format!("{name} is disconnected; 1 run was cancelled or asked to stop"),
                n => format!("{name} is disconnected; {n} runs were cancelled or asked to stop"),
            };
            AdminAnswer::Done { message }
        }
    })
}

fn read_scopes(names: &[String]) -> Result<Scopes, HubError> {
    if names.is_empty() {
        return Ok(Scopes::ALL);
    }
    let scopes: Result<Scopes, _> = names.iter().map(|name| name.parse()).collect();
    scopes.map_err(|error: callboard_domain::ParseScopeError| HubError::Invalid(error.to_string()))
}
