//! What the owner sees of all commands, and who is signed in to the console.

use callboard_domain::graph_run::Status;
use callboard_domain::limits::NO_LONGER_SHARED;
use callboard_domain::{CommandId, OwnerId, Refusal, SignInId};
use callboard_store::{NewSignIn, OwnedRun, RunCount, RunFilter, RunRow, SignIn, Store, TokenHash};

use crate::world::{START, Workspace, World, at, completed, refusal, seen, session};

async fn runs<S: Store>(
    world: &World<S>,
    owner_id: OwnerId,
    status: Option<Status>,
    before: Option<&RunRow>,
    limit: usize,
) -> Vec<OwnedRun> {
    let before = before.map(|row| row.command_id);
    let filter = RunFilter { status, before };
    let found = world
        .store
        .owned_runs(owner_id, filter, limit, at(60_000))
        .await;
    found.unwrap()
}

fn ids(runs: &[OwnedRun]) -> Vec<CommandId> {
    runs.iter().map(|run| run.row.command_id).collect()
}

pub(super) async fn the_owner_sees_all_commands_latest_first_in_pages<S: Store>(world: World<S>) {
    let ours = world.workspace().await;
    let added = [ours.project.id];
    let (neighbour, _) = world.connection(ours.owner_id, "Codex", &added).await;
    let codex = Workspace {
        connection: neighbour,
        ..ours.clone()
    };
    let mut queued = Vec::new();
    for n in 0..5 {
        let who = if n % 2 == 0 { &ours } else { &codex };
        queued.push(world.queue(who, &format!("key-{n:05}")).await);
    }
    queued.reverse();
    let expected: Vec<_> = queued.iter().map(|row| row.command_id).collect();
    let owner_id = ours.owner_id;
    let all = runs(&world, owner_id, None, None, 9).await;
    assert_eq!(ids(&all), expected);
    let names: Vec<_> = all.iter().map(|run| run.connection_name.as_str()).collect();
    assert_eq!(names, ["Claude", "Codex", "Claude", "Codex", "Claude"]);
    let first = runs(&world, owner_id, None, None, 2).await;
    assert_eq!(ids(&first), expected[..2]);
    let next = runs(&world, owner_id, None, Some(&queued[1]), 2).await;
    assert_eq!(ids(&next), expected[2..4]);
    let last = runs(&world, owner_id, None, Some(&queued[3]), 2).await;
    assert_eq!(ids(&last), expected[4..]);
    let unknown = RunFilter {
        status: None,
        before: Some(CommandId::from_bytes([9; 16])),
    };
    let found = world.store.owned_runs(owner_id, unknown, 9, START).await;
    assert_eq!(found.unwrap(), []);
}

pub(super) async fn a_list_leaves_out_what_is_long_and_one_command_is_whole<S: Store>(
    world: World<S>,
) {
    let ours = world.workspace().await;
    let (row, execution_id) = world.start(&ours, "the-key-of-ours").await;
    let (store, now) = (&world.store, at(2_000));
    let end = completed(execution_id, r#"{"long":1}"#);
    let done = store.complete_run(row.desktop_id, row.command_id, end, now);
    let (done, _) = done.await.unwrap();
    let whole = store.owned_run(ours.owner_id, row.command_id, now).await;
    let whole = whole.unwrap().unwrap();
    assert_eq!(whole.row, done);
    assert_eq!(
        (
            whole.project_name.as_str(),
            whole.connection_name.as_str(),
            whole.desktop_name.as_str(),
            whole.session_name.as_deref()
        ),
        ("Home", "Claude", "den", Some("Report"))
    );
    let mut short = whole.clone();
    short.row = callboard_store::rules::listed(short.row);
    assert_ne!(short, whole);
    assert_eq!(
        runs(&world, ours.owner_id, None, None, 9).await,
        [short.clone()]
    );
    world.share(&ours, vec![session(1, "Other")]).await;
    short.session_name = None;
    assert_eq!(runs(&world, ours.owner_id, None, None, 9).await, [short]);
    store
        .revoke_connection(ours.owner_id, "Claude".to_owned(), now)
        .await
        .unwrap();
    let kept = store.owned_run(ours.owner_id, row.command_id, now).await;
    assert_eq!(kept.unwrap().unwrap().row, done, "the owner still reads it");
}

pub(super) async fn a_list_of_one_status_and_the_counts_agree<S: Store>(world: World<S>) {
    let ours = world.workspace().await;
    let owner_id = ours.owner_id;
    assert_eq!(world.store.run_counts(owner_id).await.unwrap(), []);
    let queued = world.queue(&ours, "key-00001").await;
    let (running, _) = world.start(&ours, "key-00002").await;
    let later = world.queue(&ours, "key-00003").await;
    let counts = world.store.run_counts(owner_id).await.unwrap();
    let count = |status, count| RunCount { status, count };
    assert_eq!(
        counts,
        [count(Status::Queued, 2), count(Status::Running, 1)]
    );
    let of = async |status| ids(&runs(&world, owner_id, Some(status), None, 9).await);
    assert_eq!(
        of(Status::Queued).await,
        [later.command_id, queued.command_id]
    );
    assert_eq!(of(Status::Running).await, [running.command_id]);
    assert_eq!(of(Status::Failed).await, []);
    let page = runs(&world, owner_id, Some(Status::Queued), Some(&running), 9).await;
    assert_eq!(ids(&page), [queued.command_id]);
}

pub(super) async fn the_owner_cancels_whatever_an_agent_started<S: Store>(world: World<S>) {
    let ours = world.workspace().await;
    let (owner_id, now) = (ours.owner_id, at(5_000));
    let queued = world.queue(&ours, "key-00001").await;
    let (running, execution_id) = world.start(&ours, "key-00002").await;
    let cancel = |id| world.store.cancel_owned_run(owner_id, id, now);
    let row = cancel(queued.command_id).await.unwrap();
    assert_eq!(row.run.status(), Status::Cancelled);
    assert_eq!(world.read(&queued, now).await, Some(row.clone()));
    assert_eq!(cancel(queued.command_id).await.unwrap(), row, "idempotent");
    let row = cancel(running.command_id).await.unwrap();
    assert_eq!(row.run.status(), Status::Running);
    assert!(row.run.cancel_requested());
    let end = completed(execution_id, "1");
    let (desktop_id, id) = (running.desktop_id, running.command_id);
    let (done, _) = world
        .store
        .complete_run(desktop_id, id, end, now)
        .await
        .unwrap();
    assert_eq!(cancel(id).await.unwrap(), done, "what is over stays");
    assert_ne!(done.run.status(), Status::Queued, "{NO_LONGER_SHARED}");
}

pub(super) async fn the_command_of_another_owner_is_an_unknown_one<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let row = world.queue(&ours, "the-key-of-ours").await;
    let unknown = CommandId::from_bytes([9; 16]);
    let (store, stranger) = (&world.store, theirs.owner_id);
    for id in [row.command_id, unknown] {
        assert_eq!(store.owned_run(stranger, id, START).await.unwrap(), None);
        let cancelled = store.cancel_owned_run(stranger, id, START).await;
        assert_eq!(refusal(cancelled), Refusal::RunNotFound);
        let filter = RunFilter {
            status: None,
            before: Some(id),
        };
        let page = store.owned_runs(stranger, filter, 9, START).await;
        assert_eq!(page.unwrap(), []);
    }
    assert_eq!(runs(&world, stranger, None, None, 9).await, []);
    assert_eq!(store.run_counts(stranger).await.unwrap(), []);
    assert_eq!(world.read(&row, START).await, Some(row));
}

pub(super) async fn the_owner_sees_an_expired_command_before_a_sweep_stores_it<S: Store>(
    world: World<S>,
) {
    let ours = world.workspace().await;
    let row = world.queue(&ours, "key-00001").await;
    let late = at(30 * 86_400_000);
    let store = &world.store;
    let one = store.owned_run(ours.owner_id, row.command_id, late).await;
    let listed = store
        .owned_runs(ours.owner_id, RunFilter::default(), 1, late)
        .await;
    for run in [one.unwrap().unwrap(), listed.unwrap().remove(0)] {
        assert_eq!(run.row.run.status(), Status::Expired);
    }
    assert_eq!(world.read(&row, START).await, Some(row));
}

fn sign_in<S: Store>(world: &World<S>, owner_id: OwnerId, hours: u64) -> NewSignIn {
    NewSignIn {
        sign_in: SignIn {
            id: SignInId::from_bytes(world.id()),
            owner_id,
            user_agent: "A browser".to_owned(),
            signed_in_at: at(hours * 3_600_000),
            expires_at: at((hours + 10) * 3_600_000),
        },
        token_hash: world.token(),
    }
}

async fn found<S: Store>(world: &World<S>, token: TokenHash, hours: u64) -> Option<SignIn> {
    let found = world.store.sign_in_by_token(token, at(hours * 3_600_000));
    found.await.unwrap()
}

pub(super) async fn a_sign_in_counts_until_it_ends_or_its_time_is_over<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let (owner_id, store) = (ours.owner_id, &world.store);
    let [first, second] = [0, 4].map(|hours| sign_in(&world, owner_id, hours));
    for new in [&first, &second] {
        store.add_sign_in(new.clone()).await.unwrap();
    }
    assert_eq!(
        found(&world, first.token_hash, 9).await,
        Some(first.sign_in.clone())
    );
    assert_eq!(found(&world, first.token_hash, 10).await, None);
    assert_eq!(found(&world, world.token(), 9).await, None);
    let signed_in = async |hours: u64| {
        let rows = store.sign_ins(owner_id, at(hours * 3_600_000)).await;
        rows.unwrap()
    };
    let both = [first.sign_in.clone(), second.sign_in.clone()];
    assert_eq!(signed_in(9).await, both);
    assert_eq!(signed_in(10).await, both[1..]);
    let end = |owner_id, id| store.end_sign_in(owner_id, id);
    let id = second.sign_in.id;
    assert!(!end(theirs.owner_id, id).await.unwrap(), "not theirs");
    assert!(end(owner_id, id).await.unwrap());
    assert!(!end(owner_id, id).await.unwrap(), "it is gone");
    assert_eq!(found(&world, second.token_hash, 9).await, None);
    let third = sign_in(&world, owner_id, 10);
    store.add_sign_in(third.clone()).await.unwrap();
    assert_eq!(
        found(&world, first.token_hash, 9).await,
        None,
        "what was over is forgotten, whatever the clock says later"
    );
    assert_eq!(
        seen(&store.sign_ins(owner_id, at(0)).await),
        seen::<Vec<_>>(&Ok(vec![third.sign_in]))
    );
}

pub(super) async fn a_new_password_ends_every_sign_in<S: Store>(world: World<S>) {
    let (store, fresh) = (&world.store, OwnerId::from_bytes(world.id()));
    let owner_id = store.ensure_owner(fresh, START).await.unwrap();
    let theirs = world.workspace().await;
    let password = async || store.password_hash(owner_id).await.unwrap();
    assert_eq!(password().await, None);
    let [ours, other] = [owner_id, theirs.owner_id].map(|id| sign_in(&world, id, 0));
    for hash in [Some("one"), Some("two"), None] {
        for new in [&ours, &other] {
            let again = NewSignIn {
                token_hash: world.token(),
                sign_in: SignIn {
                    id: SignInId::from_bytes(world.id()),
                    ..new.sign_in.clone()
                },
            };
            store.add_sign_in(again).await.unwrap();
        }
        store
            .set_password_hash(owner_id, hash.map(str::to_owned))
            .await
            .unwrap();
        assert_eq!(password().await.as_deref(), hash);
        assert_eq!(store.sign_ins(owner_id, at(1)).await.unwrap(), []);
    }
    let kept = store.sign_ins(theirs.owner_id, at(1)).await.unwrap();
    assert_eq!(kept.len(), 3, "only of that owner");
    assert_eq!(store.password_hash(theirs.owner_id).await.unwrap(), None);
}
