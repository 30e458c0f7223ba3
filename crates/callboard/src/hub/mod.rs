//! `callboard hub …`.

mod admin;
mod serve;
mod socket;

use std::path::Path;

use crate::args::{
    HubCommand, HubDesktopCommand, HubPasswordCommand, HubProjectCommand, HubTokenCommand,
};
use crate::chats::changed_task;
use crate::failure::Failure;
use crate::output::{Output, table};

use admin::perform;
pub(crate) use admin::{AdminAnswer, AdminRequest};
pub(crate) use serve::{HubConfig, bind, console, ended, here, open_hub, start};
pub(crate) use socket::ask;

/// Runs one of the hub's commands.
pub(crate) async fn run(data: &Path, command: HubCommand, output: &Output) -> Result<(), Failure> {
    let request = match command {
        HubCommand::Serve(arguments) => return serve::run(data, arguments, output).await,
        HubCommand::Project(HubProjectCommand::Create { name }) => {
            AdminRequest::CreateProject { name }
        }
        HubCommand::Project(HubProjectCommand::List) => AdminRequest::ListProjects,
        HubCommand::Desktop(HubDesktopCommand::Create { name }) => {
            AdminRequest::CreateDesktop { name }
        }
        HubCommand::Desktop(HubDesktopCommand::List) => AdminRequest::ListDesktops,
        HubCommand::Desktop(HubDesktopCommand::Rebind { name }) => {
            AdminRequest::RebindDesktop { name }
        }
        HubCommand::Token(HubTokenCommand::Create {
            name,
            projects,
            scopes,
        }) => AdminRequest::CreateToken {
            name,
            projects,
            scopes,
        },
        HubCommand::Token(HubTokenCommand::List) => AdminRequest::ListTokens,
        HubCommand::Token(HubTokenCommand::Revoke { name }) => AdminRequest::RevokeToken { name },
        HubCommand::Password(HubPasswordCommand::Reset) => AdminRequest::ResetPassword,
    };
    show(&ask(data, request).await?, output);
    Ok(())
}

/// What to know of a one-time link.
const SETUP_NOTE: &str = "Every browser is signed out. Open this link to set a new password; it works \
                          once, for a day, while the hub runs.";

fn show(answer: &AdminAnswer, output: &Output) {
    output.data(answer, || match answer {
        AdminAnswer::Project { project_id, name } => vec![format!("{name}  {project_id}")],
        AdminAnswer::Projects { projects } => table(
            &projects
                .iter()
                .map(|p| vec![p.name.clone(), p.id.clone()])
                .collect::<Vec<_>>(),
        ),
        AdminAnswer::SetupLink { url } => vec![url.clone()],
        // The token stands alone on stdout, so that it can be piped into a file.
        AdminAnswer::Secret { token, .. } => vec![token.clone()],
        AdminAnswer::Desktops { desktops } => {
            let row = |desktop: &admin::DesktopLine| {
                let state = if desktop.online { "online" } else { "offline" };
                let seen = desktop
                    .last_seen_at
                    .clone()
                    .unwrap_or_else(|| "never seen".into());
                vec![desktop.name.clone(), state.to_owned(), seen]
            };
            table(&desktops.iter().map(row).collect::<Vec<_>>())
        }
        AdminAnswer::Tokens { tokens } => {
            let row = |token: &admin::TokenLine| {
                vec![
                    token.name.clone(),
                    token.scopes.clone(),
                    token.projects.join(", "),
                ]
            };
            table(&tokens.iter().map(row).collect::<Vec<_>>())
        }
        AdminAnswer::Disconnected { name, runs, tasks } => {
            let mut lines = vec![format!("{name} is disconnected: its token works no more")];
            lines.extend(runs.iter().map(|run| match run.status.as_str() {
                "running" => format!("run       {}  asked to stop", run.command_id),
                status => format!("run       {}  {status}", run.command_id),
            }));
            lines.extend(tasks.iter().map(changed_task));
            lines
        }
        AdminAnswer::Done { message } | AdminAnswer::Refused { message, .. } => {
            vec![message.clone()]
        }
        // Shown by the commands that ask for them.
        AdminAnswer::Chats(_) => Vec::new(),
    });
    match answer {
        AdminAnswer::Secret { note, .. } => output.note(note),
        AdminAnswer::SetupLink { .. } => output.note(SETUP_NOTE),
        AdminAnswer::Project { .. }
        | AdminAnswer::Projects { .. }
        | AdminAnswer::Desktops { .. }
        | AdminAnswer::Tokens { .. }
        | AdminAnswer::Disconnected { .. }
        | AdminAnswer::Done { .. }
        | AdminAnswer::Refused { .. }
        | AdminAnswer::Chats(_) => {}
    }
}
