//! `cargo run --release -p callboard-bench`: figures of the release binary, measured from outside
//! over real HTTP, beside the disk's own speed in the same minute. Load is bounded in count.
#![allow(clippy::print_stdout, reason = "a program whose output is its result")]

mod claims;
mod disk;
mod session;

use std::path::PathBuf;

use callboard_ambient::Entropy;
use clap::Parser;
use serde_json::json;

use session::Session;

/// Measures pick-up, start call and status call of the release binary.
#[derive(Debug, Parser)]
struct Arguments {
    /// The binary [default: target/release/callboard]
    #[arg(long, value_name = "FILE", env = "CALLBOARD_BIN")]
    binary: Option<PathBuf>,
    /// Runs for each figure with the wake-up
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    runs: u32,
    /// Runs with `--poll-only`, of 10 s each on average; 0 leaves that figure out
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(0..=200))]
    polled_runs: u32,
    /// Tasks of the claim race; 0 leaves it out
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=2_000))]
    tasks: u32,
}

/// What was measured, in milliseconds.
#[derive(Debug, Default)]
struct Samples(Vec<f64>);

impl Samples {
    fn at(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index into a few thousand samples"
        )]
        let index = (share * (sorted.len().saturating_sub(1)) as f64).round() as usize;
        sorted.get(index).copied().unwrap_or(f64::NAN)
    }

    fn line(&self, name: &str) -> String {
        let (p50, p95, worst) = (self.at(0.5), self.at(0.95), self.at(1.0));
        format!(
            "{name:<34} {p50:>10.2} {p95:>10.2} {worst:>10.2}   n = {}",
            self.0.len()
        )
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    // TLS needs one provider in the process, even where only plain HTTP is spoken.
    drop(rustls::crypto::ring::default_provider().install_default());
    let binary = arguments
        .binary
        .unwrap_or_else(|| PathBuf::from("target/release/callboard"));
    let entropy = Entropy::system();
    println!(
        "{:<34} {:>10} {:>10} {:>10}",
        "milliseconds", "p50", "p95", "max"
    );
    println!("{}", disk::fdatasync()?.line("fdatasync of 4 KiB, before"));

    let session = Session::start(&binary, false).await?;
    let (mut pickup, mut start, mut status, mut whole) = (
        Samples::default(),
        Samples::default(),
        Samples::default(),
        Samples::default(),
    );
    for _ in 0..arguments.runs {
        let began_ms = session::precise_ms();
        let command_id = session.start_run(&entropy).await?;
        start.0.push(session::precise_ms() - began_ms);
        let run = session.finished(&command_id).await?;
        whole.0.push(session::precise_ms() - began_ms);
        pickup.0.push(session::pickup_ms(&run)?);
        let asked_ms = session::precise_ms();
        session
            .call("get_graph_run", json!({"command_id": command_id}))
            .await?;
        status.0.push(session::precise_ms() - asked_ms);
    }
    println!("{}", disk::fdatasync()?.line("fdatasync of 4 KiB, after"));
    println!("{}", start.line("start call"));
    println!("{}", status.line("status call"));
    println!("{}", pickup.line("pickup, wake-up (queued to started)"));
    println!("{}", whole.line("start call to result, one Graph"));

    if arguments.tasks > 0 {
        race(&session, arguments.tasks, &entropy).await?;
    }
    session.stop().await?;

    if arguments.polled_runs > 0 {
        let session = Session::start(&binary, true).await?;
        let mut polled = Samples::default();
        for _ in 0..arguments.polled_runs {
            // A random phase: the published tables assume one.
            let pause_ms = entropy.below(20_000);
            tokio::time::sleep(std::time::Duration::from_millis(pause_ms)).await;
            let command_id = session.start_run(&entropy).await?;
            polled
                .0
                .push(session::pickup_ms(&session.finished(&command_id).await?)?);
        }
        session.stop().await?;
        println!("{}", polled.line("pickup, --poll-only"));
    }
    Ok(())
}

/// The claim race of the published table (mission §5.2).
async fn race(session: &Session, tasks: u32, entropy: &Entropy) -> anyhow::Result<()> {
    println!(
        "\n{:<34} {:>21} {:>10}",
        "claim race, eight claimers", "with several winners", "winners"
    );
    for (name, handler) in [
        (
            "read, 2 ms, write",
            claims::read_pause_write as claims::Handler,
        ),
        ("read, write", claims::read_write),
        ("conditional write", claims::conditional),
    ] {
        println!("{}", claims::naive(tasks, handler)?.line(name));
    }
    let raced = claims::hub(session, tasks, entropy).await?;
    println!("{}\n", raced.line("this hub, over HTTP"));
    Ok(())
}
