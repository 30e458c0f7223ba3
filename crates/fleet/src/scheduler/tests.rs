//! Facts about single steps, and properties of whole histories.

mod facts;
mod histories;

use callboard_domain::Timestamp;

use super::*;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn request(id: u64, kind: CallKind, reserve_tokens: u64) -> Request {
    Request {
        id: CallId(id),
        kind,
        key: Key::of("test", &id.to_string()),
        reserve_tokens,
        payload_bytes: 0,
    }
}

fn agents(ids: std::ops::RangeInclusive<u64>, reserve_tokens: u64) -> Input {
    Input::Requested(
        ids.map(|id| request(id, CallKind::Agent, reserve_tokens))
            .collect(),
    )
}

fn done(id: u64, tokens: u64) -> Input {
    let settled = Settled {
        outcome: Ok(format!("{id}")),
        tokens,
        cost: None,
    };
    Input::Completed(CallId(id), settled)
}

fn failed(id: u64, code: Code, tokens: u64) -> Input {
    let settled = Settled {
        outcome: Err(Fault::new(code, "no")),
        tokens,
        cost: None,
    };
    Input::Completed(CallId(id), settled)
}

fn returned() -> Input {
    Input::Ended(ScriptEnd::Returned("1".to_owned()))
}

fn scheduler(tokens: Option<u64>, max_concurrency: u32) -> Scheduler {
    let limits = RunLimits {
        tokens,
        max_concurrency,
        ..RunLimits::default()
    };
    Scheduler::new(limits, at(0))
}

/// Ids that a step dispatched, in order.
fn dispatched(outputs: &[Output]) -> Vec<u64> {
    outputs
        .iter()
        .filter_map(|output| {
            if let Output::Dispatch(id) = output {
                Some(id.0)
            } else {
                None
            }
        })
        .collect()
}

/// Ids that a step answered, with their code, or `ok`.
fn delivered(outputs: &[Output]) -> Vec<(u64, &'static str)> {
    let mut answers = Vec::new();
    for output in outputs {
        if let Output::Deliver(deliveries) = output {
            answers.extend(deliveries.iter().map(|delivery| {
                let word = match &delivery.outcome {
                    Ok(_) => "ok",
                    Err(fault) => fault.code.as_str(),
                };
                (delivery.id.0, word)
            }));
        }
    }
    answers
}

fn summary(outputs: &[Output]) -> Option<&Summary> {
    outputs.iter().find_map(|output| {
        if let Output::Finished(summary) = output {
            Some(summary)
        } else {
            None
        }
    })
}
