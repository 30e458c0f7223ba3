//! Linked chats in the world: what their tools are called with, and what the owner does.

use callboard_ambient::Entropy;
use callboard_store::{OwnedTask, Store};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::world::{Answer, MODERN, World};

pub(crate) const LINK: &str = "link_current_chat";
pub(crate) const READ: &str = "read_linked_chat_tasks";
pub(crate) const CLAIM: &str = "claim_linked_chat_task";
pub(crate) const SUBMIT: &str = "submit_linked_chat_result";
pub(crate) const UPLOAD: &str = "upload_linked_chat_artifact";

/// What is said of whatever is not the caller's link.
pub(crate) const NO_LINK: &str = "Chat link not found or access removed";

/// One conversation that linked itself, and the token with which it calls.
#[derive(Debug, Clone)]
pub(crate) struct Chat {
    pub(crate) token: String,
    pub(crate) link_id: String,
}

/// A task under a claim of a chat.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) chat: Chat,
    pub(crate) task_id: String,
    pub(crate) claim_id: String,
}

impl Work {
    /// The arguments of a submit.
    pub(crate) fn result(&self, status: &str, result: &str) -> Value {
        self.with(json!({"status": status, "result": result}))
    }

    /// The arguments of an upload of `text`.
    pub(crate) fn file(&self, artifact_id: &str, text: &str) -> Value {
        self.with(json!({
            "artifact_id": artifact_id, "name": "report.md", "media_type": "text/markdown",
            "text": text,
        }))
    }

    /// `more` beside the three ids that every call under a claim has.
    pub(crate) fn with(&self, more: Value) -> Value {
        let mut arguments = json!({
            "chat_link_id": self.chat.link_id, "task_id": self.task_id, "claim_id": self.claim_id,
        });
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        arguments
    }
}

/// A downloaded file, or why there is none.
#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Download {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

impl<S: Store> World<S> {
    /// Links a chat of the world's connection.
    pub(crate) async fn link(&self, key: &str) -> Chat {
        self.link_as(&self.token, key).await
    }

    pub(crate) async fn link_as(&self, token: &str, key: &str) -> Chat {
        let arguments = self.link_arguments(key);
        let answer = self.call_as(token, MODERN, LINK, arguments).await.tool();
        Chat {
            token: token.to_owned(),
            link_id: answer["chat_link_id"].as_str().unwrap().to_owned(),
        }
    }

    pub(crate) fn link_arguments(&self, key: &str) -> Value {
        json!({"project_id": self.project_id, "label": "Trip to Jeju", "idempotency_key": key})
    }

    /// Assigns `text` to all of `chats`, as the owner does, under a key of its own.
    pub(crate) async fn assign(&self, chats: &[&Chat], text: &str) -> String {
        let links: Vec<_> = chats.iter().map(|chat| chat.link_id.clone()).collect();
        let key = Entropy::system().secret("assign-");
        let assigned = self.hub.assign_task(&links, text, &key).await.unwrap();
        assert!(!assigned.replayed);
        assigned.row.task_id.to_string()
    }

    /// Assigns a task to `chat` alone and claims it.
    pub(crate) async fn work(&self, chat: &Chat) -> Work {
        let task_id = self.assign(&[chat], "What is 2 + 2?").await;
        self.claimed(chat, &task_id).await
    }

    pub(crate) async fn claimed(&self, chat: &Chat, task_id: &str) -> Work {
        let answer = self.claim(chat, task_id).await.tool();
        Work {
            chat: chat.clone(),
            task_id: task_id.to_owned(),
            claim_id: answer["claim_id"].as_str().unwrap().to_owned(),
        }
    }

    pub(crate) async fn read(&self, chat: &Chat) -> Answer {
        let arguments = json!({"chat_link_id": chat.link_id});
        self.call_as(&chat.token, MODERN, READ, arguments).await
    }

    /// The tasks that the chat sees.
    pub(crate) async fn inbox(&self, chat: &Chat) -> Vec<Value> {
        let read = self.read(chat).await.tool();
        read["tasks"].as_array().unwrap().clone()
    }

    pub(crate) async fn claim(&self, chat: &Chat, task_id: &str) -> Answer {
        let arguments = json!({"chat_link_id": chat.link_id, "task_id": task_id});
        self.call_as(&chat.token, MODERN, CLAIM, arguments).await
    }

    pub(crate) async fn submit(&self, work: &Work, status: &str, result: &str) -> Answer {
        self.under(work, SUBMIT, work.result(status, result)).await
    }

    pub(crate) async fn upload(&self, work: &Work, artifact_id: &str, text: &str) -> Answer {
        self.under(work, UPLOAD, work.file(artifact_id, text)).await
    }

    /// A call of the chat that works.
    pub(crate) async fn under(&self, work: &Work, tool: &str, arguments: Value) -> Answer {
        self.call_as(&work.chat.token, MODERN, tool, arguments)
            .await
    }

    /// Downloads what `token` may read at `/api/v1/artifacts/` and `path`.
    pub(crate) async fn download(&self, token: &str, path: &str) -> Download {
        let url = self.url(&format!("/api/v1/artifacts/{path}"));
        let request = self.client.get(url).bearer_auth(token);
        let response = request.send().await.unwrap();
        Download {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.bytes().await.unwrap().to_vec(),
        }
    }

    /// The task as its owner sees it.
    pub(crate) async fn owned(&self, task_id: &str) -> OwnedTask {
        self.hub.task(task_id).await.unwrap()
    }

    /// Status and stored result, as the owner sees them.
    pub(crate) async fn outcome(&self, task_id: &str) -> (String, Option<String>) {
        let task = self.owned(task_id).await.row.task;
        let result = task.outcome().map(|outcome| outcome.result.clone());
        (task.status().to_string(), result)
    }
}

/// Status and result of [`World::outcome`] as literals.
pub(crate) fn ended(status: &str, result: Option<&str>) -> (String, Option<String>) {
    (status.to_owned(), result.map(str::to_owned))
}
