//! Ids that are foreign, unknown, removed or malformed: one answer to the byte.

use callboard_domain::Scope;
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::chat_world::{CLAIM, Chat, NO_LINK, READ, SUBMIT, UPLOAD, Work, ended};
use crate::world::{MODERN, REVISIONS, UNKNOWN, World, send};

/// An answer as a stranger can measure it: status, headers without the date, bytes.
type Seen = (u16, Vec<(String, Vec<u8>)>, Vec<u8>);

fn seen(status: u16, headers: &HeaderMap, body: &[u8]) -> Seen {
    let told = headers.iter().filter(|(name, _)| *name != "date");
    let told = told.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
    (status, told.collect(), body.to_vec())
}

/// What one caller tries to reach: its own removed link, what is foreign, what never was.
struct Strange {
    world: World,
    /// A chat of the caller that works.
    own: Chat,
    /// In this order: foreign, unknown, removed, malformed, empty.
    tries: Vec<Work>,
    /// The foreign work again, which nobody may touch.
    foreign: Work,
}

impl Strange {
    async fn new() -> Self {
        let world = World::new().await;
        let foreign = world.work(&world.link("conversation-1").await).await;
        world.upload(&foreign, "report", "4").await.tool();
        let token = world.connect("ChatGPT", &Scope::ALL).await;
        let own = world.link_as(&token, "conversation-2").await;
        let removed = world.link_as(&token, "conversation-3").await;
        let removed = world.work(&removed).await;
        world.upload(&removed, "report", "4").await.tool();
        let link_id = &removed.chat.link_id;
        world.hub.revoke_chat_link(link_id).await.unwrap();
        let ids = |id: &str| Work {
            chat: Chat {
                token: token.clone(),
                link_id: id.to_owned(),
            },
            task_id: id.to_owned(),
            claim_id: id.to_owned(),
        };
        let mut asked = foreign.clone();
        asked.chat.token = token.clone();
        let long = "x".repeat(10_000);
        let malformed = ["malformed", "", long.as_str()].map(ids);
        let mut tries = vec![asked, ids(UNKNOWN), removed];
        tries.extend(malformed);
        Self {
            world,
            own,
            tries,
            foreign,
        }
    }

    /// Asserts that each of `tries`, called through its own link, is answered `text`.
    async fn assert_alike(&self, tool: &str, text: &str, tries: &[Work]) {
        for revision in REVISIONS {
            let mut answers = Vec::new();
            for work in tries {
                let arguments = match tool {
                    READ => json!({"chat_link_id": work.chat.link_id}),
                    CLAIM => json!({"chat_link_id": work.chat.link_id, "task_id": work.task_id}),
                    SUBMIT => work.result("completed", "5"),
                    _ => work.file("report", "5"),
                };
                let token = &work.chat.token;
                let answer = self.world.call_as(token, revision, tool, arguments).await;
                assert_eq!(answer.tool_error(), text, "{tool} {revision}");
                let body = answer.text.as_bytes();
                answers.push(seen(answer.status.as_u16(), &answer.headers, body));
            }
            answers.dedup();
            assert_eq!(answers.len(), 1, "{tool} {revision}");
        }
    }

    async fn assert_untouched(&self) {
        let task = self.world.owned(&self.foreign.task_id).await;
        let claim = task.row.task.claim().unwrap();
        assert_eq!(claim.id.to_string(), self.foreign.claim_id);
        assert_eq!(task.artifacts.len(), 1);
        let outcome = self.world.outcome(&self.foreign.task_id).await;
        assert_eq!(outcome, ended("claimed", None));
    }
}

#[tokio::test]
async fn a_link_that_is_not_the_callers_is_unknown_to_every_tool() {
    let strange = Strange::new().await;
    for (tool, text) in [
        (READ, NO_LINK),
        (CLAIM, NO_LINK),
        (SUBMIT, "rejected: missing"),
        (UPLOAD, "rejected: missing"),
    ] {
        strange.assert_alike(tool, text, &strange.tries).await;
    }
    strange.assert_untouched().await;
}

#[tokio::test]
async fn a_task_that_is_not_the_chats_is_unknown_to_every_tool() {
    let strange = Strange::new().await;
    // Through a link that works: the tasks of other connections and of other chats.
    let through_own = |work: &Work| Work {
        chat: strange.own.clone(),
        ..work.clone()
    };
    let tries: Vec<_> = strange.tries.iter().map(through_own).collect();
    for (tool, text) in [
        (CLAIM, "not claimable: missing"),
        (SUBMIT, "rejected: missing"),
        (UPLOAD, "rejected: missing"),
    ] {
        strange.assert_alike(tool, text, &tries).await;
    }
    strange.assert_untouched().await;
}

#[tokio::test]
async fn a_claim_id_that_is_not_the_chats_is_a_stale_one() {
    let strange = Strange::new().await;
    let work = strange.world.work(&strange.own).await;
    let with_other_claim = |other: &Work| Work {
        claim_id: other.claim_id.clone(),
        ..work.clone()
    };
    let tries: Vec<_> = strange.tries.iter().map(with_other_claim).collect();
    let stale = "rejected: stale claim, task was re-claimed";
    strange.assert_alike(SUBMIT, stale, &tries).await;
    strange.assert_alike(UPLOAD, stale, &tries).await;
    let done = strange.world.submit(&work, "completed", "4").await.tool();
    assert_eq!(done, json!({"ok": true}));
}

#[tokio::test]
async fn a_file_that_is_not_the_callers_does_not_exist() {
    let strange = Strange::new().await;
    let token = &strange.own.token;
    let path = |work: &Work| format!("{}/{}/report", work.task_id, work.claim_id);
    let [foreign, unknown, removed] = [0, 1, 2].map(|at: usize| path(&strange.tries[at]));
    let mut answers = Vec::new();
    for path in [
        foreign.as_str(),
        &foreign.to_uppercase(),
        &foreign.replace("report", "other"),
        &unknown,
        &removed,
        "a/b/c",
        "%FF/b/c",
        "a/%2e%2e%2f/c%00",
    ] {
        let found = strange.world.download(token, path).await;
        assert_eq!(found.status, 404, "{path}");
        answers.push(seen(found.status, &found.headers, &found.body));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    let body: serde_json::Value = serde_json::from_slice(&answers[0].2).unwrap();
    assert_eq!(body["detail"], "Artifact not found or access removed");
    let own = strange.world.download(&strange.world.token, &foreign).await;
    assert_eq!(own.status, 200);
}

#[tokio::test]
async fn own_ids_in_upper_case_are_the_same_ids() {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    let upper = Work {
        chat: Chat {
            token: work.chat.token.clone(),
            link_id: work.chat.link_id.to_uppercase(),
        },
        task_id: work.task_id.to_uppercase(),
        claim_id: work.claim_id.to_uppercase(),
    };
    let read = world.read(&upper.chat).await.tool();
    assert_eq!(read, world.read(&work.chat).await.tool());
    let claim = world.claim(&upper.chat, &upper.task_id).await.tool();
    assert_eq!(claim["claim_id"], work.claim_id);
    world.upload(&upper, "report", "4").await.tool();
    let replay = world.upload(&work, "report", "4").await.tool();
    assert_eq!(replay["replayed"], true);
    world.submit(&upper, "completed", "4").await.tool();
    let replay = world.submit(&work, "completed", "4").await.tool();
    assert_eq!(replay["replayed"], true);
    let path = format!("{}/{}/report", upper.task_id, upper.claim_id);
    assert_eq!(world.download(&world.token, &path).await.body, b"4");
}

#[tokio::test]
async fn a_revoked_token_is_an_unknown_token() {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    world.upload(&work, "report", "4").await.tool();
    world.hub.revoke_connection("Claude").await.unwrap();
    let unknown = "callboard_token_that_never_was";
    for (tool, arguments) in [
        (READ, json!({"chat_link_id": work.chat.link_id})),
        (SUBMIT, work.result("completed", "4")),
        (UPLOAD, work.file("report", "4")),
    ] {
        let mut answers = Vec::new();
        for token in [world.token.as_str(), unknown] {
            let answer = world.call_as(token, MODERN, tool, arguments.clone()).await;
            assert_eq!(answer.status.as_u16(), 401);
            let body = answer.text.as_bytes();
            answers.push(seen(answer.status.as_u16(), &answer.headers, body));
        }
        assert_eq!(answers[0], answers[1], "{tool}");
    }
    let path = format!("{}/{}/report", work.task_id, work.claim_id);
    let revoked = world.download(&world.token, &path).await;
    let unknown = world.download(unknown, &path).await;
    let seen = [revoked, unknown].map(|it| seen(it.status, &it.headers, &it.body));
    assert_eq!(seen[0].0, 401);
    assert_eq!(seen[0], seen[1]);
    let url = world.url(&format!("/api/v1/artifacts/{path}"));
    let bare = send(world.client.get(url)).await;
    assert_eq!(bare.status.as_u16(), 401);
    assert_eq!(bare.headers["www-authenticate"], "Bearer");
}

#[tokio::test]
async fn each_tool_needs_its_scope() {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    world.upload(&work, "report", "4").await.tool();
    let reader = world.connect("reader", &[Scope::Read]).await;
    let runner = world.connect("runner", &[Scope::Run]).await;
    let look = json!({"chat_link_id": work.chat.link_id});
    let ids = work.with(json!({}));
    for (token, tool, scope) in [
        (&reader, "link_current_chat", "osfoundry:run"),
        (&reader, CLAIM, "osfoundry:run"),
        (&reader, SUBMIT, "osfoundry:run"),
        (&reader, UPLOAD, "osfoundry:run"),
        (&runner, READ, "osfoundry:read"),
    ] {
        let refused = world.call_as(token, MODERN, tool, ids.clone()).await;
        assert_eq!(refused.status.as_u16(), 403, "{tool}");
        let challenge = refused.headers["www-authenticate"].to_str().unwrap();
        assert!(challenge.contains(scope), "{challenge}");
    }
    let answer = world.call_as(&reader, MODERN, READ, look).await;
    assert_eq!(answer.tool_error(), NO_LINK);
    let path = format!("{}/{}/report", work.task_id, work.claim_id);
    assert_eq!(world.download(&runner, &path).await.status, 403);
    assert_eq!(world.download(&reader, &path).await.status, 404);
}
