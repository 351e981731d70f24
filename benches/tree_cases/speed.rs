use std::hint::black_box;
use std::time::Duration;

use arborlog::{Acl, AclBuf, DataTree, SharedTree, Txn, TxnBody};

use super::report::Report;
use super::{DATA, Leader, PARENTS, create_body, node_path, shuffled, with_parents};
use crate::support::now;

/// Txns and requests in a group.
const GROUP: usize = 64;

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
    let mut in_groups = [Duration::MAX; 4];
    for _ in 0..3 {
        let times = life_in_groups(&created, &asked);
        in_groups.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
        let times = life(&created, &asked);
        best.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
    }
    let names =
        ["create_random", "get_random", "exists_random", "set_random", "get_in_order", "delete_random"];
    // ZooKeeper's on the same machine, of `benches-compare/zookeeper`, a million nodes, the digest on.
    let zookeeper = [331_000.0, 864_000.0, 926_000.0, 485_000.0, 1_110_000.0, 390_000.0];
    let case = format!("{nodes}-nodes");
    for ((name, time), zookeeper) in names.into_iter().zip(best).zip(zookeeper) {
        report.row(&case, name, nodes as f64 / time.as_secs_f64(), "ops/s", Some(zookeeper));
    }
    let names = ["create_random_group", "get_random_batch", "set_random_group", "delete_random_group"];
    for (at, (name, time)) in [0, 1, 3, 5].into_iter().zip(names.into_iter().zip(in_groups)) {
        report.row(&case, name, nodes as f64 / time.as_secs_f64(), "ops/s", Some(zookeeper[at]));
    }
}

/// The same work as a server does it: it answers the requests that have come in together, and applies groups.
fn life_in_groups(created: &[(usize, String)], asked: &[String]) -> [Duration; 4] {
    let mut leader = Leader::new();
    let acl = [Acl::open().as_entry()].into_iter().collect::<AclBuf>();
    let tree = SharedTree::new(with_parents(&mut leader));
    let mut times = [Duration::ZERO; 4];
    let mut cversions = vec![0; PARENTS];
    let start = now();
    for group in created.chunks(GROUP) {
        let txns = group.iter().map(|(parent, path)| {
            cversions[*parent] += 1;
            leader.txn(create_body(path, acl.as_list(), cversions[*parent]))
        });
        apply_group(&tree, txns);
    }
    times[0] = start.elapsed();
    let start = now();
    for paths in asked.chunks(GROUP) {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        for node in tree.read().get_many(&paths) {
            let node = node.expect("was created");
            black_box((node.stat(), node.data()));
        }
    }
    times[1] = start.elapsed();
    let start = now();
    for group in asked.chunks(GROUP) {
        let set = |path| TxnBody::SetData { path, data: Some(&DATA), version: 1 };
        apply_group(&tree, group.iter().map(|path| leader.txn(set(path))));
    }
    times[2] = start.elapsed();
    let start = now();
    for group in asked.chunks(GROUP) {
        apply_group(&tree, group.iter().map(|path| leader.txn(TxnBody::Delete { path })));
    }
    times[3] = start.elapsed();
    times
}

fn apply_group<'a>(tree: &SharedTree, txns: impl Iterator<Item = Txn<'a>>) {
    let outcomes = tree.apply_group(txns, &mut ());
    assert!(outcomes.iter().all(|outcome| outcome.code().is_ok()));
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
