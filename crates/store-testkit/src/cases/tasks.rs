//! Tasks as their owner sees them: assigning, listing, taking back, expiry.

use std::slice;

use callboard_domain::limits::{
    OPEN_TASKS_PER_CHAT_MAX, TASK_CANDIDATES_MAX, TASK_EXPIRY_MS, TASK_TEXT_UTF16_MAX,
};
use callboard_domain::linked_task::{Ended, State, Task, Verdict};
use callboard_domain::{ChatLinkId, Digest, OwnerId, Refusal, TaskId, utf16_len};
use callboard_store::{
    AssignTask, AssignedTask, Candidate, LinkKey, OwnedTask, Store, StoreError, TaskRow,
};

use crate::all_at_once;
use crate::chat_world::{LEASE_MS, cancelled, moved, outcome};
use crate::world::{Workspace, World, at, refusal, seen};

/// Everything that the workspace's owner sees.
async fn tasks<S: Store>(world: &World<S>, workspace: &Workspace, after_ms: u64) -> Vec<TaskRow> {
    let tasks = world.store.tasks(workspace.owner_id, 500, at(after_ms));
    let rows = tasks.await.unwrap().into_iter().map(|task| task.row);
    rows.collect()
}

pub(super) async fn an_assigned_task_is_read_back_whole<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let mut chats = vec![world.chat_elsewhere(&workspace, "<i>Codex</i>").await];
    for number in 1..TASK_CANDIDATES_MAX {
        chats.push(world.chat(&workspace, &format!("chat {number}")).await);
    }
    // Neither in the order of their making nor in that of their ids.
    chats.rotate_left(3);
    chats.swap(0, 1);
    let request = AssignTask {
        now: at(5),
        ..world.assignment(workspace.owner_id, &chats, "Sum up the year")
    };
    let task = Task::assigned(request.request, request.candidates.clone(), at(5));
    let row = TaskRow {
        task_id: request.task_id,
        project_id: workspace.project.id,
        text: "Sum up the year".to_owned(),
        task,
    };
    let assigned = world.store.assign_task(request).await.unwrap();
    let fresh = AssignedTask {
        row: row.clone(),
        replayed: false,
    };
    assert_eq!(assigned, fresh);
    assert_eq!(row.task.expires_at, at(5).plus_ms(TASK_EXPIRY_MS));

    let links = world.store.chat_links(workspace.owner_id).await.unwrap();
    let candidate = |chat: &LinkKey| {
        let found = links.iter().find(|found| found.link.id == chat.link_id);
        let found = found.unwrap();
        Candidate {
            link_id: chat.link_id,
            label: found.link.label.clone(),
            connection_name: found.connection_name.clone(),
        }
    };
    let expected = OwnedTask {
        row: row.clone(),
        project_name: "Home".to_owned(),
        candidates: chats.iter().map(candidate).collect(),
        artifacts: vec![],
    };
    assert_eq!(world.owned(&workspace, &row, 6).await, expected);
    let listed = world.store.tasks(workspace.owner_id, 1, at(6)).await;
    assert_eq!(listed.unwrap(), [expected]);
    for chat in chats {
        assert_eq!(world.inbox(chat, 6).await, slice::from_ref(&row));
    }
}

pub(super) async fn texts_of_tasks_come_back_to_the_letter<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chat = world.chat(&workspace, "Tax").await;
    let longest = "\u{1F600}".repeat(TASK_TEXT_UTF16_MAX / 2);
    assert_eq!(utf16_len(&longest), TASK_TEXT_UTF16_MAX);
    for text in [
        longest.as_str(),
        "\u{1}\u{2}\t\r\n\n\u{1b}[31m\u{7f}\u{85}\u{2028}\u{feff}\u{ffff}",
        " '; DROP TABLE tasks; -- \" \\ % _ ",
        "<script>alert(1)</script>",
        "e\u{301} is not \u{e9}",
    ] {
        let row = world.assign(&workspace, &[chat], text).await;
        assert_eq!(row.text, text);
        assert_eq!(world.task(&workspace, &row, 1).await, row);
        let (claimed, claim) = world.claimed(chat, &row, 2).await;
        assert_eq!(claimed.text, text);
        let result = text.repeat(2);
        let stored = world.submit(chat, &row, claim.id, &result, 3).await;
        let ended = outcome(claim, Verdict::Completed, &result, 3);
        let expected = moved(&row, State::Completed(claim, ended), 3);
        assert_eq!(stored.unwrap(), (expected.clone(), false));
        assert_eq!(world.task(&workspace, &row, 4).await, expected);
    }
}

pub(super) async fn the_same_key_is_the_same_task_for_ever<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chat = world.chat(&workspace, "Tax").await;
    let row = world.assign(&workspace, &[chat], "Sum it up").await;
    let again = async |after_ms| {
        let request = AssignTask {
            now: at(after_ms),
            ..world.assignment(workspace.owner_id, &[chat], "Sum it up")
        };
        let AssignedTask { row, replayed } = world.store.assign_task(request).await.unwrap();
        assert!(replayed);
        row
    };
    assert_eq!(again(1).await, row);
    let expired = State::Expired {
        finished_at: row.task.expires_at,
    };
    let expired = moved(&row, expired, TASK_EXPIRY_MS);
    assert_eq!(again(TASK_EXPIRY_MS + 1).await, expired);
    let (claimed, claim) = world.claimed(chat, &row, 2).await;
    assert_eq!(again(3).await, claimed);
    let stored = world.submit(chat, &row, claim.id, "4", 4).await;
    let completed = stored.unwrap().0;
    for after_ms in [5, TASK_EXPIRY_MS, 30 * TASK_EXPIRY_MS] {
        assert_eq!(again(after_ms).await, completed);
    }
    world.revoke_chat(&workspace, chat, 6).await;
    assert_eq!(again(7).await, completed);
    assert_eq!(tasks(&world, &workspace, 8).await, [completed]);
}

pub(super) async fn the_key_of_a_task_is_refused_for_another_assignment<S: Store>(world: World<S>) {
    let (workspace, theirs) = (world.workspace().await, world.workspace().await);
    let chat = world.chat(&workspace, "Tax").await;
    let row = world.assign(&workspace, &[chat], "Sum it up").await;
    let other = || AssignTask {
        request: Digest::of(&[b"other"]),
        ..world.assignment(workspace.owner_id, &[chat], "Sum it up")
    };
    let refused = world.store.assign_task(other()).await;
    assert_eq!(refusal(refused), Refusal::TaskKeyReused);
    let row = world.cancel(&workspace, &row, 1).await;
    let refused = world.store.assign_task(other()).await;
    assert_eq!(refusal(refused), Refusal::TaskKeyReused);
    assert_eq!(tasks(&world, &workspace, 2).await, slice::from_ref(&row));

    let neighbour = world.chat(&theirs, "Tax").await;
    let foreign = world.assign(&theirs, &[neighbour], "Sum it up").await;
    assert_eq!(tasks(&world, &theirs, 2).await, [foreign]);
    assert_eq!(tasks(&world, &workspace, 2).await, [row]);
}

pub(super) async fn a_candidate_is_a_live_link_of_the_owner<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let live = world.chat(&ours, "live").await;
    let foreign = world.chat(&theirs, "foreign").await;
    let revoked = world.chat(&ours, "revoked").await;
    world.revoke_chat(&ours, revoked, 1).await;
    let of_revoked = world.chat_elsewhere(&ours, "Codex").await;
    let gone = world
        .store
        .revoke_connection(ours.owner_id, "Codex".to_owned(), at(1));
    gone.await.unwrap().unwrap();
    let unknown = LinkKey {
        link_id: ChatLinkId::from_bytes([9; 16]),
        ..live
    };
    let candidates: [&[LinkKey]; 7] = [
        &[],
        &[unknown],
        &[foreign],
        &[revoked],
        &[of_revoked],
        &[live, foreign],
        &[revoked, live],
    ];
    for candidates in candidates {
        let request = world.assignment(ours.owner_id, candidates, "Sum it up");
        let refused = world.store.assign_task(request).await;
        assert_eq!(refusal(refused), Refusal::ChatLinkNotFound);
    }
    assert_eq!(tasks(&world, &ours, 2).await, []);
    let row = world.assign(&ours, &[live], "Sum it up").await;
    let known = world.assignment(ours.owner_id, &[unknown], "Sum it up");
    let known = world.store.assign_task(known).await.unwrap();
    assert_eq!(
        known,
        AssignedTask {
            row,
            replayed: true
        },
        "the key and the digest alone tell a replay"
    );
}

pub(super) async fn candidates_of_two_projects_are_refused<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let work = world.project(workspace.owner_id, "Work").await;
    let added = [work.id, workspace.project.id];
    let (both, _) = world.connection(workspace.owner_id, "Codex", &added).await;
    let home = world.chat_of(both.id, workspace.project.id, "home").await;
    let work = world.chat_of(both.id, work.id, "work").await;
    let unknown = LinkKey {
        link_id: ChatLinkId::from_bytes([9; 16]),
        ..home
    };
    let refused = async |chats: &[LinkKey]| {
        let request = world.assignment(workspace.owner_id, chats, "Sum it up");
        refusal(world.store.assign_task(request).await)
    };
    assert_eq!(refused(&[home, work]).await, Refusal::CandidatesApart);
    assert_eq!(
        refused(&[home, work, unknown]).await,
        Refusal::ChatLinkNotFound,
        "what is unknown says nothing of its project"
    );
    assert_eq!(tasks(&world, &workspace, 1).await, []);
    let row = world.assign(&workspace, &[work], "Sum it up").await;
    assert_eq!(row.project_id, added[0]);
    let owned = world.owned(&workspace, &row, 1).await;
    assert_eq!(owned.project_name, "Work");
}

pub(super) async fn a_chat_takes_a_thousand_open_tasks<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let full = world.chat(&workspace, "full").await;
    let free = world.chat(&workspace, "free").await;
    let texts = (0..OPEN_TASKS_PER_CHAT_MAX).map(|number| format!("task {number}"));
    let assigned = texts.map(async |text| world.assign(&workspace, &[full], &text).await);
    let rows = all_at_once(assigned).await;
    let try_more = async |chats: &[LinkKey], text: &str| {
        let request = world.assignment(workspace.owner_id, chats, text);
        world.store.assign_task(request).await
    };
    let too_many = async |chats: &[LinkKey]| {
        let refused = try_more(chats, "one more").await;
        assert_eq!(refusal(refused), Refusal::TooManyTasks);
    };
    too_many(&[full]).await;
    too_many(&[free, full]).await;
    assert!(try_more(&[full], "task 7").await.unwrap().replayed);
    world.claimed(full, &rows[0], 1).await;
    too_many(&[full]).await;
    world.cancel(&workspace, &rows[0], 2).await;
    assert!(!try_more(&[free, full], "one more").await.unwrap().replayed);
    let refused = try_more(&[full], "and one more").await;
    assert_eq!(refusal(refused), Refusal::TooManyTasks);
    world.assign(&workspace, &[free], "for the other").await;
}

pub(super) async fn tasks_come_latest_first_up_to_the_limit<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let (chat, foreign) = (
        world.chat(&ours, "Tax").await,
        world.chat(&theirs, "Tax").await,
    );
    let mut expected = Vec::new();
    // The wall clock is set back before the second.
    for (text, after_ms) in [("zebra", 900), ("ant", 10), ("bee", 20)] {
        let request = AssignTask {
            now: at(after_ms),
            ..world.assignment(ours.owner_id, &[chat], text)
        };
        let assigned = world.store.assign_task(request).await.unwrap();
        expected.insert(0, assigned.row);
        world.assign(&theirs, &[foreign], text).await;
    }
    assert_eq!(tasks(&world, &ours, 1).await, expected);
    for limit in 0..3 {
        let some = world
            .store
            .tasks(ours.owner_id, limit, at(1))
            .await
            .unwrap();
        assert!(some.iter().map(|task| &task.row).eq(&expected[..limit]));
    }
    let nobody = OwnerId::from_bytes([9; 16]);
    assert_eq!(world.store.tasks(nobody, 9, at(1)).await.unwrap(), []);
}

pub(super) async fn the_task_of_another_owner_is_an_unknown_one<S: Store>(world: World<S>) {
    let (ours, theirs) = (world.workspace().await, world.workspace().await);
    let chat = world.chat(&ours, "Tax").await;
    let row = world.assign(&ours, &[chat], "Sum it up").await;
    let unknown = TaskId::from_bytes([9; 16]);
    for (owner_id, task_id) in [(theirs.owner_id, row.task_id), (ours.owner_id, unknown)] {
        let found = world.store.task(owner_id, task_id, at(1)).await;
        assert_eq!(found.unwrap(), None);
        let refused = world.store.cancel_task(owner_id, task_id, at(1)).await;
        assert_eq!(seen(&refused), "Err(Refused(TaskNotFound))");
    }
    assert_eq!(world.task(&ours, &row, 1).await, row);
}

pub(super) async fn a_cancelled_task_is_over_at_once<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chats = [
        world.chat(&workspace, "Tax").await,
        world.chat(&workspace, "Garden").await,
    ];
    let over = Refusal::SubmitOver(Ended::Cancelled);
    let waiting = world.assign(&workspace, &chats, "Sum it up").await;
    let taken = world.assign(&workspace, &chats, "Sum it down").await;
    let claim = world.claimed(chats[0], &taken, 1).await.1;
    for row in [waiting, taken] {
        let expected = moved(&row, cancelled(2), 2);
        assert_eq!(world.cancel(&workspace, &row, 2).await, expected);
        for after_ms in [2, 9, LEASE_MS, 2 * TASK_EXPIRY_MS] {
            assert_eq!(world.cancel(&workspace, &row, after_ms).await, expected);
        }
        let refused = world.claim(chats[0], &row, 3).await;
        assert_eq!(refusal(refused), Refusal::ClaimOver(Ended::Cancelled));
        let refused = world.submit(chats[0], &row, claim.id, "done", 3).await;
        assert_eq!(refusal(refused), over);
        assert_eq!(world.task(&workspace, &row, 4).await, expected);
    }
}

pub(super) async fn cancelling_what_is_over_changes_nothing<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chat = world.chat(&workspace, "Tax").await;
    for verdict in [Verdict::Completed, Verdict::Failed] {
        let row = world.assign(&workspace, &[chat], verdict.as_str()).await;
        let claim = world.claimed(chat, &row, 1).await.1;
        let (task_id, result) = (row.task_id, "4".to_owned());
        let stored = world
            .store
            .submit_task(chat, task_id, claim.id, verdict, result, at(2));
        let over = stored.await.unwrap().0;
        for after_ms in [2, 3, TASK_EXPIRY_MS] {
            assert_eq!(world.cancel(&workspace, &row, after_ms).await, over);
        }
    }
    let row = world.assign(&workspace, &[chat], "expires").await;
    let finished_at = at(TASK_EXPIRY_MS);
    let expired = moved(&row, State::Expired { finished_at }, TASK_EXPIRY_MS);
    let told = world.cancel(&workspace, &row, TASK_EXPIRY_MS).await;
    assert_eq!(told, expired);
    assert_eq!(
        world.task(&workspace, &row, 1).await,
        expired,
        "it is stored, whatever the clock says now"
    );
}

pub(super) async fn a_task_expires_after_a_day_to_the_millisecond<S: Store>(world: World<S>) {
    let workspace = world.workspace().await;
    let chats = [
        world.chat(&workspace, "Tax").await,
        world.chat(&workspace, "Garden").await,
    ];
    let waiting = world.assign(&workspace, &chats, "waits").await;
    let alone = world.assign(&workspace, &chats[..1], "is claimed").await;
    let (claimed, claim) = world.claimed(chats[0], &alone, 1).await;
    let before = TASK_EXPIRY_MS - 1;
    let open = [claimed.clone(), waiting.clone()];
    assert_eq!(tasks(&world, &workspace, before).await, open);
    assert_eq!(world.inbox(chats[0], before).await, open);

    let finished_at = at(TASK_EXPIRY_MS);
    let expired = |row| moved(row, State::Expired { finished_at }, TASK_EXPIRY_MS);
    let both = [expired(&alone), expired(&waiting)];
    for after_ms in [TASK_EXPIRY_MS, 9 * TASK_EXPIRY_MS] {
        assert_eq!(tasks(&world, &workspace, after_ms).await, both);
        assert_eq!(world.inbox(chats[0], after_ms).await, both);
        assert_eq!(world.task(&workspace, &waiting, after_ms).await, both[1]);
        let refused = world.claim(chats[1], &waiting, after_ms).await;
        assert_eq!(refusal(refused), Refusal::ClaimOver(Ended::Expired));
        let refused = world
            .submit(chats[0], &alone, claim.id, "4", after_ms)
            .await;
        assert_eq!(refusal(refused), Refusal::SubmitOver(Ended::Expired));
    }
    assert_eq!(
        tasks(&world, &workspace, before).await,
        open,
        "neither a read nor a refusal stores what time caused"
    );
    let late: Result<_, StoreError> = world.submit(chats[0], &alone, claim.id, "4", before).await;
    assert!(late.is_ok(), "{late:?}");
}
