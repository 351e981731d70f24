//! What the fault tests share: logs of known content, and looking at them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::{Duration, Instant};

use arborlog::{AppendTicket, BackendChoice, Epoch, Error, Log, LogOptions, LogView, Record, Result, Zxid};

pub(super) const EIO: i32 = 5;
pub(super) const EPERM: i32 = 1;
pub(super) const EROFS: i32 = 30;
pub(super) const ENOSPC: i32 = 28;

/// T(n) of the fault list: the n-th transaction of epoch 1.
pub(super) fn t(n: u32) -> Zxid {
    Zxid::from_parts(1, n)
}

/// The bytes of T(n), so that a group of one such record takes three blocks of 512.
pub(super) fn body(zxid: Zxid) -> Vec<u8> {
    zxid.get().to_le_bytes().repeat(140)
}

/// Segments of exactly ten groups of one [`body`] each.
pub(super) fn tens() -> LogOptions {
    LogOptions::new().segment_bytes(20_480).block_bytes(512).idle_mark(None).backend(BackendChoice::Threads)
}

/// Segments of the smallest size, for real directories too.
pub(super) fn small() -> LogOptions {
    LogOptions::new().segment_bytes(64 * 1024).backend(BackendChoice::Threads)
}

pub(super) fn append(log: &Log, zxid: Zxid) -> Result<AppendTicket> {
    log.append(&Record::new(zxid, i64::from(zxid.counter()), &body(zxid)))
}

/// Appends and waits: each record is a group of its own.
#[track_caller]
pub(super) fn put(log: &Log, zxids: impl IntoIterator<Item = Zxid>) {
    for zxid in zxids {
        append(log, zxid).and_then(AppendTicket::wait).unwrap_or_else(|e| panic!("append {zxid}: {e}"));
    }
}

/// Appends T(n) for a range, in epoch 1.
#[track_caller]
pub(super) fn put_range(log: &Log, range: impl IntoIterator<Item = u32>) {
    put(log, range.into_iter().map(t));
}

/// A new log's first step.
pub(super) fn in_epoch_1(log: Log) -> Log {
    log.advance_epoch(Epoch::new(1)).expect("a new epoch on a healthy disk");
    log
}

/// Everything that the log holds.
#[track_caller]
pub(super) fn content(log: &Log) -> BTreeMap<Zxid, (usize, u64)> {
    let mut reader = log.reader(log.floor_zxid()).expect("a reader from the floor");
    let mut all = BTreeMap::new();
    while let Some(record) = reader.next_record().expect("a healthy log") {
        assert!(all.insert(record.zxid, digest(record.payload)).is_none(), "{} twice", record.zxid);
    }
    all
}

/// Everything that a view shows.
#[track_caller]
pub(super) fn seen(view: &LogView) -> BTreeMap<Zxid, (usize, u64)> {
    let mut reader = view.records(view.floor_zxid()).expect("a reader from the floor");
    let mut all = BTreeMap::new();
    while let Some(record) = reader.next_record().expect("a healthy log") {
        all.insert(record.zxid, digest(record.payload));
    }
    all
}

/// What a log of these records holds.
pub(super) fn model(zxids: impl IntoIterator<Item = Zxid>) -> BTreeMap<Zxid, (usize, u64)> {
    zxids.into_iter().map(|z| (z, digest(&body(z)))).collect()
}

/// Every file of a directory with its length and a digest of its bytes, to see that not one has changed.
pub(super) fn files(dir: &Path) -> BTreeMap<String, (usize, u64)> {
    let entries = std::fs::read_dir(dir).expect("the directory");
    entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .map(|path| (name_of(&path), digest(&std::fs::read(&path).expect("its bytes"))))
        .collect()
}

/// A short stand-in for bytes, so that a failed comparison can be read.
pub(super) fn digest(bytes: &[u8]) -> (usize, u64) {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    (bytes.len(), hasher.finish())
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// The error that was expected.
#[track_caller]
pub(super) fn refused<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("this was expected to fail"),
        Err(error) => error,
    }
}

pub(super) fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "tests bound how long things take")]
    Instant::now()
}

pub(super) fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "tests let a log be idle")]
    std::thread::sleep(time);
}

/// Waits until `holds`, at most five seconds.
#[track_caller]
pub(super) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        pause(Duration::from_millis(2));
    }
}

/// How many segments stand in a directory, the prepared one included.
pub(super) fn segments(dir: &Path) -> u64 {
    files(dir).keys().filter(|name| name.ends_with(".seg")).count() as u64
}
