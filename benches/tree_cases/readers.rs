use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arborlog::{AclList, Ops, SharedTree, TxnBody};

use super::report::Report;
use super::{DATA, Leader, create_body, fill, node_path, shuffled, with_parents};
use crate::support::now;

const READERS: usize = 2;
const MEASURED: Duration = Duration::from_millis(1500);
/// What the writer applies a second: more than a log of one disk commits.
const PACE: u64 = 100_000;
/// In groups of so many, as a log commits them.
const GROUP: u64 = 50;
const MULTI: usize = 10_000;

/// What readers notice of a writer that applies a busy log.
pub(crate) fn measure(nodes: usize, report: &mut Report) {
    let paths: Vec<String> = (0..nodes).map(node_path).collect();
    let order = shuffled(nodes);
    let mut leader = Leader::new();
    let mut tree = with_parents(&mut leader);
    fill(&mut tree, &mut leader, &order, &paths, Some(&DATA));
    let tree = SharedTree::new(tree);
    let mut alone: Vec<f64> = Vec::new();
    let mut beside: Vec<f64> = Vec::new();
    for _ in 0..3 {
        alone.push(reads_per_second(&tree, &paths, &order, |_| {}).0);
        beside
            .push(reads_per_second(&tree, &paths, &order, |stop| write(&tree, &mut leader, &paths, stop)).0);
    }
    let median = |figures: &mut Vec<f64>| {
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    let (alone, beside) = (median(&mut alone), median(&mut beside));
    report.row("2-readers", "reads_alone", alone, "ops/s", None);
    report.row("2-readers", "reads_beside_100k_writes_share", beside / alone, "1", None);
    let extra: Vec<String> = (0..MULTI).map(|n| format!("/bench/p0000000/extra-{n}")).collect();
    let creates: Vec<TxnBody<'_>> = extra.iter().map(|path| create_body(path, AclList::EMPTY, 0)).collect();
    let mut applied = Duration::ZERO;
    let (_, worst) = reads_per_second(&tree, &paths, &order, |_| {
        let txn = leader.txn(TxnBody::Multi(Ops::from_slice(&creates)));
        let start = now();
        tree.apply(&txn, &mut ());
        applied = start.elapsed();
    });
    report.row("multi-of-10000", "apply", applied.as_secs_f64() * 1e3, "ms", None);
    report.row("multi-of-10000", "reader_blocked_worst", worst.as_secs_f64() * 1e3, "ms", None);
}

/// Applies at a pace until it is told to stop.
#[expect(clippy::disallowed_methods, reason = "a bench keeps a pace")]
fn write(tree: &SharedTree, leader: &mut Leader, paths: &[String], stop: &AtomicBool) {
    let start = now();
    for group in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let first = group * GROUP;
        let txns = (first..first + GROUP).map(|count| {
            let path = &paths[usize::try_from(count * 7919).expect("64 bits") % paths.len()];
            leader.txn(TxnBody::SetData { path, data: Some(&DATA), version: 2 })
        });
        tree.apply_group(txns, &mut ());
        let due = start + Duration::from_nanos((first + GROUP) * 1_000_000_000 / PACE);
        std::thread::sleep(due.saturating_duration_since(now()));
    }
}

/// What all readers read a second while `beside` runs, each read on its own, and the longest that one took.
fn reads_per_second(
    tree: &SharedTree,
    paths: &[String],
    order: &[u32],
    beside: impl FnOnce(&AtomicBool) + Send,
) -> (f64, Duration) {
    let stop = AtomicBool::new(false);
    let start = now();
    let read = |from: usize| {
        let (mut count, mut worst) = (0_u64, Duration::ZERO);
        let mut last: Instant = now();
        for &node in order.iter().cycle().skip(from) {
            let guard = tree.read();
            let node = guard.get(&paths[node as usize]).expect("is there");
            black_box((node.stat(), node.data()));
            drop(guard);
            count += 1;
            if count.is_multiple_of(16) {
                let time = now();
                worst = worst.max(time.duration_since(last));
                last = time;
                if time.duration_since(start) > MEASURED {
                    break;
                }
            }
        }
        (count, worst)
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> =
            (0..READERS).map(|n| scope.spawn(move || read(n * order.len() / READERS))).collect();
        let writer = scope.spawn(|| beside(&stop));
        let ended: Vec<_> = readers.into_iter().map(|r| r.join().expect("a reader")).collect();
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("a writer");
        let count: u64 = ended.iter().map(|(count, _)| count).sum();
        let worst = ended.iter().map(|(_, worst)| *worst).max().unwrap_or_default();
        (count as f64 / MEASURED.as_secs_f64(), worst)
    })
}
