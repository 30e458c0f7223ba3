//! Large requests: of a stranger none, of the others a few at a time, and small ones never wait.

use callboard_domain::limits::{ARTIFACT_BYTES_MAX, LARGE_BODIES_MAX, OPEN_BODY_BYTES_MAX};
use reqwest::StatusCode;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::chat_world::UPLOAD;
use crate::world::{MODERN, World, send};

/// A call that has sent its head and not its body.
async fn begun(world: &World, authorization: &str, body_bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\n{authorization}Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {body_bytes}\r\n\r\n{{",
        world.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_stranger_with_a_large_body_is_refused_while_he_still_sends() {
    let world = World::new().await;
    let invalid = "Authorization: Bearer cb_0000\r\n";
    for (authorization, body_bytes) in [("", OPEN_BODY_BYTES_MAX + 1), (invalid, 10)] {
        let mut stream = begun(&world, authorization, body_bytes).await;
        // Less than was announced: an answer that waits for the rest never comes.
        if authorization.is_empty() {
            stream
                .write_all(&vec![b' '; OPEN_BODY_BYTES_MAX])
                .await
                .unwrap();
        }
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 401", "{authorization:?}");
    }
    let padded = json!({"_meta": {"padding": "a".repeat(OPEN_BODY_BYTES_MAX / 2)}});
    let listed = send(world.request(MODERN, "tools/list", padded)).await;
    assert_eq!(listed.status, StatusCode::OK);
}

#[tokio::test]
async fn large_requests_wait_for_a_place_and_small_ones_do_not() {
    let world = World::new().await;
    let authorization = format!("Authorization: Bearer {}\r\n", world.token);
    let mut slow = Vec::new();
    for _ in 0..LARGE_BODIES_MAX {
        slow.push(begun(&world, &authorization, ARTIFACT_BYTES_MAX).await);
    }
    let chat = world.link("conversation-1").await;
    let work = world.work(&chat).await;
    let text = "a".repeat(ARTIFACT_BYTES_MAX);
    let upload = world.call_as(&chat.token, MODERN, UPLOAD, work.file("report", &text));
    let mut upload = std::pin::pin!(upload);
    let read = world.read(&chat);
    tokio::select! {
        biased;
        answer = &mut upload => panic!("there is no place: {answer:?}"),
        read = read => assert_eq!(read.tool()["tasks"][0]["status"], "claimed"),
    }
    slow.pop();
    assert_eq!(upload.await.tool()["size_bytes"], ARTIFACT_BYTES_MAX);
}
