//! A virtual hub: the real use cases over a store that outlives the hub's deaths.

use std::collections::BTreeMap;

use callboard_ambient::{Clock, Entropy, ManualClock};
use callboard_domain::{Timestamp, WorkerId};
use callboard_hub::{HeldWake, Hold, Hub, HubError, NewLink, NewUpload, Patience, Reply};
use callboard_relay::{Answer, Call, Failure};
use callboard_store::{Connection, Desktop, Store};
use callboard_wire::relay::{CompleteRequest, ControlRequest, WaitRequest};
use callboard_wire::tools::{
    cancel_graph_run, claim_linked_chat_task, get_graph_run, link_current_chat,
    read_linked_chat_tasks, run_graph_session, submit_linked_chat_result,
    upload_linked_chat_artifact,
};
use futures::FutureExt as _;
use serde_json::{Map, Value};

use crate::Bug;
use crate::port::Port;

/// Ends a future that is ready at its first poll, as those of a use case over an inline store are.
///
/// # Panics
/// When it is not: then something in it waits for the real world.
#[allow(
    clippy::expect_used,
    reason = "a bug of ours that must not be overlooked"
)]
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    future
        .now_or_never()
        .expect("a use case over an inline store is ready at once")
}

/// What an agent asks for: a tool and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is the tool's argument of its name")]
pub(crate) enum Ask {
    Run {
        session: String,
        argument: u64,
        key: String,
    },
    Status {
        command: String,
        wait_seconds: u64,
    },
    Cancel {
        command: String,
    },
    Link {
        project: String,
        label: String,
        key: String,
    },
    Inbox {
        link: String,
    },
    Claim {
        link: String,
        task: String,
    },
    Submit {
        link: String,
        task: String,
        claim: String,
        status: String,
        result: String,
    },
    Upload {
        link: String,
        task: String,
        claim: String,
        artifact: String,
        text: String,
    },
}

/// What a tool answered.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each is the answer of the tool of its name")]
pub(crate) enum Told {
    Run(run_graph_session::Answer),
    Status(Box<get_graph_run::Answer>),
    Cancel(cancel_graph_run::Answer),
    Link(link_current_chat::Answer),
    Inbox(read_linked_chat_tasks::Answer),
    Claim(claim_linked_chat_task::Answer),
    Submit(submit_linked_chat_result::Answer),
    Upload(upload_linked_chat_artifact::Answer),
}

impl Told {
    /// Hands over the words that tell this answer from another one.
    pub(crate) fn digest(&self, mut mix: impl FnMut(&str)) {
        match self {
            Self::Run(answer) => {
                mix(&answer.command_id.to_string());
                mix(&answer.status);
            }
            Self::Status(answer) => {
                mix(&answer.status);
                mix(answer.error.as_deref().unwrap_or_default());
                mix(answer.result.as_ref().map_or("", |result| result.get()));
            }
            Self::Cancel(answer) => mix(&answer.status),
            Self::Link(answer) => mix(&answer.chat_link_id.to_string()),
            Self::Inbox(answer) => {
                for task in &answer.tasks {
                    mix(&task.task_id.to_string());
                    mix(&task.status);
                    mix(task.text.as_deref().unwrap_or_default());
                }
            }
            Self::Claim(answer) => {
                mix(&answer.claim_id.to_string());
                mix(&answer.lease_until.to_string());
            }
            Self::Submit(answer) => mix(if answer.replayed { "again" } else { "ok" }),
            Self::Upload(answer) => mix(&answer.sha256),
        }
    }
}

/// An answer now, or a call that is held under this number.
#[derive(Debug)]
pub(crate) enum Reached<T> {
    /// The answer.
    Now(T),
    /// [`HubSide::released`] gives the answer later, at this world time at the latest.
    Held(u64, u64),
    /// The hub is down or died over it: nobody answers.
    Nobody,
}

/// The answer of a call that was held.
#[derive(Debug)]
pub(crate) enum Released {
    /// Of an agent's call.
    Told(Box<Result<Told, HubError>>),
    /// Of a desktop's wake-up call.
    Woken(Result<Answer, Failure>),
}

#[derive(Debug)]
enum Waiting {
    Status {
        caller: Connection,
        command: String,
        wait_seconds: u64,
    },
    Wake {
        desktop: Desktop,
        request: WaitRequest,
        _held: HeldWake,
    },
}

#[derive(Debug)]
struct Held {
    waiting: Waiting,
    hold: Hold,
}

/// The hub's machine.
#[derive(Debug)]
pub(crate) struct HubSide<S> {
    port: Port<S>,
    entropy: Entropy,
    hub: Option<Hub<Port<S>>>,
    hands: ManualClock,
    clock: Clock,
    /// World time of the present start.
    started_ms: u64,
    told_ms: u64,
    held: BTreeMap<u64, Held>,
    next_held: u64,
    task_lease_ms: u64,
}

impl<S: Store + Clone> HubSide<S> {
    /// A running hub over `store`.
    pub(crate) fn new(
        store: S,
        seed: u64,
        wall: Timestamp,
        task_lease_ms: u64,
        bug: Option<Bug>,
    ) -> Self {
        let entropy = match bug {
            Some(Bug::IdsFromOutside) => Entropy::system(),
            _ => Entropy::seeded(seed, "hub"),
        };
        let (clock, hands) = Clock::manual(wall);
        let mut side = Self {
            port: Port::new(store, bug),
            entropy,
            hub: None,
            hands,
            clock,
            started_ms: 0,
            told_ms: 0,
            held: BTreeMap::new(),
            next_held: 0,
            task_lease_ms,
        };
        side.start(0);
        side
    }

    /// The store's port.
    pub(crate) fn port(&self) -> &Port<S> {
        &self.port
    }

    /// The hub, when it runs.
    pub(crate) fn hub(&self) -> Option<&Hub<Port<S>>> {
        self.hub.as_ref()
    }

    /// The hub's wall time.
    pub(crate) fn wall(&self) -> Timestamp {
        self.clock.now()
    }

    /// Moves the hub's wall clock alone.
    pub(crate) fn jump(&self, by_ms: i64) {
        let wall = self.clock.now().as_millis().saturating_add(by_ms);
        self.hands.set_wall(Timestamp::from_millis(wall));
    }

    /// Lets time pass up to `now_ms` of the world.
    pub(crate) fn pass(&mut self, now_ms: u64) {
        self.hands.advance_ms(now_ms.saturating_sub(self.told_ms));
        self.told_ms = now_ms;
    }

    /// Starts the hub anew, on a monotonic clock of its own.
    pub(crate) fn start(&mut self, now_ms: u64) {
        let (clock, hands) = Clock::manual(self.clock.now());
        (self.clock, self.hands, self.started_ms) = (clock.clone(), hands, now_ms);
        let hub = Hub::new(self.port.clone(), clock, self.entropy.clone());
        self.hub = Some(hub.with_task_lease_ms(self.task_lease_ms));
    }

    /// Ends the hub without a word; gives the numbers of the calls that were held.
    pub(crate) fn kill(&mut self) -> Vec<u64> {
        self.hub = None;
        std::mem::take(&mut self.held).into_keys().collect()
    }

    /// One sweep, repeated while more is due.
    pub(crate) fn sweep(&mut self) {
        while let Some(hub) = &self.hub
            && now(hub.sweep()) == Ok(true)
        {}
    }

    /// Nobody waits for a held call any more.
    pub(crate) fn hang_up(&mut self, number: u64) {
        self.held.remove(&number);
    }

    /// A desktop's call arrives.
    pub(crate) fn desktop_call(
        &mut self,
        token: &str,
        worker: WorkerId,
        call: &Call,
        completion: Option<CompleteRequest>,
    ) -> Reached<Result<Answer, Failure>> {
        let Some(hub) = &self.hub else {
            return Reached::Nobody;
        };
        let desktop = match now(hub.authenticate_desktop(token, worker)) {
            Ok(Some(desktop)) => desktop,
            Ok(None) => return Reached::Now(Err(status(401))),
            Err(error) => return Reached::Now(Err(failure(error))),
        };
        let answer = match call {
            Call::WhoAmI => now(hub.desktop_info(&desktop)).map(Answer::WhoAmI),
            Call::Sync(request) => now(hub.sync(&desktop, request.clone())).map(Answer::Sync),
            Call::Start(id, request) => {
                now(hub.start(&desktop, &id.to_string(), request.clone())).map(Answer::Start)
            }
            Call::Control(id, _) => {
                let request = ControlRequest::default();
                now(hub.control(&desktop, &id.to_string(), request)).map(Answer::Control)
            }
            Call::Complete(id) => match completion {
                Some(request) => {
                    now(hub.complete(&desktop, &id.to_string(), request)).map(Answer::Complete)
                }
                None => return Reached::Nobody,
            },
            Call::Wait(request) => {
                let _held = hub.presence().hold(desktop.id);
                let waiting = Waiting::Wake {
                    desktop,
                    request: request.clone(),
                    _held,
                };
                return match self.ask(waiting, None) {
                    Reached::Now(Released::Woken(answer)) => Reached::Now(answer),
                    Reached::Held(number, until_ms) => Reached::Held(number, until_ms),
                    Reached::Now(Released::Told(_)) | Reached::Nobody => Reached::Nobody,
                };
            }
        };
        Reached::Now(answer.map_err(failure))
    }

    /// An agent's call arrives.
    pub(crate) fn agent_call(&mut self, token: &str, ask: &Ask) -> Reached<Result<Told, HubError>> {
        let Some(hub) = &self.hub else {
            return Reached::Nobody;
        };
        let caller = match now(hub.authenticate_connection(token)) {
            Ok(Some(caller)) => caller,
            // What a client sees of a 401.
            Ok(None) => return Reached::Now(Err(HubError::Invalid("401".to_owned()))),
            Err(error) => return Reached::Now(Err(error)),
        };
        if let Ask::Status {
            command,
            wait_seconds,
        } = ask
        {
            let waiting = Waiting::Status {
                caller,
                command: command.clone(),
                wait_seconds: *wait_seconds,
            };
            return match self.ask(waiting, None) {
                Reached::Now(Released::Told(told)) => Reached::Now(*told),
                Reached::Held(number, until_ms) => Reached::Held(number, until_ms),
                Reached::Now(Released::Woken(_)) | Reached::Nobody => Reached::Nobody,
            };
        }
        Reached::Now(now(answer(hub, &caller, ask)))
    }

    /// The next held call whose watch moved or whose time is up, with its answer.
    pub(crate) fn released(&mut self, now_ms: u64) -> Option<(u64, Released)> {
        loop {
            let hub = self.hub.as_ref()?;
            let monotonic_ms = now_ms.saturating_sub(self.started_ms);
            let (number, _) = self.held.iter().find(|(_, held)| {
                let mut watches = held.hold.watches.iter();
                monotonic_ms >= held.hold.patience.deadline_ms
                    || watches.any(|watch| hub.signals().has_moved(*watch))
            })?;
            let number = *number;
            let held = self.held.remove(&number)?;
            match self.ask_again(number, held) {
                Reached::Now(released) => return Some((number, released)),
                Reached::Held(..) | Reached::Nobody => {}
            }
        }
    }

    fn ask(&mut self, waiting: Waiting, patience: Option<Patience>) -> Reached<Released> {
        self.next_held += 1;
        self.put(self.next_held, waiting, patience)
    }

    fn ask_again(&mut self, number: u64, held: Held) -> Reached<Released> {
        self.put(number, held.waiting, Some(held.hold.patience))
    }

    fn put(
        &mut self,
        number: u64,
        waiting: Waiting,
        patience: Option<Patience>,
    ) -> Reached<Released> {
        let Some(hub) = &self.hub else {
            return Reached::Nobody;
        };
        let hold = match &waiting {
            Waiting::Status {
                caller,
                command,
                wait_seconds,
            } => {
                let asked = hub.get_graph_run(caller, command, *wait_seconds, None, patience);
                match now(asked) {
                    Ok(Reply::Hold(hold)) => hold,
                    Ok(Reply::Done(answer)) => {
                        return Reached::Now(Released::Told(Box::new(Ok(Told::Status(Box::new(
                            answer,
                        ))))));
                    }
                    Err(error) => return Reached::Now(Released::Told(Box::new(Err(error)))),
                }
            }
            Waiting::Wake {
                desktop, request, ..
            } => match hub.wait(desktop, request, patience) {
                Ok(Reply::Hold(hold)) => hold,
                Ok(Reply::Done(answer)) => {
                    return Reached::Now(Released::Woken(Ok(Answer::Wait(answer))));
                }
                Err(error) => return Reached::Now(Released::Woken(Err(failure(error)))),
            },
        };
        let until_ms = self.started_ms + hold.patience.deadline_ms;
        self.held.insert(number, Held { waiting, hold });
        Reached::Held(number, until_ms)
    }
}

async fn answer<S: Store>(hub: &Hub<S>, caller: &Connection, ask: &Ask) -> Result<Told, HubError> {
    Ok(match ask {
        Ask::Run {
            session,
            argument,
            key,
        } => {
            let arguments = Map::from_iter([("n".to_owned(), Value::from(*argument))]);
            Told::Run(
                hub.run_graph_session(caller, session, arguments, key)
                    .await?,
            )
        }
        Ask::Status { .. } => return Err(HubError::Unavailable),
        Ask::Cancel { command } => Told::Cancel(hub.cancel_graph_run(caller, command).await?),
        Ask::Link {
            project,
            label,
            key,
        } => {
            let new = NewLink {
                project_id: project,
                label,
                reference: None,
                idempotency_key: key,
                host_hint: None,
            };
            Told::Link(hub.link_current_chat(caller, new).await?)
        }
        Ask::Inbox { link } => Told::Inbox(hub.read_linked_chat_tasks(caller, link).await?),
        Ask::Claim { link, task } => {
            Told::Claim(hub.claim_linked_chat_task(caller, link, task).await?)
        }
        Ask::Submit {
            link,
            task,
            claim,
            status,
            result,
        } => Told::Submit(
            hub.submit_linked_chat_result(caller, link, task, claim, status, result)
                .await?,
        ),
        Ask::Upload {
            link,
            task,
            claim,
            artifact,
            text,
        } => {
            let new = NewUpload {
                chat_link_id: link,
                task_id: task,
                claim_id: claim,
                artifact_id: artifact,
                name: "notes.txt",
                media_type: "text/plain",
                content: text.clone().into_bytes(),
            };
            Told::Upload(hub.upload_linked_chat_artifact(caller, new).await?)
        }
    })
}

/// What the desktop's client makes of a hub's error.
fn failure(error: HubError) -> Failure {
    match error {
        HubError::Refused(refusal) => Failure::Refused(refusal),
        HubError::Invalid(_) => status(422),
        HubError::Unavailable => status(503),
    }
}

fn status(status: u16) -> Failure {
    Failure::Status {
        status,
        reason: "a virtual answer".to_owned(),
        retry_after_ms: None,
    }
}
