//! What desktops share, and what a sync hands out.

use callboard_domain::limits::{COMMANDS_PER_SYNC_MAX, QUEUED_EXPIRY_MS};
use callboard_domain::{CommandId, ProjectId};
use callboard_store::{Store, Synced};

use crate::world::{SESSION, START, Workspace, World, at, completed, key, session};

async fn names<S: Store>(world: &World<S>, workspace: &Workspace, limit: usize) -> Vec<String> {
    let (connection_id, project_id) = (workspace.connection.id, workspace.project.id);
    let sessions = world.store.sessions(connection_id, project_id, limit).await;
    let sessions = sessions.unwrap().unwrap();
    sessions.into_iter().map(|row| row.session.name).collect()
}

fn handed_out(synced: &Synced) -> Vec<CommandId> {
    let commands = synced.handout.commands.iter();
    commands.map(|command| command.command_id).collect()
}

fn told_to_stop(synced: &Synced) -> Vec<CommandId> {
    let control = synced.handout.control.iter();
    control
        .filter(|control| control.cancel_requested)
        .map(|control| control.command_id)
        .collect()
}

pub(super) async fn nothing_is_shared_until_a_sync<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let bare = world.project(workspace.owner_id, "Bare").await;
    let added = [bare.id];
    let (connection, _) = world.connection(workspace.owner_id, "Codex", &added).await;
    let sessions = |project_id| world.store.sessions(connection.id, project_id, 50);
    assert_eq!(sessions(bare.id).await.unwrap(), Some(vec![]));
    let not_added = sessions(workspace.project.id).await.unwrap();
    assert_eq!(not_added, None);
    let empty = world
        .store
        .sync(workspace.desktop.id, bare.id, vec![], START);
    assert!(!empty.await.unwrap().changed);
}

pub(super) async fn a_sync_replaces_the_list<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let list = vec![session(1, "First"), session(2, "Second")];
    assert!(world.share(&workspace, list.clone()).await.changed);
    assert_eq!(names(&world, &workspace, 50).await, ["First", "Second"]);
    let (connection_id, project_id) = (workspace.connection.id, workspace.project.id);
    let rows = world.store.sessions(connection_id, project_id, 50).await;
    let row = &rows.unwrap().unwrap()[0];
    assert_eq!(row.session, list[0]);
    assert_eq!(
        (row.project_id, row.desktop_id),
        (project_id, workspace.desktop.id)
    );
    assert_eq!(row.desktop_name, "den");
    assert!(world.share(&workspace, vec![]).await.changed);
    assert_eq!(names(&world, &workspace, 50).await, [""; 0]);
}

pub(super) async fn the_stored_list_again_changes_nothing<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let list = vec![session(1, "First"), session(2, "Second")];
    assert!(world.share(&workspace, list.clone()).await.changed);
    assert!(!world.share(&workspace, list.clone()).await.changed);
    for field in 0..5 {
        let mut other = list.clone();
        match field {
            0 => other[1].name.push('!'),
            1 => other[1].description.push('!'),
            2 => other[1].slug.push('-'),
            3 => other[1].version = u64::MAX,
            _ => other[1].status = "syntax error".to_owned(),
        }
        assert!(
            world.share(&workspace, other.clone()).await.changed,
            "{field}"
        );
        assert!(!world.share(&workspace, other).await.changed, "{field}");
    }
}

pub(super) async fn sessions_come_by_name_up_to_the_limit<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let list = vec![
        session(4, "beta"),
        session(3, "Beta"),
        session(2, "alpha"),
        session(1, "alpha"),
        session(5, "Älg"),
    ];
    world.share(&workspace, list).await;
    let all = ["Beta", "alpha", "alpha", "beta", "Älg"];
    assert_eq!(names(&world, &workspace, 50).await, all);
    assert_eq!(names(&world, &workspace, 2).await, all[..2]);
    assert_eq!(names(&world, &workspace, 0).await, [""; 0]);
    let (connection_id, project_id) = (workspace.connection.id, workspace.project.id);
    let rows = world.store.sessions(connection_id, project_id, usize::MAX);
    let rows = rows.await.unwrap().unwrap();
    let twins = (rows[1].session.clone(), rows[2].session.clone());
    assert_eq!(
        twins,
        (session(1, "alpha"), session(2, "alpha")),
        "then by id"
    );
}

pub(super) async fn each_desktop_keeps_its_own_list<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (desktop, _) = world.desktop(workspace.owner_id, "attic").await;
    let second = Workspace {
        desktop,
        ..workspace.clone()
    };
    world
        .share(&workspace, vec![session(1, "Shared"), session(2, "Den")])
        .await;
    world.share(&second, vec![session(1, "Shared")]).await;
    let all = ["Den", "Shared", "Shared"];
    assert_eq!(names(&world, &workspace, 50).await, all);
    world.share(&workspace, vec![]).await;
    assert_eq!(names(&world, &workspace, 50).await, ["Shared"]);
}

pub(super) async fn a_sync_hands_out_what_waits_in_that_project_oldest_first<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let list = vec![session(0x5e, "Report")];
    let mut rows = Vec::new();
    for number in 0..5 {
        rows.push(world.queue(&workspace, &format!("waits-as-{number}")).await);
    }
    world.start(&workspace, "runs-already").await;
    let synced = world.share(&workspace, list.clone()).await;
    let oldest_first: Vec<_> = rows.iter().map(|row| row.command_id).collect();
    assert_eq!(handed_out(&synced), oldest_first);
    assert_eq!(told_to_stop(&synced), []);
    let command = &synced.handout.commands[0];
    assert_eq!(command.graph_session_id, SESSION);
    assert_eq!(command.slug, "report");
    assert_eq!(command.arguments.get(), rows[0].arguments);

    let elsewhere = world.project(workspace.owner_id, "Elsewhere").await;
    let other = Workspace {
        project: elsewhere,
        ..workspace.clone()
    };
    assert_eq!(handed_out(&world.share(&other, list).await), []);
    let unshared = world.share(&workspace, vec![]).await;
    assert_eq!(
        handed_out(&unshared),
        oldest_first,
        "the desktop decides about them"
    );
}

pub(super) async fn a_full_hand_out_leaves_the_rest_for_later<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let list = vec![session(0x5e, "Report")];
    let (running, _) = world.start(&workspace, "runs-and-should-stop").await;
    world
        .store
        .request_cancel(key(&running), at(2_000))
        .await
        .unwrap();
    let mut ids = Vec::new();
    for number in 0..COMMANDS_PER_SYNC_MAX + 2 {
        let row = world.queue(&workspace, &format!("waits-as-{number}")).await;
        ids.push(row.command_id);
    }
    let synced = world.share(&workspace, list.clone()).await;
    assert_eq!(handed_out(&synced), ids[..COMMANDS_PER_SYNC_MAX]);
    assert_eq!(
        told_to_stop(&synced),
        [running.command_id],
        "none is left out"
    );
    for command_id in &ids[..COMMANDS_PER_SYNC_MAX] {
        let execution_id = callboard_domain::ExecutionId::from_bytes(world.id());
        let desktop_id = workspace.desktop.id;
        let started = world
            .store
            .start_run(desktop_id, *command_id, execution_id, at(3_000));
        started.await.unwrap();
    }
    let synced = world.share(&workspace, list).await;
    assert_eq!(handed_out(&synced), ids[COMMANDS_PER_SYNC_MAX..]);
}

pub(super) async fn a_running_command_is_named_for_as_long_as_it_should_stop<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let list = vec![session(0x5e, "Report")];
    let (row, execution_id) = world.start(&workspace, "runs-and-should-stop").await;
    assert_eq!(
        told_to_stop(&world.share(&workspace, list.clone()).await),
        []
    );
    world
        .store
        .request_cancel(key(&row), at(2_000))
        .await
        .unwrap();
    let synced = world.share(&workspace, list.clone()).await;
    assert_eq!(told_to_stop(&synced), [row.command_id]);
    assert_eq!(handed_out(&synced), []);
    let completion = completed(execution_id, "1");
    let stored = world
        .store
        .complete_run(row.desktop_id, row.command_id, completion, at(3_000));
    stored.await.unwrap();
    let synced = world.share(&workspace, list).await;
    assert_eq!(told_to_stop(&synced), [], "it is over");
}

pub(super) async fn an_expired_command_is_not_handed_out<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let list = vec![session(0x5e, "Report")];
    let row = world.queue(&workspace, "waits-for-a-week").await;
    let before = world
        .sync(&workspace, list.clone(), at(QUEUED_EXPIRY_MS - 1))
        .await;
    assert_eq!(handed_out(&before), [row.command_id]);
    let after = world.sync(&workspace, list, at(QUEUED_EXPIRY_MS)).await;
    assert_eq!(handed_out(&after), []);
    let unknown = ProjectId::from_bytes([9; 16]);
    let refused = world
        .store
        .sync(workspace.desktop.id, unknown, vec![], START)
        .await;
    let refused = crate::world::refusal(refused);
    assert_eq!(refused, callboard_domain::Refusal::ProjectNotFound);
}
