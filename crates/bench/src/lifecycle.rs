//! Tasks from assigned to completed, every step durable before it is answered.

use anyhow::Context as _;
use callboard_ambient::Entropy;
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::baseline::{Baseline, LINKS, OLD_TASKS};
use crate::load::{Caller, Endpoint, now};
use crate::served::{Filling, Served};
use crate::{Goal, Options, Row};

/// How many work at a time.
const CLIENTS: [usize; 3] = [1, 8, 64];
/// Whoever is asked to do the same.
#[derive(Debug)]
pub(crate) enum Side {
    Ours(Served),
    Theirs(Baseline),
}

impl Side {
    fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Ours(served) => &served.endpoint,
            Self::Theirs(baseline) => &baseline.endpoint,
        }
    }

    fn link(&self, number: usize) -> anyhow::Result<&str> {
        let links = match self {
            Self::Ours(served) => &served.links,
            Self::Theirs(baseline) => &baseline.links,
        };
        let link = links.get(number % links.len().max(1));
        Ok(link.context("no link")?)
    }

    pub(crate) async fn caller(&self) -> anyhow::Result<Caller> {
        Caller::connect(self.endpoint()).await
    }

    /// Assigns a task to a link and gives its id. Ours comes from the owner, over the hub's socket.
    pub(crate) async fn assign(
        &self,
        caller: &mut Caller,
        link: usize,
        text: &str,
    ) -> anyhow::Result<String> {
        let link = self.link(link)?;
        match self {
            Self::Ours(served) => {
                let key = Entropy::system().secret("bench-");
                served.assign(link, text, &key).await
            }
            Self::Theirs(_) => {
                let arguments = json!({"chat_link_id": link, "instruction": text});
                let told = caller.published("assign_task", arguments).await?;
                Ok(told["task_id"].as_str().context("no task")?.to_owned())
            }
        }
    }

    /// Reads the inbox of a link.
    pub(crate) async fn read(&self, caller: &mut Caller, link: usize) -> anyhow::Result<Value> {
        let arguments = json!({"chat_link_id": self.link(link)?});
        self.call(caller, "read_linked_chat_tasks", arguments).await
    }

    async fn call(
        &self,
        caller: &mut Caller,
        tool: &str,
        arguments: Value,
    ) -> anyhow::Result<Value> {
        match self {
            Self::Ours(_) => caller.tool(tool, arguments).await,
            Self::Theirs(_) => caller.published(tool, arguments).await,
        }
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Ours(served) => served.stop().await,
            Self::Theirs(baseline) => baseline.stop().await,
        }
    }
}

/// Both servers, with the same old tasks.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) ours: Side,
    /// `None` where there is no Python.
    pub(crate) theirs: Option<Side>,
}

impl Pair {
    pub(crate) async fn start(options: &Options) -> anyhow::Result<Self> {
        let filling = Filling {
            links: LINKS,
            old_tasks: OLD_TASKS,
            desktops: 0,
        };
        Ok(Self {
            ours: Side::Ours(Served::start(&options.binary, filling).await?),
            theirs: Baseline::start("guard").await?.map(Side::Theirs),
        })
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.ours.stop().await?;
        match self.theirs {
            Some(theirs) => theirs.stop().await,
            None => Ok(()),
        }
    }
}

/// A task of a link from assigned to completed; `reads` as a chat does that looks first.
pub(crate) async fn one_task(
    side: &Side,
    caller: &mut Caller,
    link: usize,
    reads: bool,
) -> anyhow::Result<()> {
    let task_id = side
        .assign(caller, link, "Write the open questions")
        .await?;
    if reads {
        side.read(caller, link).await?;
    }
    let link = side.link(link)?;
    let claim = json!({"chat_link_id": link, "task_id": task_id});
    let claimed = side.call(caller, "claim_linked_chat_task", claim).await?;
    let result = json!({
        "chat_link_id": link, "task_id": task_id, "claim_id": claimed["claim_id"],
        "status": "completed", "result": "1. Who signs off the pricing copy?",
    });
    let told = side
        .call(caller, "submit_linked_chat_result", result)
        .await?;
    anyhow::ensure!(told == json!({"ok": true}), "a submit was answered {told}");
    Ok(())
}

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let pair = Pair::start(options).await?;
    let mut rows = Vec::new();
    for clients in CLIENTS {
        let tasks = options.count(2_000, 64);
        let our_rate = rate(&pair.ours, clients, tasks).await?;
        let their_rate = match &pair.theirs {
            // The slower one gets less to do: the rate is what counts.
            Some(theirs) => Some(rate(theirs, clients, (tasks / 4).max(64)).await?),
            None => None,
        };
        let name = format!("tasks a second, assigned to completed, {clients} clients");
        let row = Row::ours(name, "1/s", our_rate).beside(their_rate);
        rows.push(match clients {
            64 => row.goal(Goal::RatioAtLeast(10.0)),
            _ => row,
        });
    }
    pair.stop().await?;
    Ok(rows)
}

/// Tasks a second of so many clients, each on a link of its own.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
async fn rate(side: &Side, clients: usize, tasks: usize) -> anyhow::Result<f64> {
    let each = tasks.div_ceil(clients);
    let began = now();
    let client = async |number: usize| {
        let mut caller = side.caller().await?;
        for _ in 0..each {
            one_task(side, &mut caller, number, true).await?;
        }
        Ok::<_, anyhow::Error>(())
    };
    try_join_all((0..clients).map(client)).await?;
    Ok((each * clients) as f64 / began.elapsed().as_secs_f64())
}
