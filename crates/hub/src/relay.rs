//! The relay API: what a desktop can do.

use std::collections::BTreeSet;

use callboard_domain::graph_run::Completion;
use callboard_domain::limits::{
    DESCRIPTION_UTF16_MAX, NAME_UTF16_MAX, PHASE_UTF16_MAX, SESSIONS_PER_PROJECT_MAX,
    SLUG_CHARS_MAX, WAKE_HOLD_MS_MAX, WAKE_PROJECTS_MAX,
};
use callboard_domain::{CommandId, Refusal, cut_utf16, utf16_len};
use callboard_store::{Desktop, RunRow, Store};
use callboard_wire::relay::{
    CompleteRequest, CompleteResponse, ControlRequest, ControlResponse, DesktopInfo, ProjectInfo,
    ProjectRevision, SessionInfo, StartRequest, StartResponse, SyncRequest, SyncResponse,
    WaitRequest, WaitResponse,
};

use crate::{Hold, Hub, HubError, Patience, Reply, Topic};

impl<S: Store> Hub<S> {
    /// Who the desktop is, and its owner's projects.
    ///
    /// # Errors
    /// [`HubError::Unavailable`].
    pub async fn desktop_info(&self, desktop: &Desktop) -> Result<DesktopInfo, HubError> {
        let projects = self.store.projects(desktop.owner_id).await?;
        let info = |project: callboard_store::Project| ProjectInfo {
            project_id: project.id,
            name: project.name,
        };
        Ok(DesktopInfo {
            desktop_id: desktop.id,
            name: desktop.name.clone(),
            projects: projects.into_iter().map(info).collect(),
        })
    }

    /// Replaces what the desktop shares with a project and gives what waits there.
    ///
    /// # Errors
    /// [`Refusal::TooManySessions`], [`Refusal::ProjectNotFound`], [`HubError::Invalid`].
    pub async fn sync(
        &self,
        desktop: &Desktop,
        request: SyncRequest,
    ) -> Result<SyncResponse, HubError> {
        check_sessions(&request.sessions)?;
        let (project_id, now) = (request.project_id, self.clock.now());
        // Read before the commands, so that one queued in between moves it.
        let revision = self.signals.revision(Topic::Work(desktop.id, project_id));
        let synced = self
            .store
            .sync(desktop.id, project_id, request.sessions, now)
            .await?;
        let handout = synced.handout;
        Ok(SyncResponse {
            revision,
            commands: handout.commands,
            control: handout.control,
        })
    }

    /// Grants a start.
    ///
    /// # Errors
    /// Those of [`callboard_domain::graph_run::decide`], and [`Refusal::RunNotFound`].
    pub async fn start(
        &self,
        desktop: &Desktop,
        command_id: &str,
        request: StartRequest,
    ) -> Result<StartResponse, HubError> {
        let command_id = parse_command(command_id);
        let now = self.clock.now();
        let row = self
            .store
            .start_run(desktop.id, command_id, request.execution_id, now)
            .await?;
        self.signals.moved(Topic::Run(command_id));
        Ok(StartResponse {
            cancel_requested: row.run.cancel_requested(),
        })
    }

    /// The 3 s poll of a running command.
    ///
    /// # Errors
    /// [`Refusal::RunNotFound`]; [`Refusal::RunOver`] for one that ended without its desktop.
    pub async fn control(
        &self,
        desktop: &Desktop,
        command_id: &str,
        request: ControlRequest,
    ) -> Result<ControlResponse, HubError> {
        let command_id = parse_command(command_id);
        let phase = request
            .phase
            .map(|phase| cut_utf16(&phase, PHASE_UTF16_MAX).to_owned());
        let now = self.clock.now();
        let reported =
            self.store
                .report_progress(desktop.id, command_id, phase, request.progress, now);
        let row = reported.await?;
        if row.run.status().is_terminal() {
            return Err(Refusal::RunOver.into());
        }
        Ok(ControlResponse {
            cancel_requested: row.run.cancel_requested(),
        })
    }

    /// Stores how a run ended.
    ///
    /// # Errors
    /// Those of [`callboard_domain::graph_run::decide`], and [`Refusal::RunNotFound`].
    pub async fn complete(
        &self,
        desktop: &Desktop,
        command_id: &str,
        request: CompleteRequest,
    ) -> Result<CompleteResponse, HubError> {
        let command_id = parse_command(command_id);
        let (completion, now) = (Completion::from(request), self.clock.now());
        let completed = self
            .store
            .complete_run(desktop.id, command_id, completion, now);
        let (row, replayed): (RunRow, bool) = completed.await?;
        self.signals.moved(Topic::Run(command_id));
        if !replayed {
            tracing::info!(command.id = %command_id, status = %row.run.status(), "finished");
        }
        Ok(CompleteResponse { ok: true, replayed })
    }

    /// The wake-up call: holds until a project's revision differs from the given one. The shell
    /// hands back the `patience` of the last [`Hold`].
    ///
    /// # Errors
    /// [`HubError::Invalid`] for too many projects.
    pub fn wait(
        &self,
        desktop: &Desktop,
        request: &WaitRequest,
        patience: Option<Patience>,
    ) -> Result<Reply<WaitResponse>, HubError> {
        if request.projects.len() > WAKE_PROJECTS_MAX {
            return Err(HubError::Invalid(format!(
                "`projects` holds at most {WAKE_PROJECTS_MAX} entries."
            )));
        }
        let topic = |given: &ProjectRevision| Topic::Work(desktop.id, given.project_id);
        let watches: Vec<_> = request
            .projects
            .iter()
            .map(|given| self.signals.watch(topic(given)))
            .collect();
        let wake: Vec<_> = request
            .projects
            .iter()
            .map(|given| ProjectRevision {
                project_id: given.project_id,
                revision: self.signals.revision(topic(given)),
            })
            .filter(|present| !request.projects.contains(present))
            .collect();
        let now_ms = self.clock.monotonic_ms();
        let patience = patience.unwrap_or_else(|| Patience {
            deadline_ms: now_ms.saturating_add(WAKE_HOLD_MS_MAX),
            first_seen: None,
        });
        if !wake.is_empty() || now_ms >= patience.deadline_ms {
            return Ok(Reply::Done(WaitResponse { wake }));
        }
        Ok(Reply::Hold(Hold { watches, patience }))
    }
}

fn parse_command(command_id: &str) -> CommandId {
    command_id.parse().unwrap_or(CommandId::UNKNOWN)
}

fn check_sessions(sessions: &[SessionInfo]) -> Result<(), HubError> {
    if sessions.len() > SESSIONS_PER_PROJECT_MAX {
        return Err(Refusal::TooManySessions.into());
    }
    let distinct: BTreeSet<_> = sessions
        .iter()
        .map(|session| session.graph_session_id)
        .collect();
    if distinct.len() != sessions.len() {
        return Err(HubError::Invalid("A session is listed twice.".to_owned()));
    }
    let fits = |session: &SessionInfo| {
        (1..=NAME_UTF16_MAX).contains(&utf16_len(&session.name))
            && utf16_len(&session.description) <= DESCRIPTION_UTF16_MAX
            && (1..=SLUG_CHARS_MAX).contains(&session.slug.chars().count())
            && utf16_len(&session.status) <= NAME_UTF16_MAX
    };
    match sessions.iter().find(|session| !fits(session)) {
        None => Ok(()),
        Some(session) => Err(HubError::Invalid(format!(
            "Session {} does not fit: a name has 1 to {NAME_UTF16_MAX} characters, a slug 1 to \
             {SLUG_CHARS_MAX}, a description at most {DESCRIPTION_UTF16_MAX}, a status \
             {NAME_UTF16_MAX}.",
            session.graph_session_id
        ))),
    }
}
