//! `arborlog`: looks at an engine or a transaction log, verifies it, and repairs it when told to.
//!
//! Everything but `--yes`, and the destination of `restore` and of `zookeeper`, is read-only: no lock, no file, not one byte changes.

mod advice;
mod analyse;
mod analysis;
mod args;
mod dump;
mod engine;
mod engine_args;
mod inspect;
mod ls;
mod outcome;
mod output;
mod pages;
mod payload;
mod place;
mod progress;
mod recovery_text;
mod repair;
mod restore;
mod salvage;
mod snapshot;
mod stat;
mod time;
mod truncate;
mod truncate_engine;
mod verify;
mod verify_engine;
mod zookeeper;
mod zookeeper_args;
mod zookeeper_files;

use std::process::ExitCode;

use args::{Area, Arguments, Command};
use clap::Parser;
use output::{Failure, Output};

fn main() -> ExitCode {
    let area = Arguments::parse().area;
    let mut output = Output::new(area.json());
    match run_area(&area, &mut output).and_then(|()| output.flush()) {
        Ok(()) => output.outcome().into(),
        Err(failure) => output.fail(&failure).into(),
    }
}

fn run_area(area: &Area, output: &mut Output) -> Result<(), Failure> {
    match area {
        Area::Log(command) => run(command, output),
        Area::Stat(target) => engine::stat(target, output),
        Area::Tree(command) => engine::tree(command, output),
        Area::Snapshot(command) => snapshot::run(command, output),
        Area::Verify(arguments) => verify_engine::run(arguments, output),
        Area::Inspect(target) => inspect::run(target, output),
        Area::Restore(arguments) => restore::run(arguments, output),
        Area::Truncate(arguments) => truncate_engine::run(arguments, output),
        Area::Zookeeper(command) => zookeeper::run(command, output),
        Area::Completions(arguments) => pages::completions(arguments, output),
        Area::Man(arguments) => pages::man(arguments, output),
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
