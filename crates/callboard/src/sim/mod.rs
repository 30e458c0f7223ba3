//! `callboard sim`: published tables, random bad days and how to play one again.

mod fuzz;
mod page;
mod plots;
mod tables;

use callboard_sim::{Plan, Stage, play};
use serde_json::json;

use crate::args::{ReplayArgs, SimCommand};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(command: SimCommand, output: &Output) -> Result<(), Failure> {
    match command {
        SimCommand::Tables(arguments) => tables::tables(&arguments, output),
        SimCommand::Fuzz(arguments) => fuzz::fuzz(&arguments, output),
        SimCommand::Replay(arguments) => replay(&arguments, output),
        SimCommand::Bands(arguments) => tables::bands(&arguments, output),
    }
}

fn replay(arguments: &ReplayArgs, output: &Output) -> Result<(), Failure> {
    let mut plan = Plan::of(arguments.seed);
    if let Some(only) = &arguments.only {
        plan.ops.retain(|planned| only.contains(planned.number));
    }
    let stage = match (arguments.sqlite, arguments.javascript) {
        (true, _) => Stage::Sqlite,
        (false, true) => Stage::JavaScript,
        (false, false) => Stage::Memory,
    };
    let outcome = play(&plan, stage, arguments.bug, true);
    let violation = outcome.violation.as_ref().map(|violation| {
        json!({
            "invariant": violation.invariant.to_string(),
            "what": violation.what,
            "at_ms": violation.at_ms,
        })
    });
    let value = json!({
        "seed": plan.seed,
        "wake_up": plan.relay.wake_up,
        "slots": plan.relay.slots,
        "hash": format!("{:016x}", outcome.hash),
        "events": outcome.events,
        "virtual_ms": outcome.virtual_ms,
        "violation": violation,
        "log": outcome.log,
    });
    output.data(&value, || {
        let begin = format!(
            "seed {} · {} · {} · {:?}",
            plan.seed,
            if plan.relay.wake_up {
                "wake-up"
            } else {
                "polling"
            },
            match plan.relay.slots {
                1 => "1 slot".to_owned(),
                slots => format!("{slots} slots"),
            },
            plan.faults,
        );
        let mut lines = vec![begin, "seconds".to_owned()];
        lines.extend(outcome.log.iter().cloned());
        lines.push(format!(
            "{} happenings · history {:016x}",
            outcome.events, outcome.hash
        ));
        lines
    });
    match outcome.violation {
        None => Ok(()),
        Some(violation) => {
            let invariant = violation.invariant;
            let what = violation.what;
            Err(Failure::failed(format!("invariant {invariant}: {what}")).told())
        }
    }
}
