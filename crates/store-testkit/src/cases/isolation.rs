//! Not yours, never was and no longer yours are one answer, to the byte.

use callboard_domain::{CommandId, DesktopId, ExecutionId, OwnerId, ProjectId};
use callboard_store::{RunKey, Store};
use callboard_wire::relay::Progress;

use crate::world::{START, World, at, completed, key, seen, session};

pub(super) async fn the_command_of_another_connection_is_an_unknown_one<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let added = [ours.project.id];
    let (neighbour, _) = world.connection(ours.owner_id, "Codex", &added).await;
    let row = world.queue(&ours, "the-key-of-ours").await;
    let unknown = CommandId::from_bytes([9; 16]);
    for stranger in [neighbour.id, theirs.connection.id] {
        let as_stranger = |command_id| RunKey {
            connection_id: stranger,
            command_id,
        };
        let [foreign, missing] = [row.command_id, unknown].map(as_stranger);
        let read = world.store.run(foreign, START).await;
        assert_eq!(seen(&read), seen(&world.store.run(missing, START).await));
        assert_eq!(read.unwrap(), None);
        let cancel = world.store.request_cancel(foreign, START).await;
        let expected = world.store.request_cancel(missing, START).await;
        assert_eq!(seen(&cancel), seen(&expected));
        assert!(cancel.is_err());
    }
    assert_eq!(world.read(&row, START).await, Some(row));
}

pub(super) async fn the_command_of_another_desktop_is_an_unknown_one<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let (neighbour, _) = world.desktop(ours.owner_id, "attic").await;
    let (row, execution_id) = world.start(&ours, "the-key-of-ours").await;
    let unknown = CommandId::from_bytes([9; 16]);
    let store = &world.store;
    let progress = Some(Progress::default());
    for stranger in [
        neighbour.id,
        theirs.desktop.id,
        DesktopId::from_bytes([9; 16]),
    ] {
        let start = |id| store.start_run(stranger, id, execution_id, at(2_000));
        assert_eq!(
            seen(&start(row.command_id).await),
            seen(&start(unknown).await)
        );
        let report = |id| store.report_progress(stranger, id, None, progress, at(2_000));
        assert_eq!(
            seen(&report(row.command_id).await),
            seen(&report(unknown).await)
        );
        let complete =
            |id| store.complete_run(stranger, id, completed(execution_id, "1"), at(2_000));
        let refused = complete(row.command_id).await;
        assert_eq!(seen(&refused), seen(&complete(unknown).await));
        assert!(refused.is_err());
    }
    for stranger in [theirs.desktop.id, DesktopId::from_bytes([9; 16])] {
        let sync = |project_id| store.sync(stranger, project_id, vec![], START);
        let foreign = sync(ours.project.id).await;
        let missing = sync(ProjectId::from_bytes([9; 16])).await;
        assert_eq!(seen(&foreign), seen(&missing));
        assert!(foreign.is_err());
    }
    assert_eq!(world.read(&row, START).await, Some(row));
}

pub(super) async fn the_workspace_of_another_owner_is_an_unknown_one<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let unknown_project = ProjectId::from_bytes([9; 16]);
    let sessions = |project_id| world.store.sessions(theirs.connection.id, project_id, 50);
    let foreign = sessions(ours.project.id).await;
    assert_eq!(seen(&foreign), seen(&sessions(unknown_project).await));
    assert_eq!(foreign.unwrap(), None);

    // The session is shared in both workspaces; each connection reaches its own desktop.
    let row = world.queue(&theirs, "the-key-of-theirs").await;
    assert_eq!(row.desktop_id, theirs.desktop.id);
    world.share(&theirs, vec![]).await;
    let request = world.request(&theirs, "another-key-of-theirs");
    let foreign = world.store.queue_run(request.clone()).await;
    let missing = callboard_store::QueueRun {
        graph_session_id: session(9, "").graph_session_id,
        ..request
    };
    assert_eq!(seen(&foreign), seen(&world.store.queue_run(missing).await));
    assert!(foreign.is_err());

    let free = |owner_id| world.store.rebind_desktop(owner_id, "den".to_owned());
    world
        .store
        .bind_worker(ours.desktop.id, world.worker())
        .await
        .unwrap();
    let (foreign, missing) = (OwnerId::from_bytes([8; 16]), OwnerId::from_bytes([9; 16]));
    assert_eq!(seen(&free(foreign).await), seen(&free(missing).await));
    let bound = world.store.desktops(ours.owner_id).await.unwrap();
    assert!(bound[0].worker_id.is_some());
}

pub(super) async fn a_revoked_connection_is_an_unknown_one<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let (row, execution_id) = world.start(&workspace, "the-first-key").await;
    let (owner_id, name) = (workspace.owner_id, "Claude".to_owned());
    world
        .store
        .revoke_connection(owner_id, name, at(2_000))
        .await
        .unwrap();
    let (connection_id, project_id) = (workspace.connection.id, workspace.project.id);
    let sessions = world.store.sessions(connection_id, project_id, 50).await;
    assert_eq!(sessions.unwrap(), None);
    let stranger = callboard_domain::ConnectionId::from_bytes([9; 16]);
    for idempotency_key in ["the-first-key", "another-key"] {
        let request = world.request(&workspace, idempotency_key);
        let unknown = callboard_store::QueueRun {
            connection_id: stranger,
            ..request.clone()
        };
        let revoked = world.store.queue_run(request).await;
        assert_eq!(seen(&revoked), seen(&world.store.queue_run(unknown).await));
        assert!(revoked.is_err());
    }
    let unknown = RunKey {
        connection_id: stranger,
        command_id: row.command_id,
    };
    let read = world.store.run(key(&row), at(2_000)).await;
    assert_eq!(
        seen(&read),
        seen(&world.store.run(unknown, at(2_000)).await)
    );
    assert_eq!(read.unwrap(), None);
    let cancel = world.store.request_cancel(key(&row), at(2_000)).await;
    let expected = world.store.request_cancel(unknown, at(2_000)).await;
    assert_eq!(seen(&cancel), seen(&expected));
    assert!(cancel.is_err());

    let completion = completed(execution_id, "1");
    let stored = world
        .store
        .complete_run(row.desktop_id, row.command_id, completion, at(3_000));
    stored.await.expect("the desktop still reports what it ran");
    let taken = ExecutionId::from_bytes(world.id());
    let again = world
        .store
        .start_run(row.desktop_id, row.command_id, taken, at(4_000));
    assert!(again.await.is_err());
}
