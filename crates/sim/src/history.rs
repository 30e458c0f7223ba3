//! Plays a plan and says what came of it.

use std::collections::BTreeMap;

use callboard_domain::graph_run::Status;
use callboard_domain::{FinalStatus, GraphSessionId, ProjectId};
use callboard_relay::View as _;
use callboard_store::{MemoryStore, Store};
use callboard_store_sqlite::SqliteStore;

use crate::disk::session_info;
use crate::people::{People, agent_name};
use crate::plan::{AGENTS, CHAOS_MS, DESKTOPS, HEAL_MS, Op, Plan, SESSIONS};
use crate::{Bug, Death, Durations, Faults, Notice, Setup, Violation, World};

/// How often a healing history is looked at, in milliseconds.
const LOOK_MS: u64 = 300_000;
/// Timers from here on end what an operation began.
const UNDO: u64 = 1 << 32;

/// What a history is played on. It goes the same way on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The store in memory; scripts are lists of calls.
    Memory,
    /// SQLite in memory, on one connection.
    Sqlite,
    /// The store in memory; scripts are programs in the JavaScript engine.
    JavaScript,
}

/// How much happened.
pub type Counts = BTreeMap<&'static str, u64>;

/// What came of a history.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The digest of all happenings in their order.
    pub hash: u64,
    /// Happenings.
    pub events: u64,
    /// Virtual time that passed, in milliseconds.
    pub virtual_ms: u64,
    /// The first broken invariant.
    pub violation: Option<Violation>,
    /// How much happened.
    pub counts: Counts,
    /// One line a happening, when they were asked for.
    pub log: Vec<String>,
}

/// Plays `plan` to its end, or to its first violation.
pub fn play(plan: &Plan, stage: Stage, bug: Option<Bug>, keep_log: bool) -> Outcome {
    let javascript = stage == Stage::JavaScript;
    match stage {
        Stage::Memory | Stage::JavaScript => {
            History::new(plan, MemoryStore::default(), javascript, bug, keep_log).play()
        }
        Stage::Sqlite => match SqliteStore::inline_memory() {
            Ok(store) => History::new(plan, store, javascript, bug, keep_log).play(),
            Err(error) => Outcome {
                hash: 0,
                events: 0,
                virtual_ms: 0,
                violation: Some(Violation {
                    invariant: 'm',
                    what: format!("SQLite cannot be opened: {error}"),
                    at_ms: 0,
                }),
                counts: Counts::new(),
                log: Vec::new(),
            },
        },
    }
}

struct History<'a, S> {
    plan: &'a Plan,
    world: World<S>,
    people: People,
    projects: Vec<ProjectId>,
    renamed: u64,
    undo: Vec<Undo>,
    counts: Counts,
}

/// What ends after its time.
#[derive(Debug, Clone, Copy)]
enum Undo {
    CutHubOff,
    Offline(usize),
    FullDisk(usize),
}

impl<'a, S: Store + Clone> History<'a, S> {
    fn new(plan: &'a Plan, store: S, javascript: bool, bug: Option<Bug>, keep_log: bool) -> Self {
        let setup = Setup {
            seed: plan.seed,
            relay: plan.relay,
            durations: Durations::Mixed,
            task_lease_ms: plan.task_lease_ms,
            javascript,
            bug,
        };
        let mut world = World::new(store, setup);
        if keep_log {
            world.keep_log();
        }
        let projects = vec![world.add_project("Home"), world.add_project("Work")];
        for agent in 0..AGENTS {
            let names: &[&str] = match agent {
                0 => &["Home", "Work"],
                1 => &["Home"],
                _ => &["Work"],
            };
            world.add_agent(&agent_name(agent), names);
        }
        for desktop in 0..DESKTOPS {
            world.add_desktop(&format!("desktop {desktop}"));
            world.change_desktop(desktop, |machine| {
                for (number, project_id) in projects.iter().enumerate() {
                    machine.disk.enable(*project_id, true);
                    for session in 0..SESSIONS {
                        // Two in the first project, one in both, one in the second.
                        let is_shared = number == 0 || session > 0;
                        if is_shared {
                            let slug = format!("graph-{session}");
                            let session = session_info(session_id(desktop, session), &slug);
                            machine.disk.share(*project_id, session);
                        }
                    }
                }
            });
            world.boot(desktop);
        }
        world.faults = plan.faults;
        Self {
            plan,
            people: People::new(plan.seed, projects.clone()),
            world,
            projects,
            renamed: 0,
            undo: Vec::new(),
            counts: Counts::new(),
        }
    }

    fn play(mut self) -> Outcome {
        for planned in &self.plan.ops {
            let timer = u64::try_from(planned.number).unwrap_or(u64::MAX);
            self.world.after(planned.at_ms, timer);
        }
        self.go_on(CHAOS_MS);
        self.world.heal();
        self.undo.clear();
        let mut until_ms = CHAOS_MS;
        let end_ms = CHAOS_MS + HEAL_MS;
        while until_ms < end_ms && self.world.witness.violation().is_none() {
            until_ms += LOOK_MS;
            self.go_on(until_ms);
            if self.unrest().is_none() {
                break;
            }
        }
        self.check_at_rest();
        let mut counts = std::mem::take(&mut self.people.answers);
        for (what, count) in std::mem::take(&mut self.counts) {
            *counts.entry(what).or_default() += count;
        }
        Outcome {
            hash: self.world.hash(),
            events: self.world.events(),
            virtual_ms: self.world.now_ms(),
            violation: self.world.witness.violation().cloned(),
            counts,
            log: self.world.take_log(),
        }
    }

    fn go_on(&mut self, until_ms: u64) {
        while self.world.witness.violation().is_none()
            && let Some(notice) = self.world.next(until_ms)
        {
            match notice {
                Notice::Told {
                    call,
                    agent,
                    ask,
                    told,
                } => self.people.told(&mut self.world, call, agent, ask, told),
                Notice::Timer(timer) if timer >= UNDO => self.undo(timer - UNDO),
                Notice::Timer(timer) => {
                    let number = usize::try_from(timer).unwrap_or(usize::MAX);
                    let planned = self.plan.ops.iter();
                    let mut planned = planned.filter(|planned| planned.number == number);
                    if let Some(planned) = planned.next() {
                        let op = planned.op;
                        self.world.note(|| format!("[{number}] {op:?}"));
                        self.begin(op);
                    }
                }
            }
        }
    }

    fn undo(&mut self, index: u64) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        match self.undo.get(index).copied() {
            Some(Undo::CutHubOff) => self.world.is_hub_cut_off = false,
            Some(Undo::Offline(desktop)) => {
                self.world
                    .change_desktop(desktop, |machine| machine.is_offline = false);
            }
            Some(Undo::FullDisk(desktop)) => {
                self.world
                    .change_desktop(desktop, |machine| machine.disk.is_full = false);
            }
            None => {}
        }
    }

    fn undo_after(&mut self, for_ms: u64, undo: Undo) {
        let index = u64::try_from(self.undo.len()).unwrap_or(0);
        self.undo.push(undo);
        self.world.after(for_ms, UNDO + index);
    }

    fn begin(&mut self, op: Op) {
        let world = &mut self.world;
        match op {
            Op::Start {
                agent,
                desktop,
                session,
            } => {
                let session = session_id(desktop, session).to_string();
                self.people.start(world, agent, session);
            }
            Op::StartAgain { nth, is_other } => self.people.start_again(world, nth, is_other),
            Op::Status { nth, wait_seconds } => self.people.status(world, nth, wait_seconds),
            Op::Cancel { nth } => self.people.cancel(world, nth),
            Op::Probe { nth } => self.people.probe(world, nth),
            Op::Stray { nth } => self.people.stray(world, nth),
            Op::Link { agent } => self.people.link(world, agent),
            Op::Assign { nth, is_again } => self.people.assign(world, nth, is_again),
            Op::Inbox { nth } => self.people.inbox(world, nth),
            Op::Claim { nth } => self.people.claim(world, nth),
            Op::Submit { nth, variant } => self.people.submit(world, nth, variant),
            Op::Upload { nth } => self.people.upload(world, nth),
            Op::CancelTask { nth } => self.people.cancel_task(world, nth),
            Op::RevokeChat { nth } => self.people.revoke_chat(world, nth),
            Op::RevokeAgent { agent } => self.people.revoke_agent(world, agent),
            Op::ToggleShare { desktop, session } => self.toggle_share(desktop, session),
            Op::Rename { desktop, session } => self.rename(desktop, session),
            Op::ToggleProject { desktop, project } => {
                if let Some(project_id) = self.projects.get(project).copied() {
                    world.change_sharing(desktop, |disk| {
                        let is_enabled = disk.is_enabled(project_id);
                        disk.enable(project_id, !is_enabled);
                    });
                }
            }
            Op::OwnerCancel { desktop } => self.owner_cancel(desktop),
            Op::CrashDesktop {
                desktop,
                after,
                down_ms,
            } => {
                *self.counts.entry("desktop crash").or_default() += 1;
                world.change_desktop(desktop, |machine| {
                    machine.crash_after = Some(after);
                    machine.down_ms = down_ms;
                });
            }
            Op::CrashHub { after, is_stored } => {
                *self.counts.entry("hub crash").or_default() += 1;
                world.hub_dies(Death {
                    after_operations: after,
                    is_stored,
                });
            }
            Op::CutHubOff { for_ms } => {
                world.is_hub_cut_off = true;
                self.undo_after(for_ms, Undo::CutHubOff);
            }
            Op::Offline { desktop, for_ms } => {
                world.change_desktop(desktop, |machine| machine.is_offline = true);
                self.undo_after(for_ms, Undo::Offline(desktop));
            }
            Op::Sleep {
                desktop,
                duration_ms,
            } => world.sleep(desktop, duration_ms),
            Op::Skew { desktop, skew_ms } => world.set_skew(desktop, skew_ms),
            Op::JumpHub { by_ms } => world.jump_hub_clock(by_ms),
            Op::FillDisk { desktop, for_ms } => {
                world.change_desktop(desktop, |machine| machine.disk.is_full = true);
                self.undo_after(for_ms, Undo::FullDisk(desktop));
            }
        }
    }

    fn toggle_share(&mut self, desktop: usize, session: u8) {
        let id = session_id(desktop, session);
        let projects = self.projects.clone();
        self.world.change_sharing(desktop, |disk| {
            for (number, project_id) in projects.into_iter().enumerate() {
                let was_shared = disk.unshare(project_id, id);
                if !was_shared && (number == 0 || session > 0) {
                    let slug = format!("graph-{session}");
                    disk.share(
                        project_id,
                        session_info(session_id(desktop, session), &slug),
                    );
                }
            }
        });
    }

    fn rename(&mut self, desktop: usize, session: u8) {
        self.renamed += 1;
        let (renamed, projects) = (self.renamed, self.projects.clone());
        let id = session_id(desktop, session);
        self.world.change_sharing(desktop, |disk| {
            for project_id in projects {
                if disk.unshare(project_id, id) {
                    let slug = format!("renamed-{renamed}");
                    disk.share(
                        project_id,
                        session_info(session_id(desktop, session), &slug),
                    );
                }
            }
        });
    }

    fn owner_cancel(&mut self, desktop: usize) {
        let machine = self.world.desktops().get(desktop);
        if let Some(execution_id) = machine.and_then(|machine| machine.running().next()) {
            let cancel = callboard_relay::Input::OwnerCancel { execution_id };
            self.world.feed(desktop, cancel);
        }
    }

    /// What is not at rest yet.
    fn unrest(&mut self) -> Option<String> {
        for (number, desktop) in self.world.desktops().iter().enumerate() {
            if !desktop.is_at_rest() {
                let outbox = desktop.disk.outbox();
                return Some(format!(
                    "desktop {number} is not at rest; its outbox is {outbox:?}"
                ));
            }
        }
        let open = self.world.witness.commands().iter().find(|(_, facts)| {
            let status = facts.row.map(|row| row.status);
            status.is_some_and(|status| !status.is_terminal())
        });
        open.map(|(id, facts)| format!("command {id} is not over: {facts:?}"))
    }

    /// Invariant b, once everything is healed.
    fn check_at_rest(&mut self) {
        if self.world.witness.violation().is_some() {
            return;
        }
        if let Some(unrest) = self.unrest() {
            return self.world.witness.fail('b', unrest);
        }
        let parked: Vec<_> = self
            .world
            .desktops()
            .iter()
            .flat_map(|desktop| desktop.disk.parked())
            .map(|(id, _)| id)
            .collect();
        let mut odd = None;
        for (id, facts) in self.world.witness.commands() {
            let Some(row) = facts.row else { continue };
            match (facts.finished, facts.begun.is_empty()) {
                (Some(finished), false) if !parked.contains(id) => {
                    let told = match finished {
                        FinalStatus::Completed => Status::Completed,
                        FinalStatus::Failed => Status::Failed,
                        FinalStatus::Cancelled => Status::Cancelled,
                    };
                    if told != row.status {
                        let status = row.status;
                        odd = Some(format!("{id} ended {told} and is {status} at the hub"));
                    }
                }
                (None, false) => odd = Some(format!("the end of {id} was never recorded")),
                (Some(_) | None, _) => {}
            }
        }
        if let Some(odd) = odd {
            self.world.witness.fail('b', odd);
        }
        self.world.faults = Faults::default();
    }
}

fn session_id(desktop: usize, session: u8) -> GraphSessionId {
    let mut bytes = [0x5e; 16];
    bytes[0] = u8::try_from(desktop).unwrap_or(u8::MAX);
    bytes[1] = session;
    GraphSessionId::from_bytes(bytes)
}
