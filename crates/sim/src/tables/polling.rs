//! How many calls an agent makes for a run, and how late it notices the end. All ways to poll
//! watch the same runs.

use callboard_domain::limits::WAIT_SECONDS_MAX;
use callboard_store::MemoryStore;

use super::bench::{Bench, RUNS_PER_BENCH, Sample, ended_ms, put};
use super::{Figures, Mode};
use crate::hub_side::{Ask, Told};
use crate::{Durations, Notice, World};

const RUNS: u32 = 2_000;

/// A way to poll: its key, and the pause before each call, in seconds.
struct Strategy {
    key: &'static str,
    pause_s: fn(u64) -> u64,
    wait_seconds: u64,
}

const STRATEGIES: [Strategy; 7] = [
    Strategy {
        key: "2",
        pause_s: |_| 2,
        wait_seconds: 0,
    },
    Strategy {
        key: "5",
        pause_s: |_| 5,
        wait_seconds: 0,
    },
    Strategy {
        key: "15",
        pause_s: |_| 15,
        wait_seconds: 0,
    },
    Strategy {
        key: "30",
        pause_s: |_| 30,
        wait_seconds: 0,
    },
    Strategy {
        key: "backoff",
        pause_s: |calls| (2 << calls.min(4)).min(30),
        wait_seconds: 0,
    },
    Strategy {
        key: "20then10",
        pause_s: |calls| if calls == 0 { 20 } else { 10 },
        wait_seconds: 0,
    },
    Strategy {
        key: "wait",
        pause_s: |_| 0,
        wait_seconds: WAIT_SECONDS_MAX,
    },
];

/// One agent that watches the present run.
#[derive(Default)]
struct Watcher {
    calls: u64,
    noticed_ms: Option<u64>,
}

pub(super) fn measure(seed: u64, mode: Mode, figures: &mut Figures) {
    let fresh = |run| {
        let name = format!("polling {run}");
        Bench::new(seed, &name, mode, Durations::Published, None)
    };
    let mut bench = fresh(0);
    // Nobody published a run that is waited for; the others behave alike in both modes.
    let used = match mode {
        Mode::Parity => STRATEGIES.len() - 1,
        Mode::Defaults => STRATEGIES.len(),
    };
    let mut calls: Vec<_> = (0..used).map(|_| Sample::default()).collect();
    let mut late = calls.clone();
    for run in 0..RUNS {
        if run % RUNS_PER_BENCH == 0 {
            bench = fresh(run);
        }
        let id = bench.queue();
        let command = id.to_string();
        let agent = bench.agent;
        let mut watchers: Vec<Watcher> = (0..used).map(|_| Watcher::default()).collect();
        for (number, strategy) in STRATEGIES.iter().enumerate().take(used) {
            let pause_ms = (strategy.pause_s)(0) * 1_000;
            bench.world.after(pause_ms, timer(number));
        }
        let mut asked = std::collections::BTreeMap::new();
        let watching = std::cell::Cell::new(used);
        let heed = |world: &mut World<MemoryStore>, notice: Notice| match notice {
            Notice::Timer(timer) => {
                let number = usize::try_from(timer).unwrap_or(usize::MAX);
                let (Some(strategy), Some(watcher)) =
                    (STRATEGIES.get(number), watchers.get_mut(number))
                else {
                    return;
                };
                watcher.calls += 1;
                let ask = Ask::Status {
                    command: command.clone(),
                    wait_seconds: strategy.wait_seconds,
                };
                asked.insert(world.ask(agent, ask), number);
            }
            Notice::Told { call, told, .. } => {
                let number = asked.remove(&call).unwrap_or(usize::MAX);
                let (Some(strategy), Some(watcher)) =
                    (STRATEGIES.get(number), watchers.get_mut(number))
                else {
                    return;
                };
                let is_over = matches!(told, Some(Ok(Told::Status(answer)))
                    if answer.finished_at.is_some());
                if is_over {
                    watcher.noticed_ms = Some(world.now_ms());
                    watching.set(watching.get() - 1);
                } else {
                    let pause_ms = (strategy.pause_s)(watcher.calls) * 1_000;
                    world.after(pause_ms, self::timer(number));
                }
            }
        };
        bench.until(heed, |_| watching.get() == 0);
        let ended_ms = ended_ms(&bench.world, id).unwrap_or(0);
        for (number, watcher) in watchers.iter().enumerate() {
            if let (Some(calls), Some(late)) = (calls.get_mut(number), late.get_mut(number)) {
                calls.add_count(watcher.calls);
                late.add_ms(watcher.noticed_ms.unwrap_or(0).saturating_sub(ended_ms));
            }
        }
        bench.settle();
    }
    for (strategy, (calls, late)) in STRATEGIES.iter().zip(calls.iter().zip(&late)) {
        let key = strategy.key;
        put(figures, format!("poll.{key}.calls"), calls.mean());
        put(
            figures,
            format!("poll.{key}.calls_p95"),
            calls.percentile(95),
        );
        put(figures, format!("poll.{key}.late"), late.mean());
        put(figures, format!("poll.{key}.late_p95"), late.percentile(95));
    }
}

fn timer(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
