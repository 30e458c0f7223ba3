//! The virtual world: one clock, one queue of happenings, a wire that loses, doubles and delays,
//! a hub, desktops that crash between any two outputs.

mod desktop;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use callboard_domain::limits::SWEEP_INTERVAL_MS;
use callboard_domain::{CommandId, ExecutionId, ProjectId, Timestamp, WorkerId};
use callboard_fleet::scheduler::CallId as EngineCall;
use callboard_hub::{Hub, HubError};
use callboard_relay::{Answer, Call, CallId, Config, Failure};
use callboard_store::Store;
use callboard_wire::relay::CompleteRequest;

pub(crate) use desktop::{Desktop, ResultSize};

use crate::engine::Script;
use crate::hub_side::{Ask, HubSide, Reached, Released, Told, now};
use crate::port::Port;
use crate::rows::Seen;
use crate::witness::Witness;
use crate::{Bug, Random};

/// When every world begins: 2026-11-30, in the afternoon.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_796_000_000_000);
/// How long anybody waits for an answer that does not come.
pub(crate) const PATIENCE_MS: u64 = 10_000;

/// How badly the wire behaves: percent of the messages, and the longest delay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Requests that do not arrive.
    pub lose_request: u64,
    /// Answers that do not arrive.
    pub lose_answer: u64,
    /// Requests of a desktop that arrive twice.
    pub duplicate: u64,
    /// Longest time that a message is under way, in milliseconds.
    pub delay_ms: u64,
}

/// How long the model calls of a run take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Durations {
    /// One call; the published distribution, see [`lognormal_ms`].
    Published,
    /// One call of this length, in milliseconds.
    Fixed(u64),
    /// One to three calls; now and then one fails or the result is too long.
    Mixed,
}

/// The published distribution of a Graph's duration: lognormal with median 60 s, at least 5 s. The
/// deviation of 0.8 is the round value that fits the published calls a run.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "seconds of a day at most, and never negative"
)]
pub(crate) fn lognormal_ms(random: &mut Random) -> u64 {
    let seconds = 60.0 * libm::exp(0.8 * random.normal());
    (seconds.clamp(5.0, 86_400.0) * 1_000.0) as u64
}

/// What the world tells whoever drives it.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "handed over once and taken apart at once"
)]
pub(crate) enum Notice {
    /// An agent's call ended; without an answer when none came in time.
    Told {
        /// The number that [`World::ask`] gave.
        call: u64,
        /// Who asked.
        agent: usize,
        /// What was asked.
        ask: Ask,
        /// What came back.
        told: Option<Result<Told, HubError>>,
    },
    /// A timer of [`World::after`] rang.
    Timer(u64),
}

#[derive(Debug)]
enum Happening {
    Tick {
        desktop: usize,
        life: u32,
    },
    Reach {
        desktop: usize,
        life: u32,
        call: CallId,
        request: Call,
        completion: Option<CompleteRequest>,
        is_copy: bool,
    },
    Answer {
        desktop: usize,
        life: u32,
        call: CallId,
        answer: Result<Answer, Failure>,
    },
    HeldUntil,
    CallEnds {
        desktop: usize,
        life: u32,
        execution_id: ExecutionId,
        call: EngineCall,
        is_aborted: bool,
    },
    Reboot {
        desktop: usize,
    },
    HubStarts,
    Sweep,
    Asked {
        call: u64,
    },
    Told {
        call: u64,
        told: Option<Result<Told, HubError>>,
    },
    Timer(u64),
}

#[derive(Debug)]
struct Entry {
    at_ms: u64,
    sequence: u64,
    happening: Box<Happening>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ms, self.sequence).cmp(&(other.at_ms, other.sequence))
    }
}

#[derive(Debug, Clone, Copy)]
enum Holder {
    Desktop {
        desktop: usize,
        life: u32,
        call: CallId,
    },
    Agent {
        call: u64,
    },
}

#[derive(Debug)]
struct AgentCall {
    agent: usize,
    ask: Ask,
}

/// What a world is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// The seed of all streams.
    pub(crate) seed: u64,
    /// The relay of each desktop.
    pub(crate) relay: Config,
    /// How long runs take.
    pub(crate) durations: Durations,
    /// The lease of tasks with several candidates, in milliseconds.
    pub(crate) task_lease_ms: u64,
    /// Scripts are programs in the JavaScript engine.
    pub(crate) javascript: bool,
    /// A planted fault.
    pub(crate) bug: Option<Bug>,
}

/// One history under way.
#[derive(Debug)]
pub(crate) struct World<S> {
    now_ms: u64,
    sequence: u64,
    queue: BinaryHeap<Reverse<Entry>>,
    setup: Setup,
    hub: HubSide<S>,
    desktops: Vec<Desktop>,
    tokens: Vec<String>,
    holders: BTreeMap<u64, Holder>,
    calls: BTreeMap<u64, AgentCall>,
    next_call: u64,
    wire: Random,
    durations: Random,
    crashes: Random,
    /// How the wire behaves now.
    pub(crate) faults: Faults,
    /// The hub is not reached by anybody.
    pub(crate) is_hub_cut_off: bool,
    /// Completions that get lost on their way, the next ones first.
    pub(crate) lose_completions: u64,
    seen: Vec<Seen>,
    /// What must hold.
    pub(crate) witness: Witness,
    hash: u64,
    events: u64,
    log: Option<Vec<String>>,
    /// Every call that a desktop made and when, once [`Self::keep_sent`] was called.
    sent: Option<Vec<(u64, usize, &'static str)>>,
}

impl<S: Store + Clone> World<S> {
    /// A world with a running hub and nobody else.
    pub(crate) fn new(store: S, setup: Setup) -> Self {
        let seed = setup.seed;
        let mut world = Self {
            now_ms: 0,
            sequence: 0,
            queue: BinaryHeap::new(),
            setup,
            hub: HubSide::new(store, seed, START, setup.task_lease_ms, setup.bug),
            desktops: Vec::new(),
            tokens: Vec::new(),
            holders: BTreeMap::new(),
            calls: BTreeMap::new(),
            next_call: 0,
            wire: Random::stream(seed, "wire"),
            durations: Random::stream(seed, "durations"),
            crashes: Random::stream(seed, "crashes"),
            faults: Faults::default(),
            is_hub_cut_off: false,
            lose_completions: 0,
            seen: Vec::new(),
            witness: Witness::default(),
            hash: 0xcbf2_9ce4_8422_2325,
            events: 0,
            log: None,
            sent: None,
        };
        world.at(SWEEP_INTERVAL_MS, Happening::Sweep);
        world
    }

    /// Keeps a readable line of everything that happens from here on.
    pub(crate) fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// Keeps every call that a desktop makes from here on.
    #[cfg(test)]
    pub(crate) fn keep_sent(&mut self) {
        self.sent = Some(Vec::new());
    }

    /// The calls since [`Self::keep_sent`]: world time, desktop and name.
    #[cfg(test)]
    pub(crate) fn sent(&self) -> &[(u64, usize, &'static str)] {
        self.sent.as_deref().unwrap_or_default()
    }

    /// The lines since [`Self::keep_log`].
    pub(crate) fn take_log(&mut self) -> Vec<String> {
        self.log.take().unwrap_or_default()
    }

    /// Writes a line, when lines are kept.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        let at_ms = self.now_ms;
        if let Some(log) = &mut self.log {
            log.push(format!("{:>9.3}  {}", seconds(at_ms), line()));
        }
    }

    /// Milliseconds since the world began.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Happenings so far.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// A digest of everything that happened, in its order.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The desktops, in the order in which they were added.
    pub(crate) fn desktops(&self) -> &[Desktop] {
        &self.desktops
    }

    /// Moves the hub's wall clock.
    pub(crate) fn jump_hub_clock(&mut self, by_ms: i64) {
        self.note(|| format!("the hub's clock jumps by {by_ms} ms"));
        self.hub.jump(by_ms);
    }

    /// The hub dies at an operation of its store to come.
    pub(crate) fn hub_dies(&mut self, death: crate::port::Death) {
        self.note(|| format!("the hub is to die: {death:?}"));
        self.hub.port().dies(death);
    }

    /// Adds a connection with both scopes; its number.
    ///
    /// # Panics
    /// When the hub refuses it.
    #[allow(clippy::expect_used, reason = "a world that cannot be made is a bug")]
    pub(crate) fn add_agent(&mut self, name: &str, projects: &[&str]) -> usize {
        let hub = self.hub.hub().expect("the hub runs");
        let projects: Vec<_> = projects.iter().map(ToString::to_string).collect();
        let scopes = callboard_domain::Scopes::ALL;
        let created = now(hub.create_connection(name, &projects, scopes));
        self.tokens.push(created.expect("a new connection").token);
        self.tokens.len() - 1
    }

    /// Adds a project.
    ///
    /// # Panics
    /// When the hub refuses it.
    #[allow(clippy::expect_used, reason = "a world that cannot be made is a bug")]
    pub(crate) fn add_project(&mut self, name: &str) -> ProjectId {
        let hub = self.hub.hub().expect("the hub runs");
        now(hub.create_project(name)).expect("a new project").id
    }

    /// Adds a desktop that is switched off; its number.
    ///
    /// # Panics
    /// When the hub refuses it.
    #[allow(clippy::expect_used, reason = "a world that cannot be made is a bug")]
    pub(crate) fn add_desktop(&mut self, name: &str) -> usize {
        let hub = self.hub.hub().expect("the hub runs");
        let created = now(hub.create_desktop(name)).expect("a new desktop");
        let number = self.desktops.len();
        let mut relay = self.setup.relay;
        if self.setup.bug == Some(Bug::SlotIgnored) {
            relay.slots += 1;
        }
        let draw = Random::stream(self.setup.seed, &format!("desktop {number}"));
        let worker = u8::try_from(number).unwrap_or(u8::MAX);
        let worker = WorkerId::from_bytes([worker; 16]);
        let desktop = Desktop::new(created.token, worker, relay, draw);
        self.desktops.push(desktop);
        number
    }

    /// An agent calls a tool; the number under which [`Notice::Told`] comes.
    pub(crate) fn ask(&mut self, agent: usize, ask: Ask) -> u64 {
        self.next_call += 1;
        let call = self.next_call;
        self.note(|| format!("agent {agent} asks ({call}): {ask:?}"));
        self.calls.insert(call, AgentCall { agent, ask });
        if self.is_hub_cut_off || self.wire.percent(self.faults.lose_request) {
            self.at(
                self.now_ms + PATIENCE_MS,
                Happening::Told { call, told: None },
            );
        } else {
            let delay_ms = self.delay_ms();
            self.at(self.now_ms + delay_ms, Happening::Asked { call });
        }
        call
    }

    /// The owner does something on the hub's own machine; `None` when the hub is down or dies over
    /// it.
    pub(crate) fn owner<T>(&mut self, act: impl AsyncFnOnce(&Hub<Port<S>>) -> T) -> Option<T> {
        let done = self.hub.hub().map(|hub| now(act(hub)));
        let is_dead = self.is_hub_dead();
        self.settle_hub();
        done.filter(|_| !is_dead)
    }

    /// What the hub answers an agent at this instant, without a wire between; `None` when it is
    /// down, dies over it or holds the call.
    pub(crate) fn probe(&mut self, agent: usize, ask: &Ask) -> Option<Result<Told, HubError>> {
        let token = self.tokens.get(agent)?.clone();
        let reached = self.hub.agent_call(&token, ask);
        let is_dead = self.is_hub_dead();
        let told = match reached {
            Reached::Now(told) if !is_dead => Some(told),
            Reached::Held(number, _) => {
                self.hub.hang_up(number);
                None
            }
            Reached::Now(_) | Reached::Nobody => None,
        };
        self.settle_hub();
        told
    }

    /// The same for a desktop.
    pub(crate) fn probe_as_desktop(
        &mut self,
        desktop: usize,
        call: &Call,
        completion: Option<CompleteRequest>,
    ) -> Option<Result<Answer, Failure>> {
        let (token, worker) = self.desktops.get(desktop)?.credentials();
        let reached = self.hub.desktop_call(&token, worker, call, completion);
        let is_dead = self.is_hub_dead();
        self.settle_hub();
        match reached {
            Reached::Now(answer) if !is_dead => Some(answer),
            Reached::Now(_) | Reached::Held(..) | Reached::Nobody => None,
        }
    }

    /// Ends every fault of the wire and of the machines.
    pub(crate) fn heal(&mut self) {
        self.note(|| "everything heals".to_owned());
        self.faults = Faults::default();
        self.is_hub_cut_off = false;
        self.hub.port().spare();
        for desktop in &mut self.desktops {
            desktop.heal();
        }
    }

    /// Rings after this time, as [`Notice::Timer`].
    pub(crate) fn after(&mut self, delay_ms: u64, timer: u64) {
        self.at(self.now_ms + delay_ms, Happening::Timer(timer));
    }

    /// The next thing that whoever drives the world must hear of; `None` once it is `until_ms`.
    pub(crate) fn next(&mut self, until_ms: u64) -> Option<Notice> {
        loop {
            if let Some(notice) = self.step(until_ms)? {
                return Some(notice);
            }
        }
    }

    /// One happening, and what whoever drives the world must hear of it; `None` once it is
    /// `until_ms`.
    pub(crate) fn step(&mut self, until_ms: u64) -> Option<Option<Notice>> {
        let Reverse(first) = self.queue.peek()?;
        if first.at_ms > until_ms {
            self.pass(until_ms);
            return None;
        }
        let Reverse(entry) = self.queue.pop()?;
        self.pass(entry.at_ms);
        self.events += 1;
        self.mix(entry.at_ms);
        self.mix(entry.sequence);
        Some(self.happen(*entry.happening))
    }

    /// Lets the world go on until `until_ms`, without a driver.
    pub(crate) fn run(&mut self, until_ms: u64) {
        while self.next(until_ms).is_some() {}
    }

    fn pass(&mut self, at_ms: u64) {
        if at_ms > self.now_ms {
            self.now_ms = at_ms;
            self.witness.now_ms = at_ms;
            self.hub.pass(at_ms);
        }
    }

    fn at(&mut self, at_ms: u64, happening: Happening) {
        self.sequence += 1;
        self.queue.push(Reverse(Entry {
            at_ms,
            sequence: self.sequence,
            happening: Box::new(happening),
        }));
    }

    /// Adds to the history's digest (FNV-1a over words, rotated).
    pub(crate) fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(13);
    }

    fn mix_text(&mut self, text: &str) {
        for chunk in text.as_bytes().chunks(8) {
            let word = chunk
                .iter()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.mix(word);
        }
    }

    fn delay_ms(&mut self) -> u64 {
        if self.faults.delay_ms == 0 {
            return 0;
        }
        self.wire.below(self.faults.delay_ms + 1)
    }

    fn happen(&mut self, happening: Happening) -> Option<Notice> {
        match happening {
            Happening::Tick { desktop, life } => self.tick(desktop, life),
            Happening::Reach {
                desktop,
                life,
                call,
                request,
                completion,
                is_copy,
            } => self.reach(desktop, life, call, &request, completion, is_copy),
            Happening::Answer {
                desktop,
                life,
                call,
                answer,
            } => self.answered(desktop, life, call, answer),
            Happening::HeldUntil => self.settle_hub(),
            Happening::CallEnds {
                desktop,
                life,
                execution_id,
                call,
                is_aborted,
            } => self.engine_call_ends(desktop, life, execution_id, call, is_aborted),
            Happening::Reboot { desktop } => self.boot(desktop),
            Happening::HubStarts => {
                if self.hub.hub().is_none() {
                    self.note(|| "the hub starts".to_owned());
                    self.hub.start(self.now_ms);
                }
            }
            Happening::Sweep => {
                self.hub.sweep();
                self.settle_hub();
                self.at(self.now_ms + SWEEP_INTERVAL_MS, Happening::Sweep);
            }
            Happening::Asked { call } => self.asked(call),
            Happening::Told { call, told } => return self.told(call, told),
            Happening::Timer(timer) => return Some(Notice::Timer(timer)),
        }
        None
    }

    fn told(&mut self, call: u64, told: Option<Result<Told, HubError>>) -> Option<Notice> {
        let AgentCall { agent, ask } = self.calls.remove(&call)?;
        self.note(|| match &told {
            Some(told) => format!("agent {agent} is told ({call}): {told:?}"),
            None => format!("agent {agent} hears nothing ({call})"),
        });
        Some(Notice::Told {
            call,
            agent,
            ask,
            told,
        })
    }

    /// An agent's call reaches the hub.
    fn asked(&mut self, call: u64) {
        let Some(AgentCall { agent, ask }) = self.calls.get(&call) else {
            return;
        };
        let (agent, ask) = (*agent, ask.clone());
        let Some(token) = self.tokens.get(agent).cloned() else {
            return;
        };
        let reached = self.hub.agent_call(&token, &ask);
        self.settle_rows();
        match reached {
            Reached::Now(told) if !self.is_hub_dead() => {
                let wall = self.hub.wall();
                self.witness.answered(agent, wall, &ask, &told);
                self.tell(call, told);
            }
            Reached::Held(number, until_ms) => {
                self.holders.insert(number, Holder::Agent { call });
                self.at(until_ms, Happening::HeldUntil);
            }
            Reached::Now(_) | Reached::Nobody => self.tell_nothing(call),
        }
        self.settle_hub();
    }

    fn tell(&mut self, call: u64, told: Result<Told, HubError>) {
        if self.is_hub_cut_off || self.wire.percent(self.faults.lose_answer) {
            return self.tell_nothing(call);
        }
        match &told {
            Ok(told) => told.digest(|text| self.mix_text(text)),
            Err(error) => self.mix_text(&error.to_string()),
        }
        let at_ms = self.now_ms + self.delay_ms();
        let told = Some(told);
        self.at(at_ms, Happening::Told { call, told });
    }

    fn tell_nothing(&mut self, call: u64) {
        self.at(
            self.now_ms + PATIENCE_MS,
            Happening::Told { call, told: None },
        );
    }

    /// Hands the witness what passed between hub and store.
    fn settle_rows(&mut self) {
        let mut seen = std::mem::take(&mut self.seen);
        self.hub.port().take_seen(&mut seen);
        self.witness.rows(self.hub.wall(), &seen);
        self.seen = seen;
    }

    fn is_hub_dead(&self) -> bool {
        self.hub.port().is_dead()
    }

    /// After anything that happened at the hub: the rows, its death, the calls it holds.
    fn settle_hub(&mut self) {
        self.settle_rows();
        if self.hub.port().take_death() {
            self.hub_died();
        }
        while let Some((number, released)) = self.hub.released(self.now_ms) {
            self.settle_rows();
            let dead = self.is_hub_dead();
            let Some(holder) = self.holders.remove(&number) else {
                continue;
            };
            match (holder, released) {
                _ if dead => self.holders_hear_nothing(holder),
                (Holder::Agent { call }, Released::Told(told)) => self.tell(call, *told),
                (
                    Holder::Desktop {
                        desktop,
                        life,
                        call,
                    },
                    Released::Woken(answer),
                ) => self.answer(desktop, life, call, answer),
                (Holder::Agent { .. } | Holder::Desktop { .. }, _) => {}
            }
        }
        if self.hub.port().take_death() {
            self.hub_died();
        }
    }

    fn hub_died(&mut self) {
        self.note(|| "the hub dies".to_owned());
        for number in self.hub.kill() {
            if let Some(holder) = self.holders.remove(&number) {
                self.holders_hear_nothing(holder);
            }
        }
        let down_ms = 1 + self.crashes.below(30_000);
        self.at(self.now_ms + down_ms, Happening::HubStarts);
    }

    fn holders_hear_nothing(&mut self, holder: Holder) {
        match holder {
            Holder::Agent { call } => self.tell_nothing(call),
            Holder::Desktop {
                desktop,
                life,
                call,
            } => self.no_answer(desktop, life, call),
        }
    }

    /// What a Graph does that begins now.
    fn script(&mut self) -> Script {
        match self.setup.durations {
            Durations::Published => Script::lasting(lognormal_ms(&mut self.durations)),
            Durations::Fixed(duration_ms) => Script::lasting(duration_ms),
            Durations::Mixed => {
                let calls = 1 + self.durations.below(3);
                let random = &mut self.durations;
                let calls_ms = (0..calls).map(|_| 1 + random.below(60_000)).collect();
                let size = ResultSize::draw(random);
                Script {
                    calls_ms,
                    fails: random.percent(10),
                    result: size.text(),
                }
            }
        }
    }

    /// How the hub's commands stand, in the witness's eyes.
    pub(crate) fn is_begun(&self, command_id: CommandId) -> bool {
        let facts = self.witness.commands().get(&command_id);
        facts.is_some_and(|facts| !facts.begun.is_empty())
    }
}

/// Milliseconds as seconds.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
pub(crate) fn seconds(duration_ms: u64) -> f64 {
    duration_ms as f64 / 1_000.0
}
