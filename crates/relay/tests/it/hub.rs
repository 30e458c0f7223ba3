//! A hub small enough to be obviously right: the domain's rules over a map.

use std::collections::BTreeMap;

use callboard_domain::graph_run::{Completion, Event, Run, State, Status, decide};
use callboard_domain::{
    CommandId, Decision, Digest, ExecutionId, GraphSessionId, ProjectId, Refusal, Timestamp,
};
use callboard_wire::RawValue;
use callboard_wire::relay::{
    CommandInfo, CompleteResponse, ControlInfo, ControlResponse, DesktopInfo, ProjectRevision,
    StartResponse, SyncRequest, SyncResponse, WaitRequest, WaitResponse,
};

/// One queued run at the hub.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) run: Run,
    pub(crate) project_id: ProjectId,
    pub(crate) graph_session_id: GraphSessionId,
    pub(crate) slug: String,
}

#[derive(Debug, Default)]
pub(crate) struct Hub {
    pub(crate) commands: BTreeMap<CommandId, Queued>,
    pub(crate) synced: BTreeMap<ProjectId, usize>,
    revisions: BTreeMap<ProjectId, u64>,
}

impl Hub {
    pub(crate) fn queue(
        &mut self,
        now: Timestamp,
        n: u8,
        project_id: ProjectId,
        graph_session_id: GraphSessionId,
        slug: &str,
    ) -> CommandId {
        let id = CommandId::from_bytes([n; 16]);
        let run = Run::queued(Digest::of(&[&[n]]), now);
        let slug = slug.to_owned();
        self.commands.insert(
            id,
            Queued {
                run,
                project_id,
                graph_session_id,
                slug,
            },
        );
        self.touch(project_id);
        id
    }

    pub(crate) fn status(&self, id: CommandId) -> Status {
        self.commands[&id].run.status()
    }

    pub(crate) fn request_cancel(&mut self, now: Timestamp, id: CommandId) {
        self.apply(now, id, &Event::RequestCancel).unwrap();
        let project_id = self.commands[&id].project_id;
        self.touch(project_id);
    }

    pub(crate) fn who_am_i(&self) -> DesktopInfo {
        DesktopInfo {
            desktop_id: callboard_domain::DesktopId::from_bytes([1; 16]),
            name: "this-machine".into(),
            projects: Vec::new(),
        }
    }

    pub(crate) fn sync(&mut self, request: &SyncRequest) -> SyncResponse {
        self.synced
            .insert(request.project_id, request.sessions.len());
        let of_project = || {
            let all = self.commands.iter();
            all.filter(|(_, queued)| queued.project_id == request.project_id)
        };
        let commands = of_project()
            .filter(|(_, queued)| queued.run.state == State::Queued)
            .map(|(id, queued)| CommandInfo {
                command_id: *id,
                graph_session_id: queued.graph_session_id,
                slug: queued.slug.clone(),
                arguments: RawValue::from_string("{}".into()).unwrap(),
            });
        let control = of_project()
            .filter(|(_, queued)| queued.run.status() == Status::Running)
            .map(|(id, queued)| ControlInfo {
                command_id: *id,
                cancel_requested: queued.run.cancel_requested(),
            });
        SyncResponse {
            revision: self.revision(request.project_id),
            commands: commands.collect(),
            control: control.collect(),
        }
    }

    pub(crate) fn start(
        &mut self,
        now: Timestamp,
        id: CommandId,
        execution_id: ExecutionId,
    ) -> Result<StartResponse, Refusal> {
        self.apply(now, id, &Event::Start { execution_id })?;
        let cancel_requested = self.commands[&id].run.cancel_requested();
        Ok(StartResponse { cancel_requested })
    }

    pub(crate) fn control(&self, id: CommandId) -> Result<ControlResponse, Refusal> {
        let queued = self.commands.get(&id).ok_or(Refusal::RunNotFound)?;
        Ok(ControlResponse {
            cancel_requested: queued.run.cancel_requested(),
        })
    }

    pub(crate) fn complete(
        &mut self,
        now: Timestamp,
        id: CommandId,
        completion: Completion,
    ) -> Result<CompleteResponse, Refusal> {
        let replayed = self.apply(now, id, &Event::Complete(completion))?;
        Ok(CompleteResponse { ok: true, replayed })
    }

    /// The answer of the wake-up call, if it need not be held any longer.
    pub(crate) fn wake(&self, request: &WaitRequest) -> Option<WaitResponse> {
        let moved =
            |project: &&ProjectRevision| self.revision(project.project_id) != project.revision;
        let wake: Vec<_> = request
            .projects
            .iter()
            .filter(moved)
            .map(|project| ProjectRevision {
                project_id: project.project_id,
                revision: self.revision(project.project_id),
            })
            .collect();
        (!wake.is_empty()).then_some(WaitResponse { wake })
    }

    fn revision(&self, project_id: ProjectId) -> String {
        self.revisions.get(&project_id).unwrap_or(&0).to_string()
    }

    fn touch(&mut self, project_id: ProjectId) {
        *self.revisions.entry(project_id).or_default() += 1;
    }

    fn apply(&mut self, now: Timestamp, id: CommandId, event: &Event) -> Result<bool, Refusal> {
        let queued = self.commands.get_mut(&id).ok_or(Refusal::RunNotFound)?;
        let over = queued.run.status().is_terminal();
        let decision = decide(&queued.run, event, now)?;
        let replayed = decision == Decision::Replayed;
        if let Some(next) = decision.moved() {
            assert!(!over, "a run that is over never changes");
            queued.run = next;
        }
        Ok(replayed)
    }
}
