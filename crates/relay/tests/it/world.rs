//! A virtual desktop and the wire between it and the model hub: time, loss, crashes, a full disk.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use callboard_domain::graph_run::Completion;
use callboard_domain::{
    CommandId, Consent, ExecutionId, FinalStatus, Grant, GraphSessionId, ProjectId, Report,
    Timestamp,
};
use callboard_relay::{
    Answer, Call, CallId, Command, Config, Draw, Failure, Input, Now, Outcome, Output, ProjectView,
    Relay, Seen, Unfinished, View,
};
use callboard_wire::relay::{SessionInfo, WaitRequest, WaitResponse};

use crate::hub::Hub;

pub(crate) const PROJECT: ProjectId = ProjectId::from_bytes([0xaa; 16]);
pub(crate) const SESSIONS: u8 = 3;
const WAIT_MS: u64 = 25_000;
const STOP_MS: u64 = 500;
const REBOOT_MS: u64 = 2_000;

pub(crate) fn session(n: u8) -> GraphSessionId {
    GraphSessionId::from_bytes([n; 16])
}

/// A stream of pseudo-random numbers (xorshift64*), the same on every machine.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn percent(&mut self, chance: u8) -> bool {
        self.below(100) < u64::from(chance)
    }
}

impl Draw for Random {
    fn execution_id(&mut self) -> ExecutionId {
        let bytes = [self.next().to_be_bytes(), self.next().to_be_bytes()].concat();
        ExecutionId::from_bytes(bytes.try_into().unwrap())
    }

    fn below(&mut self, bound: u64) -> u64 {
        u64::try_from((u128::from(self.next()) * u128::from(bound)) >> 64).unwrap()
    }
}

/// What survives a crash.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) seen: Vec<(Command, Seen)>,
    pub(crate) outbox: BTreeMap<CommandId, (Completion, Option<String>)>,
    pub(crate) enabled: bool,
    pub(crate) acknowledged: bool,
    /// Shared sessions and their slugs.
    pub(crate) shared: BTreeMap<GraphSessionId, String>,
    pub(crate) full: bool,
}

impl Disk {
    fn set(&mut self, command: &Command, state: Seen) {
        self.seen.retain(|(known, _)| known.id != command.id);
        self.seen.push((command.clone(), state));
    }
}

impl View for Disk {
    fn seen(&self, id: CommandId) -> Option<Seen> {
        let row = self.seen.iter().find(|(command, _)| command.id == id);
        row.map(|(_, state)| *state)
    }

    fn unfinished(&self) -> Vec<Unfinished> {
        let open = self.seen.iter().filter_map(|(command, state)| {
            let (execution_id, running) = match state {
                Seen::Starting(id) => (*id, false),
                Seen::Running(id) => (*id, true),
                Seen::Done => return None,
            };
            let command = command.clone();
            Some(Unfinished {
                command,
                execution_id,
                running,
            })
        });
        open.collect()
    }

    fn outbox(&self) -> Vec<CommandId> {
        let waiting = self
            .outbox
            .iter()
            .filter(|(_, (_, parked))| parked.is_none());
        waiting.map(|(id, _)| *id).collect()
    }

    fn projects(&self) -> Vec<ProjectView> {
        if !self.enabled && self.acknowledged {
            return Vec::new();
        }
        let sessions = self.shared.iter().map(|(id, slug)| SessionInfo {
            graph_session_id: *id,
            name: slug.clone(),
            description: String::new(),
            slug: slug.clone(),
            version: 1,
            status: "ready".into(),
        });
        vec![ProjectView {
            project_id: PROJECT,
            enabled: self.enabled,
            sessions: sessions.collect(),
        }]
    }

    fn consent(&self, command: &Command) -> Consent {
        let slug = self.shared.get(&command.graph_session_id);
        Consent {
            project_enabled: self.enabled && command.project_id == PROJECT,
            session_shared: slug.is_some(),
            slug_unchanged: slug == Some(&command.slug),
        }
    }
}

#[derive(Debug)]
enum Happening {
    Tick,
    Reach {
        call: CallId,
        request: Call,
        completion: Option<Completion>,
        copy: bool,
    },
    Answer {
        call: CallId,
        answer: Result<Answer, Failure>,
    },
    WaitOver {
        call: CallId,
    },
    EngineEnds {
        execution_id: ExecutionId,
        status: FinalStatus,
    },
    Reboot,
}

/// How badly the wire behaves, in percent of the messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(crate) lose_request: u8,
    pub(crate) lose_answer: u8,
    pub(crate) duplicate: u8,
    pub(crate) delay_ms: u64,
}

pub(crate) struct World {
    pub(crate) now_ms: u64,
    /// Time that the monotonic clock did not see: sleep.
    pub(crate) slept_ms: u64,
    sequence: u64,
    happenings: BinaryHeap<Reverse<(u64, u64)>>,
    details: BTreeMap<u64, (u32, Happening)>,
    pub(crate) hub: Hub,
    pub(crate) hub_is_down: bool,
    /// Instead of the hub, this answers a call, when it has something to say.
    pub(crate) instead: Option<fn(&Call) -> Option<Failure>>,
    pub(crate) disk: Disk,
    pub(crate) relay: Relay,
    config: Config,
    pub(crate) is_up: bool,
    /// Counts the starts of the process: what was under way before a crash reaches nobody.
    life: u32,
    held: Option<(CallId, WaitRequest)>,
    running: BTreeMap<ExecutionId, CommandId>,
    pub(crate) begun: BTreeMap<CommandId, Vec<ExecutionId>>,
    pub(crate) finished: BTreeMap<CommandId, FinalStatus>,
    pub(crate) run_ms: fn(&mut Random) -> u64,
    pub(crate) faults: Faults,
    random: Random,
    tick_ms: u64,
    pub(crate) draw: Random,
    pub(crate) crash_after: Option<usize>,
    /// Every call that left the desktop, and when.
    pub(crate) sent: Vec<(u64, Call)>,
}

impl World {
    pub(crate) fn new(config: Config, seed: u64) -> Self {
        let shared = (1..=SESSIONS).map(|n| (session(n), format!("graph-{n}")));
        let disk = Disk {
            enabled: true,
            acknowledged: true,
            shared: shared.collect(),
            ..Disk::default()
        };
        Self {
            now_ms: 0,
            slept_ms: 0,
            sequence: 0,
            happenings: BinaryHeap::new(),
            details: BTreeMap::new(),
            hub: Hub::default(),
            hub_is_down: false,
            instead: None,
            disk,
            relay: Relay::new(config),
            config,
            is_up: true,
            life: 0,
            held: None,
            running: BTreeMap::new(),
            begun: BTreeMap::new(),
            finished: BTreeMap::new(),
            run_ms: |random| 1_000 + random.below(60_000),
            faults: Faults::default(),
            random: Random::new(seed),
            tick_ms: 0,
            draw: Random::new(seed ^ 0xdead_beef),
            crash_after: None,
            sent: Vec::new(),
        }
    }

    /// A world whose desktop has just started.
    pub(crate) fn started(config: Config, seed: u64) -> Self {
        let mut world = Self::new(config, seed);
        world.input(Input::Boot);
        world
    }

    pub(crate) fn wall(&self) -> Timestamp {
        let ms = i64::try_from(self.now_ms + self.slept_ms).unwrap();
        Timestamp::from_millis(1_796_000_000_000 + ms)
    }

    pub(crate) fn queue(&mut self, n: u8, session_n: u8) -> CommandId {
        let now = self.wall();
        let slug = format!("graph-{session_n}");
        let id = self.hub.queue(now, n, PROJECT, session(session_n), &slug);
        self.wake();
        id
    }

    pub(crate) fn cancel(&mut self, id: CommandId) {
        let now = self.wall();
        self.hub.request_cancel(now, id);
        self.wake();
    }

    /// Lets `ms` pass.
    pub(crate) fn pass(&mut self, ms: u64) {
        let until_ms = self.now_ms + ms;
        while let Some(Reverse((at_ms, _))) = self.happenings.peek().copied() {
            if at_ms > until_ms {
                break;
            }
            self.happen_next(at_ms);
        }
        self.now_ms = until_ms;
    }

    pub(crate) fn input(&mut self, input: Input) {
        if !self.is_up {
            return;
        }
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let now = Now {
                wall: self.wall(),
                monotonic_ms: self.now_ms,
            };
            let mut outputs = self
                .relay
                .step(now, input, &self.disk, &mut self.draw)
                .into_iter();
            while let Some(output) = outputs.next() {
                if self.crash_after == Some(0) {
                    return self.crash();
                }
                self.crash_after = self.crash_after.map(|left| left - 1);
                match self.perform(output) {
                    Ok(None) => {}
                    Ok(Some(decided)) => inputs.push(decided),
                    Err(refused) => {
                        let outputs = std::iter::once(*refused).chain(outputs).collect();
                        let reason = "no space left on device".to_owned();
                        inputs.push(Input::NotPerformed { outputs, reason });
                        break;
                    }
                }
            }
        }
        let next_ms = self.relay.next_deadline_ms(self.now_ms);
        if next_ms < u64::MAX && next_ms != self.tick_ms {
            self.tick_ms = next_ms;
            self.at(next_ms, self.life, Happening::Tick);
        }
    }

    fn perform(&mut self, output: Output) -> Result<Option<Input>, Box<Output>> {
        let durable = !matches!(
            output,
            Output::Send { .. }
                | Output::Abandon { .. }
                | Output::BeginExecution { .. }
                | Output::StopExecution { .. }
        );
        if durable && self.disk.full {
            return Err(Box::new(output));
        }
        match output {
            Output::RecordStarting {
                command,
                execution_id,
                ..
            } => {
                assert_eq!(
                    self.disk.seen(command.id),
                    None,
                    "a known command is not begun again"
                );
                self.disk.set(&command, Seen::Starting(execution_id));
            }
            Output::RecordRunning {
                command,
                execution_id,
            } => {
                let grant = self.disk.consent(&command).grant();
                if grant == Grant::Given {
                    self.disk.set(&command, Seen::Running(execution_id));
                }
                return Ok(Some(Input::Decided {
                    command_id: command.id,
                    grant,
                }));
            }
            Output::RecordDone {
                command,
                completion,
            } => {
                self.finished.insert(command.id, completion.status);
                self.disk.set(&command, Seen::Done);
                self.disk.outbox.insert(command.id, (completion, None));
            }
            Output::RecordRefused { command, .. } => self.disk.set(&command, Seen::Done),
            Output::DeleteCompletion { command_id } => {
                self.disk.outbox.remove(&command_id);
            }
            Output::ParkCompletion {
                command_id,
                refusal,
            } => {
                if let Some((_, parked)) = self.disk.outbox.get_mut(&command_id) {
                    *parked = Some(refusal.code().to_owned());
                }
            }
            Output::AcknowledgeDisabled { .. } => self.disk.acknowledged = true,
            Output::RecordDesktop { .. } => {}
            Output::Send { call, request } => self.send(call, request),
            Output::Abandon { call } => self.held = self.held.take().filter(|(id, _)| *id != call),
            Output::BeginExecution {
                command_id,
                execution_id,
            } => {
                self.begin(command_id, execution_id);
            }
            Output::StopExecution { execution_id } => {
                let status = FinalStatus::Cancelled;
                let ends = Happening::EngineEnds {
                    execution_id,
                    status,
                };
                self.at(self.now_ms + STOP_MS, self.life, ends);
            }
        }
        Ok(None)
    }

    fn begin(&mut self, command_id: CommandId, execution_id: ExecutionId) {
        let row = self
            .disk
            .seen
            .iter()
            .find(|(command, _)| command.id == command_id);
        let (command, state) = row.expect("begun commands are on disk");
        assert_eq!(
            *state,
            Seen::Running(execution_id),
            "the row is there before the engine"
        );
        assert_eq!(
            self.disk.consent(command).grant(),
            Grant::Given,
            "no run without consent"
        );
        let at_hub = self.hub.commands[&command_id].run.execution();
        assert_eq!(
            at_hub.map(|execution| execution.id),
            Some(execution_id),
            "begun when granted"
        );
        let begun = self.begun.entry(command_id).or_default();
        begun.push(execution_id);
        assert_eq!(begun.len(), 1, "one execution a command");
        self.running.insert(execution_id, command_id);
        assert!(
            self.running.len() <= self.config.slots,
            "no more runs than slots"
        );
        let ends_ms = self.now_ms + (self.run_ms)(&mut self.random);
        let status = FinalStatus::Completed;
        self.at(
            ends_ms,
            self.life,
            Happening::EngineEnds {
                execution_id,
                status,
            },
        );
    }

    fn send(&mut self, call: CallId, request: Call) {
        self.sent.push((self.now_ms, request.clone()));
        let completion = match &request {
            Call::Complete(id) => {
                let (completion, parked) = &self.disk.outbox[id];
                assert_eq!(*parked, None, "a parked completion is not sent");
                Some(completion.clone())
            }
            Call::WhoAmI | Call::Sync(_) | Call::Start(..) | Call::Control(..) | Call::Wait(_) => {
                None
            }
        };
        if self.hub_is_down || self.random.percent(self.faults.lose_request) {
            return self.no_answer(call);
        }
        let delay_ms = self.random.below(self.faults.delay_ms);
        if self.random.percent(self.faults.duplicate) && !matches!(request, Call::Wait(_)) {
            let later_ms = self.now_ms + delay_ms + self.random.below(30_000);
            let (request, completion) = (request.clone(), completion.clone());
            let copy = Happening::Reach {
                call,
                request,
                completion,
                copy: true,
            };
            self.at(later_ms, self.life, copy);
        }
        let reach = Happening::Reach {
            call,
            request,
            completion,
            copy: false,
        };
        self.at(self.now_ms + delay_ms, self.life, reach);
    }

    fn no_answer(&mut self, call: CallId) {
        let answer = Err(Failure::NoAnswer {
            reason: "timed out".into(),
        });
        self.at(
            self.now_ms + 10_000,
            self.life,
            Happening::Answer { call, answer },
        );
    }

    /// A request reaches the hub, even if its sender is gone.
    fn reach(&mut self, life: u32, call: CallId, request: Call, completion: Option<Completion>) {
        let now = self.wall();
        let refused = Failure::Refused;
        let instead = self.instead.and_then(|instead| instead(&request));
        let answer = match request {
            _ if instead.is_some() => Err(instead.unwrap()),
            Call::WhoAmI => Ok(Answer::WhoAmI(self.hub.who_am_i())),
            Call::Sync(request) => Ok(Answer::Sync(self.hub.sync(&request))),
            Call::Start(id, request) => {
                let started = self.hub.start(now, id, request.execution_id);
                started.map(Answer::Start).map_err(refused)
            }
            Call::Control(id, _) => self.hub.control(id).map(Answer::Control).map_err(refused),
            Call::Complete(id) => {
                let completed = self.hub.complete(now, id, completion.unwrap());
                completed.map(Answer::Complete).map_err(refused)
            }
            Call::Wait(request) => match self.hub.wake(&request) {
                Some(response) => Ok(Answer::Wait(response)),
                None => {
                    self.held = Some((call, request));
                    return self.at(self.now_ms + WAIT_MS, life, Happening::WaitOver { call });
                }
            },
        };
        self.answer(life, call, answer);
    }

    fn answer(&mut self, life: u32, call: CallId, answer: Result<Answer, Failure>) {
        if self.random.percent(self.faults.lose_answer) {
            return self.no_answer(call);
        }
        let at_ms = self.now_ms + self.random.below(self.faults.delay_ms);
        if self.random.percent(self.faults.duplicate) {
            let answer = answer.clone();
            self.at(at_ms + 1, life, Happening::Answer { call, answer });
        }
        self.at(at_ms, life, Happening::Answer { call, answer });
    }

    /// Lets the hub answer the held wake-up call if its projects moved.
    fn wake(&mut self) {
        let Some((call, request)) = self.held.take() else {
            return;
        };
        match self.hub.wake(&request) {
            Some(response) => self.answer(self.life, call, Ok(Answer::Wait(response))),
            None => self.held = Some((call, request)),
        }
    }

    /// Queues a run whose start the hub grants without the desktop hearing of it.
    pub(crate) fn queue_whose_grant_is_lost(&mut self, n: u8, session_n: u8) -> CommandId {
        let id = self.queue(n, session_n);
        while self.disk.seen(id).is_none() {
            let Some(Reverse((at_ms, _))) = self.happenings.peek().copied() else {
                break;
            };
            self.happen_next(at_ms);
        }
        self.faults.lose_answer = 100;
        self.pass(0);
        self.faults.lose_answer = 0;
        id
    }

    fn happen_next(&mut self, at_ms: u64) {
        self.now_ms = self.now_ms.max(at_ms);
        if let Some(Reverse((_, sequence))) = self.happenings.pop()
            && let Some((life, happening)) = self.details.remove(&sequence)
        {
            self.happen(life, happening);
        }
    }

    /// Answers the held wake-up call at once, with nothing.
    pub(crate) fn answer_wait_empty(&mut self) {
        if let Some((call, _)) = self.held.take() {
            let answer = Ok(Answer::Wait(WaitResponse { wake: Vec::new() }));
            self.input(Input::Answered { call, answer });
        }
    }

    /// Cuts the held wake-up call off.
    pub(crate) fn break_wait(&mut self) {
        self.fail_wait(Failure::NoAnswer {
            reason: "connection reset".into(),
        });
    }

    /// Ends the held wake-up call with a failure.
    pub(crate) fn fail_wait(&mut self, failure: Failure) {
        let (call, _) = self.held.take().expect("a held call");
        let answer = Err(failure);
        self.input(Input::Answered { call, answer });
    }

    pub(crate) fn crash(&mut self) {
        self.is_up = false;
        self.life += 1;
        self.crash_after = None;
        self.held = None;
        self.running.clear();
        self.relay = Relay::new(self.config);
        self.tick_ms = 0;
        self.at(self.now_ms + REBOOT_MS, self.life, Happening::Reboot);
    }

    fn happen(&mut self, life: u32, happening: Happening) {
        let alive = life == self.life;
        match happening {
            Happening::Reach {
                call,
                request,
                completion,
                copy,
            } => {
                let call = if copy || !alive { None } else { Some(call) };
                match call {
                    Some(call) => self.reach(life, call, request, completion),
                    None if matches!(request, Call::Wait(_)) => {}
                    // Nobody hears the answer.
                    None => self.reach_unheard(request, completion),
                }
            }
            _ if !alive => {}
            Happening::Tick if self.tick_ms != self.now_ms => {}
            Happening::Tick => {
                self.tick_ms = 0;
                self.input(Input::Tick);
            }
            Happening::Answer { call, answer } => self.input(Input::Answered { call, answer }),
            Happening::WaitOver { call } => {
                if self.held.as_ref().is_some_and(|(held, _)| *held == call) {
                    self.held = None;
                    let answer = Ok(Answer::Wait(WaitResponse { wake: Vec::new() }));
                    self.answer(life, call, answer);
                }
            }
            Happening::EngineEnds {
                execution_id,
                status,
            } => {
                if self.running.remove(&execution_id).is_some() {
                    let report = Report {
                        result: Some(format!("\"{execution_id}\"")),
                        ..Report::default()
                    };
                    let outcome = Outcome { status, report };
                    self.input(Input::Finished {
                        execution_id,
                        outcome,
                    });
                }
            }
            Happening::Reboot => {
                self.is_up = true;
                self.input(Input::Boot);
            }
        }
    }

    fn reach_unheard(&mut self, request: Call, completion: Option<Completion>) {
        let now = self.wall();
        match request {
            Call::Start(id, request) => drop(self.hub.start(now, id, request.execution_id)),
            Call::Complete(id) => drop(self.hub.complete(now, id, completion.unwrap())),
            // A late copy of an older sync would list again what was withdrawn; consent holds
            // anyway, but the command would wait for its expiry.
            Call::Sync(_) | Call::WhoAmI | Call::Control(..) | Call::Wait(_) => {}
        }
    }

    fn at(&mut self, at_ms: u64, life: u32, happening: Happening) {
        self.sequence += 1;
        self.details.insert(self.sequence, (life, happening));
        self.happenings.push(Reverse((at_ms, self.sequence)));
    }
}
