//! The published figures, as in `mission.md` 5.1, and what ours must be beside each.

/// In what a figure is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Calls, runs or desktops.
    Count,
    /// Characters of a text.
    Characters,
    /// Bytes of a text.
    Bytes,
}

/// What makes our figure right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is the published one in every correct build.
    Exact,
    /// It is not above the published one.
    AtMost,
    /// It is drawn; it lies in the band of a thousand reseedings.
    Random,
}

/// One published figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Its name in the bands and in JSON.
    pub key: &'static str,
    /// The table it stands in.
    pub table: &'static str,
    /// Its row and column.
    pub name: &'static str,
    /// Its value; `None` where nothing was published.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: Unit,
    /// Its published decimals.
    pub decimals: u32,
    /// What makes ours right.
    pub kind: Kind,
}

impl Published {
    /// `figure` to the published decimals.
    pub fn rounded(&self, figure: f64) -> f64 {
        let scale = [1.0, 10.0, 100.0];
        let scale = scale
            .get(self.decimals as usize)
            .copied()
            .unwrap_or(1_000.0);
        libm::round(figure * scale) / scale
    }
}

const PICKUP: &str = "Pickup wait, queued to started, 2,000 runs";
const BURST: &str = "Runs queued together on one desktop, 500 times";
const POLLING: &str = "How an agent polls, 2,000 runs";
const CANCEL: &str = "Cancel at a random 0 to 40 s after queueing, 2,000 runs";
const RETRY: &str = "200 runs, 30 % of the replies dropped, three repetitions";
const OFFLINE: &str = "Desktop offline for 600 s with five runs queued, of 25.6 s each";
const OUTBOX: &str = "One completion lost, a run of 25 s";
const LARGEST: &str = "Largest result text that still fits";

const fn seconds(
    table: &'static str,
    key: &'static str,
    name: &'static str,
    value: f64,
    decimals: u32,
) -> Published {
    Published {
        key,
        table,
        name,
        value: Some(value),
        unit: Unit::Seconds,
        decimals,
        kind: Kind::Random,
    }
}

const fn count(
    table: &'static str,
    key: &'static str,
    name: &'static str,
    value: f64,
    decimals: u32,
) -> Published {
    Published {
        unit: Unit::Count,
        ..seconds(table, key, name, value, decimals)
    }
}

const fn exact(published: Published) -> Published {
    Published {
        kind: Kind::Exact,
        ..published
    }
}

const fn at_most(published: Published) -> Published {
    Published {
        kind: Kind::AtMost,
        ..published
    }
}

const fn ours(published: Published) -> Published {
    Published {
        value: None,
        ..published
    }
}

/// Every figure, in the order of the tables.
pub const PUBLISHED: &[Published] = &[
    seconds(PICKUP, "pickup.mean", "mean", 9.8, 1),
    seconds(PICKUP, "pickup.median", "median", 9.8, 1),
    seconds(PICKUP, "pickup.p95", "p95", 18.9, 1),
    exact(seconds(PICKUP, "pickup.max", "max", 20.0, 1)),
    seconds(
        BURST,
        "burst.1.first",
        "1 run: first result, median",
        74.0,
        0,
    ),
    seconds(BURST, "burst.1.last", "1 run: last result, median", 74.0, 0),
    seconds(
        BURST,
        "burst.1.last_p95",
        "1 run: last result, p95",
        254.0,
        0,
    ),
    seconds(
        BURST,
        "burst.3.first",
        "3 runs: first result, median",
        73.0,
        0,
    ),
    seconds(
        BURST,
        "burst.3.last",
        "3 runs: last result, median",
        233.0,
        0,
    ),
    seconds(
        BURST,
        "burst.3.last_p95",
        "3 runs: last result, p95",
        483.0,
        0,
    ),
    seconds(
        BURST,
        "burst.5.first",
        "5 runs: first result, median",
        75.0,
        0,
    ),
    seconds(
        BURST,
        "burst.5.last",
        "5 runs: last result, median",
        399.0,
        0,
    ),
    seconds(
        BURST,
        "burst.5.last_p95",
        "5 runs: last result, p95",
        776.0,
        0,
    ),
    count(POLLING, "poll.2.calls", "every 2 s: calls, mean", 47.1, 1),
    count(
        POLLING,
        "poll.2.calls_p95",
        "every 2 s: calls, p95",
        118.0,
        0,
    ),
    seconds(POLLING, "poll.2.late", "every 2 s: late, mean", 1.0, 1),
    seconds(POLLING, "poll.2.late_p95", "every 2 s: late, p95", 1.9, 1),
    count(POLLING, "poll.5.calls", "every 5 s: calls, mean", 19.1, 1),
    count(
        POLLING,
        "poll.5.calls_p95",
        "every 5 s: calls, p95",
        48.0,
        0,
    ),
    seconds(POLLING, "poll.5.late", "every 5 s: late, mean", 2.5, 1),
    seconds(POLLING, "poll.5.late_p95", "every 5 s: late, p95", 4.8, 1),
    count(POLLING, "poll.15.calls", "every 15 s: calls, mean", 6.7, 1),
    count(
        POLLING,
        "poll.15.calls_p95",
        "every 15 s: calls, p95",
        16.0,
        0,
    ),
    seconds(POLLING, "poll.15.late", "every 15 s: late, mean", 7.5, 1),
    seconds(
        POLLING,
        "poll.15.late_p95",
        "every 15 s: late, p95",
        14.2,
        1,
    ),
    count(POLLING, "poll.30.calls", "every 30 s: calls, mean", 3.6, 1),
    count(
        POLLING,
        "poll.30.calls_p95",
        "every 30 s: calls, p95",
        8.0,
        0,
    ),
    seconds(POLLING, "poll.30.late", "every 30 s: late, mean", 14.9, 1),
    seconds(
        POLLING,
        "poll.30.late_p95",
        "every 30 s: late, p95",
        28.4,
        1,
    ),
    count(
        POLLING,
        "poll.backoff.calls",
        "2, 4, 8 … 30 s: calls, mean",
        6.6,
        1,
    ),
    count(
        POLLING,
        "poll.backoff.calls_p95",
        "2, 4, 8 … 30 s: calls, p95",
        11.0,
        0,
    ),
    seconds(
        POLLING,
        "poll.backoff.late",
        "2, 4, 8 … 30 s: late, mean",
        14.8,
        1,
    ),
    seconds(
        POLLING,
        "poll.backoff.late_p95",
        "2, 4, 8 … 30 s: late, p95",
        28.4,
        1,
    ),
    count(
        POLLING,
        "poll.20then10.calls",
        "20 s, then every 10 s: calls, mean",
        8.8,
        1,
    ),
    count(
        POLLING,
        "poll.20then10.calls_p95",
        "20 s, then every 10 s: calls, p95",
        23.0,
        0,
    ),
    seconds(
        POLLING,
        "poll.20then10.late",
        "20 s, then every 10 s: late, mean",
        5.0,
        1,
    ),
    seconds(
        POLLING,
        "poll.20then10.late_p95",
        "20 s, then every 10 s: late, p95",
        9.6,
        1,
    ),
    ours(count(
        POLLING,
        "poll.wait.calls",
        "wait_seconds 40: calls, mean",
        0.0,
        1,
    )),
    ours(count(
        POLLING,
        "poll.wait.calls_p95",
        "wait_seconds 40: calls, p95",
        0.0,
        0,
    )),
    ours(seconds(
        POLLING,
        "poll.wait.late",
        "wait_seconds 40: late, mean",
        0.0,
        1,
    )),
    ours(seconds(
        POLLING,
        "poll.wait.late_p95",
        "wait_seconds 40: late, p95",
        0.0,
        1,
    )),
    count(CANCEL, "cancel.queued", "still queued", 523.0, 0),
    count(CANCEL, "cancel.running", "running", 1_370.0, 0),
    exact(seconds(
        CANCEL,
        "cancel.queued.max",
        "queued: over after, max",
        0.0,
        1,
    )),
    seconds(
        CANCEL,
        "cancel.running.mean",
        "running: over after, mean",
        2.0,
        1,
    ),
    seconds(
        CANCEL,
        "cancel.running.p95",
        "running: over after, p95",
        3.3,
        1,
    ),
    at_most(seconds(
        CANCEL,
        "cancel.running.max",
        "running: over after, max",
        3.5,
        1,
    )),
    count(
        RETRY,
        "retry.new.1.calls",
        "a new key each time, 1: calls",
        266.0,
        0,
    ),
    count(
        RETRY,
        "retry.new.2.calls",
        "a new key each time, 2: calls",
        302.0,
        0,
    ),
    count(
        RETRY,
        "retry.new.3.calls",
        "a new key each time, 3: calls",
        286.0,
        0,
    ),
    exact(count(
        RETRY,
        "retry.new.extra",
        "a new key each time: calls less runs queued",
        0.0,
        0,
    )),
    count(
        RETRY,
        "retry.same.1.calls",
        "the same key, 1: calls",
        270.0,
        0,
    ),
    count(
        RETRY,
        "retry.same.2.calls",
        "the same key, 2: calls",
        291.0,
        0,
    ),
    count(
        RETRY,
        "retry.same.3.calls",
        "the same key, 3: calls",
        275.0,
        0,
    ),
    exact(count(
        RETRY,
        "retry.same.1.runs",
        "the same key, 1: runs queued",
        200.0,
        0,
    )),
    exact(count(
        RETRY,
        "retry.same.2.runs",
        "the same key, 2: runs queued",
        200.0,
        0,
    )),
    exact(count(
        RETRY,
        "retry.same.3.runs",
        "the same key, 3: runs queued",
        200.0,
        0,
    )),
    exact(count(
        OFFLINE,
        "offline.queued",
        "still queued when it comes back",
        5.0,
        0,
    )),
    exact(count(
        OFFLINE,
        "offline.executed",
        "executed meanwhile",
        0.0,
        0,
    )),
    seconds(
        OFFLINE,
        "offline.first",
        "first start after it is back",
        3.0,
        0,
    ),
    seconds(
        OFFLINE,
        "offline.last",
        "all completed after it is back",
        131.0,
        0,
    ),
    exact(count(
        OFFLINE,
        "offline.executed_after",
        "executed in the end",
        5.0,
        0,
    )),
    exact(seconds(
        OUTBOX,
        "outbox.with",
        "with the outbox: at the hub after",
        40.0,
        0,
    )),
    exact(count(
        OUTBOX,
        "outbox.without",
        "without: runs that ever end, in a day",
        0.0,
        0,
    )),
    exact(Published {
        unit: Unit::Characters,
        ..count(
            LARGEST,
            "largest.characters",
            "under an id of 14 characters, as published",
            99_899.0,
            0,
        )
    }),
    exact(Published {
        unit: Unit::Bytes,
        ..count(
            LARGEST,
            "largest.japanese",
            "the same in Japanese",
            299_697.0,
            0,
        )
    }),
    ours(exact(Published {
        unit: Unit::Characters,
        ..count(
            LARGEST,
            "largest.uuid",
            "under the UUID of an execution",
            0.0,
            0,
        )
    })),
];
