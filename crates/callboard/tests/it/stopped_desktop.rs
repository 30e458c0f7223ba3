//! A desktop that stands still while the world goes on (B38).

use nix::sys::signal::Signal;

use crate::process::{Process, callboard, until};
use crate::rig::{ASK, HOME, Rig};

#[tokio::test]
async fn a_command_that_was_fetched_before_the_sleep_is_not_run_once_it_is_cancelled_and_unshared()
{
    let mut rig = Rig::with_graph().await;
    rig.share("fetched", ASK, HOME).await;
    rig.model.hold();
    let running = rig.queue("ask").await;
    rig.model.is_asked(1).await;
    let fetched = rig.queue("fetched").await;
    until("the second run is fetched", async || {
        (rig.status().await["waiting"] == 1).then_some(())
    })
    .await;
    let desktop = rig.desktop.as_ref().unwrap();
    desktop.signal(Signal::SIGSTOP);
    rig.client(&["cancel", &fetched]).await.ok();
    // The owner's command waits at the socket until the desktop wakes.
    let mut unshare = callboard(&rig.desktop_data());
    unshare.args(["graph", "unshare", "fetched", "--project", HOME]);
    let mut unshare = Process::start(unshare, rig.folder());
    rig.model.release();
    rig.desktop.as_ref().unwrap().signal(Signal::SIGCONT);
    assert!(unshare.ended().await.success(), "{}", unshare.said());
    rig.completes(&running).await;
    rig.ends(&fetched, "cancelled", None).await;
    rig.outbox_empties().await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 2, "the cancelled run never began");
    rig.desktop.take().unwrap().stop().await;
}

#[tokio::test]
async fn a_run_that_was_cancelled_while_the_desktop_slept_stops_when_it_wakes() {
    let rig = Rig::with_graph().await;
    rig.model.hold();
    let ticket = rig.queue("ask").await;
    rig.model.is_asked(1).await;
    let desktop = rig.desktop.as_ref().unwrap();
    desktop.signal(Signal::SIGSTOP);
    let asked = rig.client(&["cancel", &ticket, "--json"]).await.ok().json();
    assert_eq!(asked["status"], "running");
    desktop.signal(Signal::SIGCONT);
    rig.ends(&ticket, "cancelled", Some("the run was cancelled"))
        .await;
    rig.works().await;
    assert_eq!(rig.model.asked(), 2);
}
