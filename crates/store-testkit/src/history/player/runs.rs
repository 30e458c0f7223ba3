//! Draws what happens to commands.

use callboard_domain::graph_run::Completion;
use callboard_domain::limits::{
    ERROR_UTF16_MAX, QUEUED_EXPIRY_MS, SWEEP_ROWS_MAX, TASK_LEASE_MS_DEFAULT,
};
use callboard_domain::{
    CommandId, ConnectionId, DesktopId, Digest, ExecutionId, FinalStatus, Report,
};
use callboard_store::{QueueRun, RunKey};
use callboard_wire::relay::Progress;

use super::{NAMES, Opening, Player};
use crate::history::operation::{Operation, RunOperation};
use crate::world::START;

impl Player {
    pub(super) fn next_of_runs(&mut self) -> Operation {
        match self.entropy.below(100) {
            0..=4 => {
                let kinds = [Opening::Project, Opening::Desktop, Opening::Connection];
                let kind = self.one(&kinds);
                let name = self.one(&NAMES);
                self.make(kind, name)
            }
            5..=12 => self.sync(),
            13..=17 => self.housekeeping(),
            18..=37 => self.queue_run(),
            38..=43 => {
                let (command_id, connection_id, _) = self.command();
                let key = RunKey {
                    connection_id,
                    command_id,
                };
                Operation::Run(RunOperation::RequestCancel(key))
            }
            44..=60 => {
                let (command_id, _, desktop_id) = self.command();
                let execution_id = self.execution(command_id);
                Operation::Run(RunOperation::Start(desktop_id, command_id, execution_id))
            }
            61..=70 => self.report_progress(),
            71..=87 => self.complete_run(),
            88..=91 => {
                Operation::NoteSeen(vec![(self.desktop(), self.now), (self.desktop(), START)])
            }
            _ => {
                // A sweep finds nothing unless a deadline has just passed.
                let passed_ms = match self.entropy.below(6) {
                    0 => QUEUED_EXPIRY_MS,
                    1 | 2 => TASK_LEASE_MS_DEFAULT,
                    _ => 0,
                };
                self.now = self.now.plus_ms(passed_ms);
                Operation::Sweep(self.one(&[1, 2, 10, SWEEP_ROWS_MAX]))
            }
        }
    }

    fn queue_run(&mut self) -> Operation {
        let graph_session_id = self.session().graph_session_id;
        let topic = u8::from(self.once_in(3));
        let arguments = format!(r#"{{"topic":{topic}}}"#);
        let request = Digest::of(&[&graph_session_id.to_bytes(), arguments.as_bytes()]);
        Operation::Run(RunOperation::Queue(QueueRun {
            command_id: CommandId::from_bytes(self.id()),
            connection_id: self.connection(),
            graph_session_id,
            idempotency_key: format!("key-number-{}", self.entropy.below(30)),
            arguments,
            request,
            now: self.now,
        }))
    }

    /// A command with its connection and desktop, mostly a recent one; one of them wrong once in
    /// fifteen.
    fn command(&self) -> (CommandId, ConnectionId, DesktopId) {
        let nobodys = |id| {
            let (connection, desktop) = (ConnectionId::from_bytes(id), DesktopId::from_bytes(id));
            (CommandId::from_bytes(id), connection, desktop)
        };
        let recent = self.commands.len().saturating_sub(3);
        let from = if self.once_in(3) { 0 } else { recent };
        let (command, connection, desktop) = self.some(&self.commands[from..], nobodys, 20);
        match self.entropy.below(15) {
            0 => (command, self.connection(), self.desktop()),
            _ => (command, connection, desktop),
        }
    }

    /// The execution of a command if it has one, now and then a fresh one all the same.
    fn execution(&mut self, command_id: CommandId) -> ExecutionId {
        let known = self.executions.iter().find(|(of, _)| *of == command_id);
        match known.filter(|_| !self.once_in(12)) {
            Some((_, id)) => *id,
            None => ExecutionId::from_bytes(self.id()),
        }
    }

    fn report_progress(&mut self) -> Operation {
        let (command_id, _, desktop_id) = self.command();
        let calls_done = self.entropy.below(2);
        let progress = Progress {
            calls_done,
            calls_started: calls_done + 1,
            tokens: 0,
            tokens_cap: self.one(&[None, Some(u64::MAX)]),
        };
        let phase = self.one(&[None, Some("reading"), Some("writing")]);
        let phase = phase.map(str::to_owned);
        let progress = self.one(&[None, Some(progress)]);
        Operation::Run(RunOperation::ReportProgress(
            desktop_id, command_id, phase, progress,
        ))
    }

    fn complete_run(&mut self) -> Operation {
        if let Some(again) = self.completion.take_if(|_| self.entropy.below(3) == 0) {
            return again;
        }
        let (mut command_id, _, mut desktop_id) = self.command();
        if let Some((started, _)) = self.executions.last().filter(|_| !self.once_in(3)) {
            let known = self.commands.iter().find(|(id, ..)| id == started);
            (command_id, _, desktop_id) = known.copied().unwrap_or(self.commands[0]);
        }
        let execution_id = match self.entropy.below(8) {
            0 => None,
            _ => Some(self.execution(command_id)),
        };
        let status = match execution_id {
            None if !self.once_in(4) => FinalStatus::Cancelled,
            None | Some(_) => self.one(&FinalStatus::ALL),
        };
        let texts = [None, Some("1".to_owned()), Some("1.0".to_owned())];
        let errors = match self.entropy.below(10) {
            0 => vec![Some("x".repeat(ERROR_UTF16_MAX + 1))],
            _ => vec![None, Some("it broke".to_owned())],
        };
        let report = Report {
            result: execution_id.and_then(|_| self.one(&texts)),
            result_truncated: self.once_in(2),
            error: self.one(&errors),
            total_tokens: self.one(&[None, Some(0), Some(1 << 40)]),
            reported_cost: self.one(&[None, Some(0.0), Some(0.1)]),
        };
        let completion = Completion {
            execution_id,
            status,
            report,
        };
        let complete = RunOperation::Complete(desktop_id, command_id, completion);
        self.completion = Some(Operation::Run(complete.clone()));
        Operation::Run(complete)
    }
}
