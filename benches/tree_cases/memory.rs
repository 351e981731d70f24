use arborlog::DataTree;

use super::report::Report;
use super::{DATA, Leader, fill, node_path, shuffled, with_parents};
use crate::allocations::held_bytes;

fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    (pages * 4096) as f64
}

pub(crate) fn have_gigabytes(wanted: u64) -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes: u64 = line.and_then(|l| l.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0);
    kilobytes >> 20 >= wanted
}

/// What nodes cost beyond their own names and data, by the allocator's count and by resident memory.
pub(crate) fn measure(nodes: usize, report: &mut Report) {
    let case = format!("{nodes}-nodes");
    let paths: Vec<String> = (0..nodes).map(node_path).collect();
    let order = shuffled(nodes);
    let mut leader = Leader::new();
    let mut tree = with_parents(&mut leader);
    let held = |tree: &DataTree| held_bytes() as f64 + tree.arena_bytes() as f64;
    let (before, resident) = (held(&tree), resident_bytes());
    fill(&mut tree, &mut leader, &order, &paths, Some(&DATA));
    let count = nodes as f64;
    let own = ("node-00000000000".len() + DATA.len()) as f64;
    let per_node = |bytes: f64| bytes / count - own;
    let zookeeper = Some(321.6);
    report.row(&case, "bytes_per_node_overhead", per_node(held(&tree) - before), "B", zookeeper);
    report.row(
        &case,
        "resident_bytes_per_node_overhead",
        per_node(resident_bytes() - resident),
        "B",
        zookeeper,
    );
    drop(tree);
}
