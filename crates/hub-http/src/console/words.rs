//! How the console says things: times, spans, numbers, states. Pure, so that each is said in one
//! way on every page.

use callboard_domain::graph_run::{Run, State, Status};
use callboard_domain::{Timestamp, cut_utf16};
use callboard_store::{OwnedRun, RunRow};
use callboard_wire::rfc3339;

/// Longest reason beside a row of a list.
const NOTE_UTF16_MAX: usize = 120;

/// A point in time, for a program and for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) iso: String,
    pub(super) utc: String,
}

pub(super) fn moment(at: Timestamp) -> Moment {
    let iso = rfc3339(at);
    let utc = match (iso.get(..10), iso.get(11..19)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => iso.clone(),
    };
    Moment { iso, utc }
}

/// How long ago that was, in one unit: `12 s ago`, `4 min ago`, `3 h ago`, `2 d ago`.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.millis_since(at) / 1_000;
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// A length of time: `0.9 s`, `48 s`, `9 min 02 s`, `3 h 05 min`, `7 d`.
pub(super) fn span(duration_ms: u64) -> String {
    let seconds = duration_ms / 1_000;
    match seconds {
        0..10 => format!("{seconds}.{} s", duration_ms % 1_000 / 100),
        10..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A whole number with commas between its thousands.
pub(super) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The mark and the word of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Badge {
    /// Its colour.
    pub(super) key: &'static str,
    /// Its icon.
    pub(super) mark: &'static str,
    pub(super) words: &'static str,
}

pub(super) fn badge(run: &Run) -> Badge {
    let status = run.status();
    if status == Status::Running && run.cancel_requested() {
        return Badge {
            key: "running",
            mark: "cancelling",
            words: "Cancelling",
        };
    }
    Badge {
        key: status.as_str(),
        mark: status.as_str(),
        words: status_word(status),
    }
}

pub(super) const fn status_word(status: Status) -> &'static str {
    match status {
        Status::Queued => "Queued",
        Status::Running => "Running",
        Status::Completed => "Completed",
        Status::Failed => "Failed",
        Status::Cancelled => "Cancelled",
        Status::Expired => "Expired",
    }
}

/// How long it runs, or ran; empty before it began.
pub(super) fn took(run: &Run, now: Timestamp) -> String {
    let Some(execution) = run.execution() else {
        return String::new();
    };
    let until = run.finished_at().unwrap_or(now);
    span(until.millis_since(execution.started_at))
}

/// Tokens so far, or in the end.
pub(super) fn tokens(row: &RunRow) -> Option<u64> {
    let end = row.run.end();
    let reported = end.and_then(|end| end.report.total_tokens);
    reported.or(row.progress.map(|progress| progress.tokens))
}

/// What the Graph is called: its name while it is shared, or else its slug.
pub(super) fn graph(owned: &OwnedRun) -> String {
    let name = owned.session_name.as_ref();
    name.unwrap_or(&owned.row.slug).clone()
}

/// What stands beside the state in a list.
pub(super) fn note(owned: &OwnedRun, is_online: bool) -> String {
    let row = &owned.row;
    let short = |text: &str| {
        let cut = cut_utf16(text, NOTE_UTF16_MAX);
        let mark = if cut.len() < text.len() { "…" } else { "" };
        format!("{cut}{mark}")
    };
    let error = row.run.end().and_then(|end| end.report.error.as_deref());
    match &row.run.state {
        State::Queued if is_online => format!("waits for {}", owned.desktop_name),
        State::Queued => format!("waits for {}, offline", owned.desktop_name),
        State::Running(_) => at_work(row),
        State::Completed(_, end) if end.report.result_truncated => {
            "result too long, kept on the desktop".to_owned()
        }
        State::Completed(..) => String::new(),
        State::Withdrawn {
            cancel_requested_at: Some(_),
            ..
        } => "before it started; no token was spent".to_owned(),
        State::Failed(..) | State::Cancelled(..) | State::Withdrawn { .. } => {
            error.map(short).unwrap_or_default()
        }
        State::Expired { .. } => "nobody started it in 7 days".to_owned(),
    }
}

/// What a running Graph said it is doing: `Review, 8 of 11`.
fn at_work(row: &RunRow) -> String {
    let counts = row.progress.map(|progress| {
        format!(
            "{} of {}",
            number(progress.calls_done),
            number(progress.calls_started)
        )
    });
    let parts = row.phase.iter().cloned().chain(counts);
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_keep_two_digits_after_the_first_unit() {
        for (duration_ms, words) in [
            (0, "0.0 s"),
            (940, "0.9 s"),
            (9_999, "9.9 s"),
            (10_000, "10 s"),
            (59_999, "59 s"),
            (542_000, "9 min 02 s"),
            (11_100_000, "3 h 05 min"),
            (604_800_000, "7 d"),
        ] {
            assert_eq!(span(duration_ms), words);
        }
    }

    #[test]
    fn ages_are_told_in_one_unit() {
        for (duration_ms, words) in [
            (0, "0 s ago"),
            (59_999, "59 s ago"),
            (240_000, "4 min ago"),
            (11_100_000, "3 h ago"),
            (180_000_000, "2 d ago"),
        ] {
            let at = Timestamp::from_millis(1_796_000_000_000);
            assert_eq!(ago(at, at.plus_ms(duration_ms)), words);
            assert_eq!(
                ago(at.plus_ms(duration_ms), at),
                "0 s ago",
                "a clock set back"
            );
        }
    }

    #[test]
    fn numbers_have_a_comma_between_thousands() {
        for (value, words) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(number(value), words);
        }
    }

    #[test]
    fn a_moment_is_said_in_utc() {
        let at = moment(Timestamp::from_millis(1_796_000_000_000));
        assert_eq!(at.iso, "2026-11-30T00:53:20.000Z");
        assert_eq!(at.utc, "2026-11-30 00:53:20 UTC");
    }
}
