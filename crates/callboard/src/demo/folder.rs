//! The folder that the demo's Graph reports on.

use std::path::Path;

use crate::failure::Failure;

/// How many files [`write()`] makes.
pub(super) const FILES: u64 = 36;

/// Makes a folder of notes: six chapters of six pages, each a little longer than the last.
pub(super) fn write(folder: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::cannot_start(format!("cannot write the demo's folder: {error}"))
    };
    for number in 0..FILES {
        let chapter = folder.join(format!("chapter-{}", number / 6 + 1));
        std::fs::create_dir_all(&chapter).map_err(failed)?;
        let lines = (0..=number).map(|line| format!("Line {} of page {}.\n", line + 1, number + 1));
        let page = chapter.join(format!("page-{:02}.md", number + 1));
        std::fs::write(page, lines.collect::<String>()).map_err(failed)?;
    }
    Ok(())
}
