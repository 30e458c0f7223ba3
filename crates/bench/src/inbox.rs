//! Reading an inbox among many old tasks: the call that every waking chat makes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{join_all, try_join_all};

use crate::lifecycle::{Pair, Side, one_task};
use crate::load::{Latencies, now};
use crate::{Goal, Options, Row};

/// Turns in which the two servers are asked, one after the other, so that both meet the same minute.
const TURNS: usize = 4;
/// How many write beside the reader.
pub(crate) const WRITERS: usize = 4;
/// Clients that read as fast as they can.
const READERS: usize = 8;
/// The link that is read; the writers use later ones.
const READ_LINK: usize = 7;
/// The first link of the writers.
const WRITE_LINK: usize = 100;

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let pair = Pair::start(options).await?;
    let (ours, theirs) = (&pair.ours, pair.theirs.as_ref());
    let reads = options.count(4_000, 400);
    let mut rows = Vec::new();
    for name in ["empty", "one task"] {
        if name == "one task" {
            let text = "Read the draft and write the open questions as a list";
            for side in [Some(ours), theirs].into_iter().flatten() {
                side.assign(&mut side.caller().await?, READ_LINK, text)
                    .await?;
            }
        }
        let (our_times, their_times) = in_turns(ours, theirs, reads).await?;
        let at = |share| their_times.as_ref().map(|times| times.ms(share));
        let p50 = Row::ours(
            format!("inbox read, {name}, round trip p50"),
            "ms",
            our_times.ms(0.5),
        );
        rows.push(p50.beside(at(0.5)).goal(Goal::RatioAtMost(0.4)));
        let p99 = Row::ours(
            format!("inbox read, {name}, round trip p99"),
            "ms",
            our_times.ms(0.99),
        );
        rows.push(p99.beside(at(0.99)));
    }
    let seconds = if options.quick { 1 } else { 4 };
    let our_rate = rate(ours, Duration::from_secs(seconds)).await?;
    let their_rate = match theirs {
        Some(theirs) => Some(rate(theirs, Duration::from_secs(seconds)).await?),
        None => None,
    };
    let name = format!("inbox reads a second, {READERS} clients");
    let row = Row::ours(name, "1/s", our_rate).beside(their_rate);
    rows.push(row.goal(Goal::AtLeast(12_000.0)));
    let reads = options.count(2_000, 200);
    let our_times = beside_writers(ours, reads).await?;
    let their_times = match theirs {
        Some(theirs) => Some(beside_writers(theirs, reads).await?),
        None => None,
    };
    for (share, name) in [(0.5, "p50"), (0.99, "p99")] {
        let figure = format!("inbox read beside {WRITERS} writers, {name}");
        let row = Row::ours(figure, "ms", our_times.0.ms(share));
        let row = row.beside(their_times.as_ref().map(|(times, _)| times.ms(share)));
        rows.push(match name {
            "p99" => row.goal(Goal::RatioAtMost(1.0)),
            _ => row,
        });
    }
    let row = Row::ours("tasks a second of those writers", "1/s", our_times.1);
    rows.push(row.beside(their_times.map(|(_, rate)| rate)));
    pair.stop().await?;
    Ok(rows)
}

/// Reads both inboxes `count` times, in turns.
async fn in_turns(
    ours: &Side,
    theirs: Option<&Side>,
    count: usize,
) -> anyhow::Result<(Latencies, Option<Latencies>)> {
    let (mut our_times, mut their_times) = (Latencies::new()?, Latencies::new()?);
    for _ in 0..TURNS {
        our_times.merge(&read(ours, count / TURNS).await?)?;
        if let Some(theirs) = theirs {
            their_times.merge(&read(theirs, count / TURNS).await?)?;
        }
    }
    Ok((our_times, theirs.map(|_| their_times)))
}

/// One client that reads the inbox again and again.
async fn read(side: &Side, count: usize) -> anyhow::Result<Latencies> {
    let mut caller = side.caller().await?;
    let mut times = Latencies::new()?;
    for number in 0..count + count / 20 {
        let began = now();
        side.read(&mut caller, READ_LINK).await?;
        // The first calls warm both sides up.
        if number >= count / 20 {
            times.since(began);
        }
    }
    Ok(times)
}

/// Reads a second of several clients without a pause.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
async fn rate(side: &Side, lasting: Duration) -> anyhow::Result<f64> {
    let began = now();
    let reader = async |number: usize| {
        let mut caller = side.caller().await?;
        let mut reads = 0_usize;
        while began.elapsed() < lasting {
            side.read(&mut caller, READ_LINK + number).await?;
            reads += 1;
        }
        Ok::<_, anyhow::Error>(reads)
    };
    let reads = try_join_all((0..READERS).map(reader)).await?;
    Ok(reads.into_iter().sum::<usize>() as f64 / began.elapsed().as_secs_f64())
}

/// One reader beside writers that play tasks without a pause: its times, and their tasks a second.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
pub(crate) async fn beside_writers(side: &Side, count: usize) -> anyhow::Result<(Latencies, f64)> {
    let (over, played) = (AtomicBool::new(false), AtomicUsize::new(0));
    let writer = async |number: usize| {
        let mut caller = side.caller().await?;
        while !over.load(Ordering::Relaxed) {
            one_task(side, &mut caller, WRITE_LINK + number, false).await?;
            played.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<_, anyhow::Error>(())
    };
    let reader = async {
        // The writers are at work before the first read.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (began, before) = (now(), played.load(Ordering::Relaxed));
        let times = read(side, count).await;
        let after = played.load(Ordering::Relaxed);
        let rate = (after - before) as f64 / began.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        Ok::<_, anyhow::Error>((times?, rate))
    };
    let (written, read) = futures::join!(join_all((0..WRITERS).map(writer)), reader);
    written.into_iter().collect::<Result<(), _>>()?;
    read
}
