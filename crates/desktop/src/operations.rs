//! What the owner can do, performed by the thread that owns the data.

use std::path::{Path, PathBuf};

use callboard_domain::limits::{DESCRIPTION_UTF16_MAX, NAME_UTF16_MAX, SLUG_CHARS_MAX};
use callboard_domain::{ExecutionId, cut_utf16};
use callboard_fleet::Meta;
use callboard_relay::{HubState, Input};

use crate::Activity;
use crate::control::{Refused, Request, Response};
use crate::daemon::{Daemon, LocalRun};
use crate::database::{GraphRow, NewGraph, NewLocalRun, ProjectRow, ShareError};
use crate::engine::Work;
use crate::report::hub_text;

/// Most runs that the owner has under way here. They take no slot: whoever asks at the machine
/// does not wait for chats.
const LOCAL_RUNS_MAX: usize = 8;

/// What the thread is asked for.
#[derive(Debug)]
pub(crate) enum Operation {
    /// As it came.
    Plain(Request),
    /// Save a new Graph.
    Add(Save),
    /// Replace the source of the Graph with this slug.
    Replace(String, Save),
}

/// A source that was checked.
#[derive(Debug)]
pub(crate) struct Save {
    pub(crate) meta: Meta,
    pub(crate) source: String,
    pub(crate) slug: Option<String>,
}

type Answer = Result<Response, Refused>;

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::new(format!("the desktop's database refused it: {error}"))
            .hint("check the free space of the data folder")
    }
}

impl Daemon {
    /// Does one thing for the owner.
    pub(crate) fn operate(&mut self, operation: Operation) -> Response {
        let answer = match operation {
            Operation::Add(save) => self.add_graph(save),
            Operation::Replace(slug, save) => self.replace_graph(&slug, save),
            Operation::Plain(request) => self.answer(request),
        };
        answer.unwrap_or_else(Response::Refused)
    }

    fn answer(&mut self, request: Request) -> Answer {
        match request {
            Request::Status => self.status(),
            Request::GraphList => self.graph_list(),
            Request::GraphShow { slug } => self.graph_show(&slug),
            Request::GraphEdit { slug, new_slug, .. } => self.rename_graph(&slug, new_slug),
            Request::GraphRemove { slug } => self.remove_graph(&slug),
            Request::GraphShare { slug, project } => self.share(&slug, &project),
            Request::GraphUnshare { slug, project } => self.unshare(&slug, &project),
            Request::GraphRun { slug, arguments } => self.run_graph(&slug, arguments),
            Request::ProjectList => self.project_list(),
            Request::ProjectEnable { project } => self.enable(&project, true),
            Request::ProjectDisable { project } => self.enable(&project, false),
            Request::RunList { limit } => self.run_list(limit),
            Request::RunShow { id } => self.run_show(&id),
            Request::RunCancel { id } => self.cancel_run(&id),
            Request::FolderGrant { path } => self.grant_folder(&path),
            Request::FolderList => self.folder_list(),
            Request::FolderRevoke { path } => self.revoke_folder(&path),
            Request::GraphCheck { .. } | Request::GraphAdd { .. } | Request::Watch => {
                Err(Refused::new("this is answered elsewhere"))
            }
        }
    }

    fn add_graph(&mut self, save: Save) -> Answer {
        let slug = match save.slug {
            Some(slug) => checked_slug(slug)?,
            None => slug_of(&save.meta.name)?,
        };
        if self.database.graph(&slug)?.is_some() {
            return Err(
                Refused::new(format!("a Graph called \"{slug}\" is there already")).hint(format!(
                    "replace it with `callboard graph edit {slug}`, or choose another --slug"
                )),
            );
        }
        let id = self.entropy.graph_session_id();
        let new = new_graph(slug, save.meta, save.source);
        let now_ms = self.clock.now().as_millis();
        self.database.add_graph(id, &new, now_ms)?;
        self.graph_show(&new.slug)
    }

    fn replace_graph(&mut self, slug: &str, save: Save) -> Answer {
        let graph = self.graph_called(slug)?;
        let new_slug = save.slug.unwrap_or_else(|| graph.slug.clone());
        let new = new_graph(new_slug, save.meta, save.source);
        self.edit(&graph, new)
    }

    fn rename_graph(&mut self, slug: &str, new_slug: Option<String>) -> Answer {
        let graph = self.graph_called(slug)?;
        let Some(new_slug) = new_slug else {
            return Err(Refused::new(
                "nothing to change: give a new source or a new slug",
            ));
        };
        let new = NewGraph {
            slug: new_slug,
            name: graph.name.clone(),
            description: graph.description.clone(),
            source: graph.source.clone(),
        };
        self.edit(&graph, new)
    }

    fn edit(&mut self, graph: &GraphRow, mut new: NewGraph) -> Answer {
        new.slug = checked_slug(new.slug)?;
        if new.slug != graph.slug && self.database.graph(&new.slug)?.is_some() {
            let message = format!("another Graph is called \"{}\"", new.slug);
            return Err(Refused::new(message));
        }
        let now_ms = self.clock.now().as_millis();
        self.database
            .edit_graph(graph.graph_session_id, &new, now_ms)?;
        self.feed(Input::SharingChanged);
        self.graph_show(&new.slug)
    }

    fn remove_graph(&mut self, slug: &str) -> Answer {
        let graph = self.graph_called(slug)?;
        self.database.remove_graph(graph.graph_session_id)?;
        self.feed(Input::SharingChanged);
        Ok(Response::Done)
    }

    fn share(&mut self, slug: &str, project: &str) -> Answer {
        let graph = self.graph_called(slug)?;
        let project = self.project_called(project)?;
        let now_ms = self.clock.now().as_millis();
        self.database
            .share(project.project_id, graph.graph_session_id, now_ms)
            .map_err(|error| match error {
                ShareError::TooMany => {
                    let message = format!("{error}: \"{}\"", project.name);
                    Refused::new(message).hint("unshare one that is not needed any more")
                }
                ShareError::Sqlite(error) => error.into(),
            })?;
        self.feed(Input::SharingChanged);
        Ok(Response::Done)
    }

    fn unshare(&mut self, slug: &str, project: &str) -> Answer {
        let graph = self.graph_called(slug)?;
        let project = self.project_called(project)?;
        let ended = self
            .database
            .unshare(project.project_id, graph.graph_session_id)?;
        if !ended {
            let message = format!("\"{slug}\" is not shared with \"{}\"", project.name);
            return Err(Refused::new(message));
        }
        self.feed(Input::SharingChanged);
        Ok(Response::Done)
    }

    fn enable(&mut self, project: &str, enabled: bool) -> Answer {
        let project = self.project_called(project)?;
        self.database
            .set_project_enabled(project.project_id, enabled)?;
        self.feed(Input::SharingChanged);
        Ok(Response::Done)
    }

    /// A run by hand goes the same way as one from outside, but for the hub.
    fn run_graph(&mut self, slug: &str, arguments: Option<String>) -> Answer {
        if self.is_stopping {
            return Err(Refused::new("the desktop is stopping"));
        }
        let graph = self.graph_called(slug)?;
        if self.local_runs.len() >= LOCAL_RUNS_MAX {
            let message = format!("{LOCAL_RUNS_MAX} runs that were started here are under way");
            return Err(Refused::new(message).hint("wait for one, or stop it"));
        }
        let arguments = arguments.unwrap_or_else(|| "{}".to_owned());
        let object: Result<serde_json::Map<String, serde_json::Value>, _> =
            serde_json::from_str(&arguments);
        if let Err(error) = object {
            let message = format!("the arguments are not a JSON object: {error}");
            return Err(Refused::new(message));
        }
        let execution_id = ExecutionId::from_bytes(self.entropy.uuid_v7(self.clock.now()));
        let run = NewLocalRun {
            execution_id,
            graph_session_id: graph.graph_session_id,
            slug: graph.slug.clone(),
            version: graph.version,
            arguments: arguments.clone(),
        };
        let now_ms = self.clock.now().as_millis();
        self.database.begin_local_run(&run, now_ms)?;
        let local = LocalRun {
            slug: graph.slug.clone(),
            ended: None,
        };
        self.local_runs.insert(execution_id, local);
        self.begun_ms
            .insert(execution_id, self.clock.monotonic_ms());
        self.tell(Activity::Started {
            execution_id: execution_id.to_string(),
            command_id: None,
            slug: graph.slug.clone(),
            after_ms: 0,
        });
        self.engine.begin(Work {
            execution_id,
            slug: graph.slug,
            source: graph.source,
            arguments,
        });
        Ok(Response::Started {
            execution_id: execution_id.to_string(),
        })
    }

    fn cancel_run(&mut self, id: &str) -> Answer {
        let run = self.run_called(id)?;
        if run.state != "running" {
            return Err(Refused::new(format!("this run is over: {}", run.state)));
        }
        if self.local_runs.contains_key(&run.execution_id) {
            self.engine.stop(run.execution_id);
        } else {
            self.feed(Input::OwnerCancel {
                execution_id: run.execution_id,
            });
        }
        Ok(Response::Done)
    }

    fn grant_folder(&mut self, path: &str) -> Answer {
        let folder = PathBuf::from(path);
        if !folder.is_absolute() {
            return Err(Refused::new(format!("\"{path}\" is not an absolute path")));
        }
        let real = folder
            .canonicalize()
            .map_err(|error| Refused::new(format!("cannot look into \"{path}\": {error}")))?;
        let Some(real) = real.to_str().filter(|_| real.is_dir()) else {
            return Err(Refused::new(format!("\"{path}\" is not a folder")));
        };
        if self.facts.privacy.covers(Path::new(real)) {
            let message = format!("\"{path}\" belongs to callboard itself and holds its secrets");
            return Err(Refused::new(message).hint("grant another folder"));
        }
        let now_ms = self.clock.now().as_millis();
        self.database.grant_folder(real, now_ms)?;
        self.folders_changed()
    }

    fn revoke_folder(&mut self, path: &str) -> Answer {
        let real = PathBuf::from(path).canonicalize().ok();
        let real = real.as_deref().and_then(|real| real.to_str());
        let revoked = self.database.revoke_folder(path)?
            || match real {
                Some(real) => self.database.revoke_folder(real)?,
                None => false,
            };
        if !revoked {
            return Err(Refused::new(format!("\"{path}\" is not granted"))
                .hint("see `callboard folder list`"));
        }
        self.folders_changed()
    }

    fn folders_changed(&mut self) -> Answer {
        let folders = self.database.folders()?;
        let paths = folders.into_iter().map(|(path, _)| path.into()).collect();
        self.engine.grant(paths);
        self.folder_list()
    }

    pub(crate) fn graph_called(&self, slug: &str) -> Result<GraphRow, Refused> {
        self.database.graph(slug)?.ok_or_else(|| {
            Refused::new(format!("no Graph is called \"{}\"", cut_utf16(slug, 100)))
                .hint("see `callboard graph list`")
        })
    }

    /// A project by its id or its name, whose case does not matter.
    fn project_called(&self, wanted: &str) -> Result<ProjectRow, Refused> {
        let projects = self.database.project_rows()?;
        let shown = cut_utf16(wanted, 100);
        let by_id = projects
            .iter()
            .find(|project| project.project_id.to_string() == wanted.to_ascii_lowercase());
        if let Some(project) = by_id {
            return Ok(project.clone());
        }
        let mut named: Vec<_> = projects
            .iter()
            .filter(|project| project.name.to_lowercase() == wanted.to_lowercase())
            .collect();
        if named.len() > 1 {
            named.retain(|project| project.name == wanted);
        }
        match named.as_slice() {
            [project] => Ok((*project).clone()),
            [] if projects.is_empty() => Err(self.no_projects()),
            [] => Err(Refused::new(format!("no project is called \"{shown}\""))
                .hint("see `callboard project list`")),
            [..] => Err(
                Refused::new(format!("several projects are called \"{shown}\""))
                    .hint("give the project's id, see `callboard project list`"),
            ),
        }
    }

    fn no_projects(&self) -> Refused {
        let hub = self.relay.status(self.clock.monotonic_ms()).hub;
        if hub == HubState::Reachable {
            return Refused::new("the hub has no project yet")
                .hint("make one on the hub with `callboard hub project create NAME`");
        }
        let message = format!("the projects are not known yet: {}", hub_text(&hub));
        Refused::new(message).hint("see `callboard desktop status`")
    }
}

fn new_graph(slug: String, meta: Meta, source: String) -> NewGraph {
    NewGraph {
        slug,
        name: cut_utf16(&meta.name, NAME_UTF16_MAX).to_owned(),
        description: cut_utf16(&meta.description, DESCRIPTION_UTF16_MAX).to_owned(),
        source,
    }
}

fn checked_slug(slug: String) -> Result<String, Refused> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=SLUG_CHARS_MAX).contains(&slug.len()) && slug.bytes().all(fits) {
        return Ok(slug);
    }
    Err(Refused::new(format!(
        "a slug has 1 to {SLUG_CHARS_MAX} characters of a-z, 0-9 and -"
    )))
}

/// A slug from a name: lower case, everything else one dash.
fn slug_of(name: &str) -> Result<String, Refused> {
    let mut slug = String::new();
    for character in name.chars() {
        let character = character.to_ascii_lowercase();
        if character.is_ascii_alphanumeric() {
            slug.push(character);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(SLUG_CHARS_MAX);
    let slug = slug.trim_end_matches('-').to_owned();
    if slug.is_empty() {
        let message = format!(
            "no slug can be made of the name \"{}\"",
            cut_utf16(name, 100)
        );
        return Err(Refused::new(message).hint("choose one with --slug"));
    }
    Ok(slug)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_made_of_the_name() {
        for (name, slug) in [
            ("Folder report", "folder-report"),
            ("  Größe & Co. ", "gr-e-co"),
            ("a", "a"),
        ] {
            assert_eq!(slug_of(name).as_deref(), Ok(slug));
        }
        assert_eq!(slug_of(&"x".repeat(100)).map(|slug| slug.len()), Ok(64));
        let refused = slug_of("日報").unwrap_err();
        assert_eq!(refused.hint.as_deref(), Some("choose one with --slug"));
    }

    #[test]
    fn a_slug_has_small_letters_digits_and_dashes_only() {
        for wrong in ["", "A", "a b", "a_b", "ä", &"x".repeat(65)] {
            assert!(checked_slug(wrong.to_owned()).is_err(), "{wrong}");
        }
        assert!(checked_slug("x".repeat(64)).is_ok());
    }
}
