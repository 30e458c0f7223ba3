//! The other half of the demo: tasks for chats that nobody can push.

use std::time::Duration;

use callboard_wire::tools::{
    claim_linked_chat_task, link_current_chat, list_projects, read_linked_chat_tasks,
    submit_linked_chat_result,
};
use serde_json::{Value, json};

use super::link::Fault;
use super::stage::{self, Stage};
use super::{Steps, demand};
use crate::chats::{ChatAnswer, ChatRequest, asked};
use crate::client::{CallError, Chat, fresh_key};
use crate::failure::Failure;

/// How often the second chat tries to take over.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// Two linked conversations, each of a connected agent of its own.
struct Pair<'a> {
    stage: &'a Stage,
    first: Conversation<'a>,
    second: Conversation<'a>,
}

struct Conversation<'a> {
    chat: &'a Chat,
    link_id: String,
}

/// Plays the steps of the chats.
pub(super) async fn play(stage: &Stage, steps: &mut Steps<'_>) -> Result<(), Failure> {
    let pair = Pair {
        stage,
        first: Conversation::link(stage.chat(), "Trip planning").await?,
        second: Conversation::link(stage.second_chat(), "Weekly report").await?,
    };
    let task_id = steps
        .value(
            "A task for a chat: assigned twice with one key.",
            assigned_twice(&pair),
        )
        .await?;
    let winner = steps
        .value("Two chats claim it at once.", both_claim(&pair, &task_id))
        .await?;
    let (conversation, claim_id) = winner;
    steps
        .step(
            "The winner answers; the reply is lost; again.",
            lost_reply(&pair, conversation, &task_id, &claim_id),
        )
        .await?;
    steps
        .step(
            "A chat falls silent; another takes its task over.",
            taken_over(&pair),
        )
        .await?;
    steps
        .step(
            "The owner takes a task back; its answer comes late.",
            taken_back(&pair),
        )
        .await
}

impl<'a> Conversation<'a> {
    async fn link(chat: &'a Chat, label: &str) -> Result<Self, Failure> {
        let listed: list_projects::Answer = chat.ask("list_projects", json!({})).await?;
        let home = listed.projects.first();
        let home = home.ok_or_else(|| Failure::failed("no project is listed"))?;
        let call = json!({
            "project_id": home.project_id.to_string(),
            "label": label,
            "idempotency_key": fresh_key(),
        });
        let linked: link_current_chat::Answer = chat.ask("link_current_chat", call).await?;
        let link_id = linked.chat_link_id.to_string();
        Ok(Self { chat, link_id })
    }

    /// How many tasks wait.
    async fn waiting(&self) -> Result<usize, Failure> {
        let call = json!({"chat_link_id": self.link_id});
        let asked = self.chat.ask("read_linked_chat_tasks", call).await;
        let inbox: read_linked_chat_tasks::Answer = asked?;
        let queued = inbox.tasks.iter().filter(|task| task.status == "queued");
        Ok(queued.count())
    }

    /// The claim id, or the sentence that refuses it.
    async fn claim(&self, task_id: &str) -> Result<Result<String, String>, Failure> {
        let call = json!({"chat_link_id": self.link_id, "task_id": task_id});
        match self.chat.call("claim_linked_chat_task", call).await {
            Ok(text) => {
                let claimed: claim_linked_chat_task::Answer =
                    serde_json::from_str(&text).map_err(|error| {
                        Failure::failed(format!("a claim answered with {text:?}: {error}"))
                    })?;
                Ok(Ok(claimed.claim_id.to_string()))
            }
            Err(CallError::Refused(sentence)) => Ok(Err(sentence)),
            Err(CallError::Lost(why)) => Err(Failure::failed(why)),
        }
    }

    /// A claim that must be given.
    async fn claimed(&self, task_id: &str) -> Result<String, Failure> {
        self.claim(task_id).await?.map_err(Failure::failed)
    }

    fn submission(&self, task_id: &str, claim_id: &str, result: &str) -> Value {
        json!({
            "chat_link_id": self.link_id,
            "task_id": task_id,
            "claim_id": claim_id,
            "status": "completed",
            "result": result,
        })
    }

    async fn submit(
        &self,
        task_id: &str,
        claim_id: &str,
        result: &str,
    ) -> Result<submit_linked_chat_result::Answer, Failure> {
        let call = self.submission(task_id, claim_id, result);
        self.chat.ask("submit_linked_chat_result", call).await
    }

    /// Submits what must be refused with `sentence`.
    async fn submit_refused(
        &self,
        task_id: &str,
        claim_id: &str,
        sentence: &str,
    ) -> Result<(), Failure> {
        let call = self.submission(task_id, claim_id, "late");
        match self.chat.call("submit_linked_chat_result", call).await {
            Err(CallError::Refused(said)) if said == sentence => Ok(()),
            answered => Err(Failure::failed(format!(
                "it was meant to be refused with {sentence:?}, and: {answered:?}"
            ))),
        }
    }
}

impl Pair<'_> {
    /// What the owner asks of the running hub, as `callboard task` does.
    async fn owner(&self, request: ChatRequest) -> Result<ChatAnswer, Failure> {
        asked(self.stage.data(), request).await
    }

    async fn assign(&self, text: &str, key: &str) -> Result<String, Failure> {
        let request = ChatRequest::Assign {
            chats: format!("{},{}", self.first.link_id, self.second.link_id),
            text: text.to_owned(),
            idempotency_key: key.to_owned(),
        };
        let ChatAnswer::Assigned { task, .. } = self.owner(request).await? else {
            return Err(Failure::failed("the hub did not assign the task"));
        };
        Ok(task.task_id)
    }
}

async fn assigned_twice(pair: &Pair<'_>) -> Result<(String, String), Failure> {
    let (text, key) = ("Name three towns on the way to the sea.", fresh_key());
    let task_id = pair.assign(text, &key).await?;
    let again = pair.assign(text, &key).await?;
    demand(task_id == again, || {
        "the same key gave two tasks".to_owned()
    })?;
    let waiting = pair.first.waiting().await?;
    demand(waiting == 1, || format!("{waiting} tasks wait"))?;
    Ok(("1 task".to_owned(), task_id))
}

async fn both_claim<'a>(
    pair: &'a Pair<'a>,
    task_id: &str,
) -> Result<(String, (&'a Conversation<'a>, String)), Failure> {
    let (first, second) = (&pair.first, &pair.second);
    let claims = tokio::join!(first.claim(task_id), second.claim(task_id));
    match (claims.0?, claims.1?) {
        (Ok(claim_id), Err(refused)) => one_winner(first, claim_id, &refused),
        (Err(refused), Ok(claim_id)) => one_winner(second, claim_id, &refused),
        (Ok(_), Ok(_)) => Err(Failure::failed("both won")),
        (Err(why), Err(_)) => Err(Failure::failed(format!("nobody won: {why}"))),
    }
}

fn one_winner<'a>(
    winner: &'a Conversation<'a>,
    claim_id: String,
    refused: &str,
) -> Result<(String, (&'a Conversation<'a>, String)), Failure> {
    demand(refused == "not claimable: claimed", || {
        format!("the other one was told: {refused}")
    })?;
    Ok(("1 winner".to_owned(), (winner, claim_id)))
}

async fn lost_reply(
    pair: &Pair<'_>,
    winner: &Conversation<'_>,
    task_id: &str,
    claim_id: &str,
) -> Result<String, Failure> {
    let result = "Lund, Ystad, Simrishamn";
    pair.stage
        .link()
        .lose(Fault::AnswerTo("submit_linked_chat_result"));
    let call = winner.submission(task_id, claim_id, result);
    match winner.chat.call("submit_linked_chat_result", call).await {
        Err(CallError::Lost(_)) => {}
        Err(CallError::Refused(sentence)) => return Err(Failure::failed(sentence)),
        Ok(_) => {
            return Err(Failure::failed(
                "the reply was meant to get lost and did not",
            ));
        }
    }
    pair.stage.link().lost().await;
    let again = winner.submit(task_id, claim_id, result).await?;
    demand(again.ok && again.replayed, || {
        "the second submit was not a replay".to_owned()
    })?;
    winner
        .submit_refused(task_id, claim_id, "rejected: task is completed")
        .await?;
    let task_id = task_id.to_owned();
    let ChatAnswer::Task { task } = pair.owner(ChatRequest::Task { task_id }).await? else {
        return Err(Failure::failed("the hub did not show the task"));
    };
    demand(task.result.as_deref() == Some(result), || {
        format!("stored is {:?}", task.result)
    })?;
    Ok("lost, then ok (replayed)".to_owned())
}

async fn taken_over(pair: &Pair<'_>) -> Result<String, Failure> {
    let (first, second) = (&pair.first, &pair.second);
    let task_id = pair
        .assign("Sum up this week in one line.", &fresh_key())
        .await?;
    let lapsed = first.claimed(&task_id).await?;
    let began_ms = stage::now_ms();
    let claim_id = loop {
        match second.claim(&task_id).await? {
            Ok(claim_id) => break claim_id,
            Err(refused) => demand(refused == "not claimable: claimed", || refused)?,
        }
        tokio::time::sleep(TRY_EVERY).await;
    };
    let took_ms = stage::now_ms() - began_ms;
    first
        .submit_refused(
            &task_id,
            &lapsed,
            "rejected: stale claim, task was re-claimed",
        )
        .await?;
    let stored = second.submit(&task_id, &claim_id, "All quiet.").await?;
    demand(stored.ok && !stored.replayed, || {
        "the second chat's answer was not new".to_owned()
    })?;
    Ok(format!(
        "after {}.{} s, the late answer rejected",
        took_ms / 1_000,
        took_ms % 1_000 / 100
    ))
}

async fn taken_back(pair: &Pair<'_>) -> Result<String, Failure> {
    let first = &pair.first;
    let task_id = pair.assign("Book the cheapest room.", &fresh_key()).await?;
    let claim_id = first.claimed(&task_id).await?;
    let request = ChatRequest::Cancel {
        task_id: task_id.clone(),
    };
    let ChatAnswer::Cancelled { cancelled, .. } = pair.owner(request).await? else {
        return Err(Failure::failed("the hub did not cancel the task"));
    };
    demand(cancelled, || "the task was not cancelled".to_owned())?;
    first
        .submit_refused(&task_id, &claim_id, "rejected: task is cancelled")
        .await?;
    Ok("cancelled, the answer rejected".to_owned())
}
