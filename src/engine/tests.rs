//! The engine on the real disk: what a server does with it, and what comes back.

use std::sync::Arc;

use super::*;
use crate::base::{Code, Epoch, ErrorKind, Result, Zxid};
use crate::format::{Acl, Txn, TxnBody};
use crate::log::LogOptions;
use crate::tree::{CreateMode, CreateRequest, Outcome, Request};

fn options() -> EngineOptions {
    EngineOptions::new().log(LogOptions::new().segment_bytes(256 << 10)).snap_count(0)
}

fn create<'a>(path: &'a str, data: &'a [u8], acl: &'a [Acl]) -> Request<'a> {
    Request::Create(CreateRequest::new(path, data, acl))
}

fn made(engine: &Engine, path: &str) -> Result<Answer> {
    engine.submit(&create(path, b"data", &[Acl::open()]), &Caller::default())?.wait()
}

fn set(engine: &Engine, path: &str, data: &[u8]) -> Result<Answer> {
    engine.submit(&Request::SetData { path, data: Some(data), version: -1 }, &Caller::default())?.wait()
}

#[test]
fn what_was_answered_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, report) = options().open(dir.path()).unwrap();
    assert!(report.created && report.snapshot.is_none() && report.last_zxid == Zxid::ZERO);
    assert_eq!(made(&engine, "/a").unwrap().zxid, Zxid::new(1));
    assert_eq!(made(&engine, "/a").unwrap().code(), Code::NODE_EXISTS);
    let acl = [Acl::open()];
    let item =
        CreateRequest { mode: CreateMode::PersistentSequential, ..CreateRequest::new("/a/i-", b"", &acl) };
    let answer = engine.submit(&Request::Create(item), &Caller::default()).unwrap().wait().unwrap();
    assert_eq!(answer.created_path(0), Some("/a/i-0000000000"));
    let digest = engine.tree().digest();
    engine.close().unwrap();
    let (engine, report) = options().open(dir.path()).unwrap();
    assert_eq!((report.replayed, report.replay_failures, report.digest), (3, 0, digest));
    assert!(engine.tree().get("/a/i-0000000000").is_some());
    drop(engine);
    // Not closed: the same.
    let (engine, report) = options().open(dir.path()).unwrap();
    assert_eq!((report.last_zxid, report.digest), (Zxid::new(3), digest));
    assert!(options().open(dir.path()).unwrap_err().kind() == ErrorKind::Locked);
    drop(engine);
}

#[test]
fn many_threads_build_on_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    made(&engine, "/q").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let engine = &engine;
            scope.spawn(move || {
                let acl = [Acl::open()];
                for i in 0..50 {
                    let path = format!("/q/{thread}-{i}");
                    // The second and third build on what is not yet durable.
                    let first = engine.submit(&create(&path, b"x", &acl), &Caller::default()).unwrap();
                    let request = Request::SetData { path: &path, data: Some(b"y"), version: 0 };
                    let second = engine.submit(&request, &Caller::default()).unwrap();
                    let request = Request::Delete { path: &path, version: 1 };
                    let third = engine.submit(&request, &Caller::default()).unwrap();
                    for ticket in [first, second, third] {
                        assert!(ticket.wait().unwrap().code().is_ok());
                    }
                }
            });
        }
    });
    assert_eq!(engine.applied_zxid(), Zxid::new(1 + 8 * 50 * 3));
    assert_eq!(engine.tree().get("/q").unwrap().child_count(), 0);
    assert_eq!(engine.waiting_txns(), 0);
    engine.close().unwrap();
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_ticket_can_be_awaited_and_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    let acl = [Acl::open()];
    drop(engine.submit(&create("/dropped", b"", &acl), &Caller::default()).unwrap());
    let ticket = engine.submit(&create("/awaited", b"", &acl), &Caller::default()).unwrap();
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut ticket = std::pin::pin!(ticket);
    let answer = loop {
        match std::future::Future::poll(ticket.as_mut(), &mut context) {
            std::task::Poll::Ready(answer) => break answer.unwrap(),
            std::task::Poll::Pending => std::thread::park(),
        }
    };
    assert!(answer.code().is_ok() && engine.tree().get("/dropped").is_some());
}

#[test]
fn snapshots_take_over_from_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().snapshots_kept(2).open(dir.path()).unwrap();
    let caller = Caller { session_id: 5, ..Caller::default() };
    engine.submit(&Request::CreateSession { timeout_ms: 4000 }, &caller).unwrap().wait().unwrap();
    made(&engine, "/a").unwrap();
    let mut infos = Vec::new();
    for round in 0..4 {
        for i in 0..300 {
            set(&engine, "/a", format!("{round}-{i}").as_bytes()).unwrap();
        }
        infos.push(engine.snapshot().unwrap().join().unwrap());
    }
    let ends: Vec<Zxid> = infos.iter().rev().take(2).map(|info| info.end).collect();
    assert_eq!(engine.snapshots(), ends, "two are kept");
    set(&engine, "/a", b"last").unwrap();
    let digest = engine.tree().digest();
    drop(engine);
    let (engine, report) = options().open(dir.path()).unwrap();
    assert_eq!(report.snapshot.as_ref().map(|s| s.end), Some(ends[0]));
    assert_eq!((report.replayed, report.digest), (1, digest));
    assert_eq!(engine.tree().session_timeout_ms(5), Some(4000));
    // The same state again is no new snapshot.
    let first = engine.snapshot().unwrap().join().unwrap();
    assert_eq!(engine.snapshot().unwrap().join().unwrap(), first);
    engine.close().unwrap();
}

#[test]
fn a_trigger_and_a_close_write_snapshots() {
    let dir = tempfile::tempdir().unwrap();
    let triggered = options().snap_count(100).snapshot_on_close(true);
    let (engine, _) = triggered.open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    for i in 0..250 {
        set(&engine, "/a", &[i]).unwrap();
    }
    let last = engine.applied_zxid();
    engine.close().unwrap();
    let (engine, report) = triggered.open(dir.path()).unwrap();
    assert_eq!((report.snapshot.as_ref().map(|s| s.end), report.replayed), (Some(last), 0));
    assert!(engine.snapshots().len() >= 2, "{:?}", engine.snapshots());
    // Nobody permits any.
    drop(engine);
    let (engine, _) = options().snap_count(2).snapshot_permit(|| false).open(dir.path()).unwrap();
    let before = engine.snapshots();
    for i in 0..20 {
        set(&engine, "/a", &[i]).unwrap();
    }
    assert_eq!(engine.snapshots(), before);
}

#[test]
fn sn_01_damaged_snapshots_are_skipped_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    engine.snapshot().unwrap().join().unwrap();
    set(&engine, "/a", b"2").unwrap();
    let newest = engine.snapshot().unwrap().join().unwrap();
    let digest = engine.tree().digest();
    engine.close().unwrap();
    let path = dir.path().join("snapshots-1").join(&newest.file);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (engine, report) = options().open(dir.path()).unwrap();
    assert_eq!(report.skipped[0].0, newest.end);
    assert!(report.snapshot.as_ref().is_some_and(|s| s.end < newest.end) && report.digest == digest);
    assert!(report.to_string().contains("was not used"), "{report}");
    engine.close().unwrap();
}

#[test]
fn a_log_that_does_not_reach_the_snapshot_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().snapshots_kept(1).open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    for i in 0..2000_u32 {
        let request = Request::SetData { path: "/a", data: Some(&i.to_le_bytes()), version: -1 };
        drop(engine.submit(&request, &Caller::default()).unwrap());
    }
    let info = engine.snapshot().unwrap().join().unwrap();
    engine.close().unwrap();
    let snapshot = dir.path().join("snapshots-1").join(&info.file);
    let kept = std::fs::read(&snapshot).unwrap();
    // Without any snapshot the log begins too late, unless nothing of it was purged.
    std::fs::remove_file(&snapshot).unwrap();
    let outcome = options().open(dir.path());
    if let Err(error) = &outcome {
        assert_eq!(error.code(), "snapshot_gap", "{error}");
    }
    drop(outcome);
    std::fs::write(&snapshot, kept).unwrap();
    // Without the log, the snapshot stands alone, and what came after it is lost: refused.
    std::fs::rename(dir.path().join("log-1"), dir.path().join("elsewhere")).unwrap();
    let error = options().open(dir.path()).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "generation_missing"), "{error}");
    assert!(!dir.path().join("log-1").exists(), "nothing was changed");
    // Nor with an empty directory in its place.
    std::fs::create_dir(dir.path().join("log-1")).unwrap();
    assert_eq!(options().open(dir.path()).unwrap_err().code(), "log_missing");
    std::fs::remove_dir(dir.path().join("log-1")).unwrap();
    std::fs::rename(dir.path().join("elsewhere"), dir.path().join("log-1")).unwrap();
    options().open(dir.path()).unwrap();
    // Without the manifest nobody knows which state is meant.
    std::fs::remove_file(dir.path().join("engine.manifest")).unwrap();
    assert_eq!(options().open(dir.path()).unwrap_err().code(), "engine_manifest_missing");
}

#[test]
fn tr_05_a_truncation_removes_newer_snapshots_first() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    let old = engine.snapshot().unwrap().join().unwrap();
    let keep = made(&engine, "/keep").unwrap().zxid;
    let digest = engine.tree().digest();
    made(&engine, "/gone").unwrap();
    engine.snapshot().unwrap().join().unwrap();
    let (engine, report, opened) = engine.truncate(Epoch::ZERO, keep).unwrap();
    assert_eq!((opened.last_zxid, opened.digest), (keep, digest));
    assert_eq!(report.last_zxid, keep);
    assert_eq!(engine.snapshots(), [old.end]);
    assert!(engine.tree().get("/gone").is_none());
    // The zxid is given again.
    assert_eq!(made(&engine, "/other").unwrap().zxid, Zxid::new(keep.get() + 1));
    engine.close().unwrap();
}

#[test]
fn ep_older_leaders_are_fenced() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    engine.accept_epoch(Epoch::new(5)).unwrap();
    assert_eq!(engine.accept_epoch(Epoch::new(4)).unwrap_err().kind(), ErrorKind::Fenced);
    assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (Epoch::new(5), Epoch::ZERO));
    // The history of an older epoch, from the leader of the new one.
    let txn = |zxid| {
        let body = TxnBody::CreateSession { timeout_ms: 1 };
        Txn { zxid, time_ms: 1, session_id: 7, cxid: 0, digest: None, body }
    };
    let error = engine.append(Epoch::new(4), &txn(Zxid::from_parts(3, 1))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced);
    let ticket = engine.append(Epoch::new(5), &txn(Zxid::from_parts(3, 1))).unwrap();
    assert_eq!(ticket.wait().unwrap().outcome, Outcome::Done);
    let gap = engine.append(Epoch::new(5), &txn(Zxid::from_parts(3, 3))).unwrap_err();
    assert_eq!(gap.kind(), ErrorKind::OutOfOrder);
    engine.enter_epoch(Epoch::new(5)).unwrap();
    assert_eq!(made(&engine, "/a").unwrap().zxid, Zxid::from_parts(5, 1));
    drop(engine);
    let (engine, _) = options().open(dir.path()).unwrap();
    assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (Epoch::new(5), Epoch::new(5)));
    assert_eq!(engine.truncate(Epoch::new(4), Zxid::ZERO).unwrap_err().kind(), ErrorKind::Fenced);
}

#[test]
fn a_server_decides_when_to_apply() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().commit(Commit::ByServer).open(dir.path()).unwrap();
    let acl = [Acl::open()];
    let first = engine.submit(&create("/a", b"", &acl), &Caller::default()).unwrap();
    let second = engine.submit(&create("/a/b", b"", &acl), &Caller::default()).unwrap();
    let zxid = first.zxid();
    second.wait_durable().unwrap();
    assert!(engine.tree().get("/a").is_none() && engine.waiting_txns() == 2);
    let timeout = std::time::Duration::from_millis(1);
    assert_eq!(first.wait_timeout(timeout).unwrap_err().kind(), ErrorKind::Timeout);
    let applied = engine.apply(zxid).unwrap();
    assert_eq!((applied.len(), applied[0].zxid), (1, zxid));
    assert!(first.wait().unwrap().code().is_ok());
    assert!(engine.tree().get("/a").is_some() && engine.tree().get("/a/b").is_none());
    assert_eq!(engine.apply(Zxid::new(99)).unwrap_err().kind(), ErrorKind::NotInLog);
    // Who waits for what is never applied is told so.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| second.wait());
        engine.close().unwrap();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    });
    // It is in the log all the same.
    let (engine, _) = options().open(dir.path()).unwrap();
    assert!(engine.tree().get("/a/b").is_some());
}

#[test]
fn a_session_with_many_nodes_ends_in_several_txns() {
    let dir = tempfile::tempdir().unwrap();
    let propose = crate::tree::ProposeOptions::new().txn_bytes_max(400);
    let (engine, _) = options().propose(propose).open(dir.path()).unwrap();
    let caller = Caller { session_id: 9, ..Caller::default() };
    engine.submit(&Request::CreateSession { timeout_ms: 4000 }, &caller).unwrap().wait().unwrap();
    let acl = [Acl::open()];
    for i in 0..60 {
        let path = format!("/ephemeral-{i:020}");
        let request = CreateRequest { mode: CreateMode::Ephemeral, ..CreateRequest::new(&path, b"", &acl) };
        let answer = engine.submit(&Request::Create(request), &caller).unwrap().wait().unwrap();
        assert!(answer.code().is_ok());
    }
    let before = engine.applied_zxid();
    engine.submit(&Request::CloseSession, &caller).unwrap().wait().unwrap();
    assert!(engine.applied_zxid().get() > before.get() + 1, "one txn does not hold them all");
    let tree = engine.tree();
    assert!(tree.ephemeral_paths(9).is_empty() && tree.session_timeout_ms(9).is_none());
}

#[test]
fn peers_are_planned_for_and_served() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().recent(10, 1 << 20).open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    for i in 0..100 {
        set(&engine, "/a", &[i]).unwrap();
    }
    let last = engine.applied_zxid();
    assert_eq!(engine.sync_plan(last).decision.plan, SyncPlan::UpToDate);
    for after in [3, 40, 95] {
        let after = Zxid::new(after);
        let answer = engine.sync_plan(after);
        assert_eq!(answer.decision.plan, SyncPlan::Diff { after, through: last });
        let mut sent = Vec::new();
        engine.txns_between(after, last, |txn| sent.push(txn.zxid.get())).unwrap();
        assert!(sent.into_iter().eq(after.get() + 1..=last.get()), "after {after}");
    }
    let ahead = Zxid::new(last.get() + 5);
    assert_eq!(engine.sync_plan(ahead).decision.plan, SyncPlan::Truncate { to: last });
    let mut feed = engine.changes(Zxid::new(1), "/a").unwrap();
    let mut seen = 0;
    while feed.next_txn(|_| seen += 1).unwrap().is_some() {}
    assert_eq!(seen, 100);
    set(&engine, "/a", b"more").unwrap();
    assert_eq!(feed.next_txn(|txn| txn.zxid).unwrap(), Some(Zxid::new(last.get() + 1)));
    // What touches only others is passed over.
    made(&engine, "/ab").unwrap();
    assert!(feed.next_txn(|_| ()).unwrap().is_none());
    set(&engine, "/a", b"again").unwrap();
    assert_eq!(feed.next_txn(|txn| txn.zxid).unwrap(), Some(Zxid::new(last.get() + 3)));
}

/// Bugs of the engine that are put in on purpose.
#[cfg(feature = "planted-bugs")]
const BUGS: &[&str] = &[
    "checkpoint_unsynced",
    "engine_manifest_unsynced",
    "install_before_durable",
    "learn_keeps_fork",
    "no_leader_check",
    "promote_unfenced",
    "restore_before_durable",
    "truncate_keeps_snapshots",
];

#[cfg(feature = "planted-bugs")]
#[test]
fn engine_bugs_are_found() {
    let find = || (0..400).find(|seed| std::panic::catch_unwind(|| simulation::run(*seed)).is_err());
    for bug in BUGS {
        crate::plant(Some(bug));
        let found = find();
        crate::plant(None);
        println!("planted: {bug}: seed {found:?}");
        assert!(found.is_some(), "{bug} is not found");
    }
}

#[cfg(feature = "planted-bugs")]
#[test]
fn hooks_of_engine_and_snapshots_are_listed() {
    let mut hooks = std::collections::BTreeSet::new();
    for layer in ["engine", "snapshot"] {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(layer);
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_file() && !entry.ends_with("engine/tests.rs") {
                let text = std::fs::read_to_string(entry).unwrap();
                let names = text.split("crate::planted(\"").skip(1).filter_map(|t| t.split('"').next());
                hooks.extend(names.map(str::to_owned));
            }
        }
    }
    assert_eq!(hooks, BUGS.iter().map(|bug| (*bug).to_owned()).collect());
}

#[test]
fn without_a_snapshot_a_lost_log_is_no_new_engine() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    engine.close().unwrap();
    std::fs::rename(dir.path().join("log-1"), dir.path().join("kept")).unwrap();
    assert_eq!(options().open(dir.path()).unwrap_err().code(), "generation_missing");
    std::fs::remove_dir_all(dir.path().join("snapshots-1")).unwrap();
    assert_eq!(options().open(dir.path()).unwrap_err().code(), "generation_missing");
}

#[test]
fn directories_that_are_not_the_engines_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("precious"), "x").unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    engine.close().unwrap();
    std::fs::create_dir(dir.path().join("log-2")).unwrap();
    std::fs::copy(dir.path().join("log-1/log.manifest"), dir.path().join("log-2/log.manifest")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("log-9")).unwrap();
    options().open(dir.path()).unwrap();
    assert!(dir.path().join("log-2/log.manifest").exists() && elsewhere.path().join("precious").exists());
}

#[test]
fn who_holds_the_tree_may_submit() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    std::thread::scope(|scope| {
        let tree = engine.tree();
        let writer = scope.spawn(|| set(&engine, "/a", b"1").unwrap());
        // Until the writer waits for the tree.
        while engine.durable_zxid() < Zxid::new(2) {
            std::thread::yield_now();
        }
        let request = Request::SetData { path: "/a", data: Some(b"2"), version: -1 };
        let ticket = engine.submit(&request, &Caller::default()).unwrap();
        assert_eq!(engine.logged_zxid(), ticket.zxid());
        drop(tree);
        assert!(writer.join().unwrap().code().is_ok() && ticket.wait().unwrap().code().is_ok());
    });
}

#[test]
fn a_dropped_engine_tells_those_who_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().commit(Commit::ByServer).open(dir.path()).unwrap();
    let ticket = engine.submit(&create("/a", b"", &[Acl::open()]), &Caller::default()).unwrap();
    ticket.wait_durable().unwrap();
    drop(engine);
    assert_eq!(ticket.wait().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn ep_a_promise_binds_the_old_leader_too() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    engine.accept_epoch(Epoch::new(7)).unwrap();
    assert_eq!(set(&engine, "/a", b"x").unwrap_err().kind(), ErrorKind::Fenced);
    let body = TxnBody::CreateSession { timeout_ms: 1 };
    let txn = Txn { zxid: Zxid::from_parts(9, 1), time_ms: 1, session_id: 7, cxid: 0, digest: None, body };
    assert_eq!(engine.append(Epoch::new(7), &txn).unwrap_err().kind(), ErrorKind::Invalid);
    engine.enter_epoch(Epoch::new(7)).unwrap();
    assert_eq!(set(&engine, "/a", b"x").unwrap().zxid, Zxid::from_parts(7, 1));
    assert_eq!(engine.apply(Zxid::new(1)).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn tr_05_a_rotten_base_is_found_before_newer_snapshots_go() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().snapshots_kept(2).open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    for i in 0..3000_u32 {
        let request = Request::SetData { path: "/a", data: Some(&[7; 200]), version: -1 };
        drop(engine.submit(&request, &Caller::default()).unwrap());
        if i == 2000 {
            set(&engine, "/a", b"old").unwrap();
            engine.snapshot().unwrap().join().unwrap();
        }
    }
    let newest = set(&engine, "/a", b"new").unwrap().zxid;
    engine.snapshot().unwrap().join().unwrap();
    let old = engine.snapshots()[1];
    engine.close().unwrap();
    let name = crate::format::snapshot::snapshot_name(old);
    let path = dir.path().join("snapshots-1").join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (engine, _) = options().snapshots_kept(2).open(dir.path()).unwrap();
    let floor = engine.sync_plan(Zxid::new(2)).decision.reason;
    let outcome = engine.truncate(Epoch::ZERO, Zxid::new(old.get() + 1));
    assert_eq!(floor, SyncReason::Purged, "or the log alone would do");
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotInLog);
    let (_engine, report) = options().open(dir.path()).unwrap();
    assert_eq!(report.last_zxid, newest);
}

#[test]
fn a_damaged_newest_snapshot_is_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    let info = engine.snapshot().unwrap().join().unwrap();
    engine.close().unwrap();
    let path = dir.path().join("snapshots-1").join(&info.file);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (engine, report) = options().open(dir.path()).unwrap();
    assert_eq!(report.skipped.len(), 1);
    assert_eq!(engine.snapshot().unwrap().join().unwrap().end, info.end);
    engine.verify_snapshot(info.end).unwrap();
    engine.close().unwrap();
}

#[test]
fn the_log_is_purged_only_when_all_snapshots_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().snapshots_kept(2).open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    for round in 0..3 {
        for _ in 0..1500 {
            let request = Request::SetData { path: "/a", data: Some(&[7; 300]), version: -1 };
            drop(engine.submit(&request, &Caller::default()).unwrap());
        }
        set(&engine, "/a", b"x").unwrap();
        engine.snapshot().unwrap().join().unwrap();
        let is_whole = engine.changes(Zxid::ZERO, "/").is_ok();
        assert_eq!(is_whole, round == 0, "after {} snapshots", round + 1);
    }
}

#[test]
fn an_observer_stays_when_the_engine_is_truncated() {
    let dir = tempfile::tempdir().unwrap();
    let told = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = told.clone();
    let observer = move |_: crate::tree::Change<'_>| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let (engine, _) = options().open_observed(dir.path(), observer).unwrap();
    made(&engine, "/a").unwrap();
    made(&engine, "/b").unwrap();
    let (engine, _, _) = engine.truncate(Epoch::ZERO, Zxid::new(1)).unwrap();
    made(&engine, "/c").unwrap();
    assert_eq!(told.load(std::sync::atomic::Ordering::Relaxed), 3);
}

#[test]
fn a_failed_snapshot_is_heard_of() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    made(&engine, "/a").unwrap();
    assert!(engine.snapshot_failure().is_none());
    std::fs::remove_dir_all(dir.path().join("snapshots-1")).unwrap();
    assert!(engine.snapshot().unwrap().join().is_err());
    assert!(engine.snapshot_failure().is_some());
    assert!(set(&engine, "/a", b"x").unwrap().code().is_ok(), "the engine goes on");
}
