//! The owner's way in.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use callboard_ambient::{Clock, Entropy};
use callboard_desktop::control::{Client, ConnectError, Place, Request, Response};
use callboard_desktop::{Desktop, OpenError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::here::{ECHO, Here, block_on, config, graph};
use crate::hub::Hub;

crate::suite![
    a_graph_is_added_listed_shown_edited_and_removed,
    a_syntax_error_is_refused_with_its_place,
    wrong_slugs_and_names_are_refused_with_what_to_do,
    folders_are_granted_for_the_files_tools_and_taken_back,
    without_a_desktop_the_client_says_how_to_start_one,
    a_second_desktop_on_the_folder_is_refused_with_the_process,
    an_unusable_folder_hub_or_token_is_one_sentence,
    the_socket_is_the_owners_alone_and_a_stale_one_is_replaced,
    rubbish_on_the_socket_is_answered_and_ends_nothing,
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
            here.event(|event| {
                matches!(event, callboard_desktop::Activity::Ended { .. }).then_some(())
            })
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
