//! The claim race: many tasks, each wanted by eight claimers at once. Beside the hub stand the
//! handlers that a server without one conditional write would have, on the same SQLite.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use anyhow::Context as _;
use callboard_ambient::Entropy;
use futures::future::join_all;
use rusqlite::{Connection, params};
use serde_json::json;

use crate::load::Caller;
use crate::served::{Filling, Served};
use crate::{Goal, Options, Row};

/// How many want each task.
const CLAIMERS: usize = 8;

/// How often a race had more than one winner.
#[derive(Debug, Default)]
struct Race {
    tasks: u32,
    contested: u32,
    winners: usize,
}

impl Race {
    fn note(&mut self, winners: usize) {
        self.tasks += 1;
        self.winners += winners;
        self.contested += u32::from(winners > 1);
    }

    /// Tasks with two winners, of all.
    #[allow(clippy::cast_precision_loss, reason = "a few thousand tasks")]
    fn rows(&self, name: &str) -> [Row; 2] {
        let tasks = self.tasks.max(1);
        let contested = format!("claim race, {name}: tasks with two winners, of {tasks}");
        let winners = format!("claim race, {name}: winners a task");
        [
            Row::ours(contested, "", f64::from(self.contested)),
            Row::ours(winners, "", self.winners as f64 / f64::from(tasks)),
        ]
    }
}

/// The claim race of the published table (mission §5.2): three handlers without a hub, and the hub.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let tasks = u32::try_from(options.count(200, 40))?;
    let mut rows = Vec::new();
    for (name, handler) in [
        ("read, 2 ms, write", read_pause_write as Handler),
        ("read, write", read_write),
        ("conditional write", conditional),
    ] {
        rows.extend(naive(tasks, handler)?.rows(name));
    }
    let filling = Filling {
        links: CLAIMERS,
        ..Filling::default()
    };
    let served = Served::start(&options.binary, filling).await?;
    let raced = hub(&served, tasks).await?;
    served.stop().await?;
    let [contested, winners] = raced.rows("this hub over HTTP");
    rows.extend([contested.goal(Goal::AtMost(0.0)), winners]);
    Ok(rows)
}

/// A handler that claims a task of a table: true for a winner.
type Handler = fn(&Connection, task: u32, claimer: usize) -> rusqlite::Result<bool>;

/// Reads, waits 2 ms as a handler does that asks somebody else, then writes.
fn read_pause_write(sqlite: &Connection, task: u32, who: usize) -> rusqlite::Result<bool> {
    let free = is_free(sqlite, task)?;
    #[allow(clippy::disallowed_methods, reason = "the gap is what is measured")]
    std::thread::sleep(Duration::from_millis(2));
    Ok(free && write(sqlite, task, who, "")? == 1)
}

/// Reads, then writes.
fn read_write(sqlite: &Connection, task: u32, who: usize) -> rusqlite::Result<bool> {
    Ok(is_free(sqlite, task)? && write(sqlite, task, who, "")? == 1)
}

/// Writes only where nobody has written.
fn conditional(sqlite: &Connection, task: u32, who: usize) -> rusqlite::Result<bool> {
    Ok(write(sqlite, task, who, " AND claimer IS NULL")? == 1)
}

fn is_free(sqlite: &Connection, task: u32) -> rusqlite::Result<bool> {
    let sql = "SELECT claimer IS NULL FROM tasks WHERE id = ?1";
    sqlite.query_row(sql, [task], |row| row.get(0))
}

fn write(sqlite: &Connection, task: u32, who: usize, only: &str) -> rusqlite::Result<usize> {
    let sql = format!("UPDATE tasks SET claimer = ?2 WHERE id = ?1{only}");
    sqlite.execute(&sql, params![task, i64::try_from(who).unwrap_or_default()])
}

/// Runs the race on a table of its own.
fn naive(tasks: u32, handler: Handler) -> anyhow::Result<Race> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("race.db");
    let sqlite = open(&path)?;
    sqlite.execute_batch("CREATE TABLE tasks (id INTEGER PRIMARY KEY, claimer INTEGER)")?;
    for task in 0..tasks {
        sqlite.execute("INSERT INTO tasks (id) VALUES (?1)", [task])?;
    }
    let barrier = Barrier::new(CLAIMERS);
    let claimer = |who: usize| -> anyhow::Result<Vec<bool>> {
        let sqlite = open(&path);
        let mut won = Vec::new();
        for task in 0..tasks {
            // Everybody meets at every task, also one whose database did not open.
            barrier.wait();
            won.push(match &sqlite {
                Ok(sqlite) => handler(sqlite, task, who)?,
                Err(_) => false,
            });
        }
        sqlite.map(|_| won)
    };
    let claimers: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..CLAIMERS)
            .map(|who| scope.spawn(move || claimer(who)))
            .collect();
        started.into_iter().map(|it| it.join()).collect()
    });
    let mut wins = vec![0; usize::try_from(tasks)?];
    for won in claimers {
        let won = won.map_err(|_| anyhow::anyhow!("a claimer panicked"))??;
        for (count, won) in wins.iter_mut().zip(won) {
            *count += usize::from(won);
        }
    }
    let mut race = Race::default();
    wins.into_iter().for_each(|winners| race.note(winners));
    Ok(race)
}

fn open(path: &Path) -> anyhow::Result<Connection> {
    let sqlite = Connection::open(path)?;
    sqlite.busy_timeout(Duration::from_secs(30))?;
    sqlite.pragma_update(None, "journal_mode", "WAL")?;
    Ok(sqlite)
}

/// Runs the race against the hub, over HTTP: eight chats, each a candidate of every task.
async fn hub(served: &Served, tasks: u32) -> anyhow::Result<Race> {
    let mut chats = Vec::new();
    for link in &served.links {
        chats.push((Caller::connect(&served.endpoint).await?, link));
    }
    let (entropy, candidates) = (Entropy::system(), served.links.join(","));
    let mut race = Race::default();
    for _ in 0..tasks {
        let key = entropy.secret("race-");
        let task_id = served.assign(&candidates, "Who is first?", &key).await?;
        let claims = chats
            .iter_mut()
            .map(|(caller, link)| claim(caller, link, &task_id));
        let mut winners = BTreeSet::new();
        for claimed in join_all(claims).await {
            winners.extend(claimed?);
        }
        anyhow::ensure!(!winners.is_empty(), "nobody got the task {task_id}");
        race.note(winners.len());
    }
    Ok(race)
}

async fn claim(caller: &mut Caller, chat: &str, task: &str) -> anyhow::Result<Option<String>> {
    let arguments = json!({"chat_link_id": chat, "task_id": task});
    let result = caller.result("claim_linked_chat_task", arguments).await?;
    if result["isError"] == json!(false) {
        let claim_id = result["structuredContent"]["claim_id"].as_str();
        return Ok(Some(claim_id.context("no claim id")?.to_owned()));
    }
    let refused = &result["content"][0]["text"];
    anyhow::ensure!(
        refused.as_str() == Some("not claimable: claimed"),
        "a claimer was told {refused}"
    );
    Ok(None)
}
