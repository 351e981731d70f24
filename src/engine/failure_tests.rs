//! What fails beside the log: callbacks that panic, snapshots, clean-ups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use super::home::Room;
use super::pipeline::Unobserved;
use super::sim_home::SimHome;
use super::*;
use crate::base::{Clock, Epoch, ErrorKind, Result, Zxid};
use crate::format::{Acl, Txn, TxnBody};
use crate::log::{GroupPolicy, Health, LogOptions};
use crate::sim::{Effect, Fault, FaultOp};
use crate::tree::{Change, CreateRequest, Request};

fn options() -> EngineOptions {
    EngineOptions::new().log(LogOptions::new().segment_bytes(256 << 10)).snap_count(0)
}

fn make(engine: &Engine, path: &str) -> Result<Answer> {
    let acl = [Acl::open()];
    engine.submit(&Request::Create(CreateRequest::new(path, &[7; 300], &acl)), &Caller::default())?.wait()
}

/// Waits until it holds, for ten seconds at most.
fn until(what: &str, holds: impl Fn() -> bool) {
    let (clock, begin) = (Clock::real(), Clock::real().nanos());
    while !holds() {
        assert!(clock.nanos() - begin < 10_000_000_000, "{what} does not come");
        std::thread::yield_now();
    }
}

fn simulated(options: &EngineOptions) -> (Arc<SimHome>, Engine) {
    let home = Arc::new(SimHome::new(7));
    let (engine, _) = options.open_home(home.clone(), Box::new(Unobserved)).unwrap();
    (home, engine)
}

#[test]
fn a_panicking_observer_poisons_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let calls = Arc::new(AtomicU64::new(0));
    let count = calls.clone();
    let observer = move |change: Change<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
        assert!(!matches!(change, Change::Created { path: "/bad" }), "planted");
    };
    let (engine, _) = options().open_observed(dir.path(), observer).unwrap();
    make(&engine, "/good").unwrap();
    let (of_good, body) = (calls.load(Ordering::Relaxed), TxnBody::CreateSession { timeout_ms: 1 });
    assert!(matches!(engine.health(), Health::Fine));
    let acl = [Acl::open()];
    let create = |path| Request::Create(CreateRequest::new(path, b"", &acl));
    // Both are logged before the first is applied by a thread of the log.
    let tree = engine.tree();
    let bad = engine.submit(&create("/bad"), &Caller::default()).unwrap();
    let next = engine.submit(&create("/next"), &Caller::default()).unwrap();
    drop(tree);
    assert!(bad.wait().unwrap().code().is_ok() && next.wait().unwrap().code().is_ok(), "they are answered");
    let Health::Failed(why) = engine.health() else { panic!("health is fine") };
    assert!(why.to_string().contains("planted"), "{why}");
    let told = calls.load(Ordering::Relaxed);
    assert_eq!(told, 2 * of_good, "with the next one neither");
    let refused = make(&engine, "/more").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Poisoned);
    let txn = Txn { zxid: Zxid::new(4), time_ms: 1, session_id: 7, cxid: 0, digest: None, body };
    assert_eq!(engine.append(Epoch::ZERO, &txn).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(calls.load(Ordering::Relaxed), told, "it is not called again");
    assert!(engine.tree().get("/next").is_some());
    engine.close().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    assert!(engine.tree().get("/bad").is_some() && engine.tree().get("/next").is_some());
    make(&engine, "/more").unwrap();
}

#[test]
fn a_panicking_callback_of_a_ticket_fails_the_log_and_leaves_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = LogOptions::new().segment_bytes(256 << 10).open(dir.path()).unwrap();
    let record = |n| crate::log::Record::new(Zxid::new(n), 1, b"x");
    let told = Arc::new(AtomicBool::new(false));
    let other = told.clone();
    let first = log.append(&record(1)).unwrap();
    let second = log.append(&record(2)).unwrap();
    first.on_durable(|_| panic!("planted"));
    // Durable or failed, as it may be in a later group: it is told.
    second.on_durable(move |_| other.store(true, Ordering::Relaxed));
    until("the failure", || matches!(log.health(), Health::Failed(_)));
    until("the other's word", || told.load(Ordering::Relaxed));
    let refused = log.append(&record(3)).map(crate::log::AppendTicket::wait);
    assert!(!matches!(refused, Ok(Ok(_))), "health is failed, and an append succeeds");
    drop(log);
    let (log, _) = LogOptions::new().segment_bytes(256 << 10).open(dir.path()).unwrap();
    assert!(log.durable_zxid() >= Zxid::new(1));
}

#[test]
fn a_triggered_snapshot_that_fails_is_tried_again() {
    let (home, engine) = simulated(&options().snap_count(2));
    let disk = home.disk(Room::Snapshots, 1);
    disk.inject(Fault::next(FaultOp::Create, Effect::Error(Errno::IO.raw_os_error())));
    for n in 0..3 {
        make(&engine, &format!("/{n}")).unwrap();
    }
    until("the failure", || engine.snapshot_failure().is_some());
    // No txn comes, so no trigger does.
    until("the second attempt", || engine.snapshot_failure().is_none());
    let stats = engine.stats();
    assert_eq!((stats.snapshots, stats.snapshot_failures, engine.snapshots().len()), (1, 1, 1));
}

#[test]
fn a_panic_in_a_snapshot_is_an_error_and_the_next_one_comes() {
    let is_bad = Arc::new(AtomicBool::new(true));
    let bad = is_bad.clone();
    let tell = move |progress: &Progress| {
        assert!(progress.activity != Activity::WriteSnapshot || !bad.load(Ordering::Relaxed), "planted");
    };
    let (_home, engine) = simulated(&options().on_progress(tell));
    make(&engine, "/a").unwrap();
    let error = engine.snapshot().unwrap().join().unwrap_err();
    assert_eq!(error.code(), "snapshot_panicked");
    assert!(error.to_string().contains("planted"), "{error}");
    is_bad.store(false, Ordering::Relaxed);
    engine.snapshot().unwrap().join().unwrap();
    let stats = engine.stats();
    assert_eq!((stats.snapshots, stats.snapshot_failures), (1, 1));
    engine.close().unwrap();
}

#[test]
fn a_panicking_permit_is_no_permit() {
    let (_home, engine) = simulated(&options().snap_count(2).snapshot_permit(|| panic!("planted")));
    for n in 0..4 {
        make(&engine, &format!("/{n}")).unwrap();
    }
    assert!(engine.snapshots().is_empty());
    assert_eq!(engine.snapshot_failure().unwrap().code(), "snapshot_panicked");
}

#[test]
fn sn_10_a_failed_clean_up_is_no_failed_snapshot() {
    let (home, engine) = simulated(&options().snapshots_kept(1));
    make(&engine, "/a").unwrap();
    engine.snapshot().unwrap().join().unwrap();
    make(&engine, "/b").unwrap();
    let disk = home.disk(Room::Snapshots, 1);
    // The first one is that of the new snapshot's name.
    let fault = Fault::next(FaultOp::SyncDir, Effect::Error(Errno::IO.raw_os_error()));
    disk.inject(fault.nth(2));
    let info = engine.snapshot().unwrap().join().unwrap();
    assert_eq!((engine.snapshots(), engine.snapshot_failure().is_none()), (vec![info.end], true));
    assert!(engine.clean_up_failure().is_some());
    let stats = engine.stats();
    assert_eq!((stats.snapshots, stats.snapshot_failures, stats.clean_up_failures), (2, 0, 1));
    make(&engine, "/c").unwrap();
    engine.snapshot().unwrap().join().unwrap();
    assert!(engine.clean_up_failure().is_none());
}

#[test]
fn a_timeout_is_not_taken_twice() {
    // Durable only when most of the time has passed, and applied never.
    let delay = Duration::from_millis(300);
    let log = LogOptions::new().segment_bytes(256 << 10).group(GroupPolicy::new().delay(delay));
    let (_home, engine) = simulated(&EngineOptions::new().log(log).snap_count(0).commit(Commit::ByServer));
    let acl = [Acl::open()];
    let create = Request::Create(CreateRequest::new("/a", b"", &acl));
    let (clock, timeout) = (Clock::real(), Duration::from_millis(600));
    let begin = clock.nanos();
    let ticket = engine.submit(&create, &Caller::default()).unwrap();
    let error = ticket.wait_timeout(timeout).unwrap_err();
    let took = Duration::from_nanos(clock.nanos() - begin);
    assert!(error.kind() == ErrorKind::Timeout && error.to_string().contains("is durable"), "{error}");
    assert!(took >= timeout && took < delay + timeout, "{took:?}");
}

#[test]
fn a_directory_in_the_manifests_place_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("engine.manifest")).unwrap();
    let error = options().open(dir.path()).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "not_a_file"), "{error}");
    assert_eq!(options().open_read_only(dir.path()).unwrap_err().code(), "not_a_file");
    assert_eq!(options().open_standby(dir.path()).unwrap_err().code(), "not_a_file");
    std::fs::remove_dir(dir.path().join("engine.manifest")).unwrap();
    std::fs::create_dir(dir.path().join("engine.manifest.tmp")).unwrap();
    let error = options().open(dir.path()).unwrap_err();
    assert_eq!(error.code(), "not_a_file", "{error}");
}

/// Stops the others when a test ends, however it ends.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn pf_03_a_snapshot_is_paced_beside_writers_only() {
    let dir = tempfile::tempdir().unwrap();
    let slow = options().snapshot_bytes_beside_writers(Some(1 << 20));
    assert!(options().snapshot_bytes_beside_writers(Some(1 << 19)).open(dir.path()).is_err());
    let (engine, _) = slow.open(dir.path()).unwrap();
    let acl = [Acl::open()];
    for n in 0..6000 {
        let path = format!("/{n}");
        let create = Request::Create(CreateRequest::new(&path, &[7; 300], &acl));
        drop(engine.submit(&create, &Caller::default()).unwrap());
    }
    make(&engine, "/last").unwrap();
    let took = |task: SnapshotTask| {
        let (clock, begin) = (Clock::real(), Clock::real().nanos());
        let bytes = task.join().unwrap().file_bytes;
        (bytes, Duration::from_nanos(clock.nanos() - begin))
    };
    let stop = AtomicBool::new(false);
    let (bytes, beside) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                make(&engine, &format!("/beside-{n}")).unwrap();
                n += 1;
            }
        });
        let _stopping = Stopping(&stop);
        until("a writer", || engine.applied_zxid() > Zxid::new(6010));
        // On a busy machine the writer may come to nothing between two blocks.
        let mut outcome = took(engine.snapshot().unwrap());
        for _ in 0..20 {
            if outcome.1 > Duration::from_millis(500) {
                break;
            }
            outcome = took(engine.snapshot().unwrap());
        }
        outcome
    });
    // All blocks but the first and the last have to wait.
    assert!(bytes > 1 << 20 && beside > Duration::from_millis(500), "{bytes} bytes in {beside:?}");
    let (_, alone) = took(engine.snapshot().unwrap());
    assert!(alone < beside, "{alone:?}");
}

#[test]
fn everything_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    assert_eq!(engine.stats().answer_time.count(), 0);
    for n in 0..10 {
        make(&engine, &format!("/{n}")).unwrap();
    }
    assert!(!make(&engine, "/0").unwrap().code().is_ok());
    let acl = [Acl::open()];
    let ops = [
        Request::Create(CreateRequest::new("/new", b"", &acl)),
        Request::Create(CreateRequest::new("/1", b"", &acl)),
    ];
    assert!(
        !engine.submit(&Request::Multi(&ops), &Caller::default()).unwrap().wait().unwrap().code().is_ok()
    );
    assert!(engine.stats().last_snapshot_ms.is_none());
    let info = engine.snapshot().unwrap().join().unwrap();
    // The same state again is none that is written.
    engine.snapshot().unwrap().join().unwrap();
    let stats = engine.stats();
    assert_eq!((stats.requests, stats.txns, stats.applied, stats.error_txns), (12, 12, 12, 2));
    assert_eq!((stats.answer_time.count(), stats.waiting_txns, stats.recent_txns), (12, 0, 12));
    assert!(stats.answer_time.quantile(990) > Duration::ZERO && stats.txn_bytes > 3000);
    assert_eq!((stats.snapshots, stats.snapshot_bytes), (1, info.file_bytes));
    assert_eq!((stats.snapshot_time.count(), stats.log.records), (1, 12));
    assert!(stats.last_snapshot_ms.is_some_and(|ms| ms > 1_500_000_000_000));
}

#[test]
fn progress_is_told_of_loads_replays_and_snapshots() {
    let dir = tempfile::tempdir().unwrap();
    let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let sink = seen.clone();
    let watched = options().on_progress(move |progress| sink.lock().push(*progress));
    let (engine, _) = watched.open(dir.path()).unwrap();
    let acl = [Acl::open()];
    for n in 0..3000 {
        let path = format!("/{n}");
        let create = Request::Create(CreateRequest::new(&path, &[7; 300], &acl));
        drop(engine.submit(&create, &Caller::default()).unwrap());
    }
    make(&engine, "/last").unwrap();
    assert!(seen.lock().is_empty());
    let info = engine.snapshot().unwrap().join().unwrap();
    let rising = |activity: Activity| {
        let seen = std::mem::take(&mut *seen.lock());
        let seen: Vec<Progress> = seen.into_iter().filter(|p| p.activity == activity).collect();
        assert!(seen.len() > 2 && seen.is_sorted_by_key(|p| (p.done_bytes, p.done)), "{seen:?}");
        *seen.last().unwrap()
    };
    let last = rising(Activity::WriteSnapshot);
    assert_eq!((last.done_bytes, last.done, last.total), (info.file_bytes, info.nodes, Some(info.nodes)));
    drop(engine);
    let (engine, _) = watched.open(dir.path()).unwrap();
    let last = rising(Activity::LoadSnapshot);
    assert_eq!((last.done, last.total_bytes), (info.nodes, Some(info.file_bytes)));
    drop(engine);
    std::fs::remove_file(dir.path().join("snapshots-1").join(&info.file)).unwrap();
    let (_engine, report) = watched.open(dir.path()).unwrap();
    assert_eq!(rising(Activity::ReplayLog).done, report.replayed);
}

#[test]
fn verify_names_every_damaged_range_beside_writers() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    let acl = [Acl::open()];
    for n in 0..3000 {
        let path = format!("/{n}");
        let create = Request::Create(CreateRequest::new(&path, &[7; 300], &acl));
        drop(engine.submit(&create, &Caller::default()).unwrap());
    }
    make(&engine, "/last").unwrap();
    let info = engine.snapshot().unwrap().join().unwrap();
    make(&engine, "/later").unwrap();
    let second = engine.snapshot().unwrap().join().unwrap();
    let report = engine.verify().unwrap();
    assert!(report.is_well() && report.snapshots.len() == 2, "{report:?}");
    assert_eq!(report.through, engine.durable_zxid());
    let flip = |file: &std::path::Path, at: usize| {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[at] ^= 1;
        std::fs::write(file, bytes).unwrap();
    };
    let snapshot = dir.path().join("snapshots-1").join(&info.file);
    // Each in a block of its own.
    let places = [600 << 10, 1000, 400 << 10];
    for at in places {
        flip(&snapshot, at);
    }
    let other = dir.path().join("snapshots-1").join(&second.file);
    let at = usize::try_from(second.file_bytes).unwrap() - 20;
    flip(&other, at);
    let segment = dir.path().join("log-1").join(crate::format::segment_name(1));
    flip(&segment, 100_000);
    std::thread::scope(|scope| {
        let writer =
            scope.spawn(|| (0..50).for_each(|n| drop(make(&engine, &format!("/beside-{n}")).unwrap())));
        let report = engine.verify().unwrap();
        assert!(!report.is_well());
        assert_eq!(report.log.len(), 1, "{:?}", report.log);
        let (whole, trailer) = (&report.snapshots[1], &report.snapshots[0]);
        assert_eq!(whole.outcome.as_ref().unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(whole.damaged.len(), 3, "{:?}", whole.damaged);
        for at in places {
            let at = at as u64;
            assert!(whole.damaged.iter().any(|range| (range.offset..range.end_offset).contains(&at)));
        }
        assert_eq!(trailer.damaged.len(), 1, "{:?}", trailer.damaged);
        assert_eq!(trailer.damaged[0].end_offset, second.file_bytes);
        writer.join().unwrap();
    });
    std::fs::remove_file(dir.path().join("engine.manifest")).unwrap();
    assert_eq!(engine.verify().unwrap().manifest.unwrap().code(), "engine_manifest_missing");
}

/// A log has no say of its own here: its options are the engine's.
#[test]
fn lc_04_options_of_the_log_that_are_out_of_bounds_are_refused_by_the_engine() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let whole = LogOptions::new();
    for log in [
        whole.clone().segment_bytes(1),
        whole.clone().block_bytes(1000),
        whole.clone().record_bytes_max(0),
        whole.group(GroupPolicy::new().in_flight_max(0)),
    ] {
        let options = EngineOptions::new().log(log.clone());
        assert_eq!(options.open(dir.path()).map(drop).unwrap_err().kind(), ErrorKind::Invalid, "{log:?}");
        let restored = restore(other.path(), dir.path(), &options, &RestoreOptions::new());
        assert_eq!(restored.unwrap_err().code(), "invalid_option", "{log:?}");
    }
    assert!(dir.path().read_dir().unwrap().next().is_none(), "nothing was made");
}
