//! What other programs and other users of the machine can reach of a running desktop and hub.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::process::Process;
use crate::rig::Rig;

/// The sockets of a process, by their inodes.
fn sockets_of(process: &Process) -> BTreeSet<String> {
    let entries = std::fs::read_dir(format!("/proc/{}/fd", process.id())).unwrap();
    let links = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let inode = |link: PathBuf| {
        let link = link.to_str()?.strip_prefix("socket:[")?;
        Some(link.strip_suffix(']')?.to_owned())
    };
    links.filter_map(inode).collect()
}

/// The TCP addresses that a process listens on, as the kernel writes them.
fn listening(process: &Process) -> Vec<String> {
    let own = sockets_of(process);
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let path = format!("/proc/{}/net/{table}", process.id());
        for line in std::fs::read_to_string(path).unwrap().lines().skip(1) {
            let fields: Vec<_> = line.split_whitespace().collect();
            // 0A is LISTEN.
            if fields[3] == "0A" && own.contains(fields[9]) {
                found.push(fields[1].to_owned());
            }
        }
    }
    found
}

/// Every file below a folder that is not as `allowed` says, with its mode.
fn open_to_others(folder: &Path, found: &mut Vec<String>) {
    let mut look = |path: &Path, wanted: u32| {
        let mode = std::fs::symlink_metadata(path)
            .unwrap()
            .permissions()
            .mode()
            & 0o777;
        if mode != wanted {
            found.push(format!("{mode:o} {}", path.display()));
        }
    };
    look(folder, 0o700);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            open_to_others(&path, found);
        } else {
            let mode = std::fs::symlink_metadata(&path)
                .unwrap()
                .permissions()
                .mode()
                & 0o777;
            if mode != 0o600 {
                found.push(format!("{mode:o} {}", path.display()));
            }
        }
    }
}

fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.file_type().is_socket())
}

#[tokio::test]
async fn a_running_desktop_listens_on_its_unix_socket_and_on_no_port() {
    let rig = Rig::with_graph().await;
    rig.works().await;
    let desktop = rig.desktop.as_ref().unwrap();
    assert!(!sockets_of(desktop).is_empty(), "the look finds sockets");
    assert_eq!(listening(desktop), Vec::<String>::new());
    assert!(is_socket(&rig.desktop_data().join("desktop/control.sock")));
    // The same look finds the hub's port, and finds it on this machine alone.
    let hub = listening(rig.hub.as_ref().unwrap());
    assert_eq!(hub, [format!("0100007F:{:04X}", rig.port)]);
}

#[tokio::test]
async fn what_hub_and_desktop_keep_is_their_owners_alone() {
    let rig = Rig::with_graph().await;
    rig.works().await;
    let mut found = Vec::new();
    open_to_others(&rig.hub_data(), &mut found);
    open_to_others(&rig.desktop_data().join("desktop"), &mut found);
    assert_eq!(found, Vec::<String>::new());
    assert!(is_socket(&rig.hub_data().join("hub/hub.sock")));
}

#[tokio::test]
async fn what_up_keeps_is_its_owners_alone() {
    let up = crate::up::Up::start().await;
    let mut found = Vec::new();
    open_to_others(&up.data(), &mut found);
    assert_eq!(found, Vec::<String>::new());
    for file in ["connection.json", "desktop/device-token"] {
        assert!(up.data().join(file).is_file(), "{file}");
    }
    // One process, one port: the hub's.
    let port = listening(up.process());
    assert_eq!(port, [format!("0100007F:{:04X}", up.port())]);
}
