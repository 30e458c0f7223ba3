//! Saving the files of a task.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use callboard_domain::is_deceptive;

use super::requests::TaskLine;
use super::{ChatAnswer, ChatRequest, asked, unexpected};
use crate::failure::Failure;
use crate::output::Output;

/// How many names are tried for a file whose own is taken.
const NAMES_MAX: usize = 100;

/// Saves every file of `task` into `folder`; what is there already stays as it is.
pub(super) async fn artifacts(
    data: &Path,
    task: &TaskLine,
    folder: &Path,
    output: &Output,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot save into {}: {error}", folder.display()))
            .hint("choose another folder with --save")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    for artifact in &task.artifacts {
        let request = ChatRequest::Artifact {
            task_id: task.task_id.clone(),
            claim_id: artifact.claim_id.clone(),
            artifact_id: artifact.artifact_id.clone(),
        };
        let ChatAnswer::Artifact { content_base64 } = asked(data, request).await? else {
            return Err(unexpected());
        };
        let content = STANDARD.decode(content_base64).map_err(|_| unexpected())?;
        let saved = save(folder, &artifact.name, &content).map_err(failed)?;
        output.note(format!("saved     {}", saved.display()));
    }
    if task.artifacts.is_empty() {
        output.note("The task has no files.");
    }
    Ok(())
}

/// Writes a new file under `name`, or under the next free variant of it.
fn save(folder: &Path, name: &str, content: &[u8]) -> std::io::Result<PathBuf> {
    let name = harmless(name);
    for number in 1..=NAMES_MAX {
        let path = folder.join(variant(&name, number));
        match std::fs::File::create_new(&path) {
            Ok(mut file) => {
                file.write_all(content)?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// `report.md`, then `report (2).md`.
fn variant(name: &str, number: usize) -> String {
    match (number, name.rsplit_once('.')) {
        (1, _) => name.to_owned(),
        (_, Some((stem, extension))) => format!("{stem} ({number}).{extension}"),
        (_, None) => format!("{name} ({number})"),
    }
}

/// A name that stays in its folder and hides nothing: a chat chose it.
fn harmless(name: &str) -> String {
    let plain = |character: char| {
        let risky = is_deceptive(character) || "/\\:*?\"<>|".contains(character);
        if risky { '_' } else { character }
    };
    let kept: String = name.chars().map(plain).collect();
    let kept = kept.trim_start_matches('.').trim();
    if kept.is_empty() { "file" } else { kept }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_in_its_folder_and_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for (name, saved_as) in [
            ("report.md", "report.md"),
            ("report.md", "report (2).md"),
            ("../../etc/passwd", "_.._etc_passwd"),
            (".bashrc", "bashrc"),
            ("a\u{202e}fdp.exe", "a_fdp.exe"),
            ("..", "file"),
        ] {
            let saved = save(folder.path(), name, name.as_bytes()).unwrap();
            assert_eq!(saved, folder.path().join(saved_as));
        }
    }
}
