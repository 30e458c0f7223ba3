//! What a reader of the figures must know of the machine.

use std::path::Path;

use crate::Options;

/// Facts by name. What cannot be found out is left out.
pub(crate) fn facts(options: &Options) -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let facts = [
        ("processor", processor()),
        ("cores", Some(cores.to_string())),
        ("memory", memory()),
        ("system", system()),
        ("temporary folder", file_system(&std::env::temp_dir())),
        ("binary", size(&options.binary)),
    ];
    let known = facts.into_iter();
    known
        .filter_map(|(name, fact)| Some((name, fact?)))
        .collect()
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let model = text.lines().find(|line| line.starts_with("model name"))?;
    Some(model.split_once(':')?.1.trim().to_owned())
}

fn memory() -> Option<String> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.split_whitespace().next()?.parse().ok()?;
    Some(format!("{} MiB", kib / 1_024))
}

fn system() -> Option<String> {
    let name = nix::sys::utsname::uname().ok()?;
    let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
    Some(format!("{} {}", text(name.sysname()), text(name.release())))
}

/// The file system that holds `folder`: the longest mount point above it.
fn file_system(folder: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let above = mounts.lines().filter_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let (point, kind) = (columns.next()?, columns.next()?);
        folder.starts_with(point).then_some((point.len(), kind))
    });
    let (_, kind) = above.max_by_key(|(length, _)| *length)?;
    Some(format!("{} ({kind})", folder.display()))
}

fn size(binary: &Path) -> Option<String> {
    let bytes = std::fs::metadata(binary).ok()?.len();
    Some(format!("{} KiB", bytes / 1_024))
}
