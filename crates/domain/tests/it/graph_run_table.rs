//! The whole state × event table as one snapshot: a new state or rule shows every changed cell.

use std::fmt::Write as _;

use callboard_domain::Decision;
use callboard_domain::graph_run::{Event, Run, State, decide};

use crate::graph_run_samples::{LATER, LOST, events, states};

fn cell(run: &Run, event: &Event) -> String {
    let now = match (event, &run.state) {
        (Event::GiveUp(_), State::Running(_)) => LOST,
        _ => LATER,
    };
    match decide(run, event, now) {
        Ok(Decision::Moved(next)) => {
            let flag = if next.cancel_requested() {
                ", cancel asked"
            } else {
                ""
            };
            let error = next.end().and_then(|end| end.report.error.as_deref());
            let why = error.map(|error| format!(" ({error})")).unwrap_or_default();
            format!("-> {}{flag}{why}", next.status())
        }
        Ok(Decision::Replayed) => "replayed".into(),
        Ok(Decision::Unchanged) => "unchanged".into(),
        Err(refusal) => format!("refused: {}", refusal.code()),
    }
}

#[test]
fn every_event_in_every_state() {
    let mut table = String::new();
    for (state, run) in states() {
        writeln!(table, "{state}").unwrap();
        for (name, event) in events() {
            writeln!(table, "  {name:<32} {}", cell(&run, &event)).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
