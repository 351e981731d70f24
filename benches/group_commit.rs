//! The trade-off of batching fsyncs: for each policy and number of writers, how many commits a second, how
//! long each waits, how many share one sync, and how close that comes to what the device itself can do.
//!
//! `cargo bench --bench group_commit -- [--quick] [--policy NAME] [--writers N,M] [--seconds S] [--csv FILE]
//! [--svg FILE] [--dir DIR]`
//!
//! Each row measures a log of its own in a directory of its own. Beside it stands the device's limit: a plain
//! loop without any log that writes groups of the same size, as many at once, in the same minute; `of limit`
//! is the log's share of it. The policy `plain` is the simplest group commit there is (no recovery, no
//! segments), as a floor. Syncs are printed beside commits, so that a run without them cannot pass as fast.

#![allow(clippy::cast_precision_loss, reason = "figures for people: 52 bits are plenty")]

mod group_commit_policies;
mod support;

use std::path::Path;
use std::time::Duration;

use arborlog::{AppendTicket, Epoch, LogStats, WriteMode};
use group_commit_policies::{IO_URING, Policy, policies};
use support::aligned::BLOCK_BYTES;
use support::args::BenchArgs;
use support::csv::Csv;
use support::device::Device;
use support::plain_log::PlainLog;
use support::plot::{Plot, Point, Series};
use support::writers::{self, Load, Reached};

const RECORD: [u8; 200] = [0x61; 200];
/// Stands in for the leader's clock.
const TIME_MS: i64 = 1_700_000_000_000;
/// The policies of the picture, which has seven colours.
const PICTURED: [&str; 7] =
    ["default", "gather-off", "in-flight-1", "delay-1ms", "buffered-then-sync", "threads", "plain"];
const PLAIN: &str = "plain";

/// One row of the table.
#[derive(Debug)]
struct Row {
    policy: &'static str,
    load: Load,
    commits_per_second: f64,
    /// p50, p99, p99.9 in microseconds.
    micros: [f64; 3],
    syncs_per_second: f64,
    commits_per_sync: f64,
    bytes_per_record: f64,
    cpu_micros_per_commit: f64,
    /// Commits per second if the device did nothing but write such groups.
    limit_per_second: f64,
}

/// How long things take.
#[derive(Clone, Copy, Debug)]
struct Times {
    warm_up: Duration,
    measured: Duration,
    device: Duration,
}

/// What a log wrote while it was measured.
#[derive(Clone, Copy, Debug)]
struct Written {
    records: u64,
    groups: u64,
    syncs: u64,
    bytes: u64,
}

fn main() {
    let args = BenchArgs::from_env();
    let dir = tempfile::tempdir_in(&args.dir).expect("make a directory for the bench");
    let device = Device::prepare(dir.path()).expect("zero a file in the bench's directory");
    let times = times(&args);
    let mut rows = Vec::new();
    print_heading();
    for load in loads(&args) {
        for policy in chosen_policies(&args) {
            rows.push(measure_log(dir.path(), &device, &policy, load, times));
            print_row(rows.last().expect("just pushed"));
        }
        let wants_plain = args.policy.as_deref().is_none_or(|name| name == PLAIN);
        if wants_plain && load.window == 1 {
            rows.push(measure_plain(dir.path(), &device, load, times));
            print_row(rows.last().expect("just pushed"));
        }
    }
    assert!(!rows.is_empty(), "there is no such policy");
    if let Some(path) = &args.csv {
        to_csv(&rows).write_to(path).expect("write the CSV file");
    }
    let svg = args.svg.clone().unwrap_or_else(|| BenchArgs::target_dir().join("group_commit.svg"));
    if let Some(plot) = plot(&rows) {
        plot.write_to(&svg).expect("write the picture");
        println!("\npicture: {}", svg.display());
    }
}

fn times(args: &BenchArgs) -> Times {
    let (warm_up, measured) = if args.quick { (100, 300) } else { (1000, 2000) };
    let measured = args.seconds.unwrap_or(Duration::from_millis(measured));
    Times { warm_up: Duration::from_millis(warm_up), measured, device: measured / 4 }
}

fn loads(args: &BenchArgs) -> Vec<Load> {
    let usual: &[usize] = if args.quick { &[1, 16, 256] } else { &[1, 4, 16, 64, 256] };
    let writers = args.writers.clone().unwrap_or_else(|| usual.to_vec());
    let closed = writers.into_iter().map(|threads| Load { threads, window: 1 });
    let open = [64, 256].map(|window| Load { threads: 4, window });
    closed.chain(open.into_iter().filter(|_| args.writers.is_none())).collect()
}

fn chosen_policies(args: &BenchArgs) -> Vec<Policy> {
    let chosen = |policy: &Policy| match &args.policy {
        Some(name) => policy.name == name,
        None => policy.quick || !args.quick,
    };
    policies().into_iter().filter(chosen).filter(is_granted).collect()
}

/// A ring may be refused.
fn is_granted(policy: &Policy) -> bool {
    if policy.name != IO_URING {
        return true;
    }
    let dir = tempfile::tempdir().expect("make a directory");
    let refused = policy.options.open(dir.path()).err();
    if let Some(error) = &refused {
        eprintln!("{}: skipped, {error}", policy.name);
    }
    refused.is_none()
}

fn measure_log(dir: &Path, device: &Device, policy: &Policy, load: Load, times: Times) -> Row {
    let dir = tempfile::tempdir_in(dir).expect("make a directory for the log");
    let (log, _report) = policy.options.open(dir.path()).expect("open the log");
    // At rest it makes its next segment.
    writers::pause(times.warm_up);
    let submit = || log.append_next(Epoch::ZERO, TIME_MS, &RECORD).expect("append");
    let wait = |ticket: AppendTicket| {
        ticket.wait().expect("wait until durable");
    };
    let mut edges = Vec::new();
    let edge = || edges.push(log.stats());
    let reached = if load.window == 1 {
        let commit = || {
            log.commit_next(Epoch::ZERO, TIME_MS, &RECORD).expect("commit");
        };
        writers::run(load, times.warm_up, times.measured, commit, |()| {}, edge)
    } else {
        writers::run(load, times.warm_up, times.measured, submit, wait, edge)
    };
    let written = written_between(&edges[0], &edges[1]);
    if policy.mode == WriteMode::Unsynced {
        assert_eq!(written.syncs, 0, "a log that was told not to sync has synced");
    } else {
        assert!(written.syncs > 0, "{}: nothing was synced", policy.name);
    }
    log.close().expect("close the log");
    row(policy.name, load, &reached, written, limit(device, written, policy.in_flight, times))
}

fn written_between(start: &LogStats, end: &LogStats) -> Written {
    Written {
        records: end.records - start.records,
        groups: end.groups - start.groups,
        syncs: end.syncs - start.syncs,
        bytes: end.group_bytes - start.group_bytes,
    }
}

fn measure_plain(dir: &Path, device: &Device, load: Load, times: Times) -> Row {
    let path = dir.join("plain.log");
    let log = PlainLog::create(&path).expect("create the plain log");
    let mut edges = Vec::new();
    let edge = || edges.push(log.written());
    let reached = writers::run(load, times.warm_up, times.measured, || log.commit(&RECORD), |()| {}, edge);
    let (groups, bytes) = (edges[1].0 - edges[0].0, edges[1].1 - edges[0].1);
    let written = Written { records: reached.latencies.count(), groups, syncs: groups, bytes };
    std::fs::remove_file(&path).expect("remove the plain log");
    row(PLAIN, load, &reached, written, limit(device, written, 1, times))
}

/// What the device reaches with groups of the same size and as many at once, in commits per second.
fn limit(device: &Device, written: Written, in_flight: usize, times: Times) -> f64 {
    let groups = written.groups.max(1);
    let bytes = usize::try_from(written.bytes / groups).expect("a group fits memory");
    let bytes = bytes.next_multiple_of(BLOCK_BYTES).max(BLOCK_BYTES);
    let limit = device.measure(bytes, in_flight, times.device).expect("write to the bench's directory");
    limit.writes_per_second * written.records as f64 / groups as f64
}

fn row(policy: &'static str, load: Load, reached: &Reached, written: Written, limit_per_second: f64) -> Row {
    let commits = reached.latencies.count();
    assert!(commits > 0, "{policy}: no record became durable in the time that was measured");
    let records = written.records.max(1) as f64;
    Row {
        policy,
        load,
        commits_per_second: commits as f64 / reached.seconds,
        micros: [0.5, 0.99, 0.999].map(|q| reached.latencies.quantile_micros(q)),
        syncs_per_second: written.syncs as f64 / reached.seconds,
        commits_per_sync: if written.syncs == 0 { 0.0 } else { records / written.syncs as f64 },
        bytes_per_record: written.bytes as f64 / records,
        cpu_micros_per_commit: reached.cpu_seconds * 1e6 / commits as f64,
        limit_per_second,
    }
}

fn print_heading() {
    println!(
        "| policy | writers | commits/s | p50 us | p99 us | p99.9 us | syncs/s | commits/sync | bytes/record | \
         CPU us/commit | device limit/s | of limit |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
}

fn print_row(row: &Row) {
    let [p50, p99, p999] = row.micros;
    println!(
        "| {} | {} | {:.0} | {p50:.0} | {p99:.0} | {p999:.0} | {:.0} | {:.1} | {:.0} | {:.1} | {:.0} | {:.2} |",
        row.policy,
        row.load.name(),
        row.commits_per_second,
        row.syncs_per_second,
        row.commits_per_sync,
        row.bytes_per_record,
        row.cpu_micros_per_commit,
        row.limit_per_second,
        row.commits_per_second / row.limit_per_second,
    );
}

fn to_csv(rows: &[Row]) -> Csv {
    let mut csv = Csv::new();
    for row in rows {
        let case = format!("{}/{}", row.policy, row.load.name());
        for (metric, value, unit) in [
            ("commits_per_s", row.commits_per_second, "commits/s"),
            ("p50_us", row.micros[0], "us"),
            ("p99_us", row.micros[1], "us"),
            ("p999_us", row.micros[2], "us"),
            ("syncs_per_s", row.syncs_per_second, "syncs/s"),
            ("commits_per_sync", row.commits_per_sync, "commits"),
            ("bytes_per_record", row.bytes_per_record, "bytes"),
            ("cpu_us_per_commit", row.cpu_micros_per_commit, "us"),
            ("device_limit_per_s", row.limit_per_second, "commits/s"),
            ("of_limit", row.commits_per_second / row.limit_per_second, "share"),
        ] {
            csv.row("group_commit", &case, metric, value, unit);
        }
    }
    csv
}

/// The closed loops of some policies; none if none of those was measured.
fn plot(rows: &[Row]) -> Option<Plot> {
    let series = PICTURED.into_iter().map(|name| Series {
        name: name.to_string(),
        points: rows.iter().filter(|row| row.policy == name && row.load.window == 1).map(point).collect(),
    });
    let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
    (!series.is_empty()).then(|| Plot {
        title: "Group commit: throughput against latency".to_string(),
        subtitle: "200-byte records, each writer waits until its record is durable".to_string(),
        x_label: "durable commits per second".to_string(),
        label_meaning: "writers".to_string(),
        series,
    })
}

fn point(row: &Row) -> Point {
    Point {
        label: row.load.name(),
        per_second: row.commits_per_second,
        p50_micros: row.micros[0],
        p99_micros: row.micros[1],
    }
}
