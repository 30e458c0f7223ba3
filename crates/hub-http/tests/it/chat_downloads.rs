//! What a browser or a chat gets when it fetches an uploaded file.

use serde_json::json;

use crate::chat_world::{UPLOAD, Work};
use crate::world::World;

/// Uploads an HTML page under `artifact_id` and `name`.
async fn uploaded(world: &World, work: &Work, artifact_id: &str, name: &str) {
    let file = work.with(json!({"artifact_id": artifact_id, "name": name,
        "media_type": "text/html", "text": "<script>alert(1)</script>"}));
    world.under(work, UPLOAD, file).await.tool();
}

#[tokio::test]
async fn a_file_is_only_ever_saved_never_shown() {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    let base = format!("{}/{}", work.task_id, work.claim_id);
    for (index, (name, disposition)) in [
        (
            "report.html",
            "attachment; filename=\"report.html\"; filename*=UTF-8''report.html",
        ),
        (
            "../../etc/passwd",
            "attachment; filename=\".._.._etc_passwd\"; \
             filename*=UTF-8''..%2F..%2Fetc%2Fpasswd",
        ),
        (
            "a\"; filename=\"b.exe",
            "attachment; filename=\"a__ filename__b.exe\"; \
             filename*=UTF-8''a%22%3B%20filename%3D%22b.exe",
        ),
        (
            "<b>\u{202e}gpj.exe",
            "attachment; filename=\"_b__gpj.exe\"; \
             filename*=UTF-8''%3Cb%3E%E2%80%AEgpj.exe",
        ),
        (
            "보고서.md",
            "attachment; filename=\"___.md\"; \
             filename*=UTF-8''%EB%B3%B4%EA%B3%A0%EC%84%9C.md",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        uploaded(&world, &work, &format!("file-{index}"), name).await;
        let path = format!("{base}/file-{index}");
        let file = world.download(&world.token, &path).await;
        assert_eq!(file.status, 200);
        assert_eq!(file.body, b"<script>alert(1)</script>");
        assert_eq!(file.header("content-disposition"), disposition);
        assert_eq!(file.header("content-type"), "application/octet-stream");
        assert_eq!(file.header("x-content-type-options"), "nosniff");
        let policy = file.header("content-security-policy");
        assert_eq!(policy, "default-src 'none'; sandbox");
        assert_eq!(file.header("cache-control"), "no-store");
        let stored = &world.owned(&work.task_id).await.artifacts[index];
        assert_eq!(stored.name, name, "the owner reads the name as it was");
    }
}

#[tokio::test]
async fn any_artifact_id_can_be_fetched_once_it_is_escaped() {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    let base = format!("{}/{}", work.task_id, work.claim_id);
    for (artifact_id, escaped) in [
        ("a/b", "a%2Fb"),
        ("../../x", "..%2F..%2Fx"),
        ("100 %", "100%20%25"),
        ("a?b#c", "a%3Fb%23c"),
        ("\u{d55c}", "%ED%95%9C"),
        ("<script>", "%3Cscript%3E"),
    ] {
        uploaded(&world, &work, artifact_id, "report.html").await;
        let path = format!("{base}/{escaped}");
        let file = world.download(&world.token, &path).await;
        assert_eq!(file.status, 200, "{artifact_id}");
    }
}

#[tokio::test]
async fn bytes_come_back_as_they_were_sent() {
    let world = World::new().await;
    let work = world.work(&world.link("conversation-1").await).await;
    // 0xff 0x00 0x0d 0x0a 0x80: no text, and nothing to be mended.
    let file = work.with(json!({"artifact_id": "binary", "name": "a.png",
        "media_type": "image/png", "content_base64": "/wANCoA="}));
    let stored = world.under(&work, UPLOAD, file).await.tool();
    assert_eq!(stored["size_bytes"], 5);
    let path = format!("{}/{}/binary", work.task_id, work.claim_id);
    let file = world.download(&world.token, &path).await;
    assert_eq!(file.body, [0xff, 0x00, 0x0d, 0x0a, 0x80]);
    assert_eq!(file.header("content-length"), "5");
}

#[tokio::test]
async fn a_file_stays_readable_whatever_becomes_of_its_task() {
    let (world, hands) = World::timed(1_000).await;
    let chat = world.link("conversation-1").await;
    let works = [
        world.work(&chat).await,
        world.work(&chat).await,
        world.work(&chat).await,
    ];
    for work in &works {
        uploaded(&world, work, "report", "report.html").await;
    }
    world.submit(&works[0], "completed", "4").await.tool();
    world.hub.cancel_task(&works[1].task_id).await.unwrap();
    hands.advance_ms(24 * 3_600_000);
    for work in &works {
        let path = format!("{}/{}/report", work.task_id, work.claim_id);
        assert_eq!(world.download(&world.token, &path).await.status, 200);
    }
}
