//! Engines to look at.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use arborlog::{
    Acl, Caller, CreateMode, CreateRequest, Engine, EngineOptions, Epoch, LogOptions, Request, Zxid,
};
use tempfile::TempDir;

/// How many txns the samples have; their zxids are [`zxid`] 1 to this.
pub(crate) const TXNS: u32 = 60;

pub(crate) fn options() -> EngineOptions {
    EngineOptions::new().log(LogOptions::new().segment_bytes(64 << 10)).snap_count(0).snapshots_kept(2)
}

pub(crate) fn zxid(counter: u32) -> Zxid {
    Zxid::from_parts(3, counter)
}

/// The txns from one to another: three sessions, then nodes, every third one of a session, with `word` as data.
pub(crate) fn work(engine: &Engine, from: u32, to: u32, word: &str) {
    if engine.current_epoch() < Epoch::new(3) {
        engine.enter_epoch(Epoch::new(3)).unwrap();
    }
    let acl = [Acl::open()];
    for n in from..=to {
        let mode = if n % 3 == 0 { CreateMode::Ephemeral } else { CreateMode::Persistent };
        let path = format!("/node-{n}");
        let data = format!("{word} {n}");
        let create =
            Request::Create(CreateRequest { mode, ..CreateRequest::new(&path, data.as_bytes(), &acl) });
        let request = if n <= 3 { Request::CreateSession { timeout_ms: 900 } } else { create };
        let caller = Caller { session_id: 1 + i64::from(n % 3), ..Caller::default() };
        let answer = engine.submit_at(&request, &caller, i64::from(n) * 1000).unwrap().wait().unwrap();
        assert!(answer.code().is_ok() && answer.zxid == zxid(n), "{n}: {answer:?}");
        if n % 20 == 0 && n < TXNS {
            engine.snapshot().unwrap().join().unwrap();
        }
    }
}

/// An engine of [`TXNS`] txns with snapshots at the 20th and the 40th, closed; its log begins behind the first one.
pub(crate) fn engine() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    work(&engine, 1, TXNS, "data");
    engine.close().unwrap();
    dir
}

/// Every file below a directory with its bytes.
pub(crate) fn all_files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry.clone());
                found.insert(entry, Vec::new());
            } else {
                let bytes = fs::read(&entry).unwrap();
                found.insert(entry, bytes);
            }
        }
    }
    found
}

#[track_caller]
pub(crate) fn all_unchanged(before: &BTreeMap<PathBuf, Vec<u8>>, dir: &Path) {
    let now = all_files(dir);
    assert!(now.keys().eq(before.keys()), "{:?} became {:?}", before.keys(), now.keys());
    for (path, bytes) in &now {
        assert!(before[path] == *bytes, "{} changed", path.display());
    }
}

/// A copy of a directory.
pub(crate) fn copy(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for (path, bytes) in all_files(from) {
        let target = to.path().join(path.strip_prefix(from).unwrap());
        if path.is_dir() {
            fs::create_dir_all(target).unwrap();
        } else {
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::write(target, bytes).unwrap();
        }
    }
    to
}

pub(crate) fn snapshot(dir: &Path, end: Zxid) -> PathBuf {
    dir.join("snapshots-1").join(format!("{:016x}.snap", end.get()))
}

/// The segment of the log that is in use whose bytes hold a text, and where.
pub(crate) fn in_log(dir: &Path, text: &str) -> (PathBuf, usize) {
    let mut segments: Vec<PathBuf> =
        fs::read_dir(dir.join("log-1")).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    let found = segments.into_iter().find_map(|path| {
        let bytes = fs::read(&path).unwrap();
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes())?;
        Some((path, at))
    });
    found.expect("the text is in the log")
}
