//! Recovery: fill a log, then reopen a copy of it and read everything, in a process of its own.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use crate::args::Args;
use crate::children::{Children, remove_dir};
use crate::logs::Kind;
use crate::machine;
use crate::sample::Sample;
use crate::writer;

/// Reopened this often; the best counts.
const RUNS: usize = 3;
/// Records handed over at once while filling.
const BATCH_RECORDS: usize = 1000;

/// What the best run of one log showed.
#[derive(Clone, Debug)]
pub struct RecoveryResult {
    /// Which log.
    pub kind: Kind,
    /// `records_per_s`, `mb_per_s`, `peak_memory_mb`.
    pub best: Sample,
}

/// Fills every log once and reopens copies of it.
pub fn measure(args: &Args, children: &Children) -> Vec<RecoveryResult> {
    let logs = args.logs.iter().filter(|kind| !kind.is_a_variant());
    logs.map(|&kind| RecoveryResult { kind, best: measure_one(args, children, kind) }).collect()
}

fn measure_one(args: &Args, children: &Children, kind: Kind) -> Sample {
    let filled = children.fresh_dir("filled");
    let options = [("--records", args.records.to_string()), ("--bytes", args.bytes.to_string())];
    children.run(kind, "child-fill", &filled, &options);
    let mut best = Sample::new();
    for _ in 0..RUNS {
        // A copy, since reopening may change a log; written just now, it lies in the page cache.
        let copy = children.fresh_dir("copy");
        copy_dir(&filled, &copy);
        let raw = children.run(kind, "child-recover", &copy, &[]);
        remove_dir(&copy);
        let get = |name: &str| raw.figure(name).unwrap_or_else(|| panic!("a child did not print {name}"));
        assert_eq!(get("records"), args.records as f64, "{} did not give everything back", kind.name());
        let rate = get("records") / get("seconds");
        if rate > best.figure("records_per_s").unwrap_or(0.0) {
            best.set("records_per_s", rate);
            best.set("mb_per_s", get("bytes") / get("seconds") / 1e6);
            best.set("peak_memory_mb", get("peak_memory_mb"));
        }
    }
    remove_dir(&filled);
    eprintln!(
        "recovery  {:<15} {:>12.0} records/s",
        kind.name(),
        best.figure("records_per_s").unwrap_or(0.0)
    );
    best
}

/// The child that fills.
pub fn fill(args: &Args) -> Sample {
    let log = args.logs[0].open_to_keep(&args.dir);
    let mut records: Vec<Vec<u8>> =
        (0..BATCH_RECORDS).map(|index| writer::record(index as u64, args.bytes)).collect();
    let mut written = 0;
    while written < args.records {
        let count = (args.records - written).min(BATCH_RECORDS as u64) as usize;
        for record in &mut records[..count] {
            written += 1;
            record[..8].copy_from_slice(&written.to_le_bytes());
        }
        let batch: Vec<&[u8]> = records[..count].iter().map(Vec::as_slice).collect();
        log.commit_batch(0, &batch);
    }
    let mut sample = Sample::new();
    sample.set("records", written as f64);
    sample
}

/// The child that reopens and reads.
pub fn recover(args: &Args) -> Sample {
    let started = Instant::now();
    let recovered = args.logs[0].recover(&args.dir);
    let seconds = started.elapsed().as_secs_f64();
    let mut sample = Sample::new();
    sample.set("records", recovered.records as f64);
    sample.set("bytes", recovered.bytes as f64);
    sample.set("seconds", seconds);
    sample.set("peak_memory_mb", machine::peak_memory_mb());
    sample
}

/// Copies a directory, synced so that no write-back runs under the measurement.
fn copy_dir(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("list a filled log") {
        let entry = entry.expect("read a filled log's directory");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&target).expect("create a directory of the copy");
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).expect("copy a log's file");
            File::open(&target).and_then(|file| file.sync_all()).expect("sync the copy");
        }
    }
}
