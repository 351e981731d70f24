//! `arborlog`: looks at a transaction log, verifies it, and repairs it when told to.
//!
//! Everything but `--yes` is read-only: no lock, no file, not one byte changes.

mod advice;
mod args;
mod dump;
mod engine;
mod ls;
mod outcome;
mod output;
mod payload;
mod progress;
mod repair;
mod salvage;
mod stat;
mod time;
mod truncate;
mod verify;

use std::process::ExitCode;

use args::{Area, Arguments, Command};
use clap::Parser;
use output::{Failure, Output};

fn main() -> ExitCode {
    let area = Arguments::parse().area;
    let mut output = Output::new(area.target().json);
    match run_area(&area, &mut output).and_then(|()| output.flush()) {
        Ok(()) => output.outcome().into(),
        Err(failure) => output.fail(&failure).into(),
    }
}

fn run_area(area: &Area, output: &mut Output) -> Result<(), Failure> {
    match area {
        Area::Log(command) => run(command, output),
        Area::Stat(target) => engine::stat(target, output),
        Area::Tree(arguments) => engine::tree(arguments, output),
    }
}

fn run(command: &Command, output: &mut Output) -> Result<(), Failure> {
    match command {
        Command::Ls(arguments) => ls::run(arguments, output),
        Command::Dump(arguments) => dump::run(arguments, output),
        Command::Verify(arguments) => verify::run(arguments, output),
        Command::Stat(arguments) => stat::run(arguments, output),
        Command::Truncate(arguments) => truncate::run(arguments, output),
        Command::Repair(arguments) => repair::run(arguments, output),
        Command::Salvage(arguments) => salvage::run(arguments, output),
    }
}
