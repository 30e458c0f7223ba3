//! Waits for a run and shows what it does.

use std::time::Duration;

use callboard_ambient::Clock;
use callboard_wire::relay::Progress;
use callboard_wire::tools::get_graph_run::Answer;
use indicatif::{ProgressBar, ProgressStyle};

use super::Chat;
use crate::failure::Failure;
use crate::output::Output;

/// How often a running run is read for its progress, in seconds; a change of status shows at once.
const PROGRESS_EVERY_SECONDS: u64 = 1;
/// How long a call for a queued run is held, in seconds.
const QUEUED_WAIT_SECONDS: u64 = 40;

/// Waits until the run is over.
pub(super) async fn follow(
    chat: &Chat,
    command_id: &str,
    output: &Output,
) -> Result<Answer, Failure> {
    let mut shown = Shown::new(*output);
    let mut run = chat.read_run(command_id).await?;
    loop {
        shown.update(&run);
        let wait_seconds = match run.status.as_str() {
            "queued" => QUEUED_WAIT_SECONDS,
            "running" => PROGRESS_EVERY_SECONDS,
            _ => return Ok(run),
        };
        run = chat.read_run_after(&run, wait_seconds).await?;
    }
}

/// What was shown so far, so that only changes are.
struct Shown {
    output: Output,
    clock: Clock,
    started_ms: u64,
    status: String,
    last: String,
    bar: Option<ProgressBar>,
}

impl Shown {
    fn new(output: Output) -> Self {
        let clock = Clock::system();
        let started_ms = clock.monotonic_ms();
        Self {
            output,
            clock,
            started_ms,
            status: String::new(),
            last: String::new(),
            bar: None,
        }
    }

    fn update(&mut self, run: &Answer) {
        if run.status != self.status {
            self.status.clone_from(&run.status);
            if let Some(bar) = self.bar.take() {
                bar.finish_and_clear();
            }
            self.output.note(format!(
                "{:<10} {}{}",
                run.status,
                self.elapsed(),
                remark(run)
            ));
        }
        let Some(progress) = run.progress else { return };
        let line = progress_line(run.phase.as_deref(), progress);
        if line == self.last {
            return;
        }
        self.last.clone_from(&line);
        if self.output.is_live() {
            self.draw(progress, line);
        } else {
            self.output.note(line);
        }
    }

    fn draw(&mut self, progress: Progress, line: String) {
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::new(progress.calls_started);
            // The template is a constant; should it be wrong, the default one serves.
            if let Ok(style) = ProgressStyle::with_template("{msg}  {bar:16}") {
                bar.set_style(style);
            }
            bar
        });
        bar.set_length(progress.calls_started);
        bar.set_position(progress.calls_done);
        bar.set_message(line);
        bar.tick();
    }

    fn elapsed(&self) -> String {
        let elapsed = Duration::from_millis(self.clock.monotonic_ms() - self.started_ms);
        format!("{:.1} s", elapsed.as_secs_f64())
    }
}

fn remark(run: &Answer) -> String {
    match (run.status.as_str(), &run.desktop.last_seen_at) {
        ("queued", _) if run.desktop.online => String::new(),
        ("queued", Some(seen)) => format!("   the desktop is offline, last seen {seen}"),
        ("queued", None) => "   the desktop has never been online".to_owned(),
        ("running", _) if run.cancel_requested => "   asked to stop".to_owned(),
        _ => String::new(),
    }
}

fn progress_line(phase: Option<&str>, progress: Progress) -> String {
    let phase = phase.map(|phase| format!("{phase}   ")).unwrap_or_default();
    let calls = format!(
        "{} of {} calls",
        progress.calls_done, progress.calls_started
    );
    let tokens = match progress.tokens_cap {
        Some(cap) => format!("{} of {cap} tokens", progress.tokens),
        None => format!("{} tokens", progress.tokens),
    };
    format!("phase      {phase}{calls} · {tokens}")
}
