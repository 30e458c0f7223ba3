//! The wake-up call: held by the hub until something new may wait. A hint only; the turns remain
//! the truth.

use std::collections::BTreeSet;

use callboard_domain::ProjectId;
use callboard_domain::limits::{WAKE_HOLD_MS_MAX, WAKE_PROJECTS_MAX};
use callboard_wire::relay::{ProjectRevision, WaitRequest, WaitResponse};

use crate::step::{Cx, Pending, Relay};
use crate::{Call, CallId, Output};

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
    /// When its calls come is this desktop's own, not that of all that started with it.
    is_apart: bool,
}

#[derive(Debug)]
struct Held {
    call: CallId,
    sent_ms: u64,
    projects: BTreeSet<ProjectId>,
    /// It is made anew then, without waiting for its answer.
    renew_ms: Option<u64>,
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

    pub(crate) fn renew_ms(&self) -> Option<u64> {
        self.held.as_ref()?.renew_ms
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
        if self
            .watch
            .renew_ms()
            .is_some_and(|at_ms| at_ms <= cx.now_ms())
        {
            self.watch.is_apart = true;
            self.abandon_watch(cx);
        }
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
        // The hub holds each call for the same time, so desktops that began together would come
        // back together for ever. Cutting one hold short leaves no moment without a held call.
        let renew_ms =
            (!self.watch.is_apart).then(|| cx.now_ms() + 1 + cx.draw.below(WAKE_HOLD_MS_MAX));
        let call = self.send(cx, Pending::Wait, Call::Wait(WaitRequest { projects }));
        self.watch.held = Some(Held {
            call,
            sent_ms: cx.now_ms(),
            projects: names,
            renew_ms,
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

    pub(crate) fn back_off_watch(&mut self, cx: &mut Cx<'_>) {
        self.watch.failures = self.watch.failures.saturating_add(1);
        let now_ms = cx.now_ms();
        self.spread_watch(cx, now_ms);
    }

    /// Full jitter over a whole interval, so that the desktops of a restarted or busy hub do not
    /// come back in step. Meanwhile the turns go on.
    pub(crate) fn spread_watch(&mut self, cx: &mut Cx<'_>, from_ms: u64) {
        if self.watch.not_before_ms > from_ms {
            return;
        }
        self.watch.is_apart = true;
        let spread_ms = cx.draw.below(self.config.sync_interval_ms);
        self.watch.not_before_ms = from_ms.saturating_add(spread_ms);
    }

    pub(crate) fn abandon_watch(&mut self, cx: &mut Cx<'_>) {
        if let Some(held) = self.watch.held.take() {
            self.calls.remove(&held.call);
            cx.outputs.push(Output::Abandon { call: held.call });
        }
    }
}
