//! Performs what the relay orders: disk before network, each write durable before it returns.

use callboard_domain::graph_run::Completion;
use callboard_domain::{CommandId, ExecutionId, FinalStatus, Report};
use callboard_relay::{Call, CallId, Command, Failure, Input, Outcome, Output};
use callboard_wire::relay::ControlRequest;

use crate::Activity;
use crate::activity::RunStatus;
use crate::daemon::{Daemon, Message};
use crate::database::Result;
use crate::engine::Work;
use crate::hub_client::Request;

impl Daemon {
    /// Performs one output. An error means that the disk refused it and nothing happened.
    pub(crate) fn perform(&mut self, output: &Output) -> Result<Option<Input>> {
        let now_ms = self.clock.now().as_millis();
        match output {
            Output::RecordStarting {
                command,
                arguments,
                execution_id,
            } => {
                self.database
                    .record_starting(command, arguments, *execution_id, now_ms)?;
                self.accepted(command);
            }
            Output::RecordRunning {
                command,
                execution_id,
            } => {
                let grant = self
                    .database
                    .record_running(command, *execution_id, now_ms)?;
                let command_id = command.id;
                return Ok(Some(Input::Decided { command_id, grant }));
            }
            Output::RecordDone {
                command,
                completion,
            } => self.record_done(command, completion, now_ms)?,
            Output::RecordRefused { command, refusal } => {
                self.database.record_refused(command, now_ms)?;
                self.accepted_ms.remove(&command.id);
                self.tell(Activity::Refused {
                    command_id: command.id.to_string(),
                    slug: command.slug.clone(),
                    reason: refusal.public_text().to_owned(),
                });
            }
            Output::DeleteCompletion { command_id } => {
                self.database.delete_completion(*command_id)?;
                self.tell(Activity::Delivered {
                    command_id: command_id.to_string(),
                });
            }
            Output::ParkCompletion {
                command_id,
                refusal,
            } => {
                self.database.park_completion(*command_id, *refusal)?;
                let reason = refusal.public_text().to_owned();
                tracing::warn!(command.id = %command_id, %reason, "a completion is parked");
                self.tell(Activity::Parked {
                    command_id: command_id.to_string(),
                    reason,
                });
            }
            Output::AcknowledgeDisabled { project_id } => {
                self.database.acknowledge_disabled(*project_id)?;
            }
            Output::RecordDesktop { info } => self.database.record_desktop(info)?,
            Output::Send { call, request } => self.send(*call, request),
            Output::Abandon { call } => {
                if let Some(task) = self.calls.remove(call) {
                    task.abort();
                }
            }
            Output::BeginExecution {
                command_id,
                execution_id,
            } => return Ok(self.begin_execution(*command_id, *execution_id)),
            Output::StopExecution { execution_id } => self.engine.stop(*execution_id),
        }
        Ok(None)
    }

    fn accepted(&mut self, command: &Command) {
        self.accepted_ms
            .insert(command.id, self.clock.monotonic_ms());
        self.tell(Activity::Accepted {
            command_id: command.id.to_string(),
            slug: command.slug.clone(),
        });
    }

    fn record_done(
        &mut self,
        command: &Command,
        completion: &Completion,
        now_ms: i64,
    ) -> Result<()> {
        let record = completion.execution_id.and_then(|id| self.records.get(&id));
        self.database
            .record_done(command, completion, record, now_ms)?;
        if let Some(id) = completion.execution_id {
            self.records.remove(&id);
        }
        self.accepted_ms.remove(&command.id);
        self.tell_ended(
            completion.execution_id,
            Some(command.id),
            command.slug.clone(),
            completion.status,
            &completion.report,
        );
        Ok(())
    }

    /// The row says `running`: from here on a crash ends this run as failed.
    fn begin_execution(
        &mut self,
        command_id: CommandId,
        execution_id: ExecutionId,
    ) -> Option<Input> {
        let work = self.database.work_of(command_id).and_then(|work| {
            let Some((session_id, arguments)) = work else {
                return Ok(None);
            };
            let graph = self.database.graph_of_session(session_id)?;
            Ok(graph.map(|graph| (graph, arguments)))
        });
        let (graph, arguments) = match work {
            Ok(Some(found)) => found,
            Ok(None) => return Some(unreadable(execution_id, "it is not there")),
            Err(error) => return Some(unreadable(execution_id, &error.to_string())),
        };
        let now_ms = self.clock.monotonic_ms();
        let accepted_ms = self.accepted_ms.get(&command_id).copied();
        self.begun_ms.insert(execution_id, now_ms);
        self.tell(Activity::Started {
            execution_id: execution_id.to_string(),
            command_id: Some(command_id.to_string()),
            slug: graph.slug.clone(),
            after_ms: now_ms.saturating_sub(accepted_ms.unwrap_or(now_ms)),
        });
        tracing::info!(command.id = %command_id, execution.id = %execution_id, "a run begins");
        self.engine.begin(Work {
            execution_id,
            slug: graph.slug,
            source: graph.source,
            arguments,
        });
        None
    }

    fn send(&mut self, call: CallId, request: &Call) {
        let request = self.prepare(request);
        let hub = self.hub.clone();
        let messages = self.messages.clone();
        let task = self.handle.spawn(async move {
            let answer = match request {
                Ok(request) => Box::pin(hub.call(request)).await,
                Err(failure) => Err(failure),
            };
            // Without a daemon nobody wants to know.
            drop(messages.send(Message::Answered { call, answer }));
        });
        self.calls.insert(call, task.abort_handle());
    }

    /// Adds what only this side knows: the outbox's body, a run's present phase.
    fn prepare(&self, request: &Call) -> std::result::Result<Request, Failure> {
        Ok(match request {
            Call::WhoAmI => Request::WhoAmI,
            Call::Sync(request) => Request::Sync(request.clone()),
            Call::Start(id, request) => Request::Start(*id, request.clone()),
            Call::Control(id, execution_id) => {
                let (phase, progress) = self.engine.now(*execution_id);
                Request::Control(*id, ControlRequest { phase, progress })
            }
            Call::Complete(id) => {
                let reason = match self.database.outbox_body(*id) {
                    Ok(Some(body)) => return Ok(Request::Complete(*id, body)),
                    Ok(None) => "the outbox has no such entry".to_owned(),
                    Err(error) => error.to_string(),
                };
                return Err(Failure::NoAnswer { reason });
            }
            Call::Wait(request) => Request::Wait(request.clone()),
        })
    }

    pub(crate) fn tell_ended(
        &mut self,
        execution_id: Option<ExecutionId>,
        command_id: Option<CommandId>,
        slug: String,
        status: FinalStatus,
        report: &Report,
    ) {
        let begun_ms = execution_id.and_then(|id| self.begun_ms.remove(&id));
        let now_ms = self.clock.monotonic_ms();
        self.tell(Activity::Ended {
            execution_id: execution_id.map(|id| id.to_string()),
            command_id: command_id.map(|id| id.to_string()),
            slug,
            status: RunStatus::from(status),
            duration_ms: begun_ms.map(|begun_ms| now_ms.saturating_sub(begun_ms)),
            total_tokens: report.total_tokens,
            error: report.error.clone(),
        });
    }
}

impl From<FinalStatus> for RunStatus {
    fn from(status: FinalStatus) -> Self {
        match status {
            FinalStatus::Completed => Self::Completed,
            FinalStatus::Failed => Self::Failed,
            FinalStatus::Cancelled => Self::Cancelled,
        }
    }
}

fn unreadable(execution_id: ExecutionId, reason: &str) -> Input {
    let report = Report::of_error(&format!("the desktop cannot read the Graph: {reason}"));
    let outcome = Outcome {
        status: FinalStatus::Failed,
        report,
    };
    Input::Finished {
        execution_id,
        outcome,
    }
}
