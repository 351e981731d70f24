//! Logs to look at, and the tool to look with.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use arborlog::{BackendChoice, Epoch, Log, LogOptions, Record, WriteMode, Zxid};
use serde_json::Value;
use tempfile::TempDir;

/// What a run of the tool left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// The lines of standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(parse).collect()
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Run {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }
}

/// Runs `arborlog log ARGUMENTS` with the directory in place of `DIR`.
pub(crate) fn tool(arguments: &str, dir: &Path) -> Run {
    arborlog(&format!("log {arguments}"), dir)
}

/// Runs `arborlog ARGUMENTS` with the directory in place of `DIR`, and what is below it in place of `DIR/NAME`.
pub(crate) fn arborlog(arguments: &str, dir: &Path) -> Run {
    let named = |argument: &str| match argument.strip_prefix("DIR") {
        Some("") => dir.to_owned(),
        Some(below) => dir.join(below.trim_start_matches('/')),
        None => argument.into(),
    };
    let arguments = arguments.split(' ').map(named);
    let output =
        Command::new(env!("CARGO_BIN_EXE_arborlog")).args(arguments).stdin(Stdio::null()).output().unwrap();
    Run {
        code: output.status.code().expect("no signal ends the tool"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn options() -> LogOptions {
    LogOptions::new()
        .segment_bytes(16 * 1024)
        .block_bytes(512)
        .write_mode(WriteMode::BufferedThenSync)
        .backend(BackendChoice::Threads)
        .idle_mark(None)
}

/// Appends records `from..=to` of epoch 1, each durable before the next.
pub(crate) fn append(log: &Log, from: u32, to: u32) {
    if log.epoch() < Epoch::new(1) {
        log.advance_epoch(Epoch::new(1)).unwrap();
    }
    for counter in from..=to {
        let payload = format!("record {counter}");
        let record = Record::new(zxid(counter), 1_700_000_000_000 + i64::from(counter), payload.as_bytes());
        log.append(&record).unwrap().wait().unwrap();
    }
}

pub(crate) fn zxid(counter: u32) -> Zxid {
    Zxid::from_parts(1, counter)
}

/// A log of `count` records over several segments, closed cleanly: 20 records or so to a segment.
pub(crate) fn closed(count: u32) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = options().open(dir.path()).unwrap();
    append(&log, 1, count);
    log.close().unwrap();
    dir
}

/// The same, as a killed process leaves it.
pub(crate) fn killed(count: u32) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = options().open(dir.path()).unwrap();
    append(&log, 1, count);
    drop(log);
    dir
}

/// The records that opening gives.
pub(crate) fn records(dir: &Path) -> Vec<u32> {
    let (log, _) = options().open(dir).unwrap();
    let mut reader = log.reader(Zxid::ZERO).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        assert_eq!(record.payload, format!("record {}", record.zxid.counter()).as_bytes());
        found.push(record.zxid.counter());
    }
    found
}

/// Every file of a directory with its bytes.
pub(crate) fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap_or_default())).collect()
}

/// Not one byte, and not one name.
#[track_caller]
pub(crate) fn unchanged(before: &BTreeMap<String, Vec<u8>>, dir: &Path) {
    let now = files(dir);
    assert!(now.keys().eq(before.keys()), "{:?} became {:?}", before.keys(), now.keys());
    let changed: Vec<_> =
        now.iter().filter(|(name, bytes)| before[*name] != **bytes).map(|(name, _)| name).collect();
    assert!(changed.is_empty(), "{changed:?} changed");
}

/// The same, after a command that took the lock: its file names the last owner.
#[track_caller]
pub(crate) fn unchanged_but_lock(mut before: BTreeMap<String, Vec<u8>>, dir: &Path) {
    before.insert("LOCK".into(), fs::read(dir.join("LOCK")).unwrap());
    unchanged(&before, dir);
}

pub(crate) fn segment(dir: &Path, seq: u64) -> PathBuf {
    dir.join(format!("{seq:016x}.seg"))
}

/// Where a payload's text stands in a file.
pub(crate) fn find(path: &Path, text: &str) -> usize {
    let bytes = fs::read(path).unwrap();
    bytes.windows(text.len()).position(|w| w == text.as_bytes()).expect("the text is in the file")
}

pub(crate) fn flip(path: &Path, offset: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[offset] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

/// The segment that holds a record, and the payload's offset in it.
pub(crate) fn place(dir: &Path, counter: u32) -> (u64, usize) {
    let text = format!("record {counter}\0");
    let segments = (1..100).rev().filter(|seq| segment(dir, *seq).exists());
    let mut holding = segments.filter(|seq| {
        let bytes = fs::read(segment(dir, *seq)).unwrap();
        bytes.windows(text.len()).any(|w| w == text.as_bytes())
    });
    let seq = holding.next().expect("the record is somewhere");
    (seq, find(&segment(dir, seq), &text))
}
