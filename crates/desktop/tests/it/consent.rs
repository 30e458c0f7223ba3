//! Nothing runs that the owner does not share at that instant.

use callboard_desktop::control::{Request, Response};
use callboard_domain::graph_run::Status;
use callboard_domain::limits::{NO_LONGER_SHARED, SESSIONS_PER_PROJECT_MAX};

use crate::here::{ECHO, FOREVER, Here, block_on, graph};
use crate::hub::HOME;

crate::suite![
    what_is_unshared_while_it_waits_ends_cancelled_at_once,
    a_renamed_graph_ends_what_was_queued_under_the_old_slug,
    a_disabled_project_is_emptied_at_the_hub_and_what_waits_there_ends,
    a_removed_graph_disappears_from_the_hub,
    the_hundred_and_first_share_is_refused_with_the_reason,
];

fn what_is_unshared_while_it_waits_ends_cancelled_at_once() {
    block_on(async {
        let here = Here::sharing(&[("forever", FOREVER), ("echo", ECHO)]).await;
        let long = here.hub.queue(HOME, "forever", "{}");
        here.hub.reaches(long, Status::Running).await;
        let waits = here.hub.queue(HOME, "echo", "{}");
        here.unshare("echo").await;
        here.hub.reaches(waits, Status::Cancelled).await;
        assert_eq!(
            here.hub.report(waits).error.as_deref(),
            Some(NO_LONGER_SHARED)
        );
        here.hub.listed(HOME, &["forever"]).await;
        here.hub.with(|inner| {
            assert!(
                !inner.executions.contains_key(&waits),
                "the start was not asked for"
            );
            assert_eq!(inner.commands[&long].run.status(), Status::Running);
        });
        here.hub.cancel(long);
        here.hub.reaches(long, Status::Cancelled).await;
        here.stop().await;
    });
}

fn a_renamed_graph_ends_what_was_queued_under_the_old_slug() {
    block_on(async {
        let here = Here::sharing(&[("forever", FOREVER), ("echo", ECHO)]).await;
        let long = here.hub.queue(HOME, "forever", "{}");
        here.hub.reaches(long, Status::Running).await;
        let waits = here.hub.queue(HOME, "echo", "{}");
        let request = Request::GraphEdit {
            slug: "echo".into(),
            source: None,
            new_slug: Some("repeat".into()),
        };
        let Response::Graph(renamed) = here.ask(request).await else {
            panic!("a Graph");
        };
        assert_eq!(renamed.info.version, 1, "the source is the same");
        here.hub.reaches(waits, Status::Cancelled).await;
        assert_eq!(
            here.hub.report(waits).error.as_deref(),
            Some(NO_LONGER_SHARED)
        );
        here.hub.listed(HOME, &["forever", "repeat"]).await;
        here.hub.cancel(long);
        here.hub.reaches(long, Status::Cancelled).await;
        here.stop().await;
    });
}

fn a_disabled_project_is_emptied_at_the_hub_and_what_waits_there_ends() {
    block_on(async {
        let here = Here::sharing(&[("forever", FOREVER), ("echo", ECHO)]).await;
        let long = here.hub.queue(HOME, "forever", "{}");
        here.hub
            .until("the engine has it", |inner| inner.controls.last().map(drop))
            .await;
        let waits = here.hub.queue(HOME, "echo", "{}");
        here.ask(Request::ProjectDisable {
            project: HOME.to_string(),
        })
        .await;
        here.hub.reaches(waits, Status::Cancelled).await;
        here.hub.listed(HOME, &[]).await;
        // What runs goes on; the owner can stop it.
        here.ask(Request::RunCancel {
            id: long.to_string(),
        })
        .await;
        here.hub.reaches(long, Status::Cancelled).await;
        loop {
            let Response::Projects(projects) = here.ask(Request::ProjectList).await else {
                panic!("projects");
            };
            assert!(!projects[0].enabled);
            if !projects[0].withdrawing {
                break;
            }
            tokio::task::yield_now().await;
        }
        here.stop().await;
    });
}

fn a_removed_graph_disappears_from_the_hub() {
    block_on(async {
        let here = Here::sharing(&[("one", ECHO), ("two", ECHO)]).await;
        here.ask(Request::GraphRemove { slug: "one".into() }).await;
        here.hub.listed(HOME, &["two"]).await;
        here.stop().await;
    });
}

fn the_hundred_and_first_share_is_refused_with_the_reason() {
    block_on(async {
        let here = Here::sharing(&[]).await;
        let source = graph("many", ECHO);
        for n in 0..=SESSIONS_PER_PROJECT_MAX {
            let slug = Some(format!("many-{n}"));
            here.ask(Request::GraphAdd {
                source: source.clone(),
                slug,
            })
            .await;
        }
        for n in 0..SESSIONS_PER_PROJECT_MAX {
            here.share(&format!("many-{n}")).await;
        }
        let last = format!("many-{SESSIONS_PER_PROJECT_MAX}");
        let request = Request::GraphShare {
            slug: last.clone(),
            project: "Home".into(),
        };
        let refused = here.refused(request.clone()).await;
        assert_eq!(
            refused.message,
            "100 Graphs are shared with this project already: \"Home\""
        );
        here.unshare("many-7").await;
        here.ask(request).await;
        here.stop().await;
    });
}
