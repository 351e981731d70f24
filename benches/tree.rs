//! The tree in memory: what a node costs, how fast one thread reads and changes a million of them, what a parent
//! of a million children costs, what readers notice of a writer, and what a crowd of watchers costs.
//!
//! `cargo bench --bench tree -- [--quick] [--csv FILE]`
//!
//! Nodes with paths of 32 characters under 1,000 parents, 100 bytes of data, in random order, the digest kept. Beside
//! stand the figures of ZooKeeper 3.8's own tree for the same work (`benches-compare/zookeeper/run` measures them
//! anew; its memory is that of a million nodes with 100 bytes each, live heap).

mod support;
mod tree_cases;

#[path = "../tests/it/allocations.rs"]
#[allow(dead_code, reason = "the bench only counts")]
mod allocations;

use support::args::BenchArgs;
use tree_cases::report::Report;
use tree_cases::{crowded, memory, readers, speed, watches};

fn main() {
    let args = BenchArgs::from_env();
    let nodes = if args.quick { 100_000 } else { 1_000_000 };
    let mut report = Report::new();
    memory::measure(nodes, &mut report);
    if !args.quick && memory::have_gigabytes(6) {
        memory::measure(10 * nodes, &mut report);
    }
    speed::measure(nodes, &mut report);
    crowded::measure(nodes, &mut report);
    readers::measure(nodes / 10, &mut report);
    watches::measure(&mut report);
    if let Some(path) = &args.csv {
        report.csv.write_to(path).expect("write the CSV file");
    }
}
