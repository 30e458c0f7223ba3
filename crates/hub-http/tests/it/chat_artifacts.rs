//! Files under a claim: how large, of which kind, how often, and when no longer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use callboard_domain::limits::{ARTIFACT_BYTES_MAX, BODY_BYTES_MAX};
use serde_json::{Value, json};

use crate::chat_world::{CLAIM, UPLOAD, Work, ended};
use crate::world::{MODERN, World};

const TOO_LARGE: &str = "must be at most 5 MB (5,242,880 bytes) of content.";
const MEDIA_TYPES: &str = "`media_type` must be text/…, image/…, audio/…, video/…, or a document, \
                           data or archive type such as application/pdf, application/json or \
                           application/zip. Scripts, macros and programs are not taken.";

async fn working() -> (World, Work) {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    (world, work)
}

/// The usual upload with some arguments changed; null leaves one out.
fn changed(work: &Work, changes: Value) -> Value {
    let mut arguments = work.file("report", "4");
    for (name, value) in changes.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    arguments
}

/// Asserts that the upload is refused in those words and that nothing became of it.
async fn assert_refused(world: &World, work: &Work, arguments: Value, words: &str) {
    let before = world.owned(&work.task_id).await;
    let answer = world.under(work, UPLOAD, arguments).await;
    assert_eq!(answer.tool_error(), words);
    assert_eq!(world.owned(&work.task_id).await, before, "{words}");
}

#[tokio::test]
async fn five_mebibytes_fit_in_base64_and_as_text_and_one_byte_more_does_not() {
    let (world, work) = working().await;
    // No two lines alike, so that a part in the wrong place shows.
    let bytes: Vec<u8> = (0..ARTIFACT_BYTES_MAX / 8)
        .flat_map(|line| line.to_be_bytes())
        .collect();
    assert_eq!(bytes.len(), 5 * 1_024 * 1_024);
    let mut more = bytes.clone();
    more.push(0);
    let base64 = |bytes: &[u8]| {
        changed(
            &work,
            json!({"artifact_id": "binary", "text": null, "media_type": "application/zip",
                "content_base64": STANDARD.encode(bytes)}),
        )
    };
    let words = format!("`content_base64` {TOO_LARGE}");
    assert_refused(&world, &work, base64(&more), &words).await;
    let stored = world.under(&work, UPLOAD, base64(&bytes)).await.tool();
    assert_eq!(stored["size_bytes"], json!(ARTIFACT_BYTES_MAX));
    let again = world.under(&work, UPLOAD, base64(&bytes)).await.tool();
    assert_eq!(again["replayed"], true);
    let path = format!("{}/{}/binary", work.task_id, work.claim_id);
    assert!(world.download(&world.token, &path).await.body == bytes);

    let text = "\u{e9}".repeat(ARTIFACT_BYTES_MAX / 2);
    let longer = changed(&work, json!({"text": format!("{text}a")}));
    assert_refused(&world, &work, longer, &format!("`text` {TOO_LARGE}")).await;
    let stored = world.upload(&work, "report", &text).await.tool();
    assert_eq!(stored["size_bytes"], json!(ARTIFACT_BYTES_MAX));
}

#[tokio::test]
async fn a_request_beyond_eight_mebibytes_is_refused_before_it_is_read() {
    let (world, work) = working().await;
    let huge = "a".repeat(BODY_BYTES_MAX);
    let answer = world.upload(&work, "report", &huge).await;
    assert_eq!(answer.status.as_u16(), 413);
    assert_eq!(answer.error_code(), -32_600);
    assert!(world.owned(&work.task_id).await.artifacts.is_empty());
    world.submit(&work, "completed", "4").await.tool();
}

#[tokio::test]
async fn the_content_comes_in_one_of_two_ways() {
    let (world, work) = working().await;
    for (changes, words) in [
        (
            json!({"content_base64": "NA=="}),
            "`content_base64` must be left out where `text` is given.",
        ),
        (
            json!({"text": "", "content_base64": ""}),
            "`content_base64` must be left out where `text` is given.",
        ),
        (
            json!({"text": null}),
            "`text` is required: the content of a text file, or `content_base64` for another.",
        ),
        (
            json!({"text": null, "content_base64": null}),
            "`text` is required: the content of a text file, or `content_base64` for another.",
        ),
        (
            json!({"text": null, "content_base64": "a*b"}),
            "`content_base64` must be base64 of the file's bytes.",
        ),
        (
            json!({"text": null, "content_base64": "abcde"}),
            "`content_base64` must be base64 of the file's bytes.",
        ),
        (
            json!({"text": null, "content_base64": "data:text/plain;base64,NA=="}),
            "`content_base64` must be base64 of the file's bytes.",
        ),
        (
            json!({"text": 4}),
            "`text` must be text of at most 5242880 characters.",
        ),
        (
            json!({"encoding": "base64"}),
            "There is no argument `encoding`. This tool takes `chat_link_id`, `task_id`, \
             `claim_id`, `artifact_id`, `name`, `media_type`, `text`, `content_base64`.",
        ),
    ] {
        assert_refused(&world, &work, changed(&work, changes), words).await;
    }
    let null = changed(&work, json!({"content_base64": null}));
    let first = world.under(&work, UPLOAD, null).await.tool();
    assert_eq!(first["ok"], true);
    // The same bytes in another writing are the same content.
    for written in ["NA==", "NA", "N\r\nA=="] {
        let same = changed(&work, json!({"text": null, "content_base64": written}));
        let again = world.under(&work, UPLOAD, same).await.tool();
        assert_eq!(again["replayed"], true, "{written}");
    }
    let empty = changed(&work, json!({"artifact_id": "empty", "text": ""}));
    let empty = world.under(&work, UPLOAD, empty).await.tool();
    assert_eq!(empty["size_bytes"], 0);
}

#[tokio::test]
async fn documents_are_taken_and_programs_are_not() {
    let (world, work) = working().await;
    for media_type in [
        "application/octet-stream",
        "application/x-msdownload",
        "application/javascript",
        "application/vnd.microsoft.portable-executable",
        "multipart/form-data",
        "text",
        "/",
        "text/",
        "text/html\r\nSet-Cookie: a=b",
        "text/<script>",
        " ",
    ] {
        let wrong = changed(&work, json!({"media_type": media_type}));
        assert_refused(&world, &work, wrong, MEDIA_TYPES).await;
    }
    let long = "`media_type` must be text of 1 to 100 characters.";
    for media_type in ["", &format!("text/{}", "a".repeat(96))] {
        let wrong = changed(&work, json!({"media_type": media_type}));
        assert_refused(&world, &work, wrong, long).await;
    }
    for (index, media_type) in [
        "text/html",
        "text/markdown; charset=utf-8",
        "IMAGE/PNG",
        "image/svg+xml",
        "audio/mpeg",
        "video/mp4",
        "application/json",
        "application/pdf",
        "application/zip",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("file-{index}");
        let fine = changed(&work, json!({"artifact_id": id, "media_type": media_type}));
        world.under(&work, UPLOAD, fine).await.tool();
    }
}

#[tokio::test]
async fn an_artifact_id_holds_one_content() {
    let (world, work) = working().await;
    world.upload(&work, "report", "4").await.tool();
    let other = "rejected: this artifact_id holds other content, use a new artifact_id";
    assert_refused(&world, &work, work.file("report", "5"), other).await;
    assert_refused(&world, &work, work.file("report", ""), other).await;
    world.upload(&work, "Report", "5").await.tool();
    let bound = "`artifact_id` must be text of 1 to 128 characters.";
    for id in [String::new(), "a".repeat(129)] {
        assert_refused(&world, &work, work.file(&id, "4"), bound).await;
    }
    let longest = "\u{1F600}".repeat(128);
    world.upload(&work, &longest, "4").await.tool();
    world.submit(&work, "completed", "4").await.tool();
    // What was stored is told again; nothing more is stored.
    let replay = world.upload(&work, "report", "4").await.tool();
    assert_eq!(replay["replayed"], true);
    let over = "rejected: task is completed";
    for (artifact_id, text) in [("report", "5"), ("new", "4")] {
        assert_refused(&world, &work, work.file(artifact_id, text), over).await;
    }
}

#[tokio::test]
async fn a_claim_takes_twenty_files() {
    let (world, work) = working().await;
    for index in 0..20 {
        world
            .upload(&work, &format!("file-{index}"), "4")
            .await
            .tool();
    }
    let full = "rejected: a claim takes at most 20 artifacts, a task at most 100";
    assert_refused(&world, &work, work.file("file-20", "4"), full).await;
    let replay = world.upload(&work, "file-7", "4").await.tool();
    assert_eq!(replay["replayed"], true);
    world.submit(&work, "completed", "4").await.tool();
}

#[tokio::test]
async fn a_file_name_is_one_line_of_at_most_200_units() {
    let (world, work) = working().await;
    let bound = "`name` must be text of 1 to 200 characters.";
    let line = "`name` has 1 to 200 characters and no line breaks or other control characters.";
    for (name, words) in [
        (String::new(), bound),
        ("a".repeat(201), bound),
        ("\u{1F600}".repeat(100) + "a", bound),
        ("  ".to_owned(), line),
        ("report\r\nSet-Cookie: a=b".to_owned(), line),
        ("report\0.md".to_owned(), line),
        ("report\u{2028}.md".to_owned(), line),
    ] {
        let wrong = changed(&work, json!({"name": name}));
        assert_refused(&world, &work, wrong, words).await;
    }
    let id =
        "`artifact_id` has no line breaks or other control characters, and is not `.` or `..`.";
    for artifact_id in [".", "..", "a\nb", "a\u{2028}b", "\u{7f}"] {
        let wrong = changed(&work, json!({"artifact_id": artifact_id}));
        assert_refused(&world, &work, wrong, id).await;
    }
    let longest = changed(&work, json!({"name": "\u{1F600}".repeat(100)}));
    world.under(&work, UPLOAD, longest).await.tool();
}

#[tokio::test]
async fn a_file_needs_a_live_claim_of_its_own_chat() {
    let (world, hands) = World::timed(1_000).await;
    let first = world.link("conversation-1").await;
    let second = world.link("conversation-2").await;
    let task_id = world.assign(&[&first, &second], "What is 2 + 2?").await;
    let late = world.claimed(&first, &task_id).await;
    world.upload(&late, "early", "4").await.tool();
    hands.advance_ms(1_000);
    let lapsed = "rejected: claim lapsed, claim the task again";
    assert_refused(&world, &late, late.file("late", "5"), lapsed).await;
    let current = world.claimed(&second, &task_id).await;
    let stale = "rejected: stale claim, task was re-claimed";
    for artifact_id in ["late", "early"] {
        assert_refused(&world, &late, late.file(artifact_id, "5"), stale).await;
    }
    // A retry of what was stored in time still finds it.
    let replay = world.upload(&late, "early", "4").await.tool();
    assert_eq!(replay["replayed"], true);
    let borrowed = Work {
        chat: first.clone(),
        ..current.clone()
    };
    assert_refused(&world, &borrowed, borrowed.file("late", "5"), stale).await;
    // Each claim has files of its own.
    let other = world.upload(&current, "early", "5").await.tool();
    assert_eq!(other.get("replayed"), None);
    world.hub.cancel_task(&task_id).await.unwrap();
    let cancelled = "rejected: task is cancelled";
    assert_refused(&world, &current, current.file("late", "5"), cancelled).await;
    let ids = json!({"chat_link_id": second.link_id, "task_id": task_id});
    let claim = world.call(MODERN, CLAIM, ids).await.tool_error();
    assert_eq!(claim, "not claimable: cancelled");
    assert_eq!(world.outcome(&task_id).await, ended("cancelled", None));
    assert_eq!(world.owned(&task_id).await.artifacts.len(), 2);
}
