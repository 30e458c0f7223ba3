//! The `callboard` binary: arguments, configuration, output, exit codes.

mod args;
mod bench;
mod chats;
mod client;
mod config;
mod demo;
mod desktop;
mod failure;
mod hub;
mod logging;
mod output;
mod paths;
mod sim;
mod up;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command};
use failure::Failure;
use output::Output;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(&error),
    };
    if matches!(cli.command, Command::GraphChild) {
        return callboard_fleet::child_main();
    }
    let output = Output::new(cli.json);
    // TLS needs exactly one provider in the process; a second install finds the first.
    drop(rustls::crypto::ring::default_provider().install_default());
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::cannot_start(format!("cannot start: {error}"));
            return output.failure(&failure);
        }
    };
    match runtime
        .block_on(run(cli, &output))
        .and_then(|()| output::all_printed())
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => output.failure(&failure),
    }
}

/// A program that asked for JSON gets it for a wrong command line, too.
fn wrong_usage(error: &clap::Error) -> ExitCode {
    let for_programs = std::env::args_os().any(|argument| argument == "--json");
    let text = error.to_string();
    match text.strip_prefix("error: ") {
        Some(told) if for_programs => {
            let (message, _) = told.split_once("\n\n").unwrap_or((told, ""));
            let failure = Failure::usage(message.trim_end()).hint("callboard help");
            Output::new(true).failure(&failure)
        }
        // Help and the version go to stdout and are no failure.
        Some(_) | None => error.exit(),
    }
}

async fn run(cli: Cli, output: &Output) -> Result<(), Failure> {
    if let Command::Sim(command) = cli.command {
        return sim::run(command, output);
    }
    if let Command::Bench(arguments) = cli.command {
        return bench::run(arguments, output);
    }
    let data = paths::data_dir(cli.data)?;
    match cli.command {
        Command::Up(arguments) => up::run(&data, arguments, output).await,
        Command::Demo(arguments) => Box::pin(demo::run(arguments, output)).await,
        Command::Hub(command) => hub::run(&data, command, output).await,
        Command::Desktop(command) => desktop::run(&data, command, output).await,
        Command::Graph(command) => desktop::graph(&data, command, output).await,
        Command::Project(command) => desktop::project(&data, command, output).await,
        Command::Folder(command) => desktop::folder(&data, command, output).await,
        Command::Runs(command) => desktop::runs(&data, command, output).await,
        Command::Chat(command) => chats::chat(&data, command, output).await,
        Command::Task(command) => chats::task(&data, command, output).await,
        Command::Client(arguments) => client::run(&data, arguments, output).await,
        // Handled before: these need no data folder, and the child must stay a single-threaded
        // program.
        Command::Sim(_) | Command::Bench(_) | Command::GraphChild => Ok(()),
    }
}
