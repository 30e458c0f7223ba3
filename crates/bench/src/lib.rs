//! What `callboard bench` measures: the binary from outside, over real sockets on loopback, beside a
//! re-creation of the published server in the same minute. Every load is bounded in count and time.
//!
//! Figures of one run compare; those of two machines, or of two hours, do not. So ratios come first.

mod baseline;
mod claims;
mod desktops;
mod disk;
mod inbox;
mod lifecycle;
mod load;
mod machine;
mod process;
mod report;
mod runs;
mod served;
mod session;
mod simulator;
mod strangers;
mod sweeps;

use std::path::PathBuf;

use anyhow::Context as _;

pub use report::{Goal, Report, Row};

/// One group of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Reading an inbox among 10,000 old tasks, alone and beside four writers.
    Inbox,
    /// Tasks from assigned to completed, by 1, 8 and 64 clients.
    Lifecycle,
    /// What a sweep before each read costs the published server.
    Sweeps,
    /// Eight claimers for each task.
    Claims,
    /// Pickup, start and status of a run.
    Runs,
    /// Whether the time of an answer tells what exists.
    Strangers,
    /// The hub's memory and the polls of 10,000 desktops.
    Desktops,
    /// Tables and histories a second.
    Simulator,
}

impl Figure {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Self; 8] = [
        Self::Inbox,
        Self::Lifecycle,
        Self::Sweeps,
        Self::Claims,
        Self::Runs,
        Self::Strangers,
        Self::Desktops,
        Self::Simulator,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Lifecycle => "lifecycle",
            Self::Sweeps => "sweeps",
            Self::Claims => "claims",
            Self::Runs => "runs",
            Self::Strangers => "strangers",
            Self::Desktops => "desktops",
            Self::Simulator => "simulator",
        }
    }
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// The binary under test.
    pub binary: PathBuf,
    /// Which figures.
    pub figures: Vec<Figure>,
    /// A tenth of the counts: for trying the benchmark itself.
    pub quick: bool,
}

impl Options {
    /// `count`, or a tenth of it, at least `least`.
    fn count(&self, count: usize, least: usize) -> usize {
        let scaled = if self.quick { count / 10 } else { count };
        scaled.max(least)
    }
}

/// Measures on a thread of its own; `progress` hears what comes next.
///
/// All clients live on that one thread: a client whose parts wait for each other across threads would
/// measure itself.
///
/// # Errors
/// When the binary cannot be started or answers with something else.
pub fn run(options: &Options, progress: impl Fn(&str) + Send) -> anyhow::Result<Report> {
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(measure(options, progress))
    };
    let measured = std::thread::scope(|scope| scope.spawn(work).join());
    measured.unwrap_or_else(|_| Err(anyhow::anyhow!("the benchmark panicked")))
}

async fn measure(options: &Options, progress: impl Fn(&str)) -> anyhow::Result<Report> {
    let mut report = Report::new(machine::facts(options));
    progress("the disk");
    report.add_disk("before", &disk::fdatasync()?);
    for figure in &options.figures {
        progress(figure.name());
        let rows = match figure {
            Figure::Inbox => inbox::measure(options).await,
            Figure::Lifecycle => lifecycle::measure(options).await,
            Figure::Sweeps => sweeps::measure(options).await,
            Figure::Claims => claims::measure(options).await,
            Figure::Runs => runs::measure(options).await,
            Figure::Strangers => strangers::measure(options).await,
            Figure::Desktops => desktops::measure(options).await,
            Figure::Simulator => simulator::measure(options).await,
        };
        report.rows.extend(rows.context(figure.name())?);
    }
    report.add_disk("after", &disk::fdatasync()?);
    Ok(report)
}
