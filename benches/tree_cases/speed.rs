use std::hint::black_box;
use std::time::Duration;

use arborlog::{DataTree, TxnBody};

use super::report::Report;
use super::{DATA, Leader, PARENTS, node_path, shuffled, with_parents};
use crate::support::now;

/// One thread on a tree of that many nodes. The best of three lives of a tree.
///
/// The paths of random work lie one after the other in memory, as requests do that have just come in: what is
/// measured is the tree, not the fetching of its questions.
pub(crate) fn measure(nodes: usize, report: &mut Report) {
    let order = shuffled(nodes);
    let created: Vec<(usize, String)> =
        order.iter().map(|&node| (node as usize % PARENTS, node_path(node as usize))).collect();
    // Another order than that of their creation.
    let asked: Vec<String> = order.iter().map(|&at| created[at as usize].1.clone()).collect();
    let mut best = [Duration::MAX; 6];
    for _ in 0..3 {
        let times = life(&created, &asked);
        best.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
    }
    let names =
        ["create_random", "get_random", "exists_random", "set_random", "get_in_order", "delete_random"];
    // ZooKeeper's on the same machine, of `benches-compare/zookeeper`, a million nodes, the digest on.
    let zookeeper = [288_000.0, 903_000.0, 1_063_000.0, 452_000.0, 1_124_000.0, 386_000.0];
    let case = format!("{nodes}-nodes");
    for ((name, time), zookeeper) in names.into_iter().zip(best).zip(zookeeper) {
        report.row(&case, name, nodes as f64 / time.as_secs_f64(), "ops/s", Some(zookeeper));
    }
}

fn life(created: &[(usize, String)], asked: &[String]) -> [Duration; 6] {
    let mut leader = Leader::new();
    let mut tree = with_parents(&mut leader);
    let timed = |work: &mut dyn FnMut()| {
        let start = now();
        work();
        start.elapsed()
    };
    let get = |tree: &DataTree, path: &str| {
        let node = tree.get(path).expect("was created");
        black_box((node.stat(), node.data()));
    };
    let create = timed(&mut || {
        let mut cversions = vec![0; PARENTS];
        for (parent, path) in created {
            cversions[*parent] += 1;
            leader.create(&mut tree, path, cversions[*parent], Some(&DATA));
        }
    });
    let random = timed(&mut || asked.iter().for_each(|path| get(&tree, path)));
    let exists = timed(&mut || asked.iter().for_each(|path| assert!(black_box(tree.exists(path)).is_some())));
    let set = timed(&mut || {
        for path in asked {
            leader.apply(&mut tree, TxnBody::SetData { path, data: Some(&DATA), version: 1 });
        }
    });
    let in_order = timed(&mut || created.iter().for_each(|(_, path)| get(&tree, path)));
    let delete = timed(&mut || {
        asked.iter().for_each(|path| leader.apply(&mut tree, TxnBody::Delete { path }));
    });
    [create, random, exists, set, in_order, delete]
}
