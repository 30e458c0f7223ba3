//! The wake-up call: held by the hub until something new may wait. A hint only; the turns remain
//! the truth.

use std::collections::BTreeSet;

use callboard_domain::ProjectId;
use callboard_domain::limits::WAKE_PROJECTS_MAX;
use callboard_wire::relay::{ProjectRevision, WaitRequest, WaitResponse};

use crate::step::{Cx, Pending, Relay};
use crate::{Call, CallId, Output};

/// Spread of the first reconnection, in milliseconds; doubled with each further failure.
const BACK_OFF_MS: u64 = 2_500;
/// An empty answer within this time was not held; something on the way made it up.
const HELD_MS_MIN: u64 = 1_000;

/// The wake-up connection.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    held: Option<Held>,
    failures: u32,
    not_before_ms: u64,
    /// Projects that woke the desktop and were not synced since.
    woken: BTreeSet<ProjectId>,
    /// Something to watch waits for `not_before_ms`.
    pending: bool,
}

#[derive(Debug)]
struct Held {
    call: CallId,
    sent_ms: u64,
    projects: BTreeSet<ProjectId>,
}

impl Watch {
    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    pub(crate) fn woke(&self, project_id: ProjectId) -> bool {
        self.woken.contains(&project_id)
    }

    pub(crate) fn next_try_ms(&self) -> Option<u64> {
        (self.held.is_none() && self.pending).then_some(self.not_before_ms)
    }
}

impl Relay {
    /// Keeps one call held over all projects. It is made between turns, so that it names the
    /// revisions of the latest syncs.
    pub(crate) fn keep_watch(&mut self, cx: &mut Cx<'_>) {
        self.watch.pending = false;
        let off = !self.config.wake_up || self.draining || !self.disk_is_well();
        if off || self.turn_is_busy() {
            return;
        }
        self.watch.woken.clear();
        let projects = self.projects_to_watch(cx);
        let names: BTreeSet<_> = projects.iter().map(|project| project.project_id).collect();
        if self
            .watch
            .held
            .as_ref()
            .is_some_and(|held| held.projects != names)
        {
            self.abandon_watch(cx);
        }
        if names.is_empty() || self.watch.is_held() {
            return;
        }
        if cx.now_ms() < self.watch.not_before_ms || self.is_held(cx.now_ms()) {
            self.watch.pending = true;
            return;
        }
        let call = self.send(cx, Pending::Wait, Call::Wait(WaitRequest { projects }));
        self.watch.held = Some(Held {
            call,
            sent_ms: cx.now_ms(),
            projects: names,
        });
    }

    fn projects_to_watch(&self, cx: &Cx<'_>) -> Vec<ProjectRevision> {
        let watched = cx.view.projects().into_iter().filter_map(|project| {
            let project_id = project.project_id;
            let revision = self.revisions.get(&project_id)?.clone();
            Some(ProjectRevision {
                project_id,
                revision,
            })
        });
        watched.take(WAKE_PROJECTS_MAX).collect()
    }

    /// A wake is a control poll for what runs, and a turn, at once.
    pub(crate) fn woken(&mut self, cx: &mut Cx<'_>, response: WaitResponse) {
        let Some(held) = self.watch.held.take() else {
            return;
        };
        if response.wake.is_empty() {
            if cx.now_ms().saturating_sub(held.sent_ms) < HELD_MS_MIN {
                self.back_off_watch(cx);
            } else {
                self.watch.failures = 0;
            }
            return;
        }
        self.watch.failures = 0;
        let woken = response.wake.iter().map(|woken| woken.project_id);
        self.watch.woken.extend(woken);
        self.poll_controls_now(cx.now_ms());
        self.turn_wanted = true;
    }

    pub(crate) fn watch_failed(&mut self, cx: &mut Cx<'_>) {
        self.watch.held = None;
        self.back_off_watch(cx);
    }

    /// Full jitter, so that the desktops of a restarted hub do not come back in step.
    pub(crate) fn back_off_watch(&mut self, cx: &mut Cx<'_>) {
        let spread_ms = BACK_OFF_MS
            .saturating_mul(1 << self.watch.failures.min(16))
            .min(self.config.sync_interval_ms);
        self.watch.failures = self.watch.failures.saturating_add(1);
        self.watch.not_before_ms = cx.now_ms() + cx.draw.below(spread_ms);
    }

    pub(crate) fn abandon_watch(&mut self, cx: &mut Cx<'_>) {
        if let Some(held) = self.watch.held.take() {
            self.calls.remove(&held.call);
            cx.outputs.push(Output::Abandon { call: held.call });
        }
    }
}
