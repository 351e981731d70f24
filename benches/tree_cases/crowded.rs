use std::hint::black_box;

use arborlog::TxnBody;

use super::report::Report;
use super::{DATA, Leader, node_path, shuffled, with_parents};
use crate::support::now;

/// Names in a page.
const PAGE: usize = 1000;

/// A parent with all nodes as its children, beside a thousand parents that share as many.
pub(crate) fn measure(nodes: usize, report: &mut Report) {
    let case = format!("parent-of-{nodes}");
    let order = shuffled(nodes);
    let crowded: Vec<String> = (0..nodes).map(|node| format!("/bench/p0000000/node-{node:011}")).collect();
    let spread: Vec<String> = (0..nodes).map(node_path).collect();
    let mut costs = [[0.0; 2]; 2];
    for (costs, paths) in costs.iter_mut().zip([&spread, &crowded]) {
        let mut leader = Leader::new();
        let mut tree = with_parents(&mut leader);
        let start = now();
        for (at, &node) in (1..).zip(&order) {
            leader.create(&mut tree, &paths[node as usize], at, Some(&DATA));
        }
        costs[0] = start.elapsed().as_secs_f64() / nodes as f64;
        if paths.as_ptr() == crowded.as_ptr() {
            let parent = tree.get("/bench/p0000000").expect("was created");
            let mut worst: f64 = 0.0;
            for &from in &order[..100] {
                let after = format!("node-{from:011}");
                let start = now();
                black_box(parent.children(Some(&after)).take(PAGE).map(|c| c.name()).collect::<Vec<_>>());
                worst = worst.max(start.elapsed().as_secs_f64());
            }
            report.row(&case, "page_of_1000_worst", worst * 1e6, "us", None);
        }
        let start = now();
        order.iter().for_each(|&n| leader.apply(&mut tree, TxnBody::Delete { path: &paths[n as usize] }));
        costs[1] = start.elapsed().as_secs_f64() / nodes as f64;
    }
    report.row(&case, "create_cost_to_small_parents", costs[1][0] / costs[0][0], "1", None);
    report.row(&case, "delete_cost_to_small_parents", costs[1][1] / costs[0][1], "1", None);
}
