//! How fast a log comes back: opening it, which verifies every byte, and reading all of its records.
//!
//! `cargo bench --bench log_recovery -- [--quick] [--csv FILE] [--dir DIR]`
//!
//! Each case writes a log (not timed), closes it, and then opens and reads it several times with its files in
//! the page cache. `best` and `median` are over those times; `both` is an open and a full read together, which
//! is what a server that rebuilds its tree from the log waits for. `peak RSS` is that of the open and read.

#![allow(clippy::cast_precision_loss, reason = "figures for people: 52 bits are plenty")]

mod support;

use std::path::Path;
use std::time::Duration;

use arborlog::{Epoch, Log, LogOptions, WriteMode, Zxid};
use support::args::BenchArgs;
use support::csv::Csv;
use support::now;
use support::process::{forget_peak_memory, peak_memory_bytes};

/// Records that are on their way at once while a log is written.
const BATCH: u64 = 1000;
/// Stands in for the leader's clock.
const TIME_MS: i64 = 1_700_000_000_000;
const REPEATS: usize = 5;

/// A log to be read back.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    records: u64,
    record_bytes: usize,
    segment_bytes: u64,
}

/// One time through a log.
#[derive(Clone, Copy, Debug)]
struct Pass {
    open: Duration,
    read: Duration,
    /// What was verified, padding and framing included.
    bytes: u64,
}

impl Pass {
    fn seconds(&self, phase: &str) -> f64 {
        let time = match phase {
            "open" => self.open,
            "read" => self.read,
            _ => self.open + self.read,
        };
        time.as_secs_f64()
    }
}

fn main() {
    let args = BenchArgs::from_env();
    let records = if args.quick { 200_000 } else { 1_000_000 };
    let small = Case { name: "200-bytes", records, record_bytes: 200, segment_bytes: 64 << 20 };
    let many = Case { name: "200-bytes-1MiB-segments", segment_bytes: 1 << 20, ..small };
    let large = Case { name: "4-KiB", records: records / 10, record_bytes: 4096, ..small };
    let mut csv = Csv::new();
    println!(
        "| log | segments | phase | best records/s | median records/s | best MB/s | median MB/s | peak RSS MB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for case in [small, many, large] {
        let dir = tempfile::tempdir_in(&args.dir).expect("make a directory for the log");
        let segments = write(dir.path(), case);
        pass(dir.path(), case); // brings the files into the page cache
        forget_peak_memory();
        let passes: Vec<Pass> = (0..REPEATS).map(|_| pass(dir.path(), case)).collect();
        report(case, segments, &passes, peak_memory_bytes(), &mut csv);
    }
    if let Some(path) = &args.csv {
        csv.write_to(path).expect("write the CSV file");
    }
}

fn options(case: Case) -> LogOptions {
    LogOptions::new().segment_bytes(case.segment_bytes)
}

/// Writes the log, through the page cache and without waiting for the disk: only its bytes matter here.
fn write(dir: &Path, case: Case) -> u64 {
    let options = options(case).write_mode(WriteMode::Unsynced).prepare_bytes_per_second(1 << 40);
    let (log, _report) = options.open(dir).expect("create the log");
    let mut payload = vec![0x61; case.record_bytes];
    for number in 0..case.records {
        payload[..8].copy_from_slice(&number.to_le_bytes());
        // The flush waits for all tickets up to it.
        drop(log.append_next(Epoch::ZERO, TIME_MS, &payload).expect("append"));
        if number % BATCH == BATCH - 1 {
            log.flush().expect("flush");
        }
    }
    log.close().expect("close the log");
    let (log, report) = self::options(case).open(dir).expect("open the log");
    log.close().expect("close the log");
    report.segments
}

fn pass(dir: &Path, case: Case) -> Pass {
    let started = now();
    let (log, report) = options(case).open(dir).expect("open the log");
    let open = now().duration_since(started);
    assert_eq!(report.records, case.records, "the open has verified another number of records");
    let started = now();
    let records = read_all(&log, case);
    let read = now().duration_since(started);
    assert_eq!(records, case.records, "the reader has read another number of records");
    log.close().expect("close the log");
    Pass { open, read, bytes: report.bytes }
}

fn read_all(log: &Log, case: Case) -> u64 {
    let mut reader = log.reader(Zxid::ZERO).expect("open a reader");
    let mut records = 0_u64;
    while let Some(record) = reader.next_record().expect("read a record") {
        assert_eq!(record.payload.len(), case.record_bytes);
        assert_eq!(record.payload[..8], records.to_le_bytes());
        records += 1;
    }
    records
}

fn report(case: Case, segments: u64, passes: &[Pass], peak_bytes: u64, csv: &mut Csv) {
    let megabytes = passes[0].bytes as f64 / 1e6;
    let peak = peak_bytes as f64 / 1e6;
    for phase in ["open", "read", "both"] {
        let mut seconds: Vec<f64> = passes.iter().map(|pass| pass.seconds(phase)).collect();
        seconds.sort_by(f64::total_cmp);
        let (best, median) = (seconds[0], seconds[seconds.len() / 2]);
        let [best_rate, median_rate] = [best, median].map(|seconds| case.records as f64 / seconds);
        let [best_mb, median_mb] = [best, median].map(|seconds| megabytes / seconds);
        println!(
            "| {} | {segments} | {phase} | {best_rate:.0} | {median_rate:.0} | {best_mb:.0} | {median_mb:.0} | {peak:.1} |",
            case.name
        );
        let case = format!("{}/{phase}", case.name);
        for (metric, value, unit) in [
            ("best_records_per_s", best_rate, "records/s"),
            ("median_records_per_s", median_rate, "records/s"),
            ("best_mb_per_s", best_mb, "MB/s"),
            ("median_mb_per_s", median_mb, "MB/s"),
            ("peak_rss_mb", peak, "MB"),
        ] {
            csv.row("log_recovery", &case, metric, value, unit);
        }
    }
}
