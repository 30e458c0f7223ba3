//! The repository's files as the checks see them: names with `/`, sorted, without what is built or installed.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 4] = [".git", "target", "node_modules", "__pycache__"];

/// A checkout, listed once.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    files: Vec<String>,
}

impl Tree {
    /// Lists the files below `root`.
    pub(crate) fn open(root: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        list(root, "", &mut files)?;
        files.sort();
        Ok(Self {
            root: root.to_path_buf(),
            files,
        })
    }

    /// The paths that begin with `folder` (`""` for all) and end with `ending`.
    pub(crate) fn files<'a>(
        &'a self,
        folder: &'a str,
        ending: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        self.files
            .iter()
            .map(String::as_str)
            .filter(move |path| path.starts_with(folder) && path.ends_with(ending))
    }

    /// The text of `path`.
    pub(crate) fn text(&self, path: &str) -> anyhow::Result<String> {
        std::fs::read_to_string(self.root.join(path)).with_context(|| format!("cannot read {path}"))
    }

    /// The text of `path`, or nothing where there is no such file.
    pub(crate) fn text_if_present(&self, path: &str) -> anyhow::Result<Option<String>> {
        if self.files.iter().any(|file| file == path) {
            self.text(path).map(Some)
        } else {
            Ok(None)
        }
    }

    /// `path` read as TOML.
    pub(crate) fn toml(&self, path: &str) -> anyhow::Result<toml::Table> {
        self.text(path)?
            .parse()
            .with_context(|| format!("{path} is not TOML"))
    }
}

fn list(root: &Path, folder: &str, files: &mut Vec<String>) -> anyhow::Result<()> {
    let path = root.join(folder);
    for entry in
        std::fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let inner = if folder.is_empty() {
            name.clone()
        } else {
            format!("{folder}/{name}")
        };
        if entry.file_type()?.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                list(root, &inner, files)?;
            }
        } else {
            files.push(inner);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod sketch {
    //! Small made-up repositories, on disk for as long as the value lives.

    use super::Tree;

    /// A tree with the given files, and the folder that holds it.
    pub(crate) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let tree = Tree::open(folder.path()).unwrap();
        (folder, tree)
    }
}
