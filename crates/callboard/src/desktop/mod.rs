//! `callboard desktop …`, and the commands that talk to a running desktop.

mod graphs;
mod run;
mod runs;

use std::path::Path;
use std::time::Duration;

use callboard_desktop::control::{Client, Refused, Request, Response};

use crate::args::{DesktopCommand, FolderCommand, ProjectCommand};
use crate::failure::{Failure, chain};
use crate::output::{Output, table};
use crate::paths;

pub(crate) use graphs::graph;
pub(crate) use run::{DesktopStart, RunningDesktop, start};
pub(crate) use runs::{runs, short};

/// How long the desktop may take to answer; it works on nothing long while somebody asks.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Runs one of the desktop's own commands.
pub(crate) async fn run(
    data: &Path,
    command: DesktopCommand,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        DesktopCommand::Run(arguments) => run::run(data, arguments, output).await,
        DesktopCommand::Status => runs::status(data, output).await,
    }
}

/// `callboard project …`.
pub(crate) async fn project(
    data: &Path,
    command: ProjectCommand,
    output: &Output,
) -> Result<(), Failure> {
    let (request, done) = match command {
        ProjectCommand::List => (Request::ProjectList, String::new()),
        ProjectCommand::Enable { project } => {
            let done =
                format!("{project} is enabled: its connected agents see what is shared with it");
            (Request::ProjectEnable { project }, done)
        }
        ProjectCommand::Disable { project } => {
            let done = format!("{project} is disabled: what waits for it ends cancelled");
            (Request::ProjectDisable { project }, done)
        }
    };
    let Response::Projects(projects) = ask(data, request).await? else {
        output.done(done);
        return Ok(());
    };
    output.data(&projects, || {
        let row = |project: &callboard_desktop::control::ProjectInfo| {
            let state = match (project.enabled, project.withdrawing, project.listed) {
                (_, _, false) => "gone from the hub",
                (true, _, true) => "enabled",
                (false, true, true) => "disabled, the hub has yet to hear of it",
                (false, false, true) => "disabled",
            };
            vec![
                project.name.clone(),
                state.to_owned(),
                format!("{} shared", project.shared),
            ]
        };
        table(&projects.iter().map(row).collect::<Vec<_>>())
    });
    Ok(())
}

/// `callboard folder …`.
pub(crate) async fn folder(
    data: &Path,
    command: FolderCommand,
    output: &Output,
) -> Result<(), Failure> {
    let request = match command {
        FolderCommand::Grant { folder } => Request::FolderGrant {
            path: absolute(&folder)?,
        },
        FolderCommand::List => Request::FolderList,
        FolderCommand::Revoke { folder } => Request::FolderRevoke {
            path: absolute(&folder)?,
        },
    };
    if let Response::Folders(folders) = ask(data, request).await? {
        output.data(&folders, || {
            folders.iter().map(|folder| folder.path.clone()).collect()
        });
        if folders.is_empty() {
            output.note("Graphs can read no folder. Grant one with: callboard folder grant DIR");
        }
    }
    Ok(())
}

/// The absolute form of a path from the command line, as text.
pub(crate) fn absolute(path: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    path.into_os_string()
        .into_string()
        .map_err(|path| Failure::usage(format!("{} is not valid UTF-8", path.display())))
}

/// Asks the running desktop of a data folder one thing.
pub(crate) async fn ask(data: &Path, request: Request) -> Result<Response, Failure> {
    let mut client = connect(data).await?;
    let response = tokio::time::timeout(ANSWER_MAX, client.call(&request)).await;
    let response = response.map_err(|_| {
        let seconds = ANSWER_MAX.as_secs();
        Failure::cannot_start(format!("the desktop did not answer within {seconds} s"))
            .hint("is its process stopped, or its disk very slow? then try again")
    })?;
    accepted(response.map_err(|error| Failure::cannot_start(chain(&error)))?)
}

pub(crate) async fn connect(data: &Path) -> Result<Client, Failure> {
    Client::connect(&paths::desktop_dir(data))
        .await
        .map_err(|error| Failure::cannot_start(error.to_string()).hint(error.hint()))
}

/// An answer that is no refusal.
pub(crate) fn accepted(response: Response) -> Result<Response, Failure> {
    match response {
        Response::Refused(refused) => Err(refusal(&refused)),
        Response::Done
        | Response::Status(_)
        | Response::Checked(_)
        | Response::Graph(_)
        | Response::Graphs(_)
        | Response::Projects(_)
        | Response::Started { .. }
        | Response::Runs(_)
        | Response::Run(_)
        | Response::Folders(_)
        | Response::Activity(_) => Ok(response),
    }
}

/// A refusal with the place in the source below it, where there is one.
pub(crate) fn refusal(refused: &Refused) -> Failure {
    let message = match &refused.place {
        None => refused.message.clone(),
        Some(place) => {
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            let before = usize::try_from(place.column.saturating_sub(1)).unwrap_or(0);
            let caret = " ".repeat(before);
            let (message, line) = (&refused.message, &place.source_line);
            format!("{message}\n  {number} | {line}\n  {margin} | {caret}^")
        }
    };
    let failure = Failure::failed(message);
    match &refused.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// The answer to a request that has no data.
pub(crate) async fn tell(
    data: &Path,
    request: Request,
    done: &str,
    output: &Output,
) -> Result<(), Failure> {
    ask(data, request).await?;
    output.done(done);
    Ok(())
}
