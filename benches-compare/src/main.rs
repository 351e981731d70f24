//! Durable logs side by side: one harness, the same threads, records and waiting for all of them, in
//! turn within one run. See README.md.

mod args;
mod cell;
mod children;
#[path = "../../benches/support/csv.rs"]
mod csv;
#[allow(dead_code, reason = "shared with the library's benches, which use more of it")]
#[path = "../../benches/support/histogram.rs"]
mod histogram;
mod logs;
mod machine;
mod recovery;
mod report;
mod sample;
mod throughput;
mod writer;

use std::process::ExitCode;

use args::Args;
use cell::Cell;
use children::Children;
use logs::Kind;
use report::Report;

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    match args.mode.as_str() {
        "table" | "throughput" | "recovery" => compare(args),
        "child-cell" => println!("{}", child_cell(&args).measure().to_line()),
        "child-fill" => println!("{}", recovery::fill(&args).to_line()),
        "child-recover" => println!("{}", recovery::recover(&args).to_line()),
        mode => {
            eprintln!("unknown mode {mode}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Measures, prints the Markdown, writes the CSV, removes the data.
fn compare(mut args: Args) {
    let skipped: Vec<(Kind, &str)> =
        args.logs.iter().filter_map(|&kind| kind.missing().map(|reason| (kind, reason))).collect();
    args.logs.retain(|kind| kind.missing().is_none());
    let children = Children::prepare(&args.dir, &args.logs);
    let mut report = Report::new(&args, skipped);
    if args.mode != "recovery" {
        report.cells = throughput::measure(&args, &children);
    }
    if args.mode != "throughput" {
        report.recoveries = recovery::measure(&args, &children);
    }
    children.clean_up();
    print!("{}", report.to_markdown());
    if let Some(path) = &args.csv {
        report.to_csv().write_to(path).expect("write the CSV file");
    }
}

fn child_cell(args: &Args) -> Cell {
    Cell {
        kind: args.logs[0],
        threads: args.threads[0],
        depth: args.depth,
        bytes: args.bytes,
        seconds: args.seconds,
        rest: args.rest,
        warm_up: args.warm_up,
        dir: args.dir.clone(),
    }
}
