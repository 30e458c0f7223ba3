//! Logs for the long-running commands, on stderr.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Starts logging: `CALLBOARD_LOG` says what (such as `info,callboard_hub=debug`), else
/// `default_filter`; `CALLBOARD_LOG_FORMAT=json` gives one JSON object a line.
pub(crate) fn start(default_filter: &str) {
    let filter =
        EnvFilter::try_from_env("CALLBOARD_LOG").unwrap_or_else(|_| EnvFilter::new(default_filter));
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A report of a failed write would go to the same place, and panic when that fails, too.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let json = std::env::var("CALLBOARD_LOG_FORMAT").is_ok_and(|format| format == "json");
    // A second start in one process keeps the first.
    if json {
        drop(builder.json().try_init());
    } else {
        drop(builder.with_ansi(colours).try_init());
    }
}
