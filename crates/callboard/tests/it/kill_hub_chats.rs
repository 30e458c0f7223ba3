//! `kill -9` of the hub between any two steps of a task's life, and in the middle of each step.

use serde_json::Value;

use crate::network::{Lost, Network};
use crate::process::{Outcome, run};
use crate::rig::{HOME, Rig};

const KEY: &str = "the-one-key-of-this-test";

/// A hub, a chat's way to it that can fail, and what the chat knows so far.
struct Life {
    rig: Rig,
    network: Network,
    lost: Option<Lost>,
    chat: String,
    task: String,
    claim: String,
}

impl Life {
    /// The hub dies at each step: with the call lost, with the answer lost, or after it.
    async fn begin(lost: Option<Lost>) -> Self {
        let rig = Rig::with_hub().await;
        let network = Network::start(rig.port).await;
        let (chat, task, claim) = <(String, String, String)>::default();
        Self {
            rig,
            network,
            lost,
            chat,
            task,
            claim,
        }
    }

    async fn kill_and_start_hub(&mut self) {
        self.rig.kill_hub().await;
        self.network.heal();
        self.rig.start_hub().await;
    }

    async fn client(&self, arguments: &[&str]) -> Outcome {
        let mut command = self.rig.client_command(arguments);
        let url = format!("http://127.0.0.1:{}/mcp", self.network.port);
        command.env("CALLBOARD_URL", url).arg("--json");
        run(command).await
    }

    async fn owner(&self, arguments: &[&str]) -> Value {
        self.rig.owner(arguments).await.ok().json()
    }

    /// Does a step of the chat, with a death of the hub in it; then does it again, as a chat does
    /// that got no answer. Gives both answers; the first is missing where it was lost.
    async fn step(&mut self, tool: &'static str, arguments: &[&str]) -> (Option<Value>, Value) {
        if let Some(lost) = self.lost {
            self.network.lose(lost, tool);
        }
        let first = self.client(arguments).await;
        let first = match self.lost {
            None => Some(first.ok().json()),
            Some(_) => {
                first.fails(3, "no answer from");
                None
            }
        };
        self.kill_and_start_hub().await;
        let second = self.client(arguments).await.ok().json();
        (first, second)
    }

    /// Whether the hub knew of the step when it came again.
    fn replays(&self) -> bool {
        self.lost != Some(Lost::Call)
    }

    async fn link(&mut self) {
        let arguments = ["link", "Trip", "--project", HOME, "--idempotency-key", KEY];
        let (first, second) = self.step("link_current_chat", &arguments).await;
        same(first, &second);
        self.chat = text(&second["link"]["chat_link_id"]);
        let chats = self.owner(&["chat", "list"]).await;
        assert_eq!(chats["chats"].as_array().unwrap().len(), 1, "{chats}");
    }

    /// The owner's own step goes over the hub's socket: the hub dies after it.
    async fn assign(&mut self, say: &str) {
        let key = format!("{KEY} {say}");
        let arguments = ["task", "assign", "Trip", say, "--idempotency-key", &key];
        let first = self.owner(&arguments).await;
        self.kill_and_start_hub().await;
        let second = self.owner(&arguments).await;
        assert_eq!(
            (&first["replayed"], &second["replayed"]),
            (&false.into(), &true.into())
        );
        assert_eq!(first["task"], second["task"]);
        self.task = text(&second["task"]["task_id"]);
    }

    async fn claim(&mut self) {
        let (chat, task) = (self.chat.clone(), self.task.clone());
        let arguments = ["claim", &chat, &task];
        let (first, second) = self.step("claim_linked_chat_task", &arguments).await;
        same(first, &second);
        self.claim = text(&second["claim_id"]);
    }

    async fn task(&self) -> Value {
        self.owner(&["task", "show", &self.task]).await
    }
}

fn same(first: Option<Value>, second: &Value) {
    if let Some(first) = first {
        assert_eq!(first, *second);
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Link, assign, claim, upload, submit; and a second task that is cancelled.
async fn a_life_with_deaths(lost: Option<Lost>) {
    let mut life = Life::begin(lost).await;
    life.link().await;
    life.assign("Find a hotel.").await;
    life.claim().await;
    assert_eq!(life.task().await["claimed_by"], "Trip");

    let file = life.rig.folder().join("hotels.md");
    std::fs::write(&file, "# Hotels\n").unwrap();
    let (chat, task, claim) = (life.chat.clone(), life.task.clone(), life.claim.clone());
    let upload = ["upload", &chat, &task, &claim, file.to_str().unwrap()];
    let (_, uploaded) = life.step("upload_linked_chat_artifact", &upload).await;
    assert_eq!(
        uploaded["replayed"].as_bool().unwrap_or(false),
        life.replays()
    );

    let submit = ["submit", &chat, &task, &claim, "The Mill"];
    let (first, second) = life.step("submit_linked_chat_result", &submit).await;
    assert!(first.is_none_or(|first| first["replayed"].is_null()));
    assert_eq!(
        second["replayed"].as_bool().unwrap_or(false),
        life.replays()
    );
    life.kill_and_start_hub().await;
    let other = ["submit", &chat, &task, &claim, "The Inn"];
    let refused = life.client(&other).await;
    refused.fails(1, "rejected: task is completed");

    let done = life.task().await;
    assert_eq!(done["result"], "The Mill", "{done:#}");
    assert_eq!(done["artifacts"].as_array().unwrap().len(), 1, "{done:#}");
    let saved = life.rig.folder().join("saved");
    let save = ["task", "show", &task, "--save", saved.to_str().unwrap()];
    life.rig.owner(&save).await.ok();
    let read = std::fs::read_to_string(saved.join("hotels.md"));
    assert_eq!(read.unwrap(), "# Hotels\n");

    life.assign("Never mind.").await;
    life.claim().await;
    for _ in 0..2 {
        let told = life.owner(&["task", "cancel", &life.task]).await;
        assert_eq!(told["cancelled"], true);
        life.kill_and_start_hub().await;
    }
    let late = ["submit", &life.chat, &life.task, &life.claim, "late"];
    let refused = life.client(&late).await;
    refused.fails(1, "rejected: task is cancelled");
    let tasks = life.owner(&["task", "list"]).await;
    let statuses: Vec<_> = tasks["tasks"].as_array().unwrap().iter().collect();
    let statuses: Vec<_> = statuses.iter().map(|task| text(&task["status"])).collect();
    assert_eq!(statuses, ["cancelled", "completed"]);
}

#[tokio::test]
async fn a_task_survives_a_hub_that_dies_between_any_two_steps() {
    a_life_with_deaths(None).await;
}

#[tokio::test]
async fn a_task_survives_a_hub_that_dies_before_it_gets_each_call() {
    a_life_with_deaths(Some(Lost::Call)).await;
}

#[tokio::test]
async fn a_task_survives_a_hub_that_dies_before_each_answer_arrives() {
    a_life_with_deaths(Some(Lost::Answer)).await;
}
