//! Whether the time of an answer tells what exists: foreign, unknown and malformed ids in turns.

use callboard_domain::limits::CHAT_LINK_NOT_FOUND;
use serde_json::json;

use crate::load::{Caller, Latencies, now};
use crate::served::{Filling, Served};
use crate::{Options, Row};

/// Timings of each kind of id.
const COUNT: usize = 500;
const UNKNOWN: &str = "0190f3a2-7d4e-7c31-9b0a-3f2d5e6a7b80";

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let filling = Filling {
        links: 50,
        old_tasks: 500,
        desktops: 0,
    };
    let served = Served::start(&options.binary, filling).await?;
    let foreign = served.links.first().map_or("", String::as_str);
    let mut caller = Caller::connect(&served.stranger).await?;
    let mut times = [Latencies::new()?, Latencies::new()?, Latencies::new()?];
    for turn in 0..COUNT + COUNT / 10 {
        for (times, id) in times.iter_mut().zip([foreign, UNKNOWN, "no-such-chat"]) {
            let arguments = json!({"chat_link_id": id});
            let began = now();
            let result = caller.result("read_linked_chat_tasks", arguments).await?;
            if turn >= COUNT / 10 {
                times.since(began);
            }
            let told = &result["content"][0]["text"];
            anyhow::ensure!(told == CHAT_LINK_NOT_FOUND, "a stranger was told {told}");
        }
    }
    served.stop().await?;
    let [foreign, unknown, malformed] = times.map(|times| times.ms(0.5));
    let row = |name: &str, ours| Row::ours(format!("inbox of {name} link, p50"), "ms", ours);
    Ok(vec![
        row("a foreign", foreign),
        row("an unknown", unknown),
        row("a malformed", malformed),
        Row::ours(
            "foreign ÷ unknown, 1 tells nothing",
            "×",
            foreign / unknown.max(1e-9),
        ),
    ])
}
