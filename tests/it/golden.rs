//! A directory written by each version of the format, and what must be read from it, for ever.
//!
//! `ARBORLOG_WRITE_GOLDEN=1 cargo test --test it golden_write -- --ignored` writes the directory of the
//! present version anew. Do that only together with a new format version; the old directories stay.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use arborlog::{BackendChoice, Epoch, LogOptions, Numbering, Record, WriteMode, Zxid};

fn golden(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(version)
}

fn options() -> LogOptions {
    LogOptions::new()
        .segment_bytes(16 * 1024)
        .block_bytes(512)
        .backend(BackendChoice::Threads)
        .write_mode(WriteMode::BufferedThenSync)
        .idle_mark(None)
}

/// Opens a copy, so that the original stays what its version wrote.
fn copy_of(version: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(golden(version).join("log")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

fn listing(dir: &Path) -> String {
    let (log, report) = options().open(dir).unwrap();
    let mut out = format!("epoch {} last {} segments {}\n", report.epoch, report.last_zxid, report.segments);
    let mut reader = log.reader(report.floor_zxid).unwrap();
    while let Some(record) = reader.next_record().unwrap() {
        let sum: u64 = record.payload.iter().map(|b| u64::from(*b)).sum();
        writeln!(out, "{} {} {} {} {sum}", record.zxid, record.epoch, record.time_ms, record.payload.len())
            .unwrap();
    }
    drop(reader);
    log.close().unwrap();
    out
}

#[test]
fn golden_directory_of_version_1_reads_as_it_was_written() {
    let copy = copy_of("v1");
    let expected = std::fs::read_to_string(golden("v1").join("expected.txt")).unwrap();
    assert_eq!(listing(copy.path()), expected);
    // And it can be written on: a second open gives the same records.
    assert_eq!(listing(copy.path()).lines().skip(1).count(), expected.lines().skip(1).count());
}

#[test]
#[ignore = "writes the golden directory of the present version"]
fn golden_write() {
    if std::env::var_os("ARBORLOG_WRITE_GOLDEN").is_none() {
        return;
    }
    let dir = golden("v1").join("log");
    std::fs::create_dir_all(&dir).unwrap();
    let (log, _) = options().numbering(Numbering::Zxid).open(&dir).unwrap();
    let payload = |n: u32| -> Vec<u8> { (0..n * 37 % 900).map(|i| (i * n).to_le_bytes()[0]).collect() };
    for epoch in 1..=2u32 {
        log.advance_epoch(Epoch::new(epoch.into())).unwrap();
        for n in 1..=40u32 {
            let time = i64::from(n % 7) * 1000 - 3000;
            log.append(&Record::new(Zxid::from_parts(epoch, n), time, &payload(n))).unwrap().wait().unwrap();
        }
    }
    // A cut inside a group, and a batch behind it.
    let batch: Vec<Vec<u8>> = (1..=5).map(payload).collect();
    let records = |from: u32| -> Vec<Record<'_>> {
        batch.iter().zip(from..).map(|(p, n)| Record::new(Zxid::from_parts(2, n), 5, p)).collect()
    };
    log.append_batch(&records(41)).unwrap().wait().unwrap();
    let (log, report) = log.truncate(Zxid::from_parts(2, 43)).unwrap();
    assert!(report.exact);
    log.append_batch(&records(44)).unwrap().wait().unwrap();
    log.close().unwrap();
    std::fs::remove_file(dir.join("LOCK")).unwrap();
    let copy = copy_of("v1");
    std::fs::write(golden("v1").join("expected.txt"), listing(copy.path())).unwrap();
}
