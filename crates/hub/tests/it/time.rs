//! The hub on a clock that only moves when told.

use callboard_ambient::{Clock, Entropy, ManualClock};
use callboard_domain::limits::{ONLINE_WINDOW_MS, QUEUED_EXPIRY_MS, SILENT_DESKTOP_MS};
use callboard_domain::{ExecutionId, GraphSessionId, Refusal, Scopes, Timestamp, WorkerId};
use callboard_hub::{Hub, Reply};
use callboard_store::{Connection, Desktop, MemoryStore};
use callboard_wire::relay::{
    CompleteRequest, CompletionStatus, SessionInfo, StartRequest, SyncRequest,
};
use callboard_wire::tools::get_graph_run::Answer;
use serde_json::Map;

const SESSION: GraphSessionId = GraphSessionId::from_bytes([9; 16]);
const EXECUTION: ExecutionId = ExecutionId::from_bytes([8; 16]);
const WORKER: WorkerId = WorkerId::from_bytes([7; 16]);

struct World {
    hub: Hub<MemoryStore>,
    hands: ManualClock,
    chat: Connection,
    desktop_token: String,
}

impl World {
    async fn new() -> Self {
        let (clock, hands) = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
        let hub = Hub::new(MemoryStore::default(), clock, Entropy::seeded(1, "hub"));
        let project = hub.create_project("Home").await.unwrap();
        let desktop = hub.create_desktop("laptop").await.unwrap();
        let chat = hub
            .create_connection("Claude", &["Home".to_owned()], Scopes::ALL)
            .await
            .unwrap();
        let world = Self {
            hub,
            hands,
            chat: chat.made,
            desktop_token: desktop.token,
        };
        let session = SessionInfo {
            graph_session_id: SESSION,
            name: "Report".into(),
            description: String::new(),
            slug: "report".into(),
            version: 1,
            status: "ready".into(),
        };
        let request = SyncRequest {
            project_id: project.id,
            sessions: vec![session],
        };
        world
            .hub
            .sync(&world.desktop().await, request)
            .await
            .unwrap();
        world
    }

    /// A call of the desktop, which is a sign of life.
    async fn desktop(&self) -> Desktop {
        self.hub
            .authenticate_desktop(&self.desktop_token, WORKER)
            .await
            .unwrap()
            .unwrap()
    }

    async fn queue(&self, key: &str) -> String {
        let session = SESSION.to_string();
        let ticket = self
            .hub
            .run_graph_session(&self.chat, &session, Map::new(), key)
            .await;
        ticket.unwrap().command_id.to_string()
    }

    async fn start(&self, command_id: &str) {
        let request = StartRequest {
            execution_id: EXECUTION,
        };
        self.hub
            .start(&self.desktop().await, command_id, request)
            .await
            .unwrap();
    }

    async fn read(&self, command_id: &str) -> Answer {
        match self
            .hub
            .get_graph_run(&self.chat, command_id, 0, None, None)
            .await
            .unwrap()
        {
            Reply::Done(answer) => answer,
            Reply::Hold(_) => panic!("a call without a wait is never held"),
        }
    }

    /// Sweeps as a hub does that has been awake for a minute.
    async fn sweep(&self) {
        self.hub.sweep().await.unwrap();
        self.hands.advance_ms(ONLINE_WINDOW_MS);
        while self.hub.sweep().await.unwrap() {}
    }
}

#[tokio::test]
async fn a_command_that_nobody_starts_expires_after_seven_days_before_and_after_the_sweep() {
    let world = World::new().await;
    let command_id = world.queue("k-00000001").await;
    world.hands.advance_ms(QUEUED_EXPIRY_MS - 1);
    assert_eq!(world.read(&command_id).await.status, "queued");
    world.hands.advance_ms(1);
    let read = world.read(&command_id).await;
    assert_eq!(
        read.error.as_deref(),
        Some("no desktop started it within 7 days")
    );
    assert_eq!(
        (read.status.as_str(), read.next_check_after_seconds),
        ("expired", None)
    );
    world.sweep().await;
    let swept = world.read(&command_id).await;
    assert_eq!(
        (swept.status, swept.finished_at),
        (read.status, read.finished_at)
    );
    let request = StartRequest {
        execution_id: EXECUTION,
    };
    let refused = world
        .hub
        .start(&world.desktop().await, &command_id, request)
        .await
        .unwrap_err();
    assert!(refused.is(callboard_domain::Refusal::RunOver));
}

#[tokio::test]
async fn a_running_command_fails_once_its_desktop_was_silent_for_seven_days() {
    let world = World::new().await;
    let command_id = world.queue("k-00000001").await;
    world.start(&command_id).await;
    world.sweep().await;
    world.hands.advance_ms(SILENT_DESKTOP_MS / 2);
    world.desktop().await;
    world.sweep().await;
    world
        .hands
        .advance_ms(SILENT_DESKTOP_MS - 2 * ONLINE_WINDOW_MS - 1);
    world.sweep().await;
    assert_eq!(
        world.read(&command_id).await.status,
        "running",
        "it gave a sign half-way"
    );
    world.hands.advance_ms(1);
    world.hub.sweep().await.unwrap();
    let run = world.read(&command_id).await;
    assert_eq!(run.status, "failed");
    assert_eq!(run.error.as_deref(), Some("desktop did not report back"));
    let late = CompleteRequest {
        execution_id: Some(EXECUTION),
        status: CompletionStatus::Completed,
        result: None,
        result_truncated: false,
        error: None,
        total_tokens: None,
        reported_cost: None,
    };
    let refused = world
        .hub
        .complete(&world.desktop().await, &command_id, late)
        .await
        .unwrap_err();
    let callboard_hub::HubError::Refused(refusal) = refused else {
        panic!("{refused:?}")
    };
    assert!(refusal.is_final_for_a_completion(), "the desktop parks it");
}

#[tokio::test]
async fn a_wall_clock_set_back_makes_nothing_negative_and_ends_nothing_early() {
    let world = World::new().await;
    let command_id = world.queue("k-00000001").await;
    world
        .hands
        .set_wall(Timestamp::from_millis(1_700_000_000_000));
    world.start(&command_id).await;
    world.sweep().await;
    let run = world.read(&command_id).await;
    assert_eq!(run.status, "running");
    assert!(
        run.started_at >= Some(run.queued_at),
        "time never runs backwards on a run"
    );
}

#[tokio::test]
async fn presence_survives_the_flush_and_ends_after_a_minute() {
    let world = World::new().await;
    let command_id = world.queue("k-00000001").await;
    let seen = world.read(&command_id).await.desktop;
    assert!(seen.online && seen.last_seen_at.is_some());
    world.sweep().await;
    world.hands.advance_ms(1);
    let later = world.read(&command_id).await.desktop;
    assert!(!later.online);
    assert_eq!(later.last_seen_at, seen.last_seen_at);
}

#[tokio::test]
async fn a_hub_that_was_off_for_a_week_gives_its_desktops_a_minute_to_call() {
    let world = World::new().await;
    let command_id = world.queue("k-00000001").await;
    world.start(&command_id).await;
    world.sweep().await;
    world.hands.advance_ms(2 * SILENT_DESKTOP_MS);
    world.hub.sweep().await.unwrap();
    assert_eq!(world.read(&command_id).await.status, "running");
    world.desktop().await;
    world.hands.advance_ms(ONLINE_WINDOW_MS);
    world.hub.sweep().await.unwrap();
    assert_eq!(world.read(&command_id).await.status, "running");
}

/// Whether `change` wakes a call that is held for the run.
async fn wakes(world: &World, command_id: &str, change: impl Future<Output = ()>) -> bool {
    let asked = world
        .hub
        .get_graph_run(&world.chat, command_id, 40, None, None);
    let Reply::Hold(hold) = asked.await.unwrap() else {
        panic!("the call is held");
    };
    change.await;
    let signals = world.hub.signals();
    let moved = signals.changed(hold.watches[0]);
    tokio::time::timeout(std::time::Duration::ZERO, moved)
        .await
        .is_ok()
}

#[tokio::test]
async fn every_change_of_a_run_wakes_whoever_waits_for_it() {
    let world = World::new().await;
    let queued = world.queue("k-00000001").await;
    assert!(!wakes(&world, &queued, async {}).await);
    assert!(wakes(&world, &queued, world.start(&queued)).await, "start");
    let completed = async {
        let request = CompleteRequest {
            execution_id: Some(EXECUTION),
            status: CompletionStatus::Failed,
            result: None,
            result_truncated: false,
            error: None,
            total_tokens: None,
            reported_cost: None,
        };
        let desktop = world.desktop().await;
        world
            .hub
            .complete(&desktop, &queued, request)
            .await
            .unwrap();
    };
    assert!(wakes(&world, &queued, completed).await, "complete");
    let cancelled = world.queue("k-00000002").await;
    let cancel = async {
        world
            .hub
            .cancel_graph_run(&world.chat, &cancelled)
            .await
            .unwrap();
    };
    assert!(wakes(&world, &cancelled, cancel).await, "cancel");
    let revoked = world.queue("k-00000003").await;
    let revoke = async {
        world.hub.revoke_connection("Claude").await.unwrap();
    };
    assert!(wakes(&world, &revoked, revoke).await, "revoke");
}

#[tokio::test]
async fn a_call_that_is_held_over_a_revocation_learns_nothing() {
    let world = World::new().await;
    let command_id = world.queue("k-00000001").await;
    world.start(&command_id).await;
    world.hub.revoke_connection("Claude").await.unwrap();
    let session = SESSION.to_string();
    let read = world
        .hub
        .get_graph_run(&world.chat, &command_id, 0, None, None)
        .await;
    let replay = world
        .hub
        .run_graph_session(&world.chat, &session, Map::new(), "k-00000001")
        .await;
    let cancel = world.hub.cancel_graph_run(&world.chat, &command_id).await;
    assert!(read.unwrap_err().is(Refusal::RunNotFound));
    assert!(cancel.unwrap_err().is(Refusal::RunNotFound));
    assert!(replay.unwrap_err().is(Refusal::SessionNotFound));
}

#[tokio::test]
async fn a_status_that_changed_before_the_call_is_told_at_once() {
    let world = World::new().await;
    let command_id = world.queue("k-00000001").await;
    let ask = |seen| {
        world
            .hub
            .get_graph_run(&world.chat, &command_id, 40, seen, None)
    };
    assert!(matches!(ask(Some("queued")).await.unwrap(), Reply::Hold(_)));
    world.start(&command_id).await;
    assert!(matches!(ask(Some("queued")).await.unwrap(), Reply::Done(_)));
    assert!(matches!(
        ask(Some("running")).await.unwrap(),
        Reply::Hold(_)
    ));
    assert!(matches!(ask(None).await.unwrap(), Reply::Hold(_)));
}
