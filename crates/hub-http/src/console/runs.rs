//! The list of runs, one run, and taking it back.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use callboard_domain::Timestamp;
use callboard_domain::graph_run::Status;
use callboard_hub::Hub;
use callboard_store::{OwnedRun, RunFilter, Store};
use http::StatusCode;
use serde::Deserialize;

use super::words::{
    Badge, Moment, ago, badge, graph, moment, note, number, span, status_word, tokens, took,
};
use super::{failed, page, see_other};
use crate::SharedHub;

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    here: &'static str,
    lede: String,
    filters: Vec<FilterLink>,
    /// The state that the list is narrowed to, in lower case.
    only: Option<String>,
    rows: Vec<Row>,
    is_later_page: bool,
    newest: String,
    older: Option<String>,
}

struct FilterLink {
    href: String,
    words: &'static str,
    count: String,
    is_current: bool,
}

/// A run in a list, and at the head of its page.
struct Row {
    id: String,
    graph: String,
    agent: String,
    project: String,
    badge: Badge,
    note: String,
    desktop: String,
    queued: Moment,
    queued_ago: String,
    took: String,
    took_word: &'static str,
    tokens: String,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    here: &'static str,
    row: Row,
    sentence: String,
    can_cancel: bool,
    cost: Option<String>,
    steps: Vec<Step>,
    tokens: Option<Tokens>,
    error: Option<Failure>,
    result: Option<String>,
    no_result: &'static str,
    arguments: String,
    execution: Option<String>,
    slug: String,
    session: String,
}

struct Step {
    state: &'static str,
    mark: &'static str,
    name: String,
    at: Option<Moment>,
    fact: String,
}

struct Tokens {
    used: String,
    /// As a number, at most the cap.
    shown: u64,
    cap: Option<Cap>,
}

struct Cap {
    number: u64,
    words: String,
    percent: u64,
}

struct Failure {
    heading: &'static str,
    text: String,
}

#[derive(Template)]
#[template(path = "cancel_run.html")]
struct CancelPage {
    here: &'static str,
    id: String,
    graph: String,
    what_stops: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    status: Option<String>,
    before: Option<String>,
}

/// The first page.
pub(super) async fn overview() -> Response {
    see_other("/runs")
}

pub(super) async fn list<S: Store>(
    State(shared): State<SharedHub<S>>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let hub = &shared.hub;
    let status = wanted.status.as_deref().and_then(Status::from_word);
    let before = wanted.before.as_deref().map(|id| {
        let unknown = callboard_domain::CommandId::UNKNOWN;
        id.parse().unwrap_or(unknown)
    });
    let read = async {
        let counts = hub.run_counts().await?;
        let (runs, more) = hub.owned_runs(RunFilter { status, before }).await?;
        Ok((counts, runs, more))
    };
    let (counts, runs, more) = match read.await {
        Ok(read) => read,
        Err(error) => return failed(&error),
    };
    let count_of = |status| {
        let found = counts.iter().find(|count| count.status == status);
        found.map_or(0, |count| count.count)
    };
    let all = counts.iter().map(|count| count.count).sum();
    let link = |of: Option<Status>, words, count| FilterLink {
        href: address(of, None),
        words,
        count: number(count),
        is_current: of == status,
    };
    let mut filters = vec![link(None, "All", all)];
    for of in Status::ALL {
        filters.push(link(Some(of), status_word(of), count_of(of)));
    }
    let last = runs.last().map(|run| run.row.command_id.to_string());
    let list = RunsPage {
        here: "runs",
        lede: lede(count_of(Status::Running), count_of(Status::Queued)),
        filters,
        only: status.map(|status| status_word(status).to_lowercase()),
        is_later_page: before.is_some(),
        newest: address(status, None),
        older: last.filter(|_| more).map(|id| address(status, Some(&id))),
        rows: runs.iter().map(|run| row(hub, run)).collect(),
    };
    page(StatusCode::OK, &list)
}

pub(super) async fn one<S: Store>(
    State(shared): State<SharedHub<S>>,
    Path(command_id): Path<String>,
) -> Response {
    match shared.hub.owned_run(&command_id).await {
        Ok(owned) => page(StatusCode::OK, &run_page(&shared.hub, &owned)),
        Err(error) => failed(&error),
    }
}

pub(super) async fn ask_cancel<S: Store>(
    State(shared): State<SharedHub<S>>,
    Path(command_id): Path<String>,
) -> Response {
    let owned = match shared.hub.owned_run(&command_id).await {
        Ok(owned) => owned,
        Err(error) => return failed(&error),
    };
    let what_stops = match owned.row.run.status() {
        Status::Queued => "It has not begun, so nothing is lost.".to_owned(),
        Status::Running => format!(
            "{} reads this within about 3 seconds and stops the run. What it has used stays used.",
            owned.desktop_name
        ),
        // It ended while the owner made up his mind.
        Status::Completed | Status::Failed | Status::Cancelled | Status::Expired => {
            return see_other(&format!("/runs/{}", owned.row.command_id));
        }
    };
    let ask = CancelPage {
        here: "runs",
        id: owned.row.command_id.to_string(),
        graph: graph(&owned),
        what_stops,
    };
    page(StatusCode::OK, &ask)
}

/// Idempotent, so a second click asks for nothing new; the run's page says how it stands.
pub(super) async fn cancel<S: Store>(
    State(shared): State<SharedHub<S>>,
    Path(command_id): Path<String>,
) -> Response {
    match shared.hub.cancel_owned_run(&command_id).await {
        Ok(row) => see_other(&format!("/runs/{}", row.command_id)),
        Err(error) => failed(&error),
    }
}

fn address(status: Option<Status>, before: Option<&str>) -> String {
    let status = status.map(|status| format!("status={status}"));
    let before = before.map(|id| format!("before={id}"));
    let query: Vec<_> = status.into_iter().chain(before).collect();
    if query.is_empty() {
        "/runs".to_owned()
    } else {
        format!("/runs?{}", query.join("&"))
    }
}

fn lede(running: u64, queued: u64) -> String {
    match (running, queued) {
        (0, 0) => "Nothing runs, and nothing is queued.".to_owned(),
        (0, queued) => format!("Nothing runs. {} queued.", are(queued)),
        (running, 0) => format!("{} running. Nothing is queued.", are(running)),
        (running, queued) => format!("{} running, {} queued.", are(running), are(queued)),
    }
}

fn are(count: u64) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb}", number(count))
}

fn row<S: Store>(hub: &Hub<S>, owned: &OwnedRun) -> Row {
    let row = &owned.row;
    let presence = hub.presence();
    let is_online = presence.is_online(row.desktop_id, row.desktop_last_seen_at);
    let is_over = row.run.status().is_terminal();
    Row {
        id: row.command_id.to_string(),
        graph: graph(owned),
        agent: owned.connection_name.clone(),
        project: owned.project_name.clone(),
        badge: badge(&row.run),
        note: note(owned, is_online),
        desktop: owned.desktop_name.clone(),
        queued: moment(row.run.queued_at),
        queued_ago: ago(row.run.queued_at, hub.clock().now()),
        took: took(&row.run, hub.clock().now()),
        took_word: if is_over { "took" } else { "running for" },
        tokens: tokens(row).map(number).unwrap_or_default(),
    }
}

fn run_page<S: Store>(hub: &Hub<S>, owned: &OwnedRun) -> RunPage {
    let (row, head) = (&owned.row, row(hub, owned));
    let report = row.run.end().map(|end| &end.report);
    let is_over = row.run.status().is_terminal();
    let no_result = match row.run.status() {
        Status::Queued | Status::Running => "Not yet. Load this page again to see it.",
        Status::Completed => {
            "The result was too long to travel. The whole of it is on the desktop."
        }
        Status::Failed | Status::Cancelled | Status::Expired => "The run gave none.",
    };
    let heading = match row.run.status() {
        Status::Failed => "Why it failed",
        Status::Cancelled => "Why it was cancelled",
        Status::Queued | Status::Running | Status::Completed | Status::Expired => "What it said",
    };
    RunPage {
        here: "runs",
        sentence: sentence(owned, &head),
        can_cancel: !is_over && !row.run.cancel_requested(),
        cost: report
            .and_then(|report| report.reported_cost)
            .map(|cost| format!("${cost:.2}, reported")),
        steps: steps(owned, hub.clock().now()),
        tokens: tokens(row)
            .map(|used| used_tokens(used, row.progress.and_then(|is| is.tokens_cap))),
        error: report
            .and_then(|report| report.error.clone())
            .map(|text| Failure { heading, text }),
        result: report.and_then(|report| report.result.clone()),
        no_result,
        arguments: row.arguments.clone(),
        execution: row
            .run
            .execution()
            .map(|execution| execution.id.to_string()),
        slug: row.slug.clone(),
        session: row.graph_session_id.to_string(),
        row: head,
    }
}

fn used_tokens(used: u64, cap: Option<u64>) -> Tokens {
    Tokens {
        used: number(used),
        shown: used.min(cap.unwrap_or(used)),
        cap: cap.filter(|cap| *cap > 0).map(|cap| Cap {
            number: cap,
            words: number(cap),
            percent: used.min(cap).saturating_mul(100) / cap,
        }),
    }
}

/// What there is to say, in one sentence.
fn sentence(owned: &OwnedRun, head: &Row) -> String {
    let (desktop, note) = (&owned.desktop_name, &head.note);
    match owned.row.run.status() {
        Status::Queued => format!("Queued: it {note}."),
        Status::Running if owned.row.run.cancel_requested() => {
            format!("A cancel was asked for; {desktop} stops it.")
        }
        Status::Running if note.is_empty() => format!("Running for {} on {desktop}.", head.took),
        Status::Running => format!("Running for {} on {desktop}: {note}.", head.took),
        Status::Completed => format!("Finished in {} on {desktop}.", head.took),
        Status::Failed => format!("Failed after {} on {desktop}.", head.took),
        Status::Cancelled if head.took.is_empty() => "Cancelled before it started.".to_owned(),
        Status::Cancelled => format!("Cancelled after {} on {desktop}.", head.took),
        Status::Expired => format!("Nobody started it in 7 days. It waited for {desktop}."),
    }
}

fn steps(owned: &OwnedRun, now: Timestamp) -> Vec<Step> {
    let run = &owned.row.run;
    let step = |state, mark, name: &str, at: Option<Timestamp>, fact: String| Step {
        state,
        mark,
        name: name.to_owned(),
        at: at.map(moment),
        fact,
    };
    let by = format!("by {}", owned.connection_name);
    let mut steps = vec![step("done", "completed", "Queued", Some(run.queued_at), by)];
    if let Some(execution) = run.execution() {
        let waited = span(execution.started_at.millis_since(run.queued_at));
        let fact = format!("{waited} later, by {}", owned.desktop_name);
        let at = Some(execution.started_at);
        steps.push(step("done", "completed", "Started", at, fact));
    }
    if let Some(at) = run.cancel_requested_at() {
        let fact = "asked for".to_owned();
        steps.push(step("done", "completed", "Cancel", Some(at), fact));
    }
    match (run.finished_at(), run.status()) {
        (Some(at), status) => {
            let (state, mark) = match status {
                Status::Failed => ("failed", "failed"),
                Status::Completed => ("done", "completed"),
                Status::Queued | Status::Running | Status::Cancelled | Status::Expired => {
                    ("done", "cancelled")
                }
            };
            let fact = match took(run, now) {
                took if took.is_empty() => String::new(),
                took => format!("took {took}"),
            };
            steps.push(step(state, mark, status_word(status), Some(at), fact));
        }
        (None, Status::Running) => {
            let phase = owned.row.phase.as_deref().unwrap_or("At work");
            steps.push(step("now", "running", phase, None, "now".to_owned()));
            steps.push(step("next", "next", "Finished", None, "not yet".to_owned()));
        }
        (None, _) => {
            steps.push(step("now", "queued", "Start", None, "not yet".to_owned()));
            steps.push(step("next", "next", "Finished", None, "not yet".to_owned()));
        }
    }
    steps
}
