//! The engine as a server feels it: what submitting costs beside the bare log, what writers notice of a snapshot,
//! and how long a start takes.
//!
//! `cargo bench --bench engine -- [--quick] [--csv FILE] [--dir DIR] [--writers N,..]` (with `--writers`, only what
//! submitting costs), or `-- --nodes N,..`: what starting costs with trees of these sizes, and nothing else.
//!
//! Beside stand ZooKeeper 3.8's own figures for the same work, as they were measured once on this kind of machine:
//! 574,000 nodes/s serialised, 334,000 nodes/s loaded, 177,000 setData/s replayed over a million nodes.

#![allow(clippy::cast_precision_loss, reason = "figures for people: 52 bits are plenty")]

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arborlog::{
    Acl, Caller, CreateRequest, Engine, EngineOptions, Epoch, Health, Log, LogOptions, Request, SnapshotTask,
    Ticket,
};
use support::args::BenchArgs;
use support::csv::Csv;
use support::now;
use support::process::{forget_peak_memory, peak_memory_bytes};
use support::writers::{Load, Reached, pause, run, run_tasks};

const WARM_UP: Duration = Duration::from_millis(300);
/// Long enough for a log at rest to make its next segment.
const REST: Duration = Duration::from_secs(1);
const TIME_MS: i64 = 1_700_000_000_000;
/// What a setData of 200 bytes is in the log.
const RECORD: [u8; 240] = [7; 240];
const DATA: [u8; 200] = [7; 200];
const SMALL: [u8; 100] = [7; 100];
/// Requests on their way while a tree is filled.
const BATCH: usize = 1000;

struct Report(Csv);

impl Report {
    fn row(&mut self, case: &str, metric: &str, value: f64, unit: &str) {
        println!("| {case} | {metric} | {value:.3} | {unit} |");
        self.0.row("engine", case, metric, value, unit);
    }
}

fn main() {
    let args = BenchArgs::from_env();
    let (nodes, repeats) = if args.quick { (100_000, 1) } else { (1_000_000, 3) };
    let measured = args.seconds.unwrap_or(Duration::from_millis(if args.quick { 1000 } else { 2000 }));
    let mut report = Report(Csv::new());
    println!("| case | metric | value | unit |\n|---|---|---|---|");
    if let Some(sizes) = &args.nodes {
        sizes.iter().for_each(|nodes| start_with(&args.dir, *nodes as u64, &mut report));
    } else {
        let clients = args.writers.clone().unwrap_or_else(|| vec![1, 16, 64]);
        submit_beside_log(&args.dir, &clients, repeats, measured, &mut report);
        if args.writers.is_none() {
            snapshot_beside_writers(&args.dir, nodes, measured, &mut report);
        }
    }
    if let Some(path) = &args.csv {
        report.0.write_to(path).expect("write the CSV file");
    }
}

fn options() -> EngineOptions {
    EngineOptions::new().snap_count(0)
}

fn submit_beside_log(dir: &Path, clients: &[usize], repeats: usize, measured: Duration, report: &mut Report) {
    for &threads in clients {
        let load = Load { threads, window: 1 };
        let (mut log, mut engine) = (Vec::new(), Vec::new());
        for _ in 0..repeats {
            log.push(bare_log(dir, load, measured));
            engine.push(submitting(dir, load, measured));
        }
        report_beside(&format!("{threads}-clients"), &median(log), &median(engine), report);
        let (mut log, mut engine) = (Vec::new(), Vec::new());
        for _ in 0..repeats {
            log.push(bare_log_tasks(dir, threads, measured));
            engine.push(submitting_tasks(dir, threads, measured));
        }
        report_beside(&format!("{threads}-tasks"), &median(log), &median(engine), report);
    }
}

fn report_beside(case: &str, log: &Reached, engine: &Reached, report: &mut Report) {
    for (what, reached) in [("log", log), ("submit", engine)] {
        report.row(case, &format!("{what}_per_second"), per_second(reached), "ops/s");
        report.row(case, &format!("{what}_p50"), reached.latencies.quantile_micros(0.5), "us");
        report.row(case, &format!("{what}_p99"), reached.latencies.quantile_micros(0.99), "us");
        let cpu = reached.cpu_seconds / reached.latencies.count() as f64 * 1e6;
        report.row(case, &format!("{what}_cpu_per_million"), cpu, "s");
    }
    report.row(case, "submit_to_log", per_second(engine) / per_second(log), "1");
}

fn per_second(reached: &Reached) -> f64 {
    reached.latencies.count() as f64 / reached.seconds
}

fn median(mut reached: Vec<Reached>) -> Reached {
    reached.sort_by(|a, b| per_second(a).total_cmp(&per_second(b)));
    let middle = reached.len() / 2;
    reached.swap_remove(middle)
}

fn bare_log(dir: &Path, load: Load, measured: Duration) -> Reached {
    let dir = tempfile::tempdir_in(dir).expect("make a directory");
    let (log, _) = LogOptions::new().open(dir.path()).expect("open a log");
    log.advance_epoch(Epoch::new(1)).expect("begin an epoch");
    pause(REST);
    let append = |log: &Log| log.append_next(Epoch::new(1), TIME_MS, &RECORD).expect("append");
    run(load, WARM_UP, measured, || append(&log), |ticket| assert!(ticket.wait().is_ok()), || {})
}

fn submitting(dir: &Path, load: Load, measured: Duration) -> Reached {
    let dir = tempfile::tempdir_in(dir).expect("make a directory");
    let (engine, _) = options().open(dir.path()).expect("open an engine");
    fill(&engine, 1000);
    pause(REST);
    let next = AtomicU64::new(0);
    run(load, WARM_UP, measured, || set(&engine, &next, 1000, &DATA), answered, || {})
}

fn bare_log_tasks(dir: &Path, tasks: usize, measured: Duration) -> Reached {
    let dir = tempfile::tempdir_in(dir).expect("make a directory");
    let (log, _) = LogOptions::new().open(dir.path()).expect("open a log");
    log.advance_epoch(Epoch::new(1)).expect("begin an epoch");
    pause(REST);
    run_tasks(tasks, WARM_UP, measured, move || {
        let ticket = log.append_next(Epoch::new(1), TIME_MS, &RECORD).expect("append");
        async { assert!(ticket.await.is_ok()) }
    })
}

fn submitting_tasks(dir: &Path, tasks: usize, measured: Duration) -> Reached {
    let dir = tempfile::tempdir_in(dir).expect("make a directory");
    let (engine, _) = options().open(dir.path()).expect("open an engine");
    fill(&engine, 1000);
    pause(REST);
    let next = AtomicU64::new(0);
    run_tasks(tasks, WARM_UP, measured, move || {
        let ticket = set(&engine, &next, 1000, &DATA);
        async { assert!(ticket.await.expect("an answer").code().is_ok(), "nothing fails here") }
    })
}

fn path(node: u64) -> String {
    // 32 characters.
    format!("/parent-{:07}/node-{:011}", node % 1000, node)
}

fn set(engine: &Engine, next: &AtomicU64, nodes: u64, data: &[u8]) -> Ticket {
    let node = next.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b1) % nodes;
    let request = Request::SetData { path: &path(node), data: Some(data), version: -1 };
    engine.submit(&request, &Caller::default()).expect("submit")
}

fn answered(ticket: Ticket) {
    assert!(ticket.wait().expect("an answer").code().is_ok(), "nothing fails here");
}

fn fill(engine: &Engine, nodes: u64) {
    let acl = [Acl::open()];
    let parents = (0..1000.min(nodes)).map(|parent| format!("/parent-{parent:07}"));
    let mut tickets = std::collections::VecDeque::new();
    for path in parents.chain((0..nodes).map(path)) {
        let create = Request::Create(CreateRequest::new(&path, &SMALL, &acl));
        tickets.push_back(engine.submit(&create, &Caller::default()).expect("submit"));
        if tickets.len() >= BATCH {
            tickets.pop_front().into_iter().for_each(answered);
        }
    }
    tickets.into_iter().for_each(answered);
}

fn snapshot_beside_writers(dir: &Path, nodes: u64, measured: Duration, report: &mut Report) {
    let dir = tempfile::tempdir_in(dir).expect("make a directory");
    let (engine, _) = options().open(dir.path()).expect("open an engine");
    fill(&engine, nodes);
    let case = format!("{nodes}-nodes");
    let load = Load { threads: 16, window: 1 };
    // As long as the data that is there, so that the tree does not grow and what is resident is the snapshot's.
    let next = AtomicU64::new(0);
    let alone = run(load, WARM_UP, measured, || set(&engine, &next, nodes, &SMALL), answered, || {});
    // Snapshots, one after the other, for as long as is measured.
    let stop = std::sync::atomic::AtomicBool::new(false);
    forget_peak_memory();
    let before = peak_memory_bytes();
    let (beside, written) = std::thread::scope(|scope| {
        let snapshots = scope.spawn(|| {
            let mut written = Vec::new();
            while !stop.load(Ordering::Acquire) {
                let start = now();
                let info = engine.snapshot().and_then(SnapshotTask::join).expect("a snapshot");
                written.push((info.nodes as f64 / start.elapsed().as_secs_f64(), info.file_bytes));
            }
            written
        });
        let beside = run(load, WARM_UP, measured * 2, || set(&engine, &next, nodes, &SMALL), answered, || {});
        stop.store(true, Ordering::Release);
        (beside, snapshots.join().expect("no panic"))
    });
    let memory = peak_memory_bytes().saturating_sub(before);
    let p99 = |reached: &Reached| reached.latencies.quantile_micros(0.99);
    report.row(&case, "writers_p99_alone", p99(&alone), "us");
    report.row(&case, "writers_p99_beside_snapshot", p99(&beside), "us");
    report.row(&case, "writers_p99_ratio", p99(&beside) / p99(&alone), "1");
    report.row(&case, "writers_worst_alone", alone.latencies.max() as f64 / 1e6, "ms");
    report.row(&case, "writers_worst_beside_snapshot", beside.latencies.max() as f64 / 1e6, "ms");
    report.row(&case, "writers_share_beside_snapshot", per_second(&beside) / per_second(&alone), "1");
    report.row(&case, "snapshot_memory", memory as f64 / 1e6, "MB");
    let nodes_per_second = written.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    report.row(&case, "snapshot_beside_writers", nodes_per_second, "nodes/s");
    // Alone: one request makes the state a new one.
    answered(set(&engine, &next, nodes, &SMALL));
    let start = now();
    let info = engine.snapshot().and_then(SnapshotTask::join).expect("a snapshot");
    report.row(&case, "snapshot_alone", info.nodes as f64 / start.elapsed().as_secs_f64(), "nodes/s");
    report.row(&case, "snapshot_bytes_per_node", info.file_bytes as f64 / info.nodes as f64, "B");
    assert!(matches!(engine.health(), Health::Fine | Health::Slow));
    start_again(engine, dir.path(), nodes, &case, report);
}

/// Writes a tree as a snapshot and starts with it.
fn start_with(dir: &Path, nodes: u64, report: &mut Report) {
    let dir = tempfile::tempdir_in(dir).expect("make a directory");
    let (engine, _) = options().open(dir.path()).expect("open an engine");
    fill(&engine, nodes);
    let case = format!("start-{nodes}-nodes");
    let start = now();
    let info = engine.snapshot().and_then(SnapshotTask::join).expect("a snapshot");
    report.row(&case, "snapshot_alone", info.nodes as f64 / start.elapsed().as_secs_f64(), "nodes/s");
    engine.close().expect("close");
    forget_peak_memory();
    let before = peak_memory_bytes();
    let (engine, opened) = options().open(dir.path()).expect("open again");
    assert_eq!((opened.replayed, engine.tree().len()), (0, info.nodes), "all of it is in the snapshot");
    report.row(&case, "load_time", Duration::from_nanos(opened.load_ns).as_secs_f64(), "s");
    report.row(&case, "start_time", Duration::from_nanos(opened.total_ns).as_secs_f64(), "s");
    let peak = peak_memory_bytes().saturating_sub(before);
    report.row(&case, "peak_memory", peak as f64 / 1e6, "MB");
    report.row(&case, "peak_memory_per_node", peak as f64 / info.nodes as f64, "B");
    engine.close().expect("close");
}

fn start_again(engine: Engine, dir: &Path, nodes: u64, case: &str, report: &mut Report) {
    engine.close().expect("close");
    let (engine, opened) = options().open(dir).expect("open again");
    let load = Duration::from_nanos(opened.load_ns).as_secs_f64();
    report.row(case, "load_snapshot", nodes as f64 / load, "nodes/s");
    report.row(case, "start_from_snapshot", Duration::from_nanos(opened.total_ns).as_secs_f64(), "s");
    let next = AtomicU64::new(0);
    let mut tickets = std::collections::VecDeque::new();
    for _ in 0..nodes {
        tickets.push_back(set(&engine, &next, nodes, &SMALL));
        if tickets.len() >= BATCH {
            tickets.pop_front().into_iter().for_each(answered);
        }
    }
    tickets.into_iter().for_each(answered);
    engine.close().expect("close");
    let (engine, opened) = options().open(dir).expect("open again");
    let replay = Duration::from_nanos(opened.total_ns - opened.load_ns).as_secs_f64();
    report.row(case, "replay_set_data", opened.replayed as f64 / replay, "txns/s");
    report.row(case, "start_from_snapshot_and_log", Duration::from_nanos(opened.total_ns).as_secs_f64(), "s");
    report.row(case, "peak_memory", peak_memory_bytes() as f64 / 1e6, "MB");
    engine.close().expect("close");
}
