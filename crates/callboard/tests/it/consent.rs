//! Consent that ends between the queue and the run (B36).

use crate::process::until;
use crate::rig::{ASK, HOME, Rig};

const NO_LONGER_SHARED: Option<&str> = Some("Graph session is no longer shared with this project");

#[tokio::test]
async fn what_was_queued_while_the_desktop_was_off_ends_cancelled_once_consent_is_gone() {
    let mut rig = Rig::with_hub().await;
    rig.hub(&["project", "create", "Work"]).await.ok();
    let agent = [
        "token",
        "create",
        "--name",
        "Both",
        "--project",
        HOME,
        "--project",
        "Work",
    ];
    rig.token = rig.hub(&agent).await.ok().stdout.trim().to_owned();
    rig.start_desktop().await;
    for project in [HOME, "Work"] {
        rig.desk(&["project", "enable", project]).await.ok();
    }
    for (slug, project) in [
        ("unshared", HOME),
        ("renamed", HOME),
        ("ask", HOME),
        ("disabled", "Work"),
    ] {
        rig.share(slug, ASK, project).await;
    }
    rig.kill_desktop().await;
    let mut tickets = Vec::new();
    for slug in ["unshared", "renamed", "disabled"] {
        tickets.push(rig.queue(slug).await);
    }
    // The owner changes his mind while the hub cannot hear of it.
    rig.kill_hub().await;
    rig.start_desktop_alone().await;
    rig.desk(&["graph", "unshare", "unshared", "--project", HOME])
        .await
        .ok();
    rig.desk(&["graph", "edit", "renamed", "--slug", "other-name"])
        .await
        .ok();
    rig.desk(&["project", "disable", "Work"]).await.ok();
    rig.start_hub_and_look().await;
    for ticket in &tickets {
        let run = rig.ends(ticket, "cancelled", NO_LONGER_SHARED).await;
        assert!(
            run["total_tokens"].is_null() && run["execution_id"].is_null(),
            "{run:#}"
        );
    }
    let mut listed = rig.listed().await;
    listed.sort();
    assert_eq!(listed, ["ask", "other-name"]);
    rig.works().await;
    assert_eq!(rig.model.asked(), 1, "none of the three was run");
}

#[tokio::test]
async fn a_share_that_ends_while_its_run_waits_for_a_slot_ends_that_run_and_no_other() {
    let rig = Rig::with_graph().await;
    rig.share("waiting", ASK, HOME).await;
    rig.model.hold();
    let long = rig.queue("ask").await;
    rig.model.is_asked(1).await;
    let waiting = rig.queue("waiting").await;
    until("the second run waits", async || {
        (rig.status().await["waiting"] == 1).then_some(())
    })
    .await;
    rig.desk(&["graph", "unshare", "waiting", "--project", HOME])
        .await
        .ok();
    rig.ends(&waiting, "cancelled", NO_LONGER_SHARED).await;
    assert_eq!(rig.read(&long).await["status"], "running");
    rig.model.release();
    rig.completes(&long).await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 2);
}

#[tokio::test]
async fn a_share_that_ends_between_the_grant_and_the_run_ends_the_run() {
    let mut rig = Rig::with_graph().await;
    rig.share("granted", ASK, HOME).await;
    rig.kill_desktop().await;
    rig.start_desktop_halting(callboard_desktop::Step::RecordRunning);
    let ticket = rig.queue("granted").await;
    rig.desktop.as_mut().unwrap().says(r#""halted""#).await;
    rig.kill_desktop().await;
    assert_eq!(
        rig.read(&ticket).await["status"],
        "running",
        "the hub granted the start"
    );
    rig.kill_hub().await;
    rig.start_desktop_alone().await;
    rig.desk(&["graph", "unshare", "granted", "--project", HOME])
        .await
        .ok();
    rig.start_hub_and_look().await;
    rig.ends(&ticket, "cancelled", NO_LONGER_SHARED).await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 1);
}

#[tokio::test]
async fn what_a_revoked_agent_had_queued_is_not_run() {
    let mut rig = Rig::with_graph().await;
    rig.kill_desktop().await;
    let ticket = rig.queue("ask").await;
    let revoked = rig.hub(&["token", "revoke", "Claude"]).await.ok();
    let run = format!("run       {ticket}  cancelled");
    assert!(revoked.stdout.contains(&run), "{revoked:#?}");
    let read = rig.client(&["get", &ticket]).await;
    read.refused(1, "does not know this token", "hub token list");
    let agent = ["token", "create", "--name", "Next", "--project", HOME];
    rig.token = rig.hub(&agent).await.ok().stdout.trim().to_owned();
    rig.start_desktop().await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 1, "only the next agent's run");
}
