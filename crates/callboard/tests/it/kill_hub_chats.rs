//! `kill -9` of the hub between any two steps of a task's life, and in the middle of each step.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

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

/// How long after the owner's request the hub dies: at once, in the middle of it, or when it has
/// stored it and nobody has read the answer.
const DEATHS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_micros(300),
    Duration::from_millis(1),
    Duration::from_millis(20),
];

impl Life {
    /// Sends a request of the owner over the hub's socket, and kills the hub before it is answered.
    async fn owner_unanswered(&mut self, request: Value, death: Duration) {
        let socket = self.rig.hub_data().join("hub").join("hub.sock");
        let mut stream = UnixStream::connect(socket).await.unwrap();
        let line = format!("{request}\n");
        stream.write_all(line.as_bytes()).await.unwrap();
        tokio::time::sleep(death).await;
        self.kill_and_start_hub().await;
    }

    /// A chat is unlinked by a hub that dies each time: in the end it is, and its task waits for the
    /// other.
    async fn claim_of_a_revoked_chat_is_lost(&mut self, spare: &str) {
        let both = format!("{},{spare}", self.chat);
        let assigned = self.owner(&["task", "assign", &both, "Either"]).await;
        let task = text(&assigned["task"]["task_id"]);
        let claimed = self.client(&["claim", spare, &task]).await.ok().json();
        for death in DEATHS {
            let request = json!({"ask": "chats", "about": "revoke", "chat": spare});
            self.owner_unanswered(request, death).await;
        }
        let revoked = self.owner(&["chat", "revoke", spare]).await;
        assert_eq!(revoked["chat_link_id"], spare);
        let late = ["submit", spare, &task, &text(&claimed["claim_id"]), "late"];
        self.client(&late).await.fails(1, "rejected: missing");
        let waiting = self.owner(&["task", "show", &task]).await;
        assert_eq!(waiting["status"], "queued");
        assert_eq!(waiting["chats"].as_array().unwrap().len(), 1);
        self.owner(&["task", "cancel", &task]).await;
    }
}

#[tokio::test]
async fn what_the_owner_asked_of_a_hub_that_died_is_asked_again_and_done_once() {
    let mut life = Life::begin(None).await;
    life.link().await;
    let spare = ["link", "Spare", "--project", HOME];
    let spare = life.client(&spare).await.ok().json();
    life.claim_of_a_revoked_chat_is_lost(&text(&spare["link"]["chat_link_id"]))
        .await;
    for (number, death) in DEATHS.into_iter().enumerate() {
        let (say, key) = (format!("Task {number}"), format!("assign-{number}"));
        let request = json!({
            "ask": "chats", "about": "assign", "chats": "Trip", "text": say, "idempotency_key": key,
        });
        life.owner_unanswered(request, death).await;
        let assign = ["task", "assign", "Trip", &say, "--idempotency-key", &key];
        let assigned = life.owner(&assign).await;
        life.task = text(&assigned["task"]["task_id"]);
        life.claim().await;

        let request = json!({"ask": "chats", "about": "cancel", "task_id": life.task});
        life.owner_unanswered(request, death).await;
        let cancelled = life.owner(&["task", "cancel", &life.task]).await;
        assert_eq!(cancelled["cancelled"], true, "{death:?}");
        let late = ["submit", &life.chat, &life.task, &life.claim, "late"];
        life.client(&late)
            .await
            .fails(1, "rejected: task is cancelled");
        let tasks = life.owner(&["task", "list"]).await;
        let of_text = tasks["tasks"].as_array().unwrap().iter();
        let of_text = of_text.filter(|task| task["text"] == say.as_str());
        assert_eq!(of_text.count(), 1, "{tasks:#}");
    }
}
