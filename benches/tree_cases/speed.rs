use std::hint::black_box;
use std::time::Duration;

use arborlog::TxnBody;

use super::report::Report;
use super::{DATA, Leader, fill, node_path, shuffled, with_parents};
use crate::support::now;

/// One thread on a tree of that many nodes, in random order. The best of three lives of a tree.
pub(crate) fn measure(nodes: usize, report: &mut Report) {
    let paths: Vec<String> = (0..nodes).map(node_path).collect();
    let order = shuffled(nodes);
    let mut best = [Duration::MAX; 6];
    for _ in 0..3 {
        let times = life(&paths, &order);
        best.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
    }
    // Of a node that ZooKeeper's getNode finds and getData reads; it was measured in the same shapes.
    let names =
        ["create_random", "get_random", "exists_random", "set_random", "get_in_order", "delete_random"];
    let zookeeper = [356_000.0, 729_000.0, 729_000.0, 428_000.0, 2_800_000.0, 304_000.0];
    let case = format!("{nodes}-nodes");
    for ((name, time), zookeeper) in names.into_iter().zip(best).zip(zookeeper) {
        report.row(&case, name, nodes as f64 / time.as_secs_f64(), "ops/s", Some(zookeeper));
    }
}

fn life(paths: &[String], order: &[u32]) -> [Duration; 6] {
    let mut leader = Leader::new();
    let mut tree = with_parents(&mut leader);
    let path = |node: u32| &paths[node as usize][..];
    let timed = |work: &mut dyn FnMut()| {
        let start = now();
        work();
        start.elapsed()
    };
    let create = timed(&mut || fill(&mut tree, &mut leader, order, paths, Some(&DATA)));
    let get = timed(&mut || {
        for &node in order {
            let node = tree.get(path(node)).expect("was created");
            black_box((node.stat(), node.data()));
        }
    });
    let exists = timed(&mut || order.iter().for_each(|&node| drop(black_box(tree.exists(path(node))))));
    let set = timed(&mut || {
        for &node in order {
            let set = TxnBody::SetData { path: path(node), data: Some(&DATA), version: 1 };
            leader.apply(&mut tree, set);
        }
    });
    let in_order = timed(&mut || {
        for path in paths {
            let node = tree.get(path).expect("was created");
            black_box((node.stat(), node.data()));
        }
    });
    let delete = timed(&mut || {
        order.iter().for_each(|&node| leader.apply(&mut tree, TxnBody::Delete { path: path(node) }));
    });
    [create, get, exists, set, in_order, delete]
}
