//! The tree in memory: what a node costs, how fast one thread reads and changes a million of them, what a parent
//! of a million children costs, and what readers notice of a writer.
//!
//! `cargo bench --bench tree -- [--quick] [--csv FILE]`
//!
//! The shape is that of the figures for ZooKeeper 3.8 that are printed beside: nodes with paths of 32 characters
//! under 1,000 parents, 100 bytes of data, in random order, the digest kept. They were measured on another machine
//! of this kind, so take the ratios for what they are worth.

mod support;
mod tree_cases;

#[path = "../tests/it/allocations.rs"]
#[allow(dead_code, reason = "the bench only counts")]
mod allocations;

use support::args::BenchArgs;
use tree_cases::report::Report;
use tree_cases::{crowded, memory, readers, speed};

fn main() {
    let args = BenchArgs::from_env();
    let nodes = if args.quick { 100_000 } else { 1_000_000 };
    let mut report = Report::new();
    if std::env::var("SKIPMEM").is_err() {
        memory::measure(nodes, &mut report);
    }
    if std::env::var("SKIPMEM").is_err() && !args.quick && memory::have_gigabytes(6) {
        memory::measure(10 * nodes, &mut report);
    }
    speed::measure(nodes, &mut report);
    crowded::measure(nodes, &mut report);
    readers::measure(nodes / 10, &mut report);
    if let Some(path) = &args.csv {
        report.csv.write_to(path).expect("write the CSV file");
    }
}
