//! The machine: what it remembers, and how an input becomes outputs.
//!
//! The published loop is in `turn` (resend, sync, hand out) and `runs` (start, consent, cancel,
//! bound, complete); the wake-up call is in `wake`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use callboard_domain::graph_run::Completion;
use callboard_domain::limits::{CONTROL_INTERVAL_MS, DESKTOP_RESTARTED, SYNC_INTERVAL_MS};
use callboard_domain::{CommandId, ExecutionId, FinalStatus, ProjectId, Report, Timestamp};

use crate::runs::{Slot, Waiting};
use crate::turn::Turn;
use crate::wake::Watch;
use crate::{
    Answer, Call, CallId, Command, DiskTrouble, Draw, Failure, HubState, Input, Now, Output,
    Status, View, WakeUp,
};

/// Why a run ends that did not finish before the desktop stopped.
pub const DESKTOP_STOPPED: &str = "desktop was stopped before the run ended";

/// A gap between the clocks of more than this is sleep, not drift.
const SLEEP_GAP_MS: u64 = 10_000;
/// Longest `Retry-After` that is honoured: an hour.
const HOLD_MS_MAX: u64 = 3_600_000;

/// Until when a `Retry-After` that is read at `now_ms` holds.
pub(crate) fn until_ms(now_ms: u64, retry_after_ms: u64) -> u64 {
    now_ms.saturating_add(retry_after_ms.min(HOLD_MS_MAX))
}

/// How a relay behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Hold a wake-up call; otherwise keep the published turn.
    pub wake_up: bool,
    /// Commands that run at a time, at least 1.
    pub slots: usize,
    /// Time between two turns, in milliseconds.
    pub sync_interval_ms: u64,
    /// Time between two control polls of a run, in milliseconds.
    pub control_interval_ms: u64,
}

impl Default for Config {
    /// The published intervals, one slot, wake-up on.
    fn default() -> Self {
        Self {
            wake_up: true,
            slots: 1,
            sync_interval_ms: SYNC_INTERVAL_MS,
            control_interval_ms: CONTROL_INTERVAL_MS,
        }
    }
}

/// The relay of one running desktop. Everything it must not forget is on disk; the rest is here.
#[derive(Debug)]
pub struct Relay {
    pub(crate) config: Config,
    last_now: Option<Now>,
    next_call: u64,
    pub(crate) calls: BTreeMap<CallId, Pending>,
    pub(crate) turn: Turn,
    /// The grid of turns: its phase is drawn once, its interval never changes.
    pub(crate) next_turn_ms: u64,
    /// Something asked for a turn before the next one of the grid.
    pub(crate) turn_wanted: bool,
    pub(crate) last_turn: Option<Timestamp>,
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) slots: BTreeMap<CommandId, Slot>,
    /// Completions that the disk refused.
    unsaved: BTreeMap<CommandId, (Command, Completion)>,
    disk: Option<(String, u64)>,
    /// Completions under way.
    pub(crate) sending: BTreeSet<CommandId>,
    /// When a completion was last tried in vain, and until when it is left alone.
    pub(crate) tried: BTreeMap<CommandId, Tried>,
    pub(crate) revisions: BTreeMap<ProjectId, String>,
    /// When a sync of the project was last given up. It may still reach the hub, after later ones.
    pub(crate) given_up_ms: BTreeMap<ProjectId, u64>,
    pub(crate) watch: Watch,
    pub(crate) hub: HubState,
    hold_until_ms: u64,
    pub(crate) draining: bool,
}

/// What a call under way was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pending {
    WhoAmI,
    Sync(SyncUnderWay),
    Start(CommandId),
    Control(CommandId),
    Complete {
        command_id: CommandId,
        of_turn: bool,
    },
    Wait,
}

/// A sync under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyncUnderWay {
    pub(crate) project_id: ProjectId,
    /// It tells the hub that the project is disabled here, so its answer acknowledges that.
    pub(crate) disabled: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Tried {
    pub(crate) at_ms: u64,
    pub(crate) not_before_ms: u64,
}

/// One step under way.
pub(crate) struct Cx<'a> {
    pub(crate) now: Now,
    pub(crate) view: &'a dyn View,
    pub(crate) draw: &'a mut dyn Draw,
    pub(crate) outputs: Vec<Output>,
}

impl Cx<'_> {
    pub(crate) fn now_ms(&self) -> u64 {
        self.now.monotonic_ms
    }

    /// The outbox as it will be once this step is performed, as far as entries leave it.
    pub(crate) fn outbox(&self) -> Vec<CommandId> {
        let leaving: BTreeSet<_> = self
            .outputs
            .iter()
            .filter_map(Output::leaving_outbox)
            .collect();
        let mut entries = self.view.outbox();
        entries.retain(|id| !leaving.contains(id));
        entries
    }
}

impl Relay {
    /// A relay that has not begun; its first input is [`Input::Boot`].
    pub fn new(config: Config) -> Self {
        Self {
            config,
            last_now: None,
            next_call: 0,
            calls: BTreeMap::new(),
            turn: Turn::Idle,
            next_turn_ms: u64::MAX,
            turn_wanted: false,
            last_turn: None,
            waiting: VecDeque::new(),
            slots: BTreeMap::new(),
            unsaved: BTreeMap::new(),
            disk: None,
            sending: BTreeSet::new(),
            tried: BTreeMap::new(),
            revisions: BTreeMap::new(),
            given_up_ms: BTreeMap::new(),
            watch: Watch::default(),
            hub: HubState::default(),
            hold_until_ms: 0,
            draining: false,
        }
    }

    /// Answers `input` with what the shell must do, in this order.
    pub fn step(
        &mut self,
        now: Now,
        input: Input,
        view: &dyn View,
        draw: &mut dyn Draw,
    ) -> Vec<Output> {
        let outputs = Vec::new();
        let cx = &mut Cx {
            now,
            view,
            draw,
            outputs,
        };
        self.notice_sleep(cx);
        self.take(cx, input);
        self.retry_disk(cx);
        self.begin_due_turn(cx);
        self.hand_out(cx);
        self.poll_controls(cx);
        self.keep_watch(cx);
        std::mem::take(&mut cx.outputs)
    }

    /// When the next [`Input::Tick`] is due, on the monotonic clock: always after `now_ms`. What
    /// is overdue waits for an answer, not for time.
    pub fn next_deadline_ms(&self, now_ms: u64) -> u64 {
        let controls = self.slots.values().filter_map(Slot::next_control_ms);
        let starts = self.waiting.iter().map(|waiting| waiting.not_before_ms);
        let disk = self.disk.as_ref().map(|(_, retry_at_ms)| *retry_at_ms);
        [self.next_turn_ms, self.hold_until_ms]
            .into_iter()
            .chain(controls)
            .chain(starts)
            .chain(disk)
            .chain(self.watch.next_try_ms())
            .chain(self.watch.renew_ms())
            .filter(|at_ms| *at_ms > now_ms)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// What there is to say to the owner at `now_ms`.
    pub fn status(&self, now_ms: u64) -> Status {
        let wake_up = match (self.config.wake_up, self.watch.is_held()) {
            (false, _) => WakeUp::Off,
            (true, true) => WakeUp::Held,
            (true, false) if self.watch.is_failing() => WakeUp::Reconnecting,
            (true, false) => WakeUp::Idle,
        };
        Status {
            hub: self.hub.clone(),
            wake_up,
            disk: self.disk.as_ref().map(|(reason, _)| DiskTrouble {
                reason: reason.clone(),
                unsaved: self.unsaved.len(),
            }),
            waiting: self.waiting.len(),
            busy_slots: self.slots.len(),
            last_turn: self.last_turn,
            held_ms: Some(self.hold_until_ms.saturating_sub(now_ms)).filter(|ms| *ms > 0),
        }
    }

    /// Whether nothing runs and no completion is under way or unsaved, so that a draining desktop
    /// can stop. Completions that the hub does not take now stay in the outbox.
    pub fn is_quiet(&self) -> bool {
        self.slots.is_empty() && self.sending.is_empty() && self.unsaved.is_empty()
    }

    fn take(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Boot => self.boot(cx),
            Input::Tick => {}
            Input::SharingChanged => {
                self.cancel_withdrawn(cx);
                self.turn_wanted = true;
            }
            Input::Answered { call, answer } => self.answered(cx, call, answer),
            Input::Decided { command_id, grant } => self.decided(cx, command_id, grant),
            Input::Finished {
                execution_id,
                outcome,
            } => self.finished(cx, execution_id, outcome),
            Input::OwnerCancel { execution_id } => self.owner_cancel(cx, execution_id),
            Input::NotPerformed { outputs, reason } => self.not_performed(cx, outputs, reason),
            Input::Drain => self.drain(cx),
            Input::GraceOver => self.stop_running(cx),
        }
    }

    /// A crash left rows behind: what ran is over, what was asked for is asked for again, once the
    /// turn has resent the outbox.
    fn boot(&mut self, cx: &mut Cx<'_>) {
        for unfinished in cx.view.unfinished() {
            let execution_id = unfinished.execution_id;
            if unfinished.running {
                let completion = Completion {
                    execution_id: Some(execution_id),
                    status: FinalStatus::Failed,
                    report: Report::of_error(DESKTOP_RESTARTED),
                };
                self.record_and_send(cx, unfinished.command, completion);
            } else {
                self.waiting
                    .push_back(Waiting::left_over(unfinished.command, execution_id));
            }
        }
        let interval_ms = self.config.sync_interval_ms;
        self.next_turn_ms = cx.now_ms() + 1 + cx.draw.below(interval_ms);
        self.turn_wanted = true;
    }

    /// What was asked for already may still run; nothing else is begun.
    fn drain(&mut self, cx: &mut Cx<'_>) {
        self.draining = true;
        self.waiting.clear();
        self.abandon_watch(cx);
    }

    /// Timers stand still while the machine sleeps, so what is overdue by the wall clock happens
    /// at once. Connections from before are dead.
    fn notice_sleep(&mut self, cx: &mut Cx<'_>) {
        let Some(last) = self.last_now.replace(cx.now) else {
            return;
        };
        let wall_ms = cx.now.wall.millis_since(last.wall);
        let monotonic_ms = cx.now.monotonic_ms.saturating_sub(last.monotonic_ms);
        if wall_ms.saturating_sub(monotonic_ms) >= SLEEP_GAP_MS {
            self.abandon_turn(cx);
            self.abandon_watch(cx);
            self.poll_controls_now(cx.now_ms());
            self.turn_wanted = true;
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, call: CallId, answer: Result<Answer, Failure>) {
        let Some(pending) = self.calls.remove(&call) else {
            return;
        };
        match &answer {
            Ok(_) => self.hub = HubState::Reachable,
            Err(failure) => self.note_failure(cx, pending, failure),
        }
        match (pending, answer) {
            (Pending::WhoAmI, Ok(Answer::WhoAmI(info))) => {
                cx.outputs.push(Output::RecordDesktop { info });
            }
            (Pending::Sync(sync), Ok(Answer::Sync(response))) => {
                self.synced(cx, sync, response);
            }
            (Pending::Start(id), Ok(Answer::Start(response))) => {
                self.granted(cx, id, response.cancel_requested);
            }
            (Pending::Control(id), Ok(Answer::Control(response))) => {
                self.controlled(cx, id, response.cancel_requested);
            }
            (
                Pending::Complete {
                    command_id,
                    of_turn,
                },
                Ok(Answer::Complete(_)),
            ) => {
                self.delivered(cx, command_id, of_turn);
            }
            (Pending::Wait, Ok(Answer::Wait(response))) => self.woken(cx, response),
            (pending, Err(failure)) => self.failed(cx, pending, &failure),
            // An answer to another question is no answer.
            (pending, Ok(_)) => {
                let reason = "the shell mixed up two answers".to_owned();
                self.failed(cx, pending, &Failure::NoAnswer { reason });
            }
        }
    }

    fn failed(&mut self, cx: &mut Cx<'_>, pending: Pending, failure: &Failure) {
        match pending {
            Pending::WhoAmI => {}
            Pending::Sync(sync) => self.sync_failed(cx, sync, failure),
            Pending::Start(id) => self.start_failed(cx, id, failure),
            Pending::Control(id) => self.controlled(cx, id, false),
            Pending::Complete {
                command_id,
                of_turn,
            } => {
                self.not_delivered(cx, command_id, of_turn, failure);
            }
            Pending::Wait => self.watch_failed(cx),
        }
    }

    fn note_failure(&mut self, cx: &mut Cx<'_>, pending: Pending, failure: &Failure) {
        self.hub = HubState::after(failure);
        if let Failure::Status {
            status,
            retry_after_ms: Some(retry_after_ms),
            ..
        } = failure
        {
            // Only 429 speaks of the desktop as a whole; a busy answer to one completion must
            // not hold up the others.
            let whole = *status == 429 || !matches!(pending, Pending::Complete { .. });
            if whole {
                let until_ms = until_ms(cx.now_ms(), *retry_after_ms);
                self.hold_until_ms = self.hold_until_ms.max(until_ms);
                // Everybody was told the same; the turns are apart by their grids.
                self.spread_watch(cx, until_ms);
            }
        }
    }

    pub(crate) fn is_held(&self, now_ms: u64) -> bool {
        now_ms < self.hold_until_ms
    }

    /// New work is fetched and begun only while its result could be stored.
    pub(crate) fn disk_is_well(&self) -> bool {
        self.disk.is_none() && self.unsaved.is_empty()
    }

    pub(crate) fn is_unsaved(&self, id: CommandId) -> bool {
        self.unsaved.contains_key(&id)
    }

    pub(crate) fn send(&mut self, cx: &mut Cx<'_>, pending: Pending, request: Call) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        self.calls.insert(call, pending);
        cx.outputs.push(Output::Send { call, request });
        call
    }

    /// Takes back what the disk refused, so that nothing is lost and nothing goes on without it.
    fn not_performed(&mut self, cx: &mut Cx<'_>, outputs: Vec<Output>, reason: String) {
        self.disk = Some((reason, cx.now_ms() + self.config.control_interval_ms));
        for output in outputs {
            match output {
                Output::RecordStarting { command, .. } => {
                    self.slots.remove(&command.id);
                }
                Output::RecordRunning { command, .. } => self.ask_later(command.id),
                Output::RecordDone {
                    command,
                    completion,
                } => {
                    self.unsaved.insert(command.id, (command, completion));
                }
                Output::Send { call, .. } => {
                    if let Some(pending) = self.calls.remove(&call) {
                        let reason = "not sent".to_owned();
                        self.failed(cx, pending, &Failure::NoAnswer { reason });
                    }
                }
                again @ (Output::BeginExecution { .. }
                | Output::StopExecution { .. }
                | Output::Abandon { .. }) => cx.outputs.push(again),
                // Each of these comes again by itself: the completion is resent and answered the
                // same way, the project is synced again, the start is asked for after a restart.
                Output::RecordRefused { .. }
                | Output::DeleteCompletion { .. }
                | Output::ParkCompletion { .. }
                | Output::AcknowledgeDisabled { .. }
                | Output::RecordDesktop { .. } => {}
            }
        }
    }

    /// Offers the disk what it refused. Takes it for granted that it works this time; if not, the
    /// shell hands it back.
    fn retry_disk(&mut self, cx: &mut Cx<'_>) {
        let due = self
            .disk
            .as_ref()
            .is_some_and(|(_, retry_at_ms)| cx.now_ms() >= *retry_at_ms);
        if !due {
            return;
        }
        self.disk = None;
        for (_, (command, completion)) in std::mem::take(&mut self.unsaved) {
            self.record_and_send(cx, command, completion);
        }
    }

    /// Whether `id` needs no second look: it holds a slot, waits for one, or is on disk.
    pub(crate) fn knows(&self, cx: &Cx<'_>, id: CommandId) -> bool {
        self.slots.contains_key(&id)
            || self.is_unsaved(id)
            || self.waiting.iter().any(|waiting| waiting.command.id == id)
            || cx.view.seen(id).is_some()
    }

    pub(crate) fn slot_of(&mut self, execution_id: ExecutionId) -> Option<&mut Slot> {
        self.slots
            .values_mut()
            .find(|slot| slot.execution_id == execution_id)
    }
}
