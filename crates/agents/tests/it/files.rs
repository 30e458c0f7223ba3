//! The files tools: what they read, what they refuse, and where they stop.

use std::os::unix::fs::symlink;
use std::path::Path;

use callboard_agents::{ToolError, ToolErrorCode, Tools};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A granted folder beside a secret one.
struct Place {
    root: tempfile::TempDir,
    tools: Tools,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let granted = root.path().join("granted");
        std::fs::create_dir_all(granted.join("sub/deep")).unwrap();
        std::fs::create_dir(root.path().join("secret")).unwrap();
        std::fs::write(root.path().join("secret/key"), "top secret").unwrap();
        std::fs::write(root.path().join("granted-not"), "near miss").unwrap();
        std::fs::write(granted.join("a.txt"), "one\nTwo two\nthree\n").unwrap();
        std::fs::write(granted.join("sub/b.md"), "two \u{d55c}\n").unwrap();
        std::fs::write(granted.join("sub/deep/c.bin"), [b'x', 0, 255]).unwrap();
        let tools = Tools::new(vec![granted]);
        Self { root, tools }
    }

    fn granted(&self) -> String {
        self.root
            .path()
            .join("granted")
            .to_str()
            .unwrap()
            .to_owned()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        self.tools
            .call(
                &format!("mcp__files__{tool}"),
                &arguments,
                CancellationToken::new(),
            )
            .await
    }
}

async fn refused(place: &Place, path: &str) {
    for tool in ["read", "list", "stat", "search"] {
        let mut arguments = json!({ "path": path });
        if tool == "search" {
            arguments["text"] = json!("secret");
        }
        let error = place.call(tool, arguments).await.expect_err(path);
        assert_eq!(
            error.code,
            ToolErrorCode::ToolRefused,
            "{tool} {path}: {error}"
        );
        assert!(
            error
                .message
                .contains("does not lie inside a granted folder"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn no_path_leads_out_of_a_granted_folder() {
    let place = Place::new();
    let granted = place.granted();
    let secret = place.root.path().join("secret");
    symlink(&secret, Path::new(&granted).join("link-to-folder")).unwrap();
    symlink(secret.join("key"), Path::new(&granted).join("link-to-file")).unwrap();
    symlink(
        "../../secret/key",
        Path::new(&granted).join("sub/relative-link"),
    )
    .unwrap();
    symlink("/", Path::new(&granted).join("root")).unwrap();
    for path in [
        "/".to_owned(),
        "/etc/passwd".to_owned(),
        "/proc/self/environ".to_owned(),
        "~/../../etc/passwd".to_owned(),
        "../secret/key".to_owned(),
        "sub/../../secret/key".to_owned(),
        format!("{granted}/../secret/key"),
        format!("{granted}/../granted-not"),
        format!("{granted}-not"),
        format!("{granted}/link-to-folder/key"),
        format!("{granted}/link-to-file"),
        format!("{granted}/sub/relative-link"),
        format!("{granted}/root/etc/passwd"),
        format!("{granted}/root/proc/self/root{granted}/../secret/key"),
        secret.to_str().unwrap().to_owned(),
        secret.join("not-there").to_str().unwrap().to_owned(),
        format!("{granted}/../secret/not-there"),
    ] {
        refused(&place, &path).await;
    }
    let nul = place
        .call("read", json!({ "path": format!("{granted}/a.txt\0.png") }))
        .await;
    assert_eq!(nul.unwrap_err().code, ToolErrorCode::BadArguments);
}

#[tokio::test]
async fn a_walk_does_not_follow_links_and_a_search_finds_nothing_behind_them() {
    let place = Place::new();
    symlink(
        place.root.path().join("secret"),
        Path::new(&place.granted()).join("link"),
    )
    .unwrap();
    symlink(".", Path::new(&place.granted()).join("loop")).unwrap();
    let found = place
        .call(
            "search",
            json!({ "path": place.granted(), "text": "secret" }),
        )
        .await
        .unwrap();
    assert_eq!(found["matches"], json!([]));
    let listed = place
        .call("list", json!({ "path": ".", "depth": 32 }))
        .await
        .unwrap();
    let kinds: Vec<(&str, &str)> = listed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                entry["path"].as_str().unwrap(),
                entry["kind"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("a.txt", "file"),
            ("link", "link"),
            ("loop", "link"),
            ("sub", "folder"),
            ("sub/b.md", "file"),
            ("sub/deep", "folder"),
            ("sub/deep/c.bin", "file"),
        ]
    );
}

#[tokio::test]
async fn a_link_inside_the_folder_works_and_an_absent_file_is_named() {
    let place = Place::new();
    symlink("a.txt", Path::new(&place.granted()).join("alias")).unwrap();
    let read = place
        .call("read", json!({ "path": "alias" }))
        .await
        .unwrap();
    assert!(read["path"].as_str().unwrap().ends_with("granted/a.txt"));
    let absent = place
        .call("read", json!({ "path": "nothing.txt" }))
        .await
        .unwrap_err();
    assert_eq!(absent.code, ToolErrorCode::ToolFailed);
    assert!(absent.message.contains("nothing.txt"), "{absent}");
}

#[tokio::test]
async fn a_named_pipe_or_socket_does_not_hang_a_read() {
    let place = Place::new();
    let pipe = Path::new(&place.granted()).join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = place
        .call("read", json!({ "path": "pipe" }))
        .await
        .unwrap_err();
    assert!(
        error.message.contains("neither a file nor a folder"),
        "{error}"
    );
    let found = place
        .call("search", json!({ "path": ".", "text": "two" }))
        .await
        .unwrap();
    assert_eq!(found["matches"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn reads_are_bounded_and_end_at_whole_characters() {
    let place = Place::new();
    let text = "\u{d55c}".repeat(10);
    std::fs::write(Path::new(&place.granted()).join("long"), &text).unwrap();
    let mut all = String::new();
    let mut offset = 0;
    loop {
        let part = place
            .call(
                "read",
                json!({ "path": "long", "offset": offset, "max_bytes": 7 }),
            )
            .await
            .unwrap();
        all.push_str(part["text"].as_str().unwrap());
        offset = part["next_offset"].as_u64().unwrap();
        if part["truncated"] == json!(false) {
            break;
        }
    }
    assert_eq!(all, text);
    let binary = place
        .call("read", json!({ "path": "sub/deep/c.bin" }))
        .await
        .unwrap();
    assert_eq!(
        (&binary["binary"], &binary["bytes"]),
        (&json!(true), &json!(3))
    );
    let folder = place
        .call("read", json!({ "path": "sub" }))
        .await
        .unwrap_err();
    assert!(folder.message.contains("is a folder"), "{folder}");
    for wrong in [
        json!({ "max_bytes": 0 }),
        json!({ "max_bytes": 1_048_577 }),
        json!({ "offset": -1 }),
        json!({ "bytes": 1 }),
    ] {
        let mut arguments = json!({ "path": "long" });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(wrong.as_object().unwrap().clone());
        let error = place.call("read", arguments).await.unwrap_err();
        assert_eq!(error.code, ToolErrorCode::BadArguments, "{error}");
    }
}

#[tokio::test]
async fn searches_name_place_and_line_and_say_when_they_stopped() {
    let place = Place::new();
    let found = place
        .call(
            "search",
            json!({ "path": ".", "text": "two", "ignore_case": true }),
        )
        .await
        .unwrap();
    assert_eq!(
        found["matches"],
        json!([
            { "path": "a.txt", "line": 2, "text": "Two two" },
            { "path": "sub/b.md", "line": 1, "text": "two \u{d55c}" },
        ])
    );
    assert_eq!(
        (&found["files_searched"], &found["files_skipped"]),
        (&json!(2), &json!(1))
    );
    let first = place
        .call("search", json!({ "path": ".", "text": "two", "limit": 1 }))
        .await
        .unwrap();
    assert_eq!(
        (
            first["matches"].as_array().unwrap().len(),
            &first["truncated"]
        ),
        (1, &json!(true))
    );
    let listed = place
        .call("list", json!({ "path": ".", "limit": 2, "depth": 5 }))
        .await
        .unwrap();
    assert_eq!(
        (
            listed["entries"].as_array().unwrap().len(),
            &listed["truncated"]
        ),
        (2, &json!(true))
    );
}

#[tokio::test]
async fn every_other_tool_is_refused_with_the_reason() {
    let place = Place::new();
    for name in [
        "mcp__shell__run",
        "mcp__files__write",
        "Bash",
        "",
        "mcp__files__*",
    ] {
        let error = place
            .tools
            .call(name, &json!({}), CancellationToken::new())
            .await
            .unwrap_err();
        assert_eq!(error.code, ToolErrorCode::ToolRefused);
        assert!(
            error.message.contains("approvals do not exist yet"),
            "{error}"
        );
    }
    let none = Tools::new(Vec::new());
    let error = none
        .call(
            "mcp__files__list",
            &json!({ "path": "/" }),
            CancellationToken::new(),
        )
        .await
        .unwrap_err();
    assert!(error.message.contains("no folder is granted"), "{error}");
}

#[tokio::test]
async fn a_cancelled_walk_stops() {
    let place = Place::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = place
        .tools
        .call(
            "mcp__files__list",
            &json!({ "path": place.granted() }),
            cancel,
        )
        .await
        .unwrap_err();
    assert_eq!(error.code, ToolErrorCode::Cancelled);
}

/// A home with a data folder inside it, which holds a secret and a folder of examples.
fn home() -> (tempfile::TempDir, [std::path::PathBuf; 3]) {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let welcome = data.join("welcome");
    std::fs::create_dir_all(&welcome).unwrap();
    std::fs::write(home.path().join("note"), "mine").unwrap();
    std::fs::write(data.join("token"), "top secret").unwrap();
    std::fs::write(welcome.join("hello"), "hello").unwrap();
    let folders = [home.path().to_owned(), data, welcome];
    (home, folders)
}

async fn read(tools: &Tools, path: &Path) -> Result<String, ToolErrorCode> {
    let arguments = json!({ "path": path });
    let answer = tools
        .call("mcp__files__read", &arguments, CancellationToken::new())
        .await
        .map_err(|error| error.code)?;
    Ok(answer["text"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_denied_folder_is_never_read_whatever_is_granted_around_inside_or_instead_of_it() {
    let (_home, [home, data, welcome]) = home();
    let refused = Err(ToolErrorCode::ToolRefused);
    symlink(data.join("token"), home.join("link-to-token")).unwrap();
    symlink(&data, home.join("link-to-data")).unwrap();
    let inner = data.join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("key"), "secret too").unwrap();
    for grants in [
        vec![home.clone()],
        vec![data.clone()],
        vec![home.clone(), inner.clone()],
        vec![home.join("link-to-data")],
        vec![home.clone(), welcome.clone()],
    ] {
        let tools = Tools::new(grants.clone()).denying(vec![data.clone()], vec![welcome.clone()]);
        for secret in [
            data.join("token"),
            home.join("link-to-token"),
            home.join("link-to-data/token"),
            welcome.join("../token"),
            inner.join("key"),
            data.join("not-there"),
        ] {
            assert_eq!(
                read(&tools, &secret).await,
                refused,
                "{secret:?} with {grants:?}"
            );
        }
    }
    let tools = Tools::new(vec![home.clone()]).denying(vec![data.clone()], vec![welcome]);
    assert_eq!(read(&tools, &home.join("note")).await.unwrap(), "mine");
    let arguments = json!({ "path": home, "text": "secret" });
    let found = tools
        .call("mcp__files__search", &arguments, CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        (&found["matches"], &found["unreadable"]),
        (&json!([]), &json!(1))
    );
}

#[tokio::test]
async fn an_exception_inside_a_denied_folder_opens_only_by_its_own_grant() {
    let (_home, [home, data, welcome]) = home();
    let hello = welcome.join("hello");
    let with = |grants: Vec<std::path::PathBuf>, except: &Path| {
        Tools::new(grants).denying(vec![data.clone()], vec![except.to_owned()])
    };
    assert!(
        read(&with(vec![home.clone()], &welcome), &hello)
            .await
            .is_err()
    );
    assert!(
        read(&with(vec![data.clone()], &welcome), &hello)
            .await
            .is_err()
    );
    assert!(
        read(&with(vec![welcome.clone()], &data), &hello)
            .await
            .is_err()
    );
    let granted = with(vec![home, welcome.clone()], &welcome);
    assert_eq!(read(&granted, &hello).await.unwrap(), "hello");
    symlink(data.join("token"), welcome.join("way-out")).unwrap();
    assert!(read(&granted, &welcome.join("way-out")).await.is_err());
}

#[tokio::test]
async fn a_change_of_the_grants_reaches_every_clone_at_once() {
    let (_home, [home, data, welcome]) = home();
    let tools = Tools::new(vec![home.clone()]);
    let denying = tools.clone().denying(vec![data], vec![welcome]);
    let of_a_run = denying.clone();
    let note = home.join("note");
    assert_eq!(read(&of_a_run, &note).await.unwrap(), "mine");
    tools.set_folders(Vec::new());
    assert_eq!(
        read(&of_a_run, &note).await,
        Err(ToolErrorCode::ToolRefused)
    );
    of_a_run.set_folders(vec![home]);
    assert_eq!(read(&denying, &note).await.unwrap(), "mine");
}
