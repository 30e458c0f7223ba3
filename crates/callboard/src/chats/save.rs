//! Saving the files of a task.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use callboard_domain::is_deceptive;

use super::requests::TaskLine;
use super::{ChatAnswer, ChatRequest, asked, unexpected};
use crate::failure::Failure;

/// Longest name of a saved file, in bytes: file systems take 255, and ` (100)` may be added.
const NAME_BYTES_MAX: usize = 240;
/// Where the files of claims go that did not finish the task.
const OTHER_CLAIMS: &str = "other claims";
/// How many names are tried for a file whose own is taken.
const NAMES_MAX: usize = 100;

/// Saves every file of `task` into `folder` and notes where; what is there already stays as it is,
/// and a file that was saved before is not saved again. Files of claims that lapsed go into a folder
/// of their own: they are no part of the answer. A file that cannot be saved keeps back no other.
pub(super) async fn artifacts(
    data: &Path,
    task: &mut TaskLine,
    folder: &Path,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot save into {}: {error}", folder.display()))
            .hint("choose another folder with --save")
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let (mut missed, all) = (0, task.artifacts.len());
    for artifact in &mut task.artifacts {
        let of_answer = task
            .claim_id
            .as_ref()
            .is_none_or(|id| *id == artifact.claim_id);
        let place = if of_answer {
            folder.to_owned()
        } else {
            folder.join(OTHER_CLAIMS)
        };
        let request = ChatRequest::Artifact {
            task_id: task.task_id.clone(),
            claim_id: artifact.claim_id.clone(),
            artifact_id: artifact.artifact_id.clone(),
        };
        let saved = async {
            let ChatAnswer::Artifact { content_base64 } = asked(data, request).await? else {
                return Err(unexpected());
            };
            let content = STANDARD.decode(content_base64).map_err(|_| unexpected())?;
            std::fs::create_dir_all(&place).map_err(failed)?;
            save(&place, &artifact.name, &content).map_err(failed)
        };
        match saved.await {
            Ok(path) => artifact.saved_as = Some(path),
            Err(failure) => {
                missed += 1;
                artifact.not_saved = Some(failure.message);
            }
        }
    }
    if missed > 0 {
        return Err(
            Failure::failed(format!("{missed} of {all} files could not be saved")).hint(
                "the lines above say why; choose another folder with --save, or run it again",
            ),
        );
    }
    Ok(())
}

/// Writes a new file under `name`, or under the next free variant of it, unless one of them has
/// this content already.
fn save(folder: &Path, name: &str, content: &[u8]) -> std::io::Result<PathBuf> {
    let name = harmless(name);
    for number in 1..=NAMES_MAX {
        let path = folder.join(variant(&name, number));
        match std::fs::File::create_new(&path) {
            Ok(mut file) => {
                file.write_all(content)?;
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if is_same(&path, content) {
                    return Ok(path);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Whether a plain file has this content. One that cannot be read counts as another.
fn is_same(path: &Path, content: &[u8]) -> bool {
    let plain = std::fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_file() && found.len() == content.len() as u64);
    plain && std::fs::read(path).is_ok_and(|found| found == content)
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
    let kept = kept.trim_start_matches(['.', '-']).trim();
    let kept = if kept.is_empty() { "file" } else { kept };
    let (stem, extension) = match kept.rsplit_once('.') {
        Some((stem, extension)) if extension.len() < NAME_BYTES_MAX / 2 => (stem, extension),
        Some(_) | None => (kept, ""),
    };
    let mut stem = stem.to_owned();
    while stem.len() + extension.len() > NAME_BYTES_MAX {
        stem.pop();
    }
    match extension {
        "" => stem,
        extension => format!("{stem}.{extension}"),
    }
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
            ("-rf.md", "rf.md"),
            (
                &format!("{}.md", "\u{d55c}".repeat(100)),
                &format!("{}.md", "\u{d55c}".repeat(79)),
            ),
            ("..", "file"),
        ] {
            let content = [name, saved_as].concat();
            let saved = save(folder.path(), name, content.as_bytes()).unwrap();
            assert_eq!(saved, folder.path().join(saved_as));
            let again = save(folder.path(), name, content.as_bytes()).unwrap();
            assert_eq!(again, saved, "it is there already");
        }
    }
}
