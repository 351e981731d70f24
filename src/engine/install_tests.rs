//! Whole snapshots from one engine to another.

use std::path::Path;

use super::*;
use crate::base::{Epoch, ErrorKind, Zxid};
use crate::format::{Acl, TxnBuf};
use crate::log::LogOptions;
use crate::tree::{Change, CreateMode, CreateRequest, DataTree, Request, Walk};

fn options() -> EngineOptions {
    EngineOptions::new().log(LogOptions::new().segment_bytes(256 << 10)).snap_count(0)
}

const EPOCH: Epoch = Epoch::new(5);

fn open(dir: &Path) -> Engine {
    options().open(dir).unwrap().0
}

fn make(engine: &Engine, path: &str, mode: CreateMode) {
    let acl = [Acl::open()];
    let create = CreateRequest { mode, ..CreateRequest::new(path, path.as_bytes(), &acl) };
    let caller = Caller { session_id: 9, ..Caller::default() };
    assert!(engine.submit(&Request::Create(create), &caller).unwrap().wait().unwrap().code().is_ok());
}

/// An engine in the fifth epoch, with a session that owns a node, whose snapshot is older than its log's end.
fn leader(dir: &Path) -> Engine {
    let engine = open(dir);
    engine.enter_epoch(EPOCH).unwrap();
    let caller = Caller { session_id: 9, ..Caller::default() };
    engine.submit(&Request::CreateSession { timeout_ms: 4000 }, &caller).unwrap().wait().unwrap();
    make(&engine, "/leader", CreateMode::Persistent);
    make(&engine, "/leader/mine", CreateMode::Ephemeral);
    engine.snapshot().unwrap().join().unwrap();
    (0..20).for_each(|n| make(&engine, &format!("/leader/after-{n}"), CreateMode::Persistent));
    engine
}

/// Another history: epochs 1 and 2.
fn follower(dir: &Path) -> Engine {
    let engine = open(dir);
    for epoch in 1..3 {
        engine.enter_epoch(Epoch::new(epoch)).unwrap();
        (0..30).for_each(|n| make(&engine, &format!("/fork-{epoch}-{n}"), CreateMode::Persistent));
        engine.snapshot().unwrap().join().unwrap();
    }
    make(&engine, "/last", CreateMode::Persistent);
    engine
}

type Nodes = Vec<(String, Option<Vec<u8>>, String)>;

fn nodes(tree: &DataTree) -> (Nodes, Vec<(i64, i32)>, u64, Zxid) {
    let (mut nodes, mut walk) = (Vec::new(), Walk::new());
    while tree.walk(&mut walk, 64, &mut |node| {
        let rest = format!("{:?} {:?}", node.acl, node.stat);
        nodes.push((node.path.to_owned(), node.data.map(<[u8]>::to_vec), rest));
    }) {}
    nodes.sort();
    (nodes, tree.sessions(), tree.digest(), tree.last_zxid())
}

fn sent(engine: &Engine) -> Vec<u8> {
    let mut bytes = Vec::new();
    let info = engine.send_snapshot(&mut bytes).unwrap();
    assert_eq!(info.file_bytes, bytes.len() as u64);
    bytes
}

#[test]
fn ls_09_a_follower_with_another_history_becomes_as_its_leader_and_goes_on() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (leader, follower) = (leader(here.path()), follower(there.path()));
    let bytes = sent(&leader);
    let (engine, report) = follower.install(EPOCH, &mut bytes.as_slice()).unwrap();
    let end = report.last_zxid;
    assert_eq!(end, leader.snapshots()[0]);
    assert_eq!((report.replayed, report.created), (0, false));
    assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (EPOCH, EPOCH));
    assert!(engine.tree().get("/last").is_none() && engine.tree().ephemeral_paths(9) == ["/leader/mine"]);
    // What is purged here is not in the log: peers get a snapshot from here on.
    assert_eq!(engine.changes(Zxid::from_parts(2, 31), "").unwrap_err().kind(), ErrorKind::NotInLog);
    let mut feed = leader.changes(end, "").unwrap();
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is of one lifetime")]
    while let Some(txn) = feed.next_txn(|txn| txn.to_buf()).unwrap() {
        engine.append(EPOCH, &TxnBuf::as_txn(&txn)).unwrap().wait().unwrap();
    }
    let whole = nodes(&leader.tree());
    assert_eq!(nodes(&engine.tree()), whole);
    engine.close().unwrap();
    let engine = open(there.path());
    assert_eq!(nodes(&engine.tree()), whole, "the old log is not replayed");
    engine.snapshot().unwrap().join().unwrap();
    // The same once more, in place of what was installed.
    let bytes = sent(&engine);
    let (engine, report) = engine.install(EPOCH, &mut bytes.as_slice()).unwrap();
    assert_eq!((nodes(&engine.tree()), report.last_zxid), (whole.clone(), whole.3));
    let names = |dir: &Path| -> Vec<String> {
        let mut names: Vec<_> =
            dir.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(
        names(there.path()).iter().filter(|name| name.ends_with("-3")).count(),
        2,
        "{:?}",
        names(there.path())
    );
    assert!(!names(there.path()).iter().any(|name| name.ends_with("-1") || name.ends_with("-2")));
    assert_eq!(names(&there.path().join("snapshots-3")), [format!("{:016x}.snap", whole.3.get())]);
}

#[test]
fn ls_09_a_promise_is_kept_over_an_install() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (leader, follower) = (leader(here.path()), follower(there.path()));
    let bytes = sent(&leader);
    follower.enter_epoch(Epoch::new(7)).unwrap();
    let whole = nodes(&follower.tree());
    let error = follower.install(EPOCH, &mut bytes.as_slice()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced);
    let follower = open(there.path());
    assert_eq!(nodes(&follower.tree()), whole);
    let (follower, _) = follower.install(Epoch::new(7), &mut bytes.as_slice()).unwrap();
    assert_eq!((follower.accepted_epoch(), follower.current_epoch()), (Epoch::new(7), Epoch::new(7)));
    // A leader has no txns of a later epoch than its own.
    drop(leader);
    let leader = open(here.path());
    let bytes = sent(&leader);
    let third = tempfile::tempdir().unwrap();
    let error = open(third.path()).install(Epoch::new(4), &mut bytes.as_slice()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// Ends with an error after so many bytes.
struct Broken<'a>(&'a [u8]);

impl std::io::Read for Broken<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buf) {
            Ok(0) => Err(std::io::ErrorKind::ConnectionReset.into()),
            read => read,
        }
    }
}

#[test]
fn ls_09_a_damaged_or_broken_stream_leaves_the_old_state_whole() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes = sent(&leader(here.path()));
    let mut follower = follower(there.path());
    let (old, snapshots) = (nodes(&follower.tree()), follower.snapshots());
    let refused = |engine: Engine, source: &mut dyn std::io::Read, kind| {
        let error = engine.install(EPOCH, source).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let engine = open(there.path());
        assert_eq!((nodes(&engine.tree()), engine.snapshots()), (old.clone(), snapshots.clone()));
        assert!(!there.path().join("snapshots-2").exists(), "the attempt is cleaned up");
        engine
    };
    for at in [0, 8, 40, 500, 520, 600, bytes.len() - 200, bytes.len() - 1] {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        follower = refused(follower, &mut bad.as_slice(), ErrorKind::Corrupt);
    }
    for len in [0, 100, 512, 600, bytes.len() - 128, bytes.len() - 1] {
        follower = refused(follower, &mut &bytes[..len], ErrorKind::Corrupt);
        follower = refused(follower, &mut Broken(&bytes[..len]), ErrorKind::Io);
    }
    follower = refused(follower, &mut [&bytes[..], b"x"].concat().as_slice(), ErrorKind::Corrupt);
    // What sends no snapshot may send for ever.
    follower = refused(follower, &mut std::io::repeat(0), ErrorKind::Corrupt);
    let (follower, _) = follower.install(EPOCH, &mut bytes.as_slice()).unwrap();
    make(&follower, "/goes-on", CreateMode::Persistent);
}

#[test]
fn a_snapshot_is_made_for_who_asks_and_damaged_ones_are_not_sent() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let engine = open(here.path());
    make(&engine, "/a", CreateMode::Persistent);
    assert!(engine.snapshots().is_empty());
    let first = sent(&engine);
    let old = engine.snapshots();
    make(&engine, "/b", CreateMode::Persistent);
    let newer = engine.snapshot().unwrap().join().unwrap();
    drop(engine);
    let path = here.path().join("snapshots-1").join(&newer.file);
    let mut bad = std::fs::read(&path).unwrap();
    bad[560] ^= 1;
    std::fs::write(&path, bad).unwrap();
    let engine = open(here.path());
    assert_eq!(sent(&engine), first, "the newest that holds");
    let (other, report) = open(there.path()).install(Epoch::ZERO, &mut first.as_slice()).unwrap();
    assert_eq!(vec![report.last_zxid], old);
    drop(other);
}

/// Whoever sends something else may send it for ever: it is given up with the first piece.
#[test]
fn ls_09_what_is_no_snapshot_is_not_read_to_its_end() {
    struct Zeros(u64);
    impl std::io::Read for Zeros {
        fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
            let count = bytes.len().min(usize::try_from((64 << 20) - self.0).unwrap());
            bytes[..count].fill(0);
            self.0 += count as u64;
            Ok(count)
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut zeros = Zeros(0);
    let error = engine.install(Epoch::ZERO, &mut zeros).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(zeros.0 <= 4 << 20, "{} bytes", zeros.0);
}

/// Who reads changes, and who is told of them, when the state is replaced.
#[test]
fn ls_09_readers_of_the_old_history_are_told_and_the_observer_stays() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes = sent(&leader(here.path()));
    let told = Arc::new(AtomicU64::new(0));
    let count = told.clone();
    let observer = move |_: Change<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
    };
    let (engine, _) = options().open_observed(there.path(), observer).unwrap();
    make(&engine, "/old", CreateMode::Persistent);
    let mut feed = engine.changes(Zxid::ZERO, "").unwrap();
    let (engine, _) = engine.install(EPOCH, &mut bytes.as_slice()).unwrap();
    assert_eq!(feed.next_txn(|_| ()).unwrap_err().kind(), ErrorKind::NotInLog, "it is no history any more");
    let before = told.load(Ordering::Relaxed);
    make(&engine, "/new", CreateMode::Persistent);
    assert!(told.load(Ordering::Relaxed) > before, "nobody is told any more");
}
