//! The command that measures.

use callboard_bench::Figure;
use clap::Args;

/// What to measure. Servers listen on loopback and end with the command.
#[derive(Debug, Args)]
#[command(after_help = "\
inbox       reading among 10,000 old tasks, beside the published server    30 s
lifecycle   tasks from assigned to completed, by 1, 8 and 64 clients       20 s
sweeps      what a sweep before each read costs the published server       30 s
claims      200 tasks with eight claimers each                              5 s
runs        pickup, start and status of a run; 12 runs with --poll-only  3 min
strangers   whether the time of an answer tells what exists                 3 s
desktops    memory; 10,000 desktops that poll, and that hold a call        60 s
simulator   published tables and histories a second                        15 s

The published server is run with python3; without it, figures stand alone.")]
pub(crate) struct BenchArgs {
    /// Which figures [default: all]
    #[arg(value_name = "FIGURE", value_parser = parse_figure)]
    pub(crate) figures: Vec<Figure>,
    /// A tenth of the counts: to try it out
    #[arg(long)]
    pub(crate) quick: bool,
}

fn parse_figure(name: &str) -> Result<Figure, String> {
    let found = Figure::ALL.into_iter().find(|figure| figure.name() == name);
    found.ok_or_else(|| {
        let names = Figure::ALL.map(Figure::name).join(", ");
        format!("there are {names}")
    })
}
