//! `arborlog`: looks at a transaction log, verifies it, and repairs it when told to.
//!
//! Everything but `--yes` is read-only: no lock, no file, not one byte changes.

mod args;
mod dump;
mod ls;
mod output;
mod payload;
mod progress;
mod salvage;
mod stat;
mod time;
mod truncate;
mod verify;

use std::process::ExitCode;

use args::{Area, Arguments, Command};
use clap::Parser;
use output::{Failure, Output};

/// What the exit code says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// Sound; a torn end that nobody was told of counts as sound.
    Clean,
    /// Damaged.
    Damaged,
}

fn main() -> ExitCode {
    let Area::Log(command) = Arguments::parse().area;
    let mut output = Output::new(command.target().json);
    let done = run(&command, &mut output).and_then(|outcome| output.flush().map(|()| outcome));
    match done {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Damaged) => ExitCode::from(1),
        Err(failure) => output.fail(&failure),
    }
}

fn run(command: &Command, output: &mut Output) -> Result<Outcome, Failure> {
    match command {
        Command::Ls(arguments) => ls::run(arguments, output),
        Command::Dump(arguments) => dump::run(arguments, output),
        Command::Verify(arguments) => verify::run(arguments, output),
        Command::Stat(arguments) => stat::run(arguments, output),
        Command::Truncate(arguments) => truncate::run(arguments, output),
        Command::Salvage(arguments) => salvage::run(arguments, output),
    }
}
