//! What a sweep before each read costs the published server, idle and beside writers: why ours
//! sweeps elsewhere.

use crate::baseline::Baseline;
use crate::inbox::{WRITERS, beside_writers};
use crate::lifecycle::Side;
use crate::load::{Latencies, now};
use crate::{Options, Row};

/// The published variants, dearest first.
const VARIANTS: [(&str, &str); 4] = [
    ("scan", "two updates, no index"),
    ("index", "two updates, partial indexes"),
    ("guard", "two selects first (published)"),
    ("none", "no sweep"),
];

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let reads = options.count(1_000, 100);
    for (variant, what) in VARIANTS {
        let Some(baseline) = Baseline::start(variant).await? else {
            return Ok(Vec::new());
        };
        let side = Side::Theirs(baseline);
        let mut caller = side.caller().await?;
        let mut idle = Latencies::new()?;
        for _ in 0..reads {
            let began = now();
            side.read(&mut caller, 7).await?;
            idle.since(began);
        }
        let (busy, _) = beside_writers(&side, options.count(400, 40)).await?;
        for (when, share, ms) in [
            ("idle".to_owned(), "p50", idle.ms(0.5)),
            (format!("beside {WRITERS} writers"), "p50", busy.ms(0.5)),
            (format!("beside {WRITERS} writers"), "p99", busy.ms(0.99)),
        ] {
            rows.push(Row {
                figure: format!("published server, {what}, {when}, {share}"),
                unit: "ms",
                ours: None,
                baseline: Some(ms),
                goal: None,
            });
        }
        side.stop().await?;
    }
    Ok(rows)
}
