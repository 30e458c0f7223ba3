//! Owner, projects, desktops and connections.

use callboard_domain::graph_run::Status;
use callboard_domain::limits::NO_LONGER_SHARED;
use callboard_domain::{OwnerId, ProjectId, Refusal};
use callboard_store::{Connection, Desktop, NewProject, Project, Revoked, Store, StoreError};

use crate::world::{START, World, at, refusal};

pub(super) async fn the_owner_is_made_once<S: Store>(world: World<S>) {
    let (first, second) = (OwnerId::from_bytes([1; 16]), OwnerId::from_bytes([2; 16]));
    assert_eq!(world.store.ensure_owner(first, START).await.unwrap(), first);
    let again = world.store.ensure_owner(second, at(1)).await.unwrap();
    assert_eq!(again, first);
    world.store.ready().await.unwrap();
}

pub(super) async fn a_project_name_is_taken_for_its_owner_alone<S: Store>(world: World<S>) {
    let (ours, theirs) = (OwnerId::from_bytes([1; 16]), OwnerId::from_bytes([2; 16]));
    let first = world.project(ours, "Home").await;
    let again = NewProject {
        project: Project {
            id: ProjectId::from_bytes(world.id()),
            ..first.clone()
        },
        now: at(1),
    };
    let refused = world.store.create_project(again).await;
    assert!(matches!(refused, Err(StoreError::NameTaken)), "{refused:?}");
    world.project(ours, "home").await;
    let other = world.project(theirs, "Home").await;
    assert_eq!(world.store.projects(theirs).await.unwrap(), [other]);
    assert_eq!(world.store.projects(ours).await.unwrap()[0], first);
}

pub(super) async fn a_desktop_name_is_taken_for_its_owner_alone<S: Store>(world: World<S>) {
    let (ours, theirs) = (OwnerId::from_bytes([1; 16]), OwnerId::from_bytes([2; 16]));
    let (first, _) = world.desktop(ours, "den").await;
    let again = world.new_desktop(ours, "den");
    let refused = world.store.create_desktop(again).await;
    assert!(matches!(refused, Err(StoreError::NameTaken)), "{refused:?}");
    let (other, _) = world.desktop(theirs, "den").await;
    assert_eq!(world.store.desktops(ours).await.unwrap(), [first]);
    assert_eq!(world.store.desktops(theirs).await.unwrap(), [other]);
}

pub(super) async fn rows_come_oldest_first<S: Store>(world: World<S>) {
    let owner_id = OwnerId::from_bytes([1; 16]);
    let names = ["zebra", "Älg", "ant", "Ant", "a\u{1F600}"];
    for name in names {
        world.project(owner_id, name).await;
        world.desktop(owner_id, name).await;
        world.connection(owner_id, name, &[]).await;
    }
    let projects = world.store.projects(owner_id).await.unwrap();
    let desktops = world.store.desktops(owner_id).await.unwrap();
    let connections = world.store.connections(owner_id).await.unwrap();
    assert!(projects.iter().map(|row| &row.name).eq(names));
    assert!(desktops.iter().map(|row| &row.name).eq(names));
    assert!(connections.iter().map(|row| &row.name).eq(names));
}

pub(super) async fn a_token_finds_its_desktop_and_no_other<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let find = |token| world.store.desktop_by_token(token);
    let found = find(workspace.desktop_token).await.unwrap();
    assert_eq!(found, Some(workspace.desktop));
    assert_eq!(find(world.token()).await.unwrap(), None);
    let foreign = find(workspace.connection_token).await.unwrap();
    assert_eq!(foreign, None, "a connection's token is no desktop's");
}

pub(super) async fn a_desktop_is_bound_to_the_first_folder_until_it_is_freed<S: Store>(
    world: World<S>,
) {
    let workspace = world.workspace().await;
    let (id, owner_id) = (workspace.desktop.id, workspace.owner_id);
    let (first, second) = (world.worker(), world.worker());
    let bind = |worker| world.store.bind_worker(id, worker);
    bind(first).await.unwrap();
    bind(first).await.unwrap();
    assert_eq!(refusal(bind(second).await), Refusal::DesktopInUse);
    let bound = world.store.desktops(owner_id).await.unwrap();
    assert_eq!(bound[0].worker_id, Some(first));

    let free = |name: &str| world.store.rebind_desktop(owner_id, name.to_owned());
    assert!(!free("attic").await.unwrap());
    assert!(free("den").await.unwrap());
    bind(second).await.unwrap();
    assert_eq!(refusal(bind(first).await), Refusal::DesktopInUse);
    let found = world.store.desktop_by_token(workspace.desktop_token);
    assert_eq!(found.await.unwrap().unwrap().worker_id, Some(second));
}

pub(super) async fn a_sign_of_life_never_moves_backwards<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let id = workspace.desktop.id;
    world.store.note_seen(vec![]).await.unwrap();
    let unknown = callboard_domain::DesktopId::from_bytes([9; 16]);
    let seen = vec![(id, at(50)), (unknown, at(60)), (id, at(20))];
    world.store.note_seen(seen).await.unwrap();
    world.store.note_seen(vec![(id, at(40))]).await.unwrap();
    let expected = Desktop {
        last_seen_at: Some(at(50)),
        ..workspace.desktop.clone()
    };
    let desktops = world.store.desktops(workspace.owner_id).await.unwrap();
    assert_eq!(desktops, [expected]);

    let row = world.queue(&workspace, "key-of-the-run").await;
    assert_eq!(row.desktop_last_seen_at, Some(at(50)));
    world.store.note_seen(vec![(id, at(70))]).await.unwrap();
    let read = world.read(&row, START).await.unwrap();
    assert_eq!(read.desktop_last_seen_at, Some(at(70)));
    let (connection_id, project_id) = (workspace.connection.id, workspace.project.id);
    let sessions = world.store.sessions(connection_id, project_id, 5).await;
    let sessions = sessions.unwrap().unwrap();
    assert_eq!(sessions[0].desktop_last_seen_at, Some(at(70)));
}

pub(super) async fn a_token_finds_its_connection_with_the_projects_in_their_order<S: Store>(
    world: World<S>,
) {
    let owner_id = OwnerId::from_bytes([1; 16]);
    let home = world.project(owner_id, "Home").await;
    let work = world.project(owner_id, "Work").await;
    let added = [work.id, home.id];
    let (connection, token) = world.connection(owner_id, "Claude", &added).await;
    let (bare, bare_token) = world.connection(owner_id, "Codex", &[]).await;
    assert_eq!(connection.projects, [work, home]);
    let find = |token| world.store.connection_by_token(token);
    assert_eq!(find(token).await.unwrap(), Some(connection.clone()));
    assert_eq!(find(bare_token).await.unwrap(), Some(bare.clone()));
    assert_eq!(find(world.token()).await.unwrap(), None);
    let listed = world.store.connections(owner_id).await.unwrap();
    assert_eq!(listed, [connection, bare]);
}

pub(super) async fn a_connection_is_added_only_to_projects_of_its_owner<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let theirs = world.project(OwnerId::from_bytes([2; 16]), "Home").await;
    let unknown = ProjectId::from_bytes([9; 16]);
    for project in [theirs.id, unknown] {
        let projects = [workspace.project.id, project];
        let new = world.new_connection(workspace.owner_id, "Codex", &projects);
        let token = new.token_hash;
        let refused = world.store.create_connection(new).await;
        assert_eq!(refusal(refused), Refusal::ProjectNotFound);
        let found = world.store.connection_by_token(token).await.unwrap();
        assert_eq!(found, None, "nothing is left of it");
    }
    let taken = world.new_connection(workspace.owner_id, "Claude", &[]);
    let refused = world.store.create_connection(taken).await;
    assert!(matches!(refused, Err(StoreError::NameTaken)), "{refused:?}");
}

pub(super) async fn a_revoked_connection_is_gone_and_leaves_its_name<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let owner_id = workspace.owner_id;
    let revoke = || {
        world
            .store
            .revoke_connection(owner_id, "Claude".to_owned(), at(1))
    };
    assert_eq!(revoke().await.unwrap(), Some(Revoked::default()));
    assert_eq!(revoke().await.unwrap(), None);
    let token = workspace.connection_token;
    let found = world.store.connection_by_token(token).await.unwrap();
    assert_eq!(found, None);
    let listed = world.store.connections(owner_id).await.unwrap();
    assert_eq!(listed, Vec::<Connection>::new());
    let (next, _) = world.connection(owner_id, "Claude", &[]).await;
    assert_eq!(world.store.connections(owner_id).await.unwrap(), [next]);
}

pub(super) async fn revoking_ends_what_waits_and_asks_what_runs_to_stop<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (running, execution_id) = world.start(&workspace, "runs-at-one-second").await;
    let waiting = world.queue(&workspace, "waits-since-start").await;
    let (done, id) = world.start(&workspace, "is-over-already").await;
    let completion = crate::world::completed(id, "1");
    let stored = world
        .store
        .complete_run(done.desktop_id, done.command_id, completion, at(1_000));
    let (done, _) = stored.await.unwrap();

    // In the very millisecond of the last change, which must not hide that something changed.
    let (owner_id, name) = (workspace.owner_id, "Claude".to_owned());
    let revoked = world.store.revoke_connection(owner_id, name, at(1_000));
    let Revoked { runs, tasks } = revoked.await.unwrap().unwrap();
    assert_eq!(tasks, []);
    let mut changed = runs;
    changed.sort_by_key(|row| row.run.status());
    let changed: Vec<_> = changed
        .iter()
        .map(|row| (row.command_id, row.run.status(), row.run.cancel_requested()))
        .collect();
    let expected = [
        (running.command_id, Status::Running, true),
        (waiting.command_id, Status::Cancelled, false),
    ];
    assert_eq!(changed, expected);
    let told = world.told(&waiting, at(1_001)).await;
    let error = told.run.end().unwrap().report.error.clone();
    assert_eq!(error.as_deref(), Some(NO_LONGER_SHARED));
    assert_eq!(world.told(&done, at(1_001)).await, done);
    let running = world.told(&running, at(1_001)).await;
    assert_eq!(running.run.execution().unwrap().id, execution_id);
}

pub(super) async fn what_is_not_there_cannot_be_revoked<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let revoke = |owner_id, name: &str| {
        let name = name.to_owned();
        world.store.revoke_connection(owner_id, name, START)
    };
    let unknown = revoke(workspace.owner_id, "Codex").await.unwrap();
    assert_eq!(unknown, None);
    let foreign = revoke(OwnerId::from_bytes([9; 16]), "Claude").await;
    assert_eq!(foreign.unwrap(), None);
    let token = workspace.connection_token;
    let found = world.store.connection_by_token(token).await.unwrap();
    assert_eq!(found, Some(workspace.connection));
}
