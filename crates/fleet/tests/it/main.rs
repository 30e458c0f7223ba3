//! Runs real scripts in real script processes. The test binary is its own launcher: started with
//! one hidden argument it is the script process, so that no second binary must be built.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod examples;
mod harness;
mod hostile;
mod rules;
mod runner;
mod stop;
mod text;

use std::process::ExitCode;

/// The argument that makes this binary a script process.
const CHILD: &str = "--callboard-script-process";
/// The argument that makes it an engine with work to do, for the test that kills an engine.
const BUSY_ENGINE: &str = "--busy-engine";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == CHILD) {
        return callboard_fleet::child_main();
    }
    if arguments.first().is_some_and(|first| first == BUSY_ENGINE) {
        stop::busy_engine();
        return ExitCode::SUCCESS;
    }
    runner::run(
        &arguments,
        &[
            examples::TESTS,
            hostile::TESTS,
            rules::TESTS,
            stop::TESTS,
            text::TESTS,
        ],
    )
}
