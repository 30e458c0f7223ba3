//! A hub on loopback HTTP: the domain's rules over a map, and faults on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use callboard_ambient::Clock;
use callboard_domain::graph_run::{Event, Run, State as RunState, Status, decide};
use callboard_domain::{
    CommandId, Decision, Digest, ExecutionId, GraphSessionId, ProjectId, Refusal,
};
use callboard_wire::relay::{
    CommandInfo, CompleteRequest, CompleteResponse, ControlInfo, ControlRequest, ControlResponse,
    DesktopInfo, ProjectInfo, ProjectRevision, SessionInfo, StartRequest, StartResponse,
    SyncRequest, SyncResponse, WaitRequest, WaitResponse,
};
use callboard_wire::{Problem, RawValue, WORKER_HEADER};
use serde::Serialize;
use tokio::sync::watch;

pub(crate) const TOKEN: &str = "cb_device_test";
pub(crate) const HOME: ProjectId = ProjectId::from_bytes([0xaa; 16]);
pub(crate) const WORK: ProjectId = ProjectId::from_bytes([0xbb; 16]);

/// What goes wrong with one call.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The connection is cut before the hub acts.
    LoseRequest,
    /// The hub acts, and its answer is cut.
    LoseAnswer,
    /// Something answers instead.
    Answer(u16, &'static str),
    /// The hub refuses.
    Refuse(Refusal),
}

#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) run: Run,
    project_id: ProjectId,
    session_id: GraphSessionId,
    slug: String,
    arguments: String,
}

#[derive(Debug, Default)]
pub(crate) struct Inner {
    pub(crate) commands: BTreeMap<CommandId, Queued>,
    pub(crate) sessions: BTreeMap<ProjectId, Vec<SessionInfo>>,
    pub(crate) controls: Vec<ControlRequest>,
    pub(crate) workers: BTreeSet<String>,
    /// Every execution id that was ever offered for a command.
    pub(crate) executions: BTreeMap<CommandId, BTreeSet<ExecutionId>>,
    /// Calls by their last path segment.
    pub(crate) calls: BTreeMap<String, usize>,
    /// Faults to come, by the same.
    pub(crate) faults: BTreeMap<String, Vec<Fault>>,
    /// A fault of every call that is not the wake-up.
    pub(crate) everything: Option<Fault>,
    revisions: BTreeMap<ProjectId, u64>,
}

/// A running hub. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    pub(crate) url: String,
    inner: Arc<Mutex<Inner>>,
    changed: watch::Sender<u64>,
    clock: Clock,
}

impl Hub {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hub = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            inner: Arc::default(),
            changed: watch::channel(0).0,
            clock: Clock::system(),
        };
        let relay = Router::new()
            .route("/sync", post(sync))
            .route("/wait", post(wait))
            .route("/commands/{id}/start", post(start))
            .route("/commands/{id}/control", post(control))
            .route("/commands/{id}/complete", post(complete));
        let app = Router::new()
            .route("/api/v1/desktop", get(desktop))
            .nest("/api/v1/external-assistants/graph-relays", relay)
            .layer(axum::extract::DefaultBodyLimit::max(16 << 20))
            .with_state(hub.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        hub
    }

    /// Looks at, or changes, what the hub knows; whoever waits looks again.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        let answer = act(&mut self.inner.lock().unwrap());
        self.changed.send_modify(|version| *version += 1);
        answer
    }

    /// Waits until `seen` sees something.
    pub(crate) async fn until<T>(&self, what: &str, seen: impl Fn(&Inner) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        let found = async {
            loop {
                if let Some(found) = seen(&self.inner.lock().unwrap()) {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(40), found).await;
        found.unwrap_or_else(|_| panic!("in vain: {what}; {:#?}", self.inner.lock().unwrap()))
    }

    /// Queues a run of a session that the last sync of `project_id` listed.
    pub(crate) fn queue(&self, project_id: ProjectId, slug: &str, arguments: &str) -> CommandId {
        let now = self.clock.now();
        self.with(|inner| {
            let session = inner.sessions[&project_id].iter().find(|s| s.slug == slug);
            let session_id = session.expect("a listed session").graph_session_id;
            let n = u8::try_from(inner.commands.len() + 1).unwrap();
            let id = CommandId::from_bytes([n; 16]);
            let queued = Queued {
                run: Run::queued(Digest::of(&[&[n]]), now),
                project_id,
                session_id,
                slug: slug.to_owned(),
                arguments: arguments.to_owned(),
            };
            inner.commands.insert(id, queued);
            inner.touch(project_id);
            id
        })
    }

    /// Waits until exactly `slugs` are listed. Their order says nothing: two shares of one
    /// millisecond come in any.
    pub(crate) async fn listed(&self, project_id: ProjectId, slugs: &[&str]) {
        let wanted = BTreeSet::from_iter(slugs.iter().copied());
        self.until(&format!("sessions {wanted:?}"), |inner| {
            let listed = inner.sessions.get(&project_id)?;
            let listed: BTreeSet<_> = listed.iter().map(|s| s.slug.as_str()).collect();
            (listed == wanted).then_some(())
        })
        .await;
    }

    pub(crate) async fn reaches(&self, id: CommandId, status: Status) {
        self.until(&format!("{id} is {status}"), |inner| {
            let now = inner.commands[&id].run.status();
            assert!(
                now == status || !now.is_terminal(),
                "{:?}",
                inner.commands[&id]
            );
            (now == status).then_some(())
        })
        .await;
    }

    pub(crate) fn report(&self, id: CommandId) -> callboard_domain::Report {
        self.with(|inner| inner.commands[&id].run.end().unwrap().report.clone())
    }

    pub(crate) fn cancel(&self, id: CommandId) {
        let now = self.clock.now();
        self.with(|inner| {
            inner.apply(now, id, &Event::RequestCancel).unwrap();
            let project_id = inner.commands[&id].project_id;
            inner.touch(project_id);
        });
    }

    pub(crate) fn fault(&self, call: &str, faults: &[Fault]) {
        self.with(|inner| {
            let list = inner.faults.entry(call.to_owned()).or_default();
            list.extend_from_slice(faults);
        });
    }

    pub(crate) fn calls(&self, call: &str) -> usize {
        self.with(|inner| inner.calls.get(call).copied().unwrap_or(0))
    }

    /// Answers one call, through its fault if it has one.
    fn serve<T: Serialize>(
        &self,
        call: &str,
        headers: &HeaderMap,
        act: impl FnOnce(&mut Inner) -> Result<T, Refusal>,
    ) -> Response {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        self.with(|inner| {
            *inner.calls.entry(call.to_owned()).or_default() += 1;
            if let Some(worker) = text(WORKER_HEADER) {
                inner.workers.insert(worker.to_owned());
            }
            if text("authorization") != Some(&format!("Bearer {TOKEN}")) {
                let detail = "The device token is missing, unknown or revoked.";
                return problem(&Problem::new(401, "unauthorized", detail));
            }
            let faults = inner.faults.get_mut(call);
            let next = faults.and_then(|list| (!list.is_empty()).then(|| list.remove(0)));
            match next.or_else(|| inner.everything.clone()) {
                Some(Fault::LoseRequest) => cut(),
                Some(Fault::Answer(status, page)) => {
                    (StatusCode::from_u16(status).unwrap(), page).into_response()
                }
                Some(Fault::Refuse(refusal)) => problem(&refusal.into()),
                Some(Fault::LoseAnswer) => {
                    drop(act(inner));
                    cut()
                }
                None => match act(inner) {
                    Ok(answer) => Json(answer).into_response(),
                    Err(refusal) => problem(&refusal.into()),
                },
            }
        })
    }
}

impl Inner {
    fn touch(&mut self, project_id: ProjectId) {
        *self.revisions.entry(project_id).or_default() += 1;
    }

    fn revision(&self, project_id: ProjectId) -> String {
        self.revisions.get(&project_id).unwrap_or(&0).to_string()
    }

    fn apply(
        &mut self,
        now: callboard_domain::Timestamp,
        id: CommandId,
        event: &Event,
    ) -> Result<bool, Refusal> {
        let queued = self.commands.get_mut(&id).ok_or(Refusal::RunNotFound)?;
        let decision = decide(&queued.run, event, now)?;
        let replayed = decision == Decision::Replayed;
        if let Some(next) = decision.moved() {
            queued.run = next;
        }
        Ok(replayed)
    }
}

fn problem(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap();
    (status, Json(problem)).into_response()
}

/// An answer that breaks off.
fn cut() -> Response {
    let error = std::io::Error::other("cut");
    let body = futures::stream::once(async { Err::<Bytes, _>(error) });
    Body::from_stream(body).into_response()
}

async fn desktop(State(hub): State<Hub>, headers: HeaderMap) -> Response {
    hub.serve("desktop", &headers, |_| {
        let project = |project_id, name: &str| ProjectInfo {
            project_id,
            name: name.to_owned(),
        };
        Ok(DesktopInfo {
            desktop_id: callboard_domain::DesktopId::from_bytes([1; 16]),
            name: "this-machine".to_owned(),
            projects: vec![project(HOME, "Home"), project(WORK, "Work")],
        })
    })
}

async fn sync(
    State(hub): State<Hub>,
    headers: HeaderMap,
    Json(request): Json<SyncRequest>,
) -> Response {
    hub.serve("sync", &headers, |inner| {
        let project_id = request.project_id;
        inner.sessions.insert(project_id, request.sessions);
        let of_project = || {
            let all = inner.commands.iter();
            all.filter(|(_, queued)| queued.project_id == project_id)
        };
        let commands = of_project()
            .filter(|(_, queued)| queued.run.state == RunState::Queued)
            .map(|(id, queued)| CommandInfo {
                command_id: *id,
                graph_session_id: queued.session_id,
                slug: queued.slug.clone(),
                arguments: RawValue::from_string(queued.arguments.clone()).unwrap(),
            });
        let control = of_project()
            .filter(|(_, queued)| queued.run.status() == Status::Running)
            .map(|(id, queued)| ControlInfo {
                command_id: *id,
                cancel_requested: queued.run.cancel_requested(),
            });
        Ok(SyncResponse {
            revision: inner.revision(project_id),
            commands: commands.collect(),
            control: control.collect(),
        })
    })
}

async fn start(
    State(hub): State<Hub>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(request): Json<StartRequest>,
) -> Response {
    let (id, now): (CommandId, _) = (id.parse().unwrap(), hub.clock.now());
    let execution_id = request.execution_id;
    hub.serve("start", &headers, |inner| {
        inner.executions.entry(id).or_default().insert(execution_id);
        inner.apply(now, id, &Event::Start { execution_id })?;
        let cancel_requested = inner.commands[&id].run.cancel_requested();
        Ok(StartResponse { cancel_requested })
    })
}

async fn control(
    State(hub): State<Hub>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(request): Json<ControlRequest>,
) -> Response {
    let id: CommandId = id.parse().unwrap();
    hub.serve("control", &headers, |inner| {
        inner.controls.push(request);
        let queued = inner.commands.get(&id).ok_or(Refusal::RunNotFound)?;
        let cancel_requested = queued.run.cancel_requested();
        Ok(ControlResponse { cancel_requested })
    })
}

async fn complete(
    State(hub): State<Hub>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(request): Json<CompleteRequest>,
) -> Response {
    let (id, now): (CommandId, _) = (id.parse().unwrap(), hub.clock.now());
    hub.serve("complete", &headers, |inner| {
        let replayed = inner.apply(now, id, &Event::Complete(request.into()))?;
        Ok(CompleteResponse { ok: true, replayed })
    })
}

async fn wait(
    State(hub): State<Hub>,
    headers: HeaderMap,
    Json(request): Json<WaitRequest>,
) -> Response {
    let mut changed = hub.changed.subscribe();
    let moved = async {
        loop {
            let wake: Vec<ProjectRevision> = {
                let inner = hub.inner.lock().unwrap();
                let present = request.projects.iter().map(|given| ProjectRevision {
                    project_id: given.project_id,
                    revision: inner.revision(given.project_id),
                });
                present
                    .filter(|now| !request.projects.contains(now))
                    .collect()
            };
            if !wake.is_empty() {
                return wake;
            }
            changed.changed().await.unwrap();
        }
    };
    let moved = tokio::time::timeout(Duration::from_secs(25), moved).await;
    let wake = moved.unwrap_or_default();
    hub.serve("wait", &headers, |_| Ok(WaitResponse { wake }))
}
