//! Real desktops, in this process or in one that is killed, against a hub that loses what it is
//! told to lose. The test binary is also the script process and the desktop process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects, and fails on anything else"
)]

mod bad_days;
mod consent;
mod control;
mod crashes;
mod here;
mod hub;
mod process;
mod runs;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// One test and its name.
pub(crate) type Test = (&'static str, fn());

/// Names the tests of a file after their functions.
macro_rules! suite {
    ($($test:ident),* $(,)?) => {
        pub(crate) const TESTS: &[crate::Test] =
            &[$((concat!(module_path!(), "::", stringify!($test)), $test)),*];
    };
}
pub(crate) use suite;

/// The argument that makes this binary a script process.
pub(crate) const SCRIPT: &str = "--script-process";
/// The argument that makes it a desktop.
pub(crate) const DESKTOP: &str = "--desktop-process";

const SUITES: [&[Test]; 5] = [
    runs::TESTS,
    consent::TESTS,
    bad_days::TESTS,
    crashes::TESTS,
    control::TESTS,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(SCRIPT) => callboard_fleet::child_main(),
        Some(DESKTOP) => process::desktop_main(&arguments[1..]),
        Some(_) | None => run_tests(&arguments),
    }
}

/// Speaks enough of the usual runner's language for `cargo test` and `cargo nextest`.
#[allow(clippy::print_stdout, reason = "a test runner talks to its caller")]
fn run_tests(arguments: &[String]) -> ExitCode {
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let tests = SUITES.iter().flat_map(|suite| suite.iter());
    if has("--list") {
        for (name, _) in tests.filter(|_| !has("--ignored")) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let filter = arguments
        .iter()
        .find(|argument| !argument.starts_with("--"));
    let chosen = tests.filter(|(name, _)| match filter {
        Some(filter) if has("--exact") => name == filter,
        Some(filter) => name.contains(filter.as_str()),
        None => true,
    });
    let mut failed = Vec::new();
    for (name, test) in chosen {
        println!("test {name}");
        if catch_unwind(AssertUnwindSafe(test)).is_err() {
            failed.push(*name);
        }
    }
    println!("failed: {failed:?}");
    ExitCode::from(u8::from(!failed.is_empty()))
}
