//! The owner's way in.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use callboard_ambient::{Clock, Entropy};
use callboard_desktop::control::{Client, ConnectError, Place, Request, Response};
use callboard_desktop::{Activity, Desktop, OpenError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::here::{ECHO, Here, block_on, config, graph};
use crate::hub::Hub;

crate::suite![
    a_graph_is_added_listed_shown_edited_and_removed,
    a_syntax_error_is_refused_with_its_place,
    wrong_slugs_and_names_are_refused_with_what_to_do,
    folders_are_granted_for_the_files_tools_and_taken_back,
    a_revoked_folder_is_closed_to_a_run_under_way,
    the_desktops_own_folders_are_read_by_nobody,
    without_a_desktop_the_client_says_how_to_start_one,
    a_second_desktop_on_the_folder_is_refused_with_the_process,
    an_unusable_folder_hub_or_token_is_one_sentence,
    the_socket_is_the_owners_alone_and_a_stale_one_is_replaced,
    rubbish_on_the_socket_is_answered_and_ends_nothing,
    watchers_present_and_gone_keep_no_command_out,
    a_client_that_asks_without_a_pause_holds_up_no_turn,
];

fn a_graph_is_added_listed_shown_edited_and_removed() {
    block_on(async {
        let here = Here::start(Hub::start().await, |_| {}).await;
        let source = graph("Folder report", ECHO);
        let request = Request::GraphAdd {
            source: source.clone(),
            slug: None,
        };
        let Response::Graph(added) = here.ask(request.clone()).await else {
            panic!("a Graph");
        };
        assert_eq!(
            (added.info.slug.as_str(), added.info.version),
            ("folder-report", 1)
        );
        assert!(added.info.graph_session_id.starts_with("gs_"));
        assert_eq!(added.source, source);
        let again = here.refused(request).await;
        assert_eq!(
            again.message,
            "a Graph called \"folder-report\" is there already"
        );

        let edit = |source| Request::GraphEdit {
            slug: "folder-report".into(),
            source: Some(source),
            new_slug: None,
        };
        let Response::Graph(edited) = here.ask(edit(graph("Renamed", "return 2;"))).await else {
            panic!("a Graph");
        };
        assert_eq!(
            (edited.info.name.as_str(), edited.info.version),
            ("Renamed", 2)
        );
        assert_eq!(edited.info.graph_session_id, added.info.graph_session_id);
        here.refused(edit("no graph".to_owned())).await;

        here.ask(Request::GraphRemove {
            slug: "folder-report".into(),
        })
        .await;
        let Response::Graphs(graphs) = here.ask(Request::GraphList).await else {
            panic!("Graphs");
        };
        assert_eq!(graphs, []);
        let request = Request::GraphAdd {
            source,
            slug: Some("folder-report".into()),
        };
        let Response::Graph(new) = here.ask(request).await else {
            panic!("a Graph");
        };
        assert_ne!(
            new.info.graph_session_id, added.info.graph_session_id,
            "ids are for ever"
        );
        here.stop().await;
    });
}

fn a_syntax_error_is_refused_with_its_place() {
    block_on(async {
        let here = Here::start(Hub::start().await, |_| {}).await;
        let body = "const a = 1;\n  await agent('x', { schema: a );";
        let source = graph("broken", body);
        for request in [
            Request::GraphCheck {
                source: source.clone(),
            },
            Request::GraphAdd { source, slug: None },
        ] {
            let refused = here.refused(request).await;
            let place = refused.place.unwrap();
            assert_eq!(
                place,
                Place {
                    line: 3,
                    column: place.column,
                    source_line: "  await agent('x', { schema: a );".to_owned(),
                }
            );
            let at = format!("line 3, column {}: ", place.column);
            assert!(refused.message.starts_with(&at), "{}", refused.message);
        }
        here.stop().await;
    });
}

fn wrong_slugs_and_names_are_refused_with_what_to_do() {
    block_on(async {
        let here = Here::start(Hub::start().await, |_| {}).await;
        here.knows_projects().await;
        let request = Request::GraphAdd {
            source: graph("x", ECHO),
            slug: Some("No Slug".into()),
        };
        let refused = here.refused(request).await;
        assert_eq!(
            refused.message,
            "a slug has 1 to 64 characters of a-z, 0-9 and -"
        );
        let refused = here
            .refused(Request::GraphShow {
                slug: "none".into(),
            })
            .await;
        assert_eq!(refused.message, "no Graph is called \"none\"");
        assert_eq!(refused.hint.as_deref(), Some("see `callboard graph list`"));
        let refused = here
            .refused(Request::ProjectEnable {
                project: "None".into(),
            })
            .await;
        assert_eq!(refused.message, "no project is called \"None\"");
        let refused = here.refused(Request::RunShow { id: "feed".into() }).await;
        assert_eq!(refused.message, "no run here has the id \"feed\"");
        here.stop().await;
    });
}

fn folders_are_granted_for_the_files_tools_and_taken_back() {
    block_on(async {
        let mut here = Here::start(Hub::start().await, |_| {}).await;
        let shown = tempfile::tempdir().unwrap();
        std::fs::write(shown.path().join("note.txt"), "hello").unwrap();
        let path = shown.path().canonicalize().unwrap();
        let path = path.to_str().unwrap().to_owned();
        let body = "const r = await tool('mcp__files__read', { path: args.path }); return r;";
        here.add("read", body).await;
        let arguments = format!("{{\"path\":\"{path}/note.txt\"}}");
        let mut outcomes = Vec::new();
        for grant in [false, true, false] {
            let (path, request) = (path.clone(), path.clone());
            if grant {
                here.ask(Request::FolderGrant { path }).await;
            } else if !outcomes.is_empty() {
                here.ask(Request::FolderRevoke { path: request }).await;
            }
            let arguments = Some(arguments.clone());
            let run = Request::GraphRun {
                slug: "read".into(),
                arguments,
            };
            let Response::Started { execution_id } = here.ask(run).await else {
                panic!("started");
            };
            here.event(|event| matches!(event, Activity::Ended { .. }).then_some(()))
                .await;
            let run = here.run(execution_id).await;
            let text = run.result.map(|raw| raw.get().contains("hello"));
            outcomes.push(text == Some(true));
        }
        assert_eq!(outcomes, [false, true, false]);
        let refused = here
            .refused(Request::FolderGrant {
                path: "notes".into(),
            })
            .await;
        assert_eq!(refused.message, "\"notes\" is not an absolute path");
        here.stop().await;
    });
}

fn a_revoked_folder_is_closed_to_a_run_under_way() {
    block_on(async {
        let mut here = Here::start(Hub::start().await, |_| {}).await;
        let shown = tempfile::tempdir().unwrap();
        std::fs::write(shown.path().join("note.txt"), "hello").unwrap();
        let path = shown.path().to_str().unwrap().to_owned();
        let body = "const read = () => tool('mcp__files__read', { path: args.path });
            await read();
            phase('reading');
            try { for (;;) { await read(); await sleep(20); } } catch (e) { return e.code; }";
        here.add("read", body).await;
        here.ask(Request::FolderGrant { path: path.clone() }).await;
        let run = Request::GraphRun {
            slug: "read".into(),
            arguments: Some(format!("{{\"path\":\"{path}/note.txt\"}}")),
        };
        let Response::Started { execution_id } = here.ask(run).await else {
            panic!("started");
        };
        here.event(|event| matches!(event, Activity::Phase { .. }).then_some(()))
            .await;
        here.ask(Request::FolderRevoke { path }).await;
        here.event(|event| matches!(event, Activity::Ended { .. }).then_some(()))
            .await;
        let result = here.run(execution_id).await.result.unwrap();
        assert_eq!(result.get(), "\"tool_refused\"");
        here.stop().await;
    });
}

/// The result of a run that reads `path`, if it could.
async fn read_here(here: &mut Here, path: &Path) -> Option<String> {
    let run = Request::GraphRun {
        slug: "read".into(),
        arguments: Some(format!("{{\"path\":\"{}\"}}", path.display())),
    };
    let Response::Started { execution_id } = here.ask(run).await else {
        panic!("started");
    };
    here.event(|event| matches!(event, Activity::Ended { .. }).then_some(()))
        .await;
    let run = here.run(execution_id).await;
    run.result.map(|raw| raw.get().to_owned())
}

fn the_desktops_own_folders_are_read_by_nobody() {
    block_on(async {
        // As `up` lays it out: the desktop, the hub and the connection file side by side, and a
        // folder for the example.
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        let hub = Hub::start().await;
        let (inner, private, welcome) = (data.join("desktop"), data.clone(), data.join("welcome"));
        std::fs::create_dir_all(&welcome).unwrap();
        let mut here = Here::start(hub, |config| {
            config.data_dir.clone_from(&inner);
            config.private_dirs = vec![private];
            config.open_dirs = vec![welcome.clone()];
        })
        .await;
        for file in ["data/connection.json", "data/welcome/note.txt", "note.txt"] {
            std::fs::write(home.path().join(file), "hello").unwrap();
        }
        std::fs::write(inner.join("secret.txt"), "hello").unwrap();
        std::os::unix::fs::symlink(&data, home.path().join("link")).unwrap();
        for folder in [&data, &inner, &home.path().join("link/desktop")] {
            let path = folder.to_str().unwrap().to_owned();
            let refused = here
                .refused(Request::FolderGrant { path: path.clone() })
                .await;
            assert_eq!(
                refused.message,
                format!("\"{path}\" belongs to callboard itself and holds its secrets")
            );
        }
        here.add(
            "read",
            "return await tool('mcp__files__read', { path: args.path });",
        )
        .await;
        let path = home.path().to_str().unwrap().to_owned();
        here.ask(Request::FolderGrant { path }).await;
        let path = welcome.to_str().unwrap().to_owned();
        here.ask(Request::FolderGrant { path }).await;
        for (file, readable) in [
            ("note.txt", true),
            ("data/welcome/note.txt", true),
            ("data/connection.json", false),
            ("data/desktop/secret.txt", false),
            ("link/connection.json", false),
        ] {
            let read = read_here(&mut here, &home.path().join(file)).await;
            let hello = read.is_some_and(|text| text.contains("hello"));
            assert_eq!(hello, readable, "{file}");
        }
        here.stop().await;
    });
}

fn watchers_present_and_gone_keep_no_command_out() {
    block_on(async {
        let here = Here::start(Hub::start().await, |_| {}).await;
        let data_dir = here.folder.path();
        let connect = || async { Client::connect(data_dir).await.unwrap() };
        let mut watchers = Vec::new();
        let refused = loop {
            match connect().await.watch().await {
                Ok(watch) => watchers.push(watch),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.to_string(), "64 others watch this desktop already");
        assert_eq!(watchers.len(), 64);
        connect().await.call(&Request::FolderList).await.unwrap();
        // Nothing happens here that a watcher is told, and still their places are free again.
        drop(watchers);
        let mut again = Vec::new();
        while again.len() < 64 {
            match connect().await.watch().await {
                Ok(watch) => again.push(watch),
                Err(_) => tokio::task::yield_now().await,
            }
        }
        connect().await.call(&Request::FolderList).await.unwrap();
        here.stop().await;
    });
}

fn without_a_desktop_the_client_says_how_to_start_one() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let refused = Client::connect(folder.path()).await.unwrap_err();
        assert!(matches!(refused, ConnectError::NotRunning { .. }));
        let expected = format!("no desktop is running on {}", folder.path().display());
        assert_eq!(refused.to_string(), expected);
        assert!(refused.hint().contains("callboard desktop run"));

        let here = Here::start(Hub::start().await, |_| {}).await;
        let mut client = Client::connect(here.folder.path()).await.unwrap();
        let answer = client.call(&Request::FolderList).await.unwrap();
        assert!(matches!(answer, Response::Folders(folders) if folders.is_empty()));
        let (folder, _hub) = here.stop().await;
        let refused = Client::connect(folder.path()).await.unwrap_err();
        assert!(matches!(refused, ConnectError::NotRunning { .. }));
    });
}

async fn open_error(data_dir: &Path, hub: &str, token: &str) -> OpenError {
    let mut config = config(data_dir, hub);
    config.token = token.to_owned();
    let opened = Desktop::open(config, Clock::system(), Entropy::system()).await;
    opened.map(drop).unwrap_err()
}

fn a_second_desktop_on_the_folder_is_refused_with_the_process() {
    block_on(async {
        let here = Here::start(Hub::start().await, |_| {}).await;
        let refused = open_error(here.folder.path(), &here.hub.url, "cb_1").await;
        assert!(matches!(
            refused,
            OpenError::InUse { process: Some(id), .. } if id == std::process::id()
        ));
        here.ask(Request::Status).await;
        here.stop().await;
    });
}

fn an_unusable_folder_hub_or_token_is_one_sentence() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let refused = open_error(&file.join("below"), "http://127.0.0.1:1", "cb_1").await;
        assert!(
            refused
                .to_string()
                .starts_with("cannot use the data folder ")
        );
        let good = folder.path().join("data");
        let refused = open_error(&good, "example.org", "cb_1").await;
        assert!(
            refused
                .to_string()
                .starts_with("\"example.org\" is not the address of a hub")
        );
        let refused = open_error(&good, "http://127.0.0.1:1", "").await;
        assert!(matches!(refused, OpenError::BadToken));
        std::fs::write(
            good.join("desktop.db"),
            "this is no database, but long enough to be one",
        )
        .unwrap();
        std::fs::remove_file(good.join("desktop.db-wal")).ok();
        let refused = open_error(&good, "http://127.0.0.1:1", "cb_1").await;
        assert!(matches!(refused, OpenError::Database { .. }), "{refused}");
    });
}

fn the_socket_is_the_owners_alone_and_a_stale_one_is_replaced() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        // A desktop that was killed leaves its socket behind, or even what it was made in.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let half_made = folder.path().join(format!(".c{}", std::process::id()));
        std::fs::create_dir(&half_made).unwrap();
        drop(std::os::unix::net::UnixListener::bind(half_made.join("s")).unwrap());
        let here = Here::start_in(folder, Hub::start().await, |_| {}).await;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        Client::connect(here.folder.path()).await.unwrap();
        here.stop().await;
    });
}

fn rubbish_on_the_socket_is_answered_and_ends_nothing() {
    block_on(async {
        let here = Here::start(Hub::start().await, |_| {}).await;
        let path = here.folder.path().join("control.sock");
        for rubbish in ["\n", "{}\n", "{\"graph_show\":{}}\n", "\u{0}\u{1}\n", "[1"] {
            let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
            stream.write_all(rubbish.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("{\"refused\":{\"message\":\"the request cannot be read"));
        }
        here.ask(Request::Status).await;
        here.stop().await;
    });
}

fn a_client_that_asks_without_a_pause_holds_up_no_turn() {
    block_on(async {
        let here = Here::sharing(&[("echo", ECHO)]).await;
        let before = here.hub.calls("desktop");
        let asking = async {
            loop {
                here.ask(Request::ProjectList).await;
            }
        };
        // Each turn of the grid asks who it is.
        let turns = here.hub.until("three more turns", |inner| {
            (inner.calls["desktop"] >= before + 3).then_some(())
        });
        tokio::select! {
            never = asking => never,
            () = turns => {}
        }
        here.stop().await;
    });
}
