//! One command: ask for the start, begin only with consent, watch for cancel, bound the result,
//! complete.

use callboard_domain::graph_run::Completion;
use callboard_domain::limits::NO_LONGER_SHARED;
use callboard_domain::{
    CommandId, ExecutionId, FinalStatus, Grant, Report, bound_report, mend_surrogates,
};
use callboard_wire::relay::StartRequest;

use crate::step::{Cx, DESKTOP_STOPPED, Pending, Relay};
use crate::turn::Turn;
use crate::{Call, Command, Failure, Outcome, Output};

/// A command that waits for a slot.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) command: Command,
    /// The run's arguments; `None` once they are on disk.
    arguments: Option<String>,
    /// Set once the start was asked for: the hub may have granted it.
    pub(crate) execution_id: Option<ExecutionId>,
    /// A start that failed is asked for again with the next turn of the grid.
    pub(crate) not_before_ms: u64,
    /// A crash left it behind: the outbox of before comes first.
    pub(crate) after_outbox: bool,
}

impl Waiting {
    pub(crate) fn new(command: Command, arguments: String) -> Self {
        Self {
            command,
            arguments: Some(arguments),
            execution_id: None,
            not_before_ms: 0,
            after_outbox: false,
        }
    }

    pub(crate) fn asked(command: Command, execution_id: ExecutionId, not_before_ms: u64) -> Self {
        Self {
            command,
            arguments: None,
            execution_id: Some(execution_id),
            not_before_ms,
            after_outbox: false,
        }
    }

    pub(crate) fn left_over(command: Command, execution_id: ExecutionId) -> Self {
        Self {
            after_outbox: true,
            ..Self::asked(command, execution_id, 0)
        }
    }
}

/// A command that holds a slot.
#[derive(Debug)]
pub(crate) struct Slot {
    command: Command,
    pub(crate) execution_id: ExecutionId,
    stage: Stage,
    /// A cancel was read. From here on the run is reported as cancelled, whatever the Graph does.
    cancelled: bool,
}

#[derive(Debug)]
enum Stage {
    /// The start call is under way.
    Asking,
    /// The hub granted it; the local transaction decides about consent.
    Deciding,
    /// The engine has it.
    Running {
        next_control_ms: u64,
        polling: bool,
        /// The desktop stops, and this run with it.
        stopped: bool,
    },
}

impl Slot {
    pub(crate) fn next_control_ms(&self) -> Option<u64> {
        match self.stage {
            Stage::Asking | Stage::Deciding => None,
            Stage::Running {
                next_control_ms, ..
            } => Some(next_control_ms),
        }
    }
}

impl Relay {
    /// Fills free slots. Nothing is begun while the outbox is being resent, while the hub asks to
    /// be left alone, or while the disk could not keep a result.
    pub(crate) fn hand_out(&mut self, cx: &mut Cx<'_>) {
        let resending = matches!(self.turn, Turn::Flushing(_));
        if self.draining || resending || !self.disk_is_well() || self.is_held(cx.now_ms()) {
            return;
        }
        while self.slots.len() < self.config.slots {
            let ready = |waiting: &Waiting| {
                !waiting.after_outbox && waiting.not_before_ms <= cx.now.monotonic_ms
            };
            let Some(index) = self.waiting.iter().position(ready) else {
                return;
            };
            let Some(next) = self.waiting.remove(index) else {
                return;
            };
            self.ask_for_start(cx, next);
        }
    }

    fn ask_for_start(&mut self, cx: &mut Cx<'_>, waiting: Waiting) {
        let command = waiting.command;
        let execution_id = match (waiting.execution_id, waiting.arguments) {
            // Consent is read after the grant: only the start call tells whether the hub already
            // counts this command as running.
            (Some(execution_id), _) => execution_id,
            (None, arguments) => {
                if cx.view.consent(&command).grant() == Grant::Withdrawn {
                    return self.cancel_unstarted(cx, command);
                }
                let execution_id = cx.draw.execution_id();
                cx.outputs.push(Output::RecordStarting {
                    command: command.clone(),
                    arguments: arguments.unwrap_or_default(),
                    execution_id,
                });
                execution_id
            }
        };
        let id = command.id;
        let slot = Slot {
            command,
            execution_id,
            stage: Stage::Asking,
            cancelled: false,
        };
        self.slots.insert(id, slot);
        let request = Call::Start(id, StartRequest { execution_id });
        self.send(cx, Pending::Start(id), request);
    }

    /// The start is granted: now the local transaction has the last word.
    pub(crate) fn granted(&mut self, cx: &mut Cx<'_>, id: CommandId, cancel_requested: bool) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        if cancel_requested || slot.cancelled {
            return self.end_unbegun(cx, id, None);
        }
        slot.stage = Stage::Deciding;
        cx.outputs.push(Output::RecordRunning {
            command: slot.command.clone(),
            execution_id: slot.execution_id,
        });
    }

    pub(crate) fn start_failed(&mut self, cx: &mut Cx<'_>, id: CommandId, failure: &Failure) {
        match failure {
            Failure::Refused(refusal) if refusal.is_final_for_a_completion() => {
                if let Some(slot) = self.slots.remove(&id) {
                    cx.outputs.push(Output::RecordRefused {
                        command: slot.command,
                        refusal: *refusal,
                    });
                }
            }
            // The hub may or may not have granted it: the same call again, in its turn.
            Failure::Refused(_) | Failure::Status { .. } | Failure::NoAnswer { .. } => {
                self.ask_later(id);
            }
        }
    }

    /// Gives the slot to others and asks again, under the same id, with the next turn.
    pub(crate) fn ask_later(&mut self, id: CommandId) {
        if let Some(slot) = self.slots.remove(&id) {
            let again = Waiting::asked(slot.command, slot.execution_id, self.next_turn_ms);
            self.waiting.push_back(again);
        }
    }

    pub(crate) fn decided(&mut self, cx: &mut Cx<'_>, id: CommandId, grant: Grant) {
        let now_ms = cx.now_ms();
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        match grant {
            Grant::Withdrawn => self.end_unbegun(cx, id, Some(NO_LONGER_SHARED)),
            Grant::Given if slot.cancelled => self.end_unbegun(cx, id, None),
            Grant::Given => {
                slot.stage = Stage::Running {
                    next_control_ms: now_ms + self.config.control_interval_ms,
                    polling: false,
                    stopped: false,
                };
                cx.outputs.push(Output::BeginExecution {
                    command_id: id,
                    execution_id: slot.execution_id,
                });
            }
        }
    }

    /// Polls each run whose time has come. The grid counts from the start of the run; a slow
    /// answer moves nothing.
    pub(crate) fn poll_controls(&mut self, cx: &mut Cx<'_>) {
        let now_ms = cx.now_ms();
        let interval_ms = self.config.control_interval_ms;
        let mut due = Vec::new();
        for (id, slot) in &mut self.slots {
            let Stage::Running {
                next_control_ms,
                polling,
                ..
            } = &mut slot.stage
            else {
                continue;
            };
            if now_ms < *next_control_ms {
                continue;
            }
            let missed = (now_ms - *next_control_ms) / interval_ms;
            *next_control_ms += (missed + 1) * interval_ms;
            if !std::mem::replace(polling, true) {
                due.push((*id, slot.execution_id));
            }
        }
        for (id, execution_id) in due {
            self.send(cx, Pending::Control(id), Call::Control(id, execution_id));
        }
    }

    /// Makes every run's control poll due, without moving its grid by more than one interval.
    pub(crate) fn poll_controls_now(&mut self, now_ms: u64) {
        for slot in self.slots.values_mut() {
            if let Stage::Running {
                next_control_ms, ..
            } = &mut slot.stage
            {
                *next_control_ms = now_ms.min(*next_control_ms);
            }
        }
    }

    pub(crate) fn controlled(&mut self, cx: &mut Cx<'_>, id: CommandId, cancel_requested: bool) {
        if let Some(Slot {
            stage: Stage::Running { polling, .. },
            ..
        }) = self.slots.get_mut(&id)
        {
            *polling = false;
        }
        if cancel_requested {
            self.cancel(cx, id);
        }
    }

    /// Stops a run, once.
    pub(crate) fn cancel(&mut self, cx: &mut Cx<'_>, id: CommandId) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        if std::mem::replace(&mut slot.cancelled, true) {
            return;
        }
        if let Stage::Running { stopped: false, .. } = slot.stage {
            cx.outputs.push(Output::StopExecution {
                execution_id: slot.execution_id,
            });
        }
    }

    pub(crate) fn owner_cancel(&mut self, cx: &mut Cx<'_>, execution_id: ExecutionId) {
        if let Some(id) = self.slot_of(execution_id).map(|slot| slot.command.id) {
            self.cancel(cx, id);
        }
    }

    /// Stops what runs. A start that is still asked for is given up here: its row says
    /// `starting`, so the next start of the desktop asks again.
    pub(crate) fn stop_running(&mut self, cx: &mut Cx<'_>) {
        self.slots
            .retain(|_, slot| !matches!(slot.stage, Stage::Asking));
        for slot in self.slots.values_mut() {
            if let Stage::Running { stopped, .. } = &mut slot.stage
                && !std::mem::replace(stopped, true)
                && !slot.cancelled
            {
                cx.outputs.push(Output::StopExecution {
                    execution_id: slot.execution_id,
                });
            }
        }
    }

    pub(crate) fn finished(
        &mut self,
        cx: &mut Cx<'_>,
        execution_id: ExecutionId,
        outcome: Outcome,
    ) {
        let Some(slot) = self.slot_of(execution_id) else {
            return;
        };
        let stopped = matches!(slot.stage, Stage::Running { stopped: true, .. });
        let id = slot.command.id;
        let (status, report) = match (slot.cancelled, stopped, outcome.status) {
            (true, _, _) => (FinalStatus::Cancelled, outcome.report),
            (false, true, FinalStatus::Cancelled) => {
                let error = Some(DESKTOP_STOPPED.to_owned());
                let report = Report {
                    error,
                    ..outcome.report
                };
                (FinalStatus::Failed, report)
            }
            (false, _, status) => (status, outcome.report),
        };
        self.complete(cx, id, status, report);
    }

    /// Ends a command that was granted but never reached the engine.
    fn end_unbegun(&mut self, cx: &mut Cx<'_>, id: CommandId, reason: Option<&str>) {
        let report = reason.map_or_else(Report::default, Report::of_error);
        self.complete(cx, id, FinalStatus::Cancelled, report);
    }

    fn complete(
        &mut self,
        cx: &mut Cx<'_>,
        id: CommandId,
        status: FinalStatus,
        mut report: Report,
    ) {
        let Some(slot) = self.slots.remove(&id) else {
            return;
        };
        report.result = report
            .result
            .map(|result| mend_surrogates(&result).into_owned());
        let completion = Completion {
            execution_id: Some(slot.execution_id),
            status,
            report: bound_report(report, status),
        };
        self.record_and_send(cx, slot.command, completion);
    }

    fn cancel_unstarted(&mut self, cx: &mut Cx<'_>, command: Command) {
        let completion = Completion {
            execution_id: None,
            status: FinalStatus::Cancelled,
            report: Report::of_error(NO_LONGER_SHARED),
        };
        self.record_and_send(cx, command, completion);
    }

    /// Ends every waiting command whose consent is gone, without waiting for a slot.
    pub(crate) fn cancel_withdrawn(&mut self, cx: &mut Cx<'_>) {
        let (kept, withdrawn): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|waiting| {
                waiting.execution_id.is_some()
                    || cx.view.consent(&waiting.command).grant() == Grant::Given
            });
        self.waiting = kept.into();
        for waiting in withdrawn {
            self.cancel_unstarted(cx, waiting.command);
        }
    }

    /// The completion is in the outbox before the hub hears of it.
    pub(crate) fn record_and_send(
        &mut self,
        cx: &mut Cx<'_>,
        command: Command,
        completion: Completion,
    ) {
        let id = command.id;
        cx.outputs.push(Output::RecordDone {
            command,
            completion,
        });
        if !self.is_held(cx.now_ms()) {
            self.send_completion(cx, id, false);
        }
    }
}
