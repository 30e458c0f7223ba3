//! A test runner that speaks enough of the usual one for `cargo test` and `cargo nextest`
//! (`--list --format terse`, `--exact NAME`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// One test and its name.
pub(crate) type Test = (&'static str, fn());

#[allow(clippy::print_stdout, reason = "a test runner talks to its caller")]
pub(crate) fn run(arguments: &[String], suites: &[&[Test]]) -> ExitCode {
    let tests = suites.iter().flat_map(|suite| suite.iter());
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    if flag("--list") {
        if !flag("--ignored") {
            tests.for_each(|(name, _)| println!("{name}: test"));
        }
        return ExitCode::SUCCESS;
    }
    let mut filters = arguments
        .iter()
        .filter(|argument| !argument.starts_with("--"));
    let filter = filters.next();
    let wanted = |name: &str| match filter {
        Some(filter) if flag("--exact") => name == filter,
        Some(filter) => name.contains(filter.as_str()),
        None => true,
    };
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, test) in tests.filter(|(name, _)| wanted(name)) {
        match catch_unwind(AssertUnwindSafe(test)) {
            Ok(()) => passed += 1,
            Err(_) => failed.push(*name),
        }
    }
    println!("{passed} passed, {} failed {failed:?}", failed.len());
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Names the tests of a file after their functions.
macro_rules! suite {
    ($($test:ident),* $(,)?) => {
        pub(crate) const TESTS: &[crate::runner::Test] =
            &[$((concat!(module_path!(), "::", stringify!($test)), $test)),*];
    };
}
pub(crate) use suite;
