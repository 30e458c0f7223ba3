//! A machine that is not as it should be: taken ports and folders, data of a newer version, a hub
//! that is away or does not know this desktop.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::process::{Outcome, Process, callboard, run, until};
use crate::rig::{Rig, free_port};

const UNREACHABLE: i32 = 3;

async fn at(data: &Path, arguments: &[&str]) -> Outcome {
    let mut command = callboard(data);
    command.args(arguments);
    run(command).await
}

#[tokio::test]
async fn a_taken_port_is_named_with_the_flag_that_chooses_another() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for command in [&["up"][..], &["hub", "serve"]] {
        let arguments = [command, &["--listen", &address]].concat();
        let refused = at(&data, &arguments).await;
        let message = format!("cannot listen on {address}");
        refused.refused(UNREACHABLE, &message, "choose one with --listen 127.0.0.1:");
    }
}

#[tokio::test]
async fn a_second_hub_and_a_second_desktop_on_one_data_folder_say_so_and_stop() {
    let rig = Rig::with_graph().await;
    let listen = format!("127.0.0.1:{}", free_port());
    let hub = rig.hub(&["serve", "--listen", &listen]).await;
    let process = format!("(process {})", rig.hub.as_ref().unwrap().id());
    hub.refused(UNREACHABLE, &process, "--data");

    let desktop = run(rig.desktop_command()).await;
    let process = format!("(process {})", rig.desktop.as_ref().unwrap().id());
    desktop.refused(UNREACHABLE, "another desktop is using ", "--data");
    assert!(desktop.stderr.contains(&process), "{desktop:#?}");
    rig.works().await;
}

/// Writes a schema version that no program has into a database file.
fn of_a_newer_version(file: &Path) {
    assert!(
        !file.with_extension("db-wal").exists(),
        "the header is up to date"
    );
    let mut database = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    // SQLite's user_version: four bytes at offset 60.
    database.seek(SeekFrom::Start(60)).unwrap();
    database.write_all(&999_u32.to_be_bytes()).unwrap();
}

#[tokio::test]
async fn data_of_a_newer_version_is_refused_and_left_alone() {
    let mut rig = Rig::with_graph().await;
    rig.desktop.take().unwrap().stop().await;
    rig.hub.take().unwrap().stop().await;
    let hub = rig.hub_data().join("hub/hub.db");
    let desktop = rig.desktop_data().join("desktop/desktop.db");
    for file in [&hub, &desktop] {
        of_a_newer_version(file);
    }
    let before = [&hub, &desktop].map(|file| std::fs::read(file).unwrap());
    let listen = format!("127.0.0.1:{}", free_port());
    let newer = "newer Callboard";
    rig.hub(&["serve", "--listen", &listen])
        .await
        .refused(UNREACHABLE, newer, "--data");
    rig.hub(&["project", "create", "x"])
        .await
        .refused(UNREACHABLE, newer, "--data");
    let mut command = callboard(&rig.desktop_data());
    command.args([
        "desktop",
        "run",
        "--hub",
        "http://127.0.0.1:9",
        "--token-file",
    ]);
    command.arg(rig.device_token());
    run(command)
        .await
        .refused(UNREACHABLE, "is of version 999", "use the newer program");
    let after = [&hub, &desktop].map(|file| std::fs::read(file).unwrap());
    assert!(before == after, "not a byte was changed");
}

#[tokio::test]
async fn a_data_folder_that_is_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    std::fs::write(&file, "mine").unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "cbd_token").unwrap();
    let token = token.to_str().unwrap();
    let listen = format!("127.0.0.1:{}", free_port());
    let desktop = [
        "desktop",
        "run",
        "--hub",
        "http://127.0.0.1:9",
        "--token-file",
        token,
    ];
    let commands: &[&[&str]] = &[
        &["up", "--listen", &listen],
        &["hub", "serve", "--listen", &listen],
        &["hub", "project", "list"],
        &desktop,
    ];
    for data in [file.clone(), file.join("below")] {
        for arguments in commands {
            let refused = at(&data, arguments).await;
            refused.refused(UNREACHABLE, file.to_str().unwrap(), "--data");
        }
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = "This is a diary, not a database. ".repeat(100);
    for (dir, name) in [("hub", "hub.db"), ("desktop", "desktop.db")] {
        std::fs::create_dir(folder.path().join(dir)).unwrap();
        std::fs::write(folder.path().join(dir).join(name), &text).unwrap();
    }
    let token = folder.path().join("token");
    std::fs::write(&token, "cbd_token").unwrap();
    let refused = at(folder.path(), &["hub", "project", "list"]).await;
    refused.refused(UNREACHABLE, "is not a Callboard database", "--data");
    let token = token.to_str().unwrap();
    let desktop = [
        "desktop",
        "run",
        "--hub",
        "http://127.0.0.1:9",
        "--token-file",
        token,
    ];
    let refused = at(folder.path(), &desktop).await;
    refused.refused(UNREACHABLE, "cannot use the database", "--data");
    for file in ["hub/hub.db", "desktop/desktop.db"] {
        assert_eq!(
            std::fs::read_to_string(folder.path().join(file)).unwrap(),
            text
        );
    }
}

#[tokio::test]
async fn a_configuration_that_is_none_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("config.toml"),
        "[hub]\nlisten = \"nowhere\"\n",
    )
    .unwrap();
    for arguments in [&["up"][..], &["hub", "serve"]] {
        let refused = at(folder.path(), arguments).await;
        refused.refused(2, "config.toml is not a configuration", "");
        assert!(refused.stderr.contains("line 2"), "{refused:#?}");
    }
}

#[tokio::test]
async fn a_desktop_whose_hub_is_away_says_so_and_goes_on() {
    let mut rig = Rig::with_graph().await;
    rig.kill_desktop().await;
    rig.kill_hub().await;
    rig.start_desktop_alone().await;
    let hub = format!("http://127.0.0.1:{}", rig.port);
    let status = rig.status().await;
    assert_eq!(status["hub"]["reachable"], false);
    let state = status["hub"]["state"].as_str().unwrap();
    assert!(
        state.starts_with(&format!("cannot reach the hub at {hub}: ")),
        "{state}"
    );
    let shown = rig.desk(&["desktop", "status"]).await.ok();
    assert!(shown.stdout.contains(state), "{shown:#?}");
    // What the owner does here needs no hub.
    let by_hand = rig.desk(&["graph", "run", "ask"]).await.ok();
    assert_eq!(by_hand.json()["said"], "well");
    rig.start_hub().await;
    until("the desktop comes back by itself", async || {
        (rig.status().await["hub"]["reachable"] == true).then_some(())
    })
    .await;
    rig.works().await;
}

#[tokio::test]
async fn a_hub_that_does_not_know_the_device_token_is_told_in_the_status() {
    let mut rig = Rig::with_hub().await;
    std::fs::write(rig.device_token(), "cbd_nobody\n").unwrap();
    rig.start_desktop_alone().await;
    let status = rig.status().await;
    assert_eq!(status["hub"]["reachable"], false);
    let state = status["hub"]["state"].as_str().unwrap();
    assert!(
        state.contains("does not accept the device token"),
        "{state}"
    );
    let refused = rig.desk(&["project", "enable", "Home"]).await;
    refused.refused(1, "does not accept the device token", "desktop status");
}

#[tokio::test]
async fn an_address_that_is_no_hubs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "cbd_token").unwrap();
    let token = token.to_str().unwrap();
    for address in ["nowhere", "ftp://hub.example.org", ""] {
        let desktop = ["desktop", "run", "--hub", address, "--token-file", token];
        let refused = at(&folder.path().join("data"), &desktop).await;
        refused.refused(2, "is not the address of a hub", "--hub https://");
    }
}

#[tokio::test]
async fn a_device_token_file_that_is_missing_or_empty_is_refused() {
    let rig = Rig::with_hub().await;
    std::fs::write(rig.device_token(), "").unwrap();
    let empty = run(rig.desktop_command()).await;
    empty.refused(2, "the device token is empty", "hub desktop create");
    std::fs::remove_file(rig.device_token()).unwrap();
    let missing = run(rig.desktop_command()).await;
    missing.refused(2, "cannot read ", "hub desktop create");
}

#[tokio::test]
async fn a_second_data_folder_with_the_same_device_token_is_turned_away() {
    let mut rig = Rig::with_graph().await;
    let elsewhere = rig.folder().join("elsewhere");
    let hub = format!("http://127.0.0.1:{}", rig.port);
    let token = rig.device_token();
    let at_elsewhere = || {
        let mut command = callboard(&elsewhere);
        command.args(["--json", "desktop", "run", "--hub", &hub]);
        command.arg("--token-file").arg(&token);
        command
    };
    let mut second = Process::start(at_elsewhere(), rig.folder());
    second.says(r#""reachable":false"#).await;
    let status = at(&elsewhere, &["desktop", "status", "--json"])
        .await
        .ok()
        .json();
    let state = status["hub"]["state"].as_str().unwrap();
    assert!(state.contains("rebind"), "it says what to do: {state}");
    rig.works().await;

    // The old folder is lost: the owner lets the next one that calls take its place.
    second.kill().await;
    rig.kill_desktop().await;
    rig.hub(&["desktop", "rebind", "laptop"]).await.ok();
    let mut second = Process::start(at_elsewhere(), rig.folder());
    second.says(r#""reachable":true"#).await;
    rig.start_desktop_alone().await;
}

#[tokio::test]
async fn a_deep_data_folder_works_or_says_what_is_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("d".repeat(120));
    let listen = format!("127.0.0.1:{}", free_port());
    let mut command = callboard(&data);
    command
        .args(["up", "--listen", &listen])
        .env_remove("XDG_RUNTIME_DIR");
    let mut up = Process::start(command, folder.path());
    if !up.says_or_ends("Or yourself:").await {
        assert_eq!(up.ended().await.code(), Some(UNREACHABLE), "{}", up.said());
        assert!(
            up.said().contains("error: ") && up.said().contains("hint:  "),
            "{}",
            up.said()
        );
    }
}
