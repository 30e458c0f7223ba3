//! The commands of the simulator.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Every published table beside ours; fails when a figure is not what it must be
    Tables(TablesArgs),
    /// Random bad days by the thousand; fails when one breaks an invariant
    Fuzz(FuzzArgs),
    /// Play the history of one seed, a line for everything that happens
    Replay(ReplayArgs),
    /// Measure again where drawn figures may lie: the extremes of many reseedings
    Bands(BandsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TablesArgs {
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
    /// Draw the waits, the bursts and what polling costs, as SVG files in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
    /// Write the tables as a Markdown page, too
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FuzzArgs {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub(crate) seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) from: u64,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
    /// Plant the fault that this invariant must find
    #[arg(long, value_name = "LETTER", value_parser = parse_bug)]
    pub(crate) bug: Option<callboard_sim::Bug>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The seed
    pub(crate) seed: u64,
    /// Only these operations of its plan, such as 3-5,9
    #[arg(long, value_name = "NUMBERS", value_parser = parse_numbers)]
    pub(crate) only: Option<Numbers>,
    /// Play it on SQLite, not in memory
    #[arg(long)]
    pub(crate) sqlite: bool,
    /// Run its scripts in the JavaScript engine
    #[arg(long, conflicts_with = "sqlite")]
    pub(crate) javascript: bool,
    /// Plant the fault that this invariant must find
    #[arg(long, value_name = "LETTER", value_parser = parse_bug)]
    pub(crate) bug: Option<callboard_sim::Bug>,
}

#[derive(Debug, Args)]
pub(crate) struct BandsArgs {
    /// How many reseedings
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) threads: ThreadsArgs,
    /// Where to write them [default: to stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// How many histories are played at a time.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ThreadsArgs {
    /// How many at a time [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: Option<u64>,
}

impl ThreadsArgs {
    /// The given number, or that of the cores.
    pub(crate) fn count(self) -> usize {
        let given = self
            .threads
            .and_then(|threads| usize::try_from(threads).ok());
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        given.unwrap_or_else(cores)
    }
}

/// Numbers of operations, as ranges with both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbers(Vec<(usize, usize)>);

impl Numbers {
    /// Whether `number` is one of them.
    pub(crate) fn contains(&self, number: usize) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&number))
    }
}

fn parse_numbers(text: &str) -> Result<Numbers, String> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse().ok();
        number(first)
            .zip(number(last))
            .ok_or_else(|| format!("`{part}` is no number and no range such as 3-5"))
    };
    text.split(',')
        .map(range)
        .collect::<Result<_, _>>()
        .map(Numbers)
}

fn parse_bug(letter: &str) -> Result<callboard_sim::Bug, String> {
    let found = callboard_sim::Bug::ALL
        .into_iter()
        .find(|bug| bug.to_string() == letter);
    found.ok_or_else(|| "give the letter of an invariant, a to m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_report_of_a_fuzz_writes_them() {
        let numbers = parse_numbers("0-2,7").unwrap();
        let contained: Vec<_> = (0..10).filter(|n| numbers.contains(*n)).collect();
        assert_eq!(contained, [0, 1, 2, 7]);
        for wrong in ["", "a", "1-", "1,,2"] {
            assert!(parse_numbers(wrong).is_err(), "{wrong:?}");
        }
    }
}
