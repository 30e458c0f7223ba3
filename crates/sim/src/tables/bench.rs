//! What the experiments share: a world with one agent and one desktop, and statistics.

use callboard_domain::limits::TASK_LEASE_MS_DEFAULT;
use callboard_domain::{CommandId, GraphSessionId};
use callboard_relay::Config;
use callboard_store::MemoryStore;

use super::{Figures, Mode};
use crate::disk::session_info;
use crate::hub_side::{Ask, Told};
use crate::{Bug, Durations, Notice, Random, Setup, World};

/// Runs that one bench plays before a fresh one takes its place: a store in memory looks at all it
/// has.
pub(super) const RUNS_PER_BENCH: u32 = 20;

/// Long enough for everything: a virtual day, in milliseconds.
pub(super) const DAY_MS: u64 = 86_400_000;

/// One agent, one desktop, one shared session.
pub(super) struct Bench {
    pub(super) world: World<MemoryStore>,
    pub(super) random: Random,
    pub(super) agent: usize,
    pub(super) desktop: usize,
    session: String,
    next_key: u64,
}

impl Bench {
    /// A bench whose desktop is up and has told the hub what it shares.
    pub(super) fn new(
        seed: u64,
        name: &str,
        mode: Mode,
        durations: Durations,
        bug: Option<Bug>,
    ) -> Self {
        let mut random = Random::stream(seed, name);
        let setup = Setup {
            seed: random.next(),
            relay: Config {
                wake_up: mode == Mode::Defaults,
                ..Config::default()
            },
            durations,
            task_lease_ms: TASK_LEASE_MS_DEFAULT,
            javascript: false,
            bug,
        };
        let mut world = World::new(MemoryStore::default(), setup);
        let project_id = world.add_project("Home");
        let agent = world.add_agent("agent", &["Home"]);
        let desktop = world.add_desktop("desktop");
        let session_id = GraphSessionId::from_bytes([0x5e; 16]);
        world.change_desktop(desktop, |machine| {
            machine.disk.enable(project_id, true);
            let session = session_info(session_id, "graph");
            machine.disk.share(project_id, session);
        });
        world.boot(desktop);
        let mut bench = Self {
            world,
            random,
            agent,
            desktop,
            session: session_id.to_string(),
            next_key: 0,
        };
        bench.settle();
        bench
    }

    /// Lets a minute and a random part of a poll pass, so that the next run meets the desktop idle
    /// and at a random phase.
    pub(super) fn settle(&mut self) {
        let pause_ms = 60_000 + self.random.below(20_000);
        self.pass(pause_ms);
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, duration_ms: u64) {
        let until_ms = self.world.now_ms() + duration_ms;
        self.world.run(until_ms);
    }

    /// A key that was not used before.
    pub(super) fn key(&mut self) -> String {
        self.next_key += 1;
        format!("key-{:06}", self.next_key)
    }

    /// The question that starts a run.
    pub(super) fn start(&self, key: String) -> Ask {
        Ask::Run {
            session: self.session.clone(),
            argument: 0,
            key,
        }
    }

    /// Queues a run now.
    ///
    /// # Panics
    /// When the hub does not take it.
    #[allow(clippy::panic, reason = "an experiment that cannot run is a bug")]
    pub(super) fn queue(&mut self) -> CommandId {
        let key = self.key();
        let ask = self.start(key);
        let told = self.world.probe(self.agent, &ask);
        match told {
            Some(Ok(Told::Run(answer))) => answer.command_id,
            other => panic!("no run was queued: {other:?}"),
        }
    }

    /// Lets the world go on until `done`, at most for a day; notices go to `heed`.
    pub(super) fn until(
        &mut self,
        mut heed: impl FnMut(&mut World<MemoryStore>, Notice),
        done: impl Fn(&World<MemoryStore>) -> bool,
    ) {
        let until_ms = self.world.now_ms() + DAY_MS;
        while !done(&self.world)
            && let Some(notice) = self.world.step(until_ms)
        {
            if let Some(notice) = notice {
                heed(&mut self.world, notice);
            }
        }
    }

    /// Lets the world go on until these commands are over.
    pub(super) fn until_over(&mut self, commands: &[CommandId]) {
        self.until(
            |_, _| {},
            |world| commands.iter().all(|id| ended_ms(world, *id).is_some()),
        );
    }
}

/// When a command left the queue, in world milliseconds.
pub(super) fn left_queue_ms(world: &World<MemoryStore>, id: CommandId) -> Option<u64> {
    world.witness.commands().get(&id)?.left_queue_ms
}

/// When a command was over, in world milliseconds.
pub(super) fn ended_ms(world: &World<MemoryStore>, id: CommandId) -> Option<u64> {
    world.witness.commands().get(&id)?.ended_ms
}

/// A sample of times or counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample(Vec<f64>);

impl Sample {
    /// The values, in the order in which they were added.
    pub(super) fn into_values(self) -> Vec<f64> {
        self.0
    }

    /// Adds milliseconds, as seconds.
    pub(super) fn add_ms(&mut self, duration_ms: u64) {
        self.0.push(crate::world::seconds(duration_ms));
    }

    /// Adds a number.
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
    pub(super) fn add_count(&mut self, count: u64) {
        self.0.push(count as f64);
    }

    /// How many.
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
    pub(super) fn count(&self) -> f64 {
        self.0.len() as f64
    }

    /// The mean; zero of nothing.
    pub(super) fn mean(&self) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        self.0.iter().sum::<f64>() / self.count()
    }

    /// The value below which `percent` of the sample lie.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(index).copied().unwrap_or(0.0)
    }

    /// The largest value.
    pub(super) fn max(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }
}

/// Puts a figure under its key.
pub(super) fn put(figures: &mut Figures, key: impl Into<String>, figure: f64) {
    figures.insert(key.into(), figure);
}
