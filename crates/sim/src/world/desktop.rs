//! A virtual desktop: the real relay over a disk, with the real scheduler as its engine.

use std::collections::{BTreeMap, VecDeque};

use callboard_domain::limits::RESULT_UTF16_MAX;
use callboard_domain::{CommandId, ExecutionId, Grant, Timestamp, WorkerId};
use callboard_fleet::scheduler::CallId as EngineCall;
use callboard_relay::{
    Answer, Call, CallId, Config, Failure, Input, Now, Output, Relay, Seen, View as _,
};
use callboard_store::Store;
use callboard_wire::relay::{CompleteRequest, StartResponse};

use super::{Happening, Holder, PATIENCE_MS, START, World};
use crate::disk::Disk;
use crate::engine::{Effect, Engine};
use crate::hub_side::Reached;
use crate::{Bug, Random};

/// A desktop's machine.
#[derive(Debug)]
pub(crate) struct Desktop {
    /// What survives a crash.
    pub(crate) disk: Disk,
    /// Nobody reaches it, and it reaches nobody.
    pub(crate) is_offline: bool,
    /// The process dies after this many outputs.
    pub(crate) crash_after: Option<u64>,
    /// How long it stays down then, in milliseconds.
    pub(crate) down_ms: u64,
    token: String,
    worker: WorkerId,
    config: Config,
    relay: Relay,
    engine: Engine,
    is_up: bool,
    /// Counts the starts of the process: what was under way before a crash reaches nobody.
    life: u32,
    booted_ms: u64,
    /// What the monotonic clock did not see: sleep.
    slept_ms: u64,
    /// How far the wall clock is from the world's.
    skew_ms: i64,
    tick_ms: u64,
    held: BTreeMap<CallId, u64>,
    running: BTreeMap<ExecutionId, CommandId>,
    draw: Random,
}

/// How large the result of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultSize {
    /// A few characters.
    Small,
    /// More than the limit.
    TooLong,
}

impl ResultSize {
    /// One in fifty is too long.
    pub(crate) fn draw(random: &mut Random) -> Self {
        match random.below(50) {
            0 => Self::TooLong,
            _ => Self::Small,
        }
    }

    /// Such a result, as JSON text.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Small => "\"done\"".to_owned(),
            Self::TooLong => format!("\"{}\"", "x".repeat(RESULT_UTF16_MAX)),
        }
    }
}

impl Desktop {
    pub(super) fn new(token: String, worker: WorkerId, config: Config, draw: Random) -> Self {
        Self {
            disk: Disk::default(),
            is_offline: false,
            crash_after: None,
            down_ms: 2_000,
            token,
            worker,
            config,
            relay: Relay::new(config),
            engine: Engine::default(),
            is_up: false,
            life: 0,
            booted_ms: 0,
            slept_ms: 0,
            skew_ms: 0,
            tick_ms: 0,
            held: BTreeMap::new(),
            running: BTreeMap::new(),
            draw,
        }
    }

    /// Executions under way.
    pub(crate) fn running(&self) -> impl Iterator<Item = ExecutionId> {
        self.running.keys().copied()
    }

    /// Whether nothing runs, waits to be sent or waits to be acknowledged.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_up
            && self.running.is_empty()
            && self.disk.outbox().is_empty()
            && self.relay.is_quiet()
    }

    pub(super) fn credentials(&self) -> (String, WorkerId) {
        (self.token.clone(), self.worker)
    }

    pub(super) fn heal(&mut self) {
        self.is_offline = false;
        self.crash_after = None;
        self.disk.is_full = false;
    }

    fn wall(&self, now_ms: u64) -> Timestamp {
        let world = START.plus_ms(now_ms).as_millis();
        Timestamp::from_millis(world.saturating_add(self.skew_ms))
    }

    fn now(&self, now_ms: u64) -> Now {
        Now {
            wall: self.wall(now_ms),
            monotonic_ms: now_ms
                .saturating_sub(self.booted_ms)
                .saturating_sub(self.slept_ms),
        }
    }

    /// The world's time at a time of this machine's monotonic clock.
    fn world_ms(&self, monotonic_ms: u64) -> u64 {
        monotonic_ms
            .saturating_add(self.booted_ms)
            .saturating_add(self.slept_ms)
    }
}

impl<S: Store + Clone> World<S> {
    /// Changes what a desktop shares, and tells its relay.
    pub(crate) fn change_sharing(&mut self, desktop: usize, change: impl FnOnce(&mut Disk)) {
        if let Some(machine) = self.desktops.get_mut(desktop) {
            change(&mut machine.disk);
            self.feed(desktop, Input::SharingChanged);
        }
    }

    /// Changes a desktop's circumstances.
    pub(crate) fn change_desktop(&mut self, desktop: usize, change: impl FnOnce(&mut Desktop)) {
        if let Some(machine) = self.desktops.get_mut(desktop) {
            change(machine);
        }
    }

    /// Switches a desktop on.
    pub(crate) fn boot(&mut self, desktop: usize) {
        let now_ms = self.now_ms;
        let Some(machine) = self.desktops.get_mut(desktop) else {
            return;
        };
        if machine.is_up {
            return;
        }
        machine.is_up = true;
        (machine.booted_ms, machine.slept_ms) = (now_ms, 0);
        self.note(|| format!("desktop {desktop} starts"));
        self.feed(desktop, Input::Boot);
    }

    /// Ends a desktop's process without a word; it starts again after its time.
    pub(crate) fn crash(&mut self, desktop: usize) {
        let Some(machine) = self.desktops.get_mut(desktop) else {
            return;
        };
        if !machine.is_up {
            return;
        }
        machine.is_up = false;
        machine.life += 1;
        machine.crash_after = None;
        machine.engine = Engine::default();
        machine.running.clear();
        machine.relay = Relay::new(machine.config);
        machine.tick_ms = 0;
        let (held, down_ms) = (std::mem::take(&mut machine.held), machine.down_ms);
        for number in held.into_values() {
            self.hub.hang_up(number);
            self.holders.remove(&number);
        }
        self.note(|| format!("desktop {desktop} crashes"));
        self.at(self.now_ms + down_ms, Happening::Reboot { desktop });
    }

    /// The machine sleeps: its monotonic clock stands still, nothing happens on it.
    pub(crate) fn sleep(&mut self, desktop: usize, duration_ms: u64) {
        let Some(machine) = self.desktops.get_mut(desktop) else {
            return;
        };
        // The wall clock goes on with the world only once time has passed there; sleeping is
        // therefore a step of the wall clock that the monotonic one does not see.
        machine.skew_ms = machine
            .skew_ms
            .saturating_add(i64::try_from(duration_ms).unwrap_or(i64::MAX));
        self.note(|| format!("desktop {desktop} finds {duration_ms} ms gone"));
        self.feed(desktop, Input::Tick);
    }

    /// Sets a desktop's wall clock.
    pub(crate) fn set_skew(&mut self, desktop: usize, skew_ms: i64) {
        self.note(|| format!("desktop {desktop} has its clock {skew_ms} ms off"));
        if let Some(machine) = self.desktops.get_mut(desktop) {
            machine.skew_ms = skew_ms;
        }
    }

    /// The relay of a desktop hears something; what it orders is performed.
    pub(crate) fn feed(&mut self, desktop: usize, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now_ms = self.now_ms;
            let Some(machine) = self.desktops.get_mut(desktop) else {
                return;
            };
            if !machine.is_up {
                return;
            }
            let now = machine.now(now_ms);
            let outputs = machine
                .relay
                .step(now, input, &machine.disk, &mut machine.draw);
            let mut outputs = outputs.into_iter();
            while let Some(output) = outputs.next() {
                if self.dies_before(desktop) {
                    return self.crash(desktop);
                }
                match self.perform(desktop, &output) {
                    Ok(None) => {}
                    Ok(Some(decided)) => inputs.push_back(decided),
                    Err(crate::disk::Full) => {
                        let outputs = std::iter::once(output).chain(outputs).collect();
                        let reason = "no space left on device".to_owned();
                        inputs.push_back(Input::NotPerformed { outputs, reason });
                        break;
                    }
                }
            }
        }
        self.set_tick(desktop);
    }

    fn dies_before(&mut self, desktop: usize) -> bool {
        let Some(machine) = self.desktops.get_mut(desktop) else {
            return false;
        };
        match machine.crash_after {
            Some(0) => true,
            Some(left) => {
                machine.crash_after = Some(left - 1);
                false
            }
            None => false,
        }
    }

    fn set_tick(&mut self, desktop: usize) {
        let now_ms = self.now_ms;
        let Some(machine) = self.desktops.get_mut(desktop) else {
            return;
        };
        let monotonic_ms = machine.now(now_ms).monotonic_ms;
        let due_ms = machine.relay.next_deadline_ms(monotonic_ms);
        if due_ms == u64::MAX {
            return;
        }
        let at_ms = machine.world_ms(due_ms);
        if at_ms != machine.tick_ms {
            machine.tick_ms = at_ms;
            let life = machine.life;
            self.at(at_ms, Happening::Tick { desktop, life });
        }
    }

    pub(super) fn tick(&mut self, desktop: usize, life: u32) {
        let now_ms = self.now_ms;
        let machine = self.desktops.get_mut(desktop);
        let Some(machine) = machine.filter(|machine| machine.life == life) else {
            return;
        };
        // A later one replaced it.
        if machine.tick_ms == now_ms {
            machine.tick_ms = 0;
            self.feed(desktop, Input::Tick);
        }
    }

    fn perform(
        &mut self,
        desktop: usize,
        output: &Output,
    ) -> Result<Option<Input>, crate::disk::Full> {
        let bug = self.setup.bug;
        let now_ms = self.now_ms;
        let Some(machine) = self.desktops.get_mut(desktop) else {
            return Ok(None);
        };
        let mut grant = machine.disk.perform(output)?;
        self.mix_output(output);
        let Some(machine) = self.desktops.get_mut(desktop) else {
            return Ok(None);
        };
        match output {
            Output::RecordRunning {
                command,
                execution_id,
            } => {
                if bug == Some(Bug::ConsentIgnored) {
                    machine.disk.put(command, Seen::Running(*execution_id));
                    grant = Some(Grant::Given);
                }
                let command_id = command.id;
                return Ok(grant.map(|grant| Input::Decided { command_id, grant }));
            }
            Output::RecordDone {
                command,
                completion,
            } => {
                if bug == Some(Bug::OutboxLost) {
                    machine.disk.lose_completion(command.id);
                }
                let (id, status) = (command.id, completion.status);
                self.witness.finished(id, status);
                self.note(|| format!("desktop {desktop} ends {id}: {status}"));
            }
            Output::Send { call, request } => self.send(desktop, *call, request),
            Output::Abandon { call } => {
                if let Some(number) = machine.held.remove(call) {
                    self.hub.hang_up(number);
                    self.holders.remove(&number);
                }
            }
            Output::BeginExecution {
                command_id,
                execution_id,
            } => self.begin(desktop, *command_id, *execution_id),
            Output::StopExecution { execution_id } => {
                let wall = machine.wall(now_ms);
                let effects = machine.engine.stop(*execution_id, wall);
                self.take_effects(desktop, *execution_id, effects);
            }
            Output::RecordStarting { .. }
            | Output::RecordRefused { .. }
            | Output::DeleteCompletion { .. }
            | Output::ParkCompletion { .. }
            | Output::AcknowledgeDisabled { .. }
            | Output::RecordDesktop { .. } => {}
        }
        Ok(None)
    }

    fn mix_output(&mut self, output: &Output) {
        let word = match output {
            Output::RecordStarting { .. } => 1,
            Output::RecordRunning { .. } => 2,
            Output::RecordDone { .. } => 3,
            Output::RecordRefused { .. } => 4,
            Output::DeleteCompletion { .. } => 5,
            Output::ParkCompletion { .. } => 6,
            Output::AcknowledgeDisabled { .. } => 7,
            Output::RecordDesktop { .. } => 8,
            Output::Send { .. } => 9,
            Output::Abandon { .. } => 10,
            Output::BeginExecution { .. } => 11,
            Output::StopExecution { .. } => 12,
        };
        self.mix(word);
    }

    fn begin(&mut self, desktop: usize, command_id: CommandId, execution_id: ExecutionId) {
        let script = self.script();
        let now_ms = self.now_ms;
        let Some(machine) = self.desktops.get_mut(desktop) else {
            return;
        };
        let command = machine.disk.command(command_id);
        let consent = command.map(|command| machine.disk.consent(command).grant());
        machine.running.insert(execution_id, command_id);
        let runs = machine.running.len();
        let slots = self.setup.relay.slots;
        let has_consent = consent == Some(Grant::Given);
        self.witness
            .begins(command_id, execution_id, has_consent, runs, slots);
        let wall = machine.wall(now_ms);
        let effects = machine
            .engine
            .begin(execution_id, script, self.setup.javascript, wall);
        self.note(|| format!("desktop {desktop} executes {command_id}"));
        self.take_effects(desktop, execution_id, effects);
    }

    pub(super) fn engine_call_ends(
        &mut self,
        desktop: usize,
        life: u32,
        execution_id: ExecutionId,
        call: EngineCall,
        is_aborted: bool,
    ) {
        let now_ms = self.now_ms;
        let machine = self.desktops.get_mut(desktop);
        let Some(machine) = machine.filter(|machine| machine.life == life) else {
            return;
        };
        let wall = machine.wall(now_ms);
        let effects = if is_aborted {
            machine.engine.call_aborted(execution_id, call, wall)
        } else {
            machine.engine.call_ended(execution_id, call, wall)
        };
        self.take_effects(desktop, execution_id, effects);
    }

    fn take_effects(&mut self, desktop: usize, execution_id: ExecutionId, effects: Vec<Effect>) {
        let Some(life) = self.desktops.get(desktop).map(|machine| machine.life) else {
            return;
        };
        for effect in effects {
            let ends = |call, is_aborted| Happening::CallEnds {
                desktop,
                life,
                execution_id,
                call,
                is_aborted,
            };
            match effect {
                Effect::CallEndsAfter(call, ms) => self.at(self.now_ms + ms, ends(call, false)),
                Effect::AbortedAfter(call, ms) => self.at(self.now_ms + ms, ends(call, true)),
                Effect::Finished(outcome) => {
                    if let Some(machine) = self.desktops.get_mut(desktop) {
                        machine.running.remove(&execution_id);
                    }
                    let finished = Input::Finished {
                        execution_id,
                        outcome,
                    };
                    self.feed(desktop, finished);
                }
            }
        }
    }

    fn send(&mut self, desktop: usize, call: CallId, request: &Call) {
        let Some(machine) = self.desktops.get(desktop) else {
            return;
        };
        let life = machine.life;
        if let Some(sent) = &mut self.sent {
            sent.push((self.now_ms, desktop, call_name(request)));
        }
        let completion = match request {
            Call::Complete(id) => match machine.disk.completion(*id) {
                Some(completion) => CompleteRequest::try_from(completion).ok(),
                None => return self.no_answer(desktop, life, call),
            },
            Call::WhoAmI | Call::Sync(_) | Call::Start(..) | Call::Control(..) | Call::Wait(_) => {
                None
            }
        };
        let mut is_lost = machine.is_offline
            || self.is_hub_cut_off
            || self.wire.percent(self.faults.lose_request);
        if completion.is_some() && self.lose_completions > 0 {
            self.lose_completions -= 1;
            is_lost = true;
        }
        if is_lost {
            return self.no_answer(desktop, life, call);
        }
        let reach = |is_copy| Happening::Reach {
            desktop,
            life,
            call,
            request: request.clone(),
            completion: completion.clone(),
            is_copy,
        };
        let can_repeat = !matches!(request, Call::Wait(_));
        if can_repeat && self.wire.percent(self.faults.duplicate) {
            let late_ms = self.delay_ms() + self.wire.below(30_000);
            self.at(self.now_ms + late_ms, reach(true));
        }
        let delay_ms = self.delay_ms();
        self.at(self.now_ms + delay_ms, reach(false));
    }

    pub(super) fn no_answer(&mut self, desktop: usize, life: u32, call: CallId) {
        let answer = Err(Failure::NoAnswer {
            reason: "no answer in time".to_owned(),
        });
        let answered = Happening::Answer {
            desktop,
            life,
            call,
            answer,
        };
        self.at(self.now_ms + PATIENCE_MS, answered);
    }

    /// A desktop's request reaches the hub, even if its sender is gone.
    pub(super) fn reach(
        &mut self,
        desktop: usize,
        life: u32,
        call: CallId,
        request: &Call,
        completion: Option<CompleteRequest>,
        is_copy: bool,
    ) {
        let Some(machine) = self.desktops.get(desktop) else {
            return;
        };
        let is_heard = !is_copy && machine.life == life;
        // Whoever is gone holds nothing, and a late copy of an older sync tells what is no more;
        // see the decision on late copies.
        if !is_heard && matches!(request, Call::Wait(_) | Call::Sync(_)) {
            return;
        }
        let (token, worker) = (machine.token.clone(), machine.worker);
        let reached = self.hub.desktop_call(&token, worker, request, completion);
        self.settle_rows();
        let is_dead = self.is_hub_dead();
        match reached {
            _ if !is_heard => {}
            Reached::Now(answer) if !is_dead => self.answer(desktop, life, call, answer),
            Reached::Held(number, until_ms) => {
                let holder = Holder::Desktop {
                    desktop,
                    life,
                    call,
                };
                self.holders.insert(number, holder);
                if let Some(machine) = self.desktops.get_mut(desktop) {
                    machine.held.insert(call, number);
                }
                self.at(until_ms, Happening::HeldUntil);
            }
            Reached::Now(_) | Reached::Nobody => self.no_answer(desktop, life, call),
        }
        self.settle_hub();
    }

    pub(super) fn answer(
        &mut self,
        desktop: usize,
        life: u32,
        call: CallId,
        answer: Result<Answer, Failure>,
    ) {
        let Some(machine) = self.desktops.get(desktop) else {
            return;
        };
        let is_lost =
            machine.is_offline || self.is_hub_cut_off || self.wire.percent(self.faults.lose_answer);
        if is_lost {
            return self.no_answer(desktop, life, call);
        }
        let at_ms = self.now_ms + self.delay_ms();
        let answered = Happening::Answer {
            desktop,
            life,
            call,
            answer,
        };
        self.at(at_ms, answered);
    }

    pub(super) fn answered(
        &mut self,
        desktop: usize,
        life: u32,
        call: CallId,
        mut answer: Result<Answer, Failure>,
    ) {
        let machine = self.desktops.get_mut(desktop);
        let Some(machine) = machine.filter(|machine| machine.life == life) else {
            return;
        };
        machine.held.remove(&call);
        self.mix(match &answer {
            Ok(Answer::WhoAmI(_)) => 21,
            Ok(Answer::Sync(_)) => 22,
            Ok(Answer::Start(_)) => 23,
            Ok(Answer::Control(_)) => 24,
            Ok(Answer::Complete(_)) => 25,
            Ok(Answer::Wait(_)) => 26,
            Err(Failure::Refused(_)) => 27,
            Err(Failure::Status { .. } | Failure::NoAnswer { .. }) => 28,
        });
        if let Err(failure) = &answer {
            let text = format!("desktop {desktop} hears: {failure:?}");
            self.note(|| text);
        }
        if self.setup.bug == Some(Bug::RefusalIgnored) && matches!(answer, Err(Failure::Refused(_)))
        {
            let cancel_requested = false;
            answer = Ok(Answer::Start(StartResponse { cancel_requested }));
        }
        self.feed(desktop, Input::Answered { call, answer });
    }
}

fn call_name(call: &Call) -> &'static str {
    match call {
        Call::WhoAmI => "who am i",
        Call::Sync(_) => "sync",
        Call::Start(..) => "start",
        Call::Control(..) => "control",
        Call::Complete(_) => "complete",
        Call::Wait(_) => "wait",
    }
}
