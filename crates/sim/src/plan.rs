//! What is to happen in a history: drawn from its seed, and so short that it can be read and cut
//! down.

use callboard_domain::limits::{CONTROL_INTERVAL_MS, SYNC_INTERVAL_MS};
use callboard_relay::Config;

use crate::{Faults, Random};

/// Agents of a history: one in both projects, one in each.
pub(crate) const AGENTS: usize = 3;
/// Desktops of a history.
pub(crate) const DESKTOPS: usize = 2;
/// Sessions of each desktop.
pub(crate) const SESSIONS: u8 = 3;

/// How long operations are begun, in milliseconds: an hour. Two more are given to heal.
pub const CHAOS_MS: u64 = 3_600_000;
/// How long a history may take to come to rest once everything is healed.
pub const HEAL_MS: u64 = 7_200_000;
/// Longest pause between two operations.
const PAUSE_MS_MAX: u64 = 40_000;

/// One thing that somebody does, or that goes wrong. Numbers choose among what there is then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "a field is the number of its noun; `nth` chooses among what there is then"
)]
pub enum Op {
    /// An agent starts a Graph, under a new key.
    Start {
        agent: usize,
        desktop: usize,
        session: u8,
    },
    /// An agent starts again under a key that it used; with other arguments when `is_other`.
    StartAgain { nth: u64, is_other: bool },
    /// An agent reads a run, or waits for it.
    Status { nth: u64, wait_seconds: u64 },
    /// An agent cancels a run.
    Cancel { nth: u64 },
    /// A foreign id is compared with an unknown one.
    Probe { nth: u64 },
    /// A stale execution id is used.
    Stray { nth: u64 },
    /// A conversation links itself.
    Link { agent: usize },
    /// The owner assigns a task to up to three chats; again under the same key when `is_again`.
    Assign { nth: u64, is_again: bool },
    /// A chat reads its inbox.
    Inbox { nth: u64 },
    /// A chat claims the first open task of its inbox, or any task.
    Claim { nth: u64 },
    /// A chat submits under its claim, or repeats, changes or forges a submit.
    Submit { nth: u64, variant: u64 },
    /// A chat uploads a file.
    Upload { nth: u64 },
    /// The owner cancels a task.
    CancelTask { nth: u64 },
    /// The owner unlinks a chat.
    RevokeChat { nth: u64 },
    /// The owner revokes a connection.
    RevokeAgent { agent: usize },
    /// The owner shares a session, or does so no longer.
    ToggleShare { desktop: usize, session: u8 },
    /// The owner renames a Graph.
    Rename { desktop: usize, session: u8 },
    /// The owner enables or disables a project on a desktop.
    ToggleProject { desktop: usize, project: usize },
    /// The owner stops an execution on the desktop.
    OwnerCancel { desktop: usize },
    /// The desktop's process dies after this many outputs.
    CrashDesktop {
        desktop: usize,
        after: u64,
        down_ms: u64,
    },
    /// The hub dies at an operation of its store.
    CrashHub { after: u64, is_stored: bool },
    /// Nobody reaches the hub for this time.
    CutHubOff { for_ms: u64 },
    /// A desktop is offline for this time.
    Offline { desktop: usize, for_ms: u64 },
    /// A desktop wakes from sleep.
    Sleep { desktop: usize, duration_ms: u64 },
    /// A desktop's wall clock is set.
    Skew { desktop: usize, skew_ms: i64 },
    /// The hub's wall clock jumps.
    JumpHub { by_ms: i64 },
    /// A desktop's disk is full for this time.
    FillDisk { desktop: usize, for_ms: u64 },
}

/// An operation and when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// Its number in the plan of its seed.
    pub number: usize,
    /// World time, in milliseconds.
    pub at_ms: u64,
    /// What happens.
    pub op: Op,
}

/// A history before it is played.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Decides everything that the operations do not say.
    pub seed: u64,
    /// The desktops' relays.
    pub relay: Config,
    /// The wire until everything heals.
    pub faults: Faults,
    /// The lease of tasks with several candidates, in milliseconds.
    pub task_lease_ms: u64,
    /// In the order of time.
    pub ops: Vec<Planned>,
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::stream(seed, "plan");
        let relay = Config {
            wake_up: random.percent(50),
            slots: 1 + random.index(2),
            sync_interval_ms: SYNC_INTERVAL_MS,
            control_interval_ms: CONTROL_INTERVAL_MS,
        };
        let faults = Faults {
            lose_request: [0, 5, 20][random.index(3)],
            lose_answer: [0, 5, 20][random.index(3)],
            duplicate: [0, 10][random.index(2)],
            delay_ms: [0, 400, 8_000][random.index(3)],
        };
        let task_lease_ms = [60_000, 600_000, 1_800_000][random.index(3)];
        let mut ops = Vec::new();
        let mut at_ms = 0;
        loop {
            at_ms += random.below(PAUSE_MS_MAX);
            if at_ms >= CHAOS_MS {
                break;
            }
            let number = ops.len();
            let op = Op::draw(&mut random);
            ops.push(Planned { number, at_ms, op });
        }
        Self {
            seed,
            relay,
            faults,
            task_lease_ms,
            ops,
        }
    }
}

impl Op {
    fn draw(random: &mut Random) -> Self {
        let agent = random.index(AGENTS);
        let desktop = random.index(DESKTOPS);
        let session = u8::try_from(random.below(u64::from(SESSIONS))).unwrap_or(0);
        let nth = random.next();
        match random.below(100) {
            0..16 => Self::Start {
                agent,
                desktop,
                session,
            },
            16..20 => Self::StartAgain {
                nth,
                is_other: random.percent(40),
            },
            20..26 => Self::Status {
                nth,
                wait_seconds: [0, 20, 40][random.index(3)],
            },
            26..30 => Self::Cancel { nth },
            30..33 => Self::Probe { nth },
            33..35 => Self::Stray { nth },
            35..39 => Self::Link { agent },
            39..46 => Self::Assign {
                nth,
                is_again: random.percent(25),
            },
            46..49 => Self::Inbox { nth },
            49..57 => Self::Claim { nth },
            57..65 => Self::Submit {
                nth,
                variant: random.below(8),
            },
            65..67 => Self::Upload { nth },
            67..69 => Self::CancelTask { nth },
            69..71 => Self::RevokeChat { nth },
            71 => match random.below(4) {
                0 => Self::RevokeAgent { agent },
                _ => Self::Rename { desktop, session },
            },
            72..76 => Self::ToggleShare { desktop, session },
            76..78 => Self::ToggleProject {
                desktop,
                project: random.index(2),
            },
            78 => Self::OwnerCancel { desktop },
            79..85 => Self::CrashDesktop {
                desktop,
                after: random.below(12),
                down_ms: 1 + minutes(random, 3),
            },
            85..89 => Self::CrashHub {
                after: random.below(6),
                is_stored: random.percent(50),
            },
            89..91 => Self::CutHubOff {
                for_ms: minutes(random, 4),
            },
            91..94 => Self::Offline {
                desktop,
                for_ms: minutes(random, 15),
            },
            drawn => Self::draw_clock_or_disk(random, drawn, desktop),
        }
    }

    fn draw_clock_or_disk(random: &mut Random, drawn: u64, desktop: usize) -> Self {
        match drawn {
            94 => Self::Sleep {
                desktop,
                duration_ms: minutes(random, 120),
            },
            95 => Self::Skew {
                desktop,
                skew_ms: signed(random, 7_200_000),
            },
            96..98 => Self::JumpHub {
                by_ms: match random.below(4) {
                    0 => 82_800_000 + signed(random, 7_200_000),
                    _ => signed(random, 3_600_000),
                },
            },
            _ => Self::FillDisk {
                desktop,
                for_ms: minutes(random, 5),
            },
        }
    }
}

/// A time of at most so many minutes, in milliseconds.
fn minutes(random: &mut Random, most: u64) -> u64 {
    random.below(most * 60_000)
}

/// A number from `-most..most`.
fn signed(random: &mut Random, most: u64) -> i64 {
    let drawn = i64::try_from(random.below(2 * most)).unwrap_or(0);
    drawn - i64::try_from(most).unwrap_or(0)
}
