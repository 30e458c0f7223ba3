//! A disk that fills up under a desktop and under a hub: nothing is lost, and it goes on once
//! there is space again.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{callboard, run_into, until};
use crate::rig::{HOME, Rig};

/// A file that takes nothing, as on a full disk.
fn full() -> std::fs::File {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).open("/dev/full").unwrap()
}

#[tokio::test]
async fn servers_whose_logs_cannot_be_written_go_on() {
    let mut rig = Rig::with_graph().await;
    rig.desktop.take().unwrap().stop().await;
    rig.hub.take().unwrap().stop().await;
    let (mut hub, mut desktop) = (rig.hub_command(), rig.desktop_command());
    let mut servers = Vec::new();
    for command in [&mut hub, &mut desktop] {
        command.env("CALLBOARD_LOG", "debug");
        command.stdout(full()).stderr(full());
        servers.push(command.spawn().unwrap());
    }
    until("the desktop and its hub have met", async || {
        let status = rig.desk(&["desktop", "status", "--json"]).await;
        (status.code == Some(0) && status.json()["hub"]["reachable"] == true).then_some(())
    })
    .await;
    rig.works().await;
    for mut server in servers {
        assert_eq!(server.try_wait().unwrap(), None, "it runs");
        server.kill().await.unwrap();
    }
}

#[tokio::test]
async fn a_token_that_could_not_be_printed_is_no_success() {
    let rig = Rig::with_hub().await;
    let mut command = callboard(&rig.hub_data());
    let create = [
        "hub",
        "token",
        "create",
        "--name",
        "Lost",
        "--project",
        HOME,
    ];
    command.args(create);
    let lost = run_into(full().into(), command).await;
    lost.refused(1, "what this printed is lost: No space left on device", "");
}

/// A small disk of its own, unmounted when this is dropped.
#[derive(Debug)]
struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// Only a privileged user may mount; for others this says loudly that the test did not run.
    #[allow(clippy::print_stderr, reason = "a test that did not run says so")]
    fn mount(folder: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m,mode=700", "callboard-test"])
            .arg(&folder)
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self { folder });
        }
        eprintln!("NOT RUN: a full disk needs the right to mount one");
        None
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    fn fill(&self) {
        let mut file = std::fs::File::create(self.ballast()).unwrap();
        for size in [65_536, 1] {
            let piece = vec![1; size];
            while file.write_all(&piece).is_ok() {}
        }
    }

    fn free(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, since the processes of the test may be dying still.
        drop(Command::new("umount").arg("-l").arg(&self.folder).status());
    }
}

/// Puts a folder on a disk of its own.
fn moved(from: &Path) -> Option<Disk> {
    let aside = from.with_extension("aside");
    std::fs::rename(from, &aside).unwrap();
    let disk = Disk::mount(from.to_owned())?;
    let copied = Command::new("cp")
        .arg("-a")
        .arg(aside.join("."))
        .arg(from)
        .status();
    assert!(copied.unwrap().success());
    Some(disk)
}

#[tokio::test]
async fn a_desktop_whose_disk_is_full_loses_no_result_and_fetches_no_work() {
    let mut rig = Rig::with_graph().await;
    rig.desktop.take().unwrap().stop().await;
    let Some(disk) = moved(&rig.desktop_data()) else {
        return;
    };
    rig.start_desktop().await;
    rig.model.hold();
    let ticket = rig.queue("ask").await;
    rig.model.is_asked(1).await;
    disk.fill();
    rig.model.release();
    let status = until("the desktop notices", async || {
        let status = rig.status().await;
        status["disk"].is_string().then_some(status)
    })
    .await;
    assert_eq!(status["unsaved_results"], 1, "{status:#}");
    let behind = rig.queue("ask").await;
    let refused = rig.desk(&["folder", "grant", "/"]).await;
    refused.refused(1, "", "check the free space");
    assert_eq!(rig.read(&behind).await["status"], "queued");
    disk.free();
    rig.completes(&ticket).await;
    rig.completes(&behind).await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 3);
    rig.kill_desktop().await;
}

#[tokio::test]
async fn a_hub_whose_disk_is_full_refuses_what_it_cannot_keep_and_keeps_what_it_has() {
    let mut rig = Rig::with_graph().await;
    let before = rig.queue("ask").await;
    rig.completes(&before).await;
    rig.hub.take().unwrap().stop().await;
    let Some(disk) = moved(&rig.hub_data()) else {
        return;
    };
    rig.start_hub().await;
    rig.model.hold();
    let running = rig.queue("ask").await;
    rig.model.is_asked(2).await;
    disk.fill();
    let refused = rig
        .client(&["run", "ask", "--idempotency-key", "while-it-was-full"])
        .await;
    refused.refused(1, "cannot reach its storage right now", "");
    // A read needs no space.
    assert_eq!(rig.read(&before).await["result"]["said"], "well");
    rig.model.release();
    until("the result waits for the hub", async || {
        let status = rig.status().await;
        assert_eq!(status["outbox_parked"], 0, "{status:#}");
        (status["outbox_waiting"] == 1).then_some(())
    })
    .await;
    disk.free();
    rig.completes(&running).await;
    let again = rig.client(&[
        "run",
        "ask",
        "--idempotency-key",
        "while-it-was-full",
        "--wait",
    ]);
    again.await.ok();
    rig.works().await;
    rig.kill_hub().await;
}
