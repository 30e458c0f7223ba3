//! Files that chats uploaded, served as downloads only: nothing in them ever runs or shows in a
//! page of the hub.

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use callboard_domain::{Refusal, Scope};
use callboard_store::Store;
use http::{HeaderMap, HeaderValue, header};

use crate::SharedHub;
use crate::access::caller;
use crate::reply::problem;

/// Task, claim and artifact id in the path, or why they could not be read.
type Key = Result<Path<(String, String, String)>, PathRejection>;

/// `GET /api/v1/artifacts/{task_id}/{claim_id}/{artifact_id}`, for the connection whose chat
/// uploaded it.
pub(crate) async fn download<S: Store>(
    State(shared): State<SharedHub<S>>,
    key: Key,
    headers: HeaderMap,
) -> Response {
    let caller = match caller(&shared, &headers, Some(Scope::Read)).await {
        Ok(caller) => caller,
        Err(refused) => return *refused,
    };
    let Ok(Path((task_id, claim_id, artifact_id))) = key else {
        return problem(Refusal::ArtifactNotFound.into());
    };
    let found = shared
        .hub
        .own_artifact(&caller, &task_id, &claim_id, &artifact_id);
    match found.await {
        Ok((artifact, content)) => attachment(&artifact.name, content),
        Err(error) => problem(error.into()),
    }
}

/// `content` as a file to be saved under `name`. The type that its uploader claimed is not passed
/// on, and a browser that shows it all the same shows it in an empty sandbox.
fn attachment(name: &str, content: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    for (header, value) in [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; sandbox",
        ),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(header, HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::from_str(&disposition(name)) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

/// The header's two forms of a name (RFC 6266): ASCII for old readers, UTF-8 for the others.
fn disposition(name: &str) -> String {
    let plain = |character: char| {
        let kept = character.is_ascii_alphanumeric() || " -_.()".contains(character);
        if kept { character } else { '_' }
    };
    let ascii: String = name.chars().map(plain).collect();
    let mut encoded = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_header_or_its_folder() {
        for (name, header) in [
            (
                "Bericht für Müller.md",
                "attachment; filename=\"Bericht f_r M_ller.md\"; \
                 filename*=UTF-8''Bericht%20f%C3%BCr%20M%C3%BCller.md",
            ),
            (
                "../\"; x=\"<b>",
                "attachment; filename=\"..___ x___b_\"; \
                 filename*=UTF-8''..%2F%22%3B%20x%3D%22%3Cb%3E",
            ),
        ] {
            assert_eq!(disposition(name), header);
        }
    }
}
