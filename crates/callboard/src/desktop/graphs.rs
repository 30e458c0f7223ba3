//! `callboard graph …`.

use std::io::ErrorKind;
use std::path::Path;

use callboard_agents::{Agents, Tools};
use callboard_ambient::Clock;
use callboard_desktop::control::{GraphInfo, Refused, Request, Response};
use callboard_fleet::Fleet;

use super::{ask, refusal, tell};
use crate::args::GraphCommand;
use crate::failure::Failure;
use crate::output::{Output, table};

/// Runs one of the commands about Graphs.
pub(crate) async fn graph(
    data: &Path,
    command: GraphCommand,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        GraphCommand::Add { file, slug } => {
            let source = read(&file)?;
            let name = file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let request = Request::GraphAdd { source, slug };
            show(
                ask(data, request)
                    .await
                    .map_err(|error| not_added(&name, error))?,
                output,
            );
        }
        GraphCommand::List => show(ask(data, Request::GraphList).await?, output),
        GraphCommand::Show { slug } => {
            source(ask(data, Request::GraphShow { slug }).await?, output)
        }
        GraphCommand::Edit {
            slug,
            file: None,
            new_slug: None,
        } => edit(data, slug, output).await?,
        GraphCommand::Edit {
            slug,
            file,
            new_slug,
        } => {
            let source = file.as_deref().map(read).transpose()?;
            replace(data, slug, source, new_slug, output).await?;
        }
        GraphCommand::Remove { slug } => {
            let done = format!("{slug} is removed; its runs stay in `callboard runs list`");
            tell(data, Request::GraphRemove { slug }, &done, output).await?;
        }
        GraphCommand::Check { file } => check(&file, output).await?,
        GraphCommand::Share { slug, project } => {
            let done = format!("{slug} is shared with {project}");
            tell(data, Request::GraphShare { slug, project }, &done, output).await?;
        }
        GraphCommand::Unshare { slug, project } => {
            let done =
                format!("{slug} is no longer shared with {project}; what waits ends cancelled");
            tell(data, Request::GraphUnshare { slug, project }, &done, output).await?;
        }
        GraphCommand::Run { slug, args } => super::runs::run_here(data, slug, args, output).await?,
    }
    Ok(())
}

/// Checks a script in a sandbox of its own; no desktop needs to run.
async fn check(file: &Path, output: &Output) -> Result<(), Failure> {
    let source = read(file)?;
    let tools = Tools::new(Vec::new());
    let fleet = Fleet::new(
        super::run::launcher()?,
        Agents::none(),
        tools,
        Clock::system(),
    );
    let checked = fleet.check(&source).await;
    let meta = checked.map_err(|error| {
        let failure = refusal(&Refused::from(error));
        let message = format!("{} is no Graph: {}", file.display(), failure.message);
        Failure { message, ..failure }
    })?;
    output.data(&meta, || {
        vec![format!("{} is a Graph: {}", file.display(), meta.name)]
    });
    Ok(())
}

fn not_added(name: &str, failure: Failure) -> Failure {
    let message = format!("graph \"{name}\" was not added: {}", failure.message);
    Failure { message, ..failure }
}

fn show(response: Response, output: &Output) {
    let row = |graph: &GraphInfo| {
        let shared = match graph.shared_with.as_slice() {
            [] => "not shared".to_owned(),
            projects => format!("shared with {}", projects.join(", ")),
        };
        vec![
            graph.slug.clone(),
            format!("v{}", graph.version),
            shared,
            graph.description.clone(),
        ]
    };
    let rows = |graphs: &[GraphInfo]| table(&graphs.iter().map(row).collect::<Vec<_>>());
    if let Response::Graph(detail) = response {
        output.data(&detail.info, || rows(std::slice::from_ref(&detail.info)));
    } else if let Response::Graphs(graphs) = response {
        output.data(&graphs, || rows(&graphs));
        if graphs.is_empty() {
            output.note("No Graphs yet. Add one with: callboard graph add FILE");
        }
    }
}

fn source(response: Response, output: &Output) {
    if let Response::Graph(detail) = response {
        let lines = || detail.source.lines().map(str::to_owned).collect();
        output.data(&detail, lines);
    }
}

async fn edit(data: &Path, slug: String, output: &Output) -> Result<(), Failure> {
    let show = Request::GraphShow { slug: slug.clone() };
    let Response::Graph(detail) = ask(data, show).await? else {
        return Err(Failure::failed("the desktop did not show the Graph"));
    };
    let failed = |error: std::io::Error| Failure::failed(format!("cannot edit {slug}: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let file = folder.path().join(format!("{slug}.js"));
    let edited = in_editor(&slug, &detail.source, &file).await?;
    if edited == detail.source {
        output.done("nothing changed");
        return Ok(());
    }
    let replaced = replace(data, slug.clone(), Some(edited), None, output).await;
    replaced.map_err(|failure| {
        // Nobody should have to type it again.
        let _kept = folder.keep();
        failure.hint(format!(
            "your text is kept; mend it, then: callboard graph edit {slug} {}",
            file.display()
        ))
    })
}

async fn replace(
    data: &Path,
    slug: String,
    source: Option<String>,
    new_slug: Option<String>,
    output: &Output,
) -> Result<(), Failure> {
    let request = Request::GraphEdit {
        slug,
        source,
        new_slug,
    };
    show(ask(data, request).await?, output);
    Ok(())
}

/// Lets the owner change a text in the editor of his choice.
async fn in_editor(slug: &str, source: &str, file: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot edit {slug}: {error}"));
    let named = |name| {
        std::env::var(name)
            .ok()
            .filter(|value| !value.trim().is_empty())
    };
    let editor = named("VISUAL").or_else(|| named("EDITOR"));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // An editor is often a command with options, such as `code --wait`.
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    std::fs::write(file, source).map_err(failed)?;
    let mut command = tokio::process::Command::new(program);
    let ended = command.args(words).arg(file).status().await;
    let status = ended.map_err(|error| {
        Failure::cannot_start(format!("cannot start the editor {}: {error}", program))
            .hint("name one in EDITOR, or give the new script as a file")
    })?;
    if !status.success() {
        return Err(Failure::failed(format!(
            "the editor ended with {status}; nothing was changed"
        )));
    }
    std::fs::read_to_string(file).map_err(failed)
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| {
        let what = if error.kind() == ErrorKind::InvalidData {
            "it is not a text file".to_owned()
        } else {
            error.to_string()
        };
        Failure::usage(format!("cannot read {}: {what}", file.display()))
    })
}
