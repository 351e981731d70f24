//! Faults that other systems had with snapshots, logs and memory that did not agree; the ids are those of
//! `docs/TESTING.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::home::Room;
use super::pipeline::Unobserved;
use super::sim_home::{Cut, SimHome, image_of};
use super::trigger::SnapshotTrigger;
use super::*;
use crate::base::{Clock, Epoch, ErrorKind, Random, Result, Zxid};
use crate::format::Acl;
use crate::io::WriteMode;
use crate::log::{Health, LogOptions};
use crate::sim::{CrashImage, Effect, Fault, FaultOp};
use crate::tree::{CreateMode, CreateRequest, Outcome, Request};

fn options() -> EngineOptions {
    EngineOptions::new().log(LogOptions::new().segment_bytes(64 << 10).idle_mark(None)).snap_count(0)
}

fn simulated(options: &EngineOptions) -> (Arc<SimHome>, Engine) {
    let home = Arc::new(SimHome::new(7));
    let (engine, _) = options.open_home(home.clone(), Box::new(Unobserved)).unwrap();
    (home, engine)
}

fn create(engine: &Engine, path: &str, data: &[u8]) -> Result<Zxid> {
    let acl = [Acl::open()];
    let request = Request::Create(CreateRequest::new(path, data, &acl));
    Ok(engine.submit_at(&request, &Caller::default(), 1)?.wait()?.zxid)
}

/// Some nodes of a name.
fn grow(engine: &Engine, name: &str, count: u32) -> Zxid {
    for n in 0..count {
        create(engine, &format!("/{name}-{n}"), &[7; 300]).unwrap();
    }
    engine.applied_zxid()
}

fn snapshot(engine: &Engine) -> Zxid {
    engine.snapshot().unwrap().join().unwrap().end
}

/// All files of a directory and those below it.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else {
            found.insert(entry.clone(), std::fs::read(entry).unwrap());
        }
    }
    found
}

fn snapshot_files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = files(&dir.join("snapshots-1")).into_keys().collect();
    found.sort();
    found
}

#[test]
fn sn_01_without_a_snapshot_the_log_has_to_be_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().snapshots_kept(1).open(dir.path()).unwrap();
    grow(&engine, "a", 300);
    let digest = engine.tree().digest();
    engine.close().unwrap();
    // Never a snapshot, all of the log.
    let (engine, report) = options().snapshots_kept(1).open(dir.path()).unwrap();
    assert_eq!((report.digest, report.replayed), (digest, 300));
    let end = snapshot(&engine);
    engine.close().unwrap();
    let [file] = &snapshot_files(dir.path())[..] else { panic!("one snapshot") };
    let bytes = std::fs::read(file).unwrap();
    let (view, _) = LogOptions::new().open_read_only(dir.path().join("log-1")).unwrap();
    assert!(view.floor_zxid() > Zxid::ZERO, "the log was purged");
    drop(view);
    // Lost, empty, cut short: refused, and nothing is touched.
    for left in [None, Some(0), Some(1), Some(bytes.len() - 1)] {
        match left {
            None => std::fs::remove_file(file).unwrap(),
            Some(len) => std::fs::write(file, &bytes[..len]).unwrap(),
        }
        let before = files(dir.path());
        let error = options().snapshots_kept(1).open(dir.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{left:?}: {error}");
        assert!(left.is_some() || error.code() == "snapshot_gap", "{error}");
        assert_eq!(files(dir.path()), before, "{left:?}");
    }
    std::fs::write(file, &bytes).unwrap();
    let (_engine, report) = options().open(dir.path()).unwrap();
    assert_eq!((report.digest, report.snapshot.unwrap().end), (digest, end));
}

#[test]
fn sn_01_an_empty_snapshot_is_told_and_the_log_does() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    grow(&engine, "a", 30);
    // Three are to be kept, so this one purges nothing.
    let end = snapshot(&engine);
    grow(&engine, "b", 3);
    let digest = engine.tree().digest();
    drop(engine);
    std::fs::write(&snapshot_files(dir.path())[0], b"").unwrap();
    let (engine, report) = options().open(dir.path()).unwrap();
    assert_eq!((report.digest, report.replayed), (digest, 33));
    assert_eq!(report.skipped.iter().map(|(zxid, _)| *zxid).collect::<Vec<_>>(), [end]);
    engine.close().unwrap();
}

/// A disk that fails at reading says nothing of what is on it: an older snapshot would hide that.
#[test]
fn sn_01_a_snapshot_that_cannot_be_read_is_not_passed_over() {
    let (home, engine) = simulated(&options());
    for name in ["a", "b"] {
        grow(&engine, name, 5);
        snapshot(&engine);
    }
    let digest = engine.tree().digest();
    engine.close().unwrap();
    let disk = home.disk(Room::Snapshots, 1);
    for op in [FaultOp::Open, FaultOp::Read] {
        disk.inject(Fault::next(op, Effect::EIO));
        let error = options().open_home(home.clone(), Box::new(Unobserved)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{op:?}: {error}");
        disk.clear_faults();
    }
    let (_engine, report) = options().open_home(home, Box::new(Unobserved)).unwrap();
    assert_eq!((report.digest, report.skipped.len()), (digest, 0));
}

#[test]
fn sn_03_ten_failures_in_a_row_cost_no_snapshot_and_no_append() {
    for op in [FaultOp::Create, FaultOp::Write, FaultOp::Sync, FaultOp::Rename, FaultOp::SyncDir] {
        let (home, engine) = simulated(&options());
        let good = ["a", "b", "c"].map(|name| {
            grow(&engine, name, 5);
            snapshot(&engine)
        });
        let disk = home.disk(Room::Snapshots, 1);
        let fault = Fault { times: u64::MAX, ..Fault::next(op, Effect::ENOSPC) };
        disk.inject(fault);
        for n in 0..10 {
            create(&engine, &format!("/more-{n}"), b"").expect("the log has a disk of its own");
            engine.snapshot().unwrap().join().unwrap_err();
        }
        assert_eq!(engine.stats().snapshot_failures, 10, "{op:?}");
        let known: Vec<Zxid> = engine.snapshots().into_iter().filter(|end| good.contains(end)).collect();
        assert_eq!(known, [good[2], good[1], good[0]], "{op:?}: {:?}", engine.snapshots());
        let digest = engine.tree().digest();
        drop(engine);
        home.cut_all(CrashImage::DropUnsynced);
        disk.clear_faults();
        let (engine, report) = options().open_home(home.clone(), Box::new(Unobserved)).unwrap();
        assert_eq!(report.digest, digest, "{op:?}");
        for end in good {
            engine.verify_snapshot(end).unwrap();
        }
        snapshot(&engine);
    }
}

#[test]
fn sn_04_a_snapshot_and_its_purge_may_be_cut_short_anywhere() {
    let options = options().snapshots_kept(1);
    let (base, engine) = simulated(&options);
    grow(&engine, "a", 200);
    snapshot(&engine);
    let last = grow(&engine, "b", 200);
    let digest = engine.tree().digest();
    engine.close().unwrap();
    let mut points = 0;
    // Those of the snapshots and of the log; the one at the top has no part in it.
    for disk in [1, 2] {
        for operations in 1.. {
            let image = image_of(operations);
            let home = Arc::new(base.fork());
            let (engine, _) = options.open_home(home.clone(), Box::new(Unobserved)).unwrap();
            home.cut_at(Cut::Disk(disk), operations, image);
            let made = engine.snapshot().unwrap().join();
            let is_whole = made.is_ok() && engine.clean_up_failure().is_none();
            drop(engine);
            home.cut_all(image);
            let (_engine, report) = options.open_home(home, Box::new(Unobserved)).unwrap();
            assert_eq!((report.last_zxid, report.digest), (last, digest), "{disk} {operations}");
            points += 1;
            if is_whole {
                break;
            }
            assert!(operations < 300, "it does not end");
        }
    }
    assert!(points > 10, "{points}");
}

#[test]
fn sn_04_nothing_is_purged_for_a_snapshot_whose_name_is_not_durable() {
    let (home, engine) = simulated(&options().snapshots_kept(1).recent(0, 0));
    grow(&engine, "a", 400);
    let disk = home.disk(Room::Snapshots, 1);
    let fault = Fault { times: u64::MAX, ..Fault::next(FaultOp::SyncDir, Effect::EIO) };
    disk.inject(fault);
    engine.snapshot().unwrap().join().unwrap_err();
    assert_eq!(engine.sync_plan(Zxid::new(1)).decision.reason, SyncReason::OnOurHistory);
    disk.clear_faults();
    snapshot(&engine);
    assert_eq!(engine.sync_plan(Zxid::new(1)).decision.reason, SyncReason::Purged);
}

#[test]
fn sn_06_damaged_snapshots_hold_no_good_one_s_place() {
    for is_cut in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (engine, _) = options().snapshots_kept(4).open(dir.path()).unwrap();
        for name in ["a", "b", "c", "d"] {
            grow(&engine, name, 150);
            snapshot(&engine);
        }
        engine.close().unwrap();
        let found = snapshot_files(dir.path());
        for file in &found[1..] {
            let mut bytes = std::fs::read(file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes.truncate(if is_cut { middle } else { bytes.len() });
            std::fs::write(file, bytes).unwrap();
        }
        let (engine, report) = options().snapshots_kept(2).open(dir.path()).unwrap();
        assert_eq!(report.skipped.len(), 3);
        grow(&engine, "e", 150);
        let end = snapshot(&engine);
        let digest = engine.tree().digest();
        engine.close().unwrap();
        assert!(found[0].exists(), "it is one of the two");
        std::fs::remove_file(dir.path().join("snapshots-1").join(format!("{:016x}.snap", end.get())))
            .unwrap();
        let (_engine, report) = options().snapshots_kept(2).open(dir.path()).unwrap();
        assert_eq!((report.digest, report.last_zxid), (digest, end), "the log from there on is here");
    }
}

#[test]
fn sn_07_snapshots_asked_for_at_once_rise_and_leave_a_log_that_does() {
    let (home, engine) = simulated(&options().snapshots_kept(2).snap_count(20));
    grow(&engine, "a", 10);
    std::thread::scope(|scope| {
        for name in ["b", "c", "d"] {
            let engine = &engine;
            scope.spawn(move || {
                for round in 0..5 {
                    grow(engine, &format!("{name}-{round}"), 10);
                    let applied = engine.applied_zxid();
                    let end = snapshot(engine);
                    assert!(end >= applied || engine.snapshots()[0] >= applied, "{end} {applied}");
                }
            });
        }
    });
    let newest = snapshot(&engine);
    assert_eq!(engine.snapshots()[0], newest);
    assert!(engine.snapshots().len() <= 3, "{:?}", engine.snapshots());
    let digest = engine.tree().digest();
    drop(engine);
    home.cut_all(CrashImage::DropUnsynced);
    let (_engine, report) = options().open_home(home, Box::new(Unobserved)).unwrap();
    assert_eq!(report.digest, digest);
}

#[test]
fn sn_13_any_bound_for_snapshots_is_one() {
    const TXNS: u64 = 120;
    for (count, bytes) in [
        (0, 0),
        (1, 0),
        (2, 0),
        (3, 0),
        (u64::from(u32::MAX), 0),
        (u64::MAX, 0),
        (0, 1),
        (0, 2),
        (0, u64::MAX),
        (u64::MAX, u64::MAX),
        (1, 1),
    ] {
        let (_home, engine) = simulated(&options().snap_count(count).snap_log_bytes(bytes));
        for n in 0..TXNS {
            create(&engine, &format!("/{n}"), b"").unwrap();
            assert!(engine.tree().get(&format!("/{n}")).is_some());
        }
        engine.close().unwrap();
        // The trigger alone: not more often than once for each txn, and never twice for one.
        let mut random = Random::from_seed(9);
        let mut trigger = SnapshotTrigger::new(count, bytes, &mut random);
        let mut fired = 0;
        for _ in 0..TXNS {
            if trigger.count(1, 40) {
                fired += 1;
                trigger.reset(&mut random);
            }
        }
        let is_large = |bound| bound == 0 || bound > TXNS * 40;
        assert!(
            fired <= TXNS && (fired == 0) == (is_large(count) && is_large(bytes)),
            "{count} {bytes}: {fired}"
        );
    }
}

#[test]
fn pf_03_members_that_log_the_same_write_their_snapshots_apart() {
    let mut triggers = [1, 2, 3].map(|seed| {
        let mut random = Random::from_seed(seed);
        (SnapshotTrigger::new(100_000, 0, &mut random), random, Vec::new())
    });
    for txn in 0..5_000_000_u64 {
        for (trigger, random, fired) in &mut triggers {
            if trigger.count(1, 100) {
                trigger.reset(random);
                fired.push(txn);
            }
        }
    }
    let [(.., a), (.., b), (.., c)] = &triggers;
    let shared = a.iter().filter(|txn| b.contains(txn) || c.contains(txn)).count();
    assert!(a.len() >= 50 && a.len() <= 100 && shared <= 1, "{} {shared}", a.len());
}

#[test]
fn tc_05_a_close_does_not_wait_for_a_slow_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let is_writing = Arc::new(AtomicBool::new(false));
    let seen = is_writing.clone();
    let tell = move |told: &Progress| {
        seen.fetch_or(told.activity == Activity::WriteSnapshot && told.done_bytes > 0, Ordering::Relaxed);
    };
    let slow = options().snapshot_bytes_per_second(Some(1 << 20)).on_progress(tell);
    let data = vec![7; 60_000];
    let (engine, _) = slow.open(dir.path()).unwrap();
    let acl = [Acl::open()];
    for n in 0..200 {
        let path = format!("/{n}");
        let request = Request::Create(CreateRequest::new(&path, &data, &acl));
        drop(engine.submit(&request, &Caller::default()).unwrap());
    }
    create(&engine, "/last", b"").unwrap();
    let task = engine.snapshot().unwrap();
    while !is_writing.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    assert!(!task.is_done(), "twelve seconds of it are left");
    let (clock, begin) = (Clock::real(), Clock::real().nanos());
    engine.close().unwrap();
    let took = Duration::from_nanos(clock.nanos() - begin);
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert_eq!(task.join().unwrap_err().kind(), ErrorKind::Closed);
    let (engine, report) = options().open(dir.path()).unwrap();
    assert!(report.snapshot.is_none() && engine.tree().get("/last").is_some());
}

#[test]
fn pu_01_each_kept_snapshot_leads_to_the_newest_state() {
    for kept in 1..=4 {
        let dir = tempfile::tempdir().unwrap();
        let options = options().snapshots_kept(kept);
        let (engine, _) = options.open(dir.path()).unwrap();
        for name in ["a", "b", "c", "d", "e", "f"] {
            grow(&engine, name, 97);
            snapshot(&engine);
        }
        let last = grow(&engine, "g", 50);
        let digest = engine.tree().digest();
        engine.close().unwrap();
        for left in (1..=kept).rev() {
            let found = snapshot_files(dir.path());
            assert_eq!(found.len(), left);
            let (engine, report) = options.open(dir.path()).unwrap();
            assert_eq!((report.last_zxid, report.digest), (last, digest), "{kept} {left}");
            drop(engine);
            std::fs::remove_file(found.last().unwrap()).unwrap();
        }
    }
}

#[test]
fn tr_08_memory_forgets_what_was_truncated() {
    let dir = tempfile::tempdir().unwrap();
    let by_server = options().commit(Commit::ByServer);
    let (engine, _) = by_server.open(dir.path()).unwrap();
    let acl = [Acl::open()];
    let mut digests = Vec::new();
    for n in 1..=100_u64 {
        let path = format!("/{n}");
        let request = Request::Create(CreateRequest::new(&path, b"", &acl));
        drop(engine.submit_at(&request, &Caller::default(), 1).unwrap());
        if n <= 95 {
            engine.apply(Zxid::new(n)).unwrap();
        }
        digests.push(engine.tree().digest());
    }
    assert_eq!((engine.logged_zxid(), engine.waiting_txns()), (Zxid::new(100), 5));
    let (engine, _, opened) = engine.truncate(Epoch::ZERO, Zxid::new(90)).unwrap();
    assert_eq!((opened.last_zxid, opened.digest), (Zxid::new(90), digests[89]));
    assert_eq!(
        (engine.logged_zxid(), engine.applied_zxid(), engine.waiting_txns()),
        (Zxid::new(90), Zxid::new(90), 0)
    );
    let plan = engine.sync_plan(Zxid::new(95)).decision;
    assert_eq!((plan.plan, plan.reason), (SyncPlan::Truncate { to: Zxid::new(90) }, SyncReason::AheadOfUs));
    // What is proposed now builds on what is left: /91 is not on its way any more.
    let request = Request::Create(CreateRequest::new("/91", b"", &acl));
    let ticket = engine.submit_at(&request, &Caller::default(), 1).unwrap();
    engine.apply(ticket.zxid()).unwrap();
    assert!(ticket.wait().unwrap().code().is_ok());
    engine.close().unwrap();
    // Logged and not applied when it ended: it is when it is opened.
    let (engine, _) = by_server.open(dir.path()).unwrap();
    assert_eq!((engine.applied_zxid(), engine.tree().digest()), (Zxid::new(91), digests[90]));
}

#[test]
fn ls_07_what_is_not_durable_here_is_not_told_of() {
    let (home, engine) = simulated(&options().commit(Commit::ByServer));
    let acl = [Acl::open()];
    let submit = |n: u64| {
        let path = format!("/{n}");
        engine.submit_at(&Request::Create(CreateRequest::new(&path, b"", &acl)), &Caller::default(), 1)
    };
    for n in 1..=10 {
        let ticket = submit(n).unwrap();
        ticket.wait_durable().unwrap();
        engine.apply(ticket.zxid()).unwrap();
    }
    let fault = Fault { times: u64::MAX, ..Fault::next(FaultOp::Write, Effect::EIO) };
    home.disk(Room::Log, 1).inject(fault);
    let (ten, eleven) = (Zxid::new(10), Zxid::new(11));
    let ticket = submit(11).unwrap();
    assert!(ticket.wait_durable().is_err());
    // A quorum has it; here it is only in memory.
    engine.apply(eleven).unwrap();
    assert_eq!((engine.durable_zxid(), engine.applied_zxid()), (ten, eleven));
    assert!(matches!(engine.health(), Health::Failed(_)));
    assert_eq!(submit(12).map(|_| ()).unwrap_err().kind(), ErrorKind::Poisoned);
    assert_eq!(engine.sync_plan(ten).decision.plan, SyncPlan::UpToDate, "a peer is told of no more");
    let (nine, plan) = (Zxid::new(9), engine.sync_plan(Zxid::new(9)).decision.plan);
    assert_eq!(plan, SyncPlan::Diff { after: nine, through: ten });
    // One of the quorum, and one with a txn that nobody else has.
    let plan = |peer| engine.sync_plan(peer).decision;
    assert_eq!(
        (plan(eleven).plan, plan(eleven).reason),
        (SyncPlan::UpToDate, SyncReason::AheadOfOurDisk),
        "what is applied is not taken from who has it"
    );
    assert_eq!(plan(Zxid::new(12)).plan, SyncPlan::Truncate { to: eleven });
    assert!(engine.snapshot().unwrap().join().is_err(), "nor is it in a snapshot");
    drop(engine);
    home.cut_all(CrashImage::DropUnsynced);
    home.disk(Room::Log, 1).clear_faults();
    let (engine, report) = options().open_home(home, Box::new(Unobserved)).unwrap();
    assert_eq!(report.last_zxid, ten);
    drop(engine);
}

#[test]
fn ls_01_a_history_that_forked_gets_no_diff() {
    let (_home, leader) = simulated(&options());
    leader.enter_epoch(Epoch::new(1)).unwrap();
    grow(&leader, "a", 10);
    leader.enter_epoch(Epoch::new(3)).unwrap();
    grow(&leader, "b", 5);
    let plan = |epoch, counter| leader.sync_plan(Zxid::from_parts(epoch, counter)).decision;
    // Of an epoch that was never here, whatever number it has.
    for counter in [1, 4, 9, 10, 11, u32::MAX] {
        let decision = plan(2, counter);
        assert_eq!(
            (decision.plan, decision.reason),
            (SyncPlan::Snapshot, SyncReason::ForeignEpoch),
            "{counter}"
        );
    }
    // Behind the end of an epoch that was.
    for counter in [11, 12, 500] {
        assert!(!matches!(plan(1, counter).plan, SyncPlan::Diff { .. }), "{counter}: {:?}", plan(1, counter));
    }
    assert_eq!(plan(3, 9).plan, SyncPlan::Truncate { to: Zxid::from_parts(3, 5) });
    let diff = SyncPlan::Diff { after: Zxid::from_parts(1, 8), through: Zxid::from_parts(3, 5) };
    assert_eq!(plan(1, 8).plan, diff, "on our history");
}

#[test]
fn ls_03_damage_on_the_leaders_disk_ends_a_diff_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    // Nothing is in memory.
    let (engine, _) = options().recent(0, 0).open(dir.path()).unwrap();
    let last = grow(&engine, "a", 300);
    engine.close().unwrap();
    let (engine, _) = options().recent(0, 0).open(dir.path()).unwrap();
    let segment = dir.path().join("log-1").join(crate::format::segment_name(1));
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[40_000] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let mut seen = Vec::new();
    let after = Zxid::new(2);
    let error = engine.txns_between(after, last, |txn| seen.push(txn.zxid)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(!seen.is_empty() && seen.len() < 290, "{}", seen.len());
    let expected: Vec<Zxid> = (3..).take(seen.len()).map(Zxid::new).collect();
    assert_eq!(seen, expected, "without a hole up to there");
    // Where the damage is asked about, there is no diff either.
    let damaged = Zxid::new(3 + seen.len() as u64);
    let decision = engine.sync_plan(damaged).decision;
    assert!(
        decision.reason == SyncReason::Damaged && decision.plan == SyncPlan::Snapshot
            || decision.reason == SyncReason::OnOurHistory,
        "{decision:?}"
    );
    // A snapshot is made of what is in memory.
    let mut sent = Vec::new();
    assert_eq!(engine.send_snapshot(&mut sent).unwrap().end, last);
}

#[test]
fn ls_10_what_was_never_synced_is_whole_or_a_prefix_and_is_synced_when_it_is_opened() {
    let unsynced = options().log(LogOptions::new().segment_bytes(64 << 10).write_mode(WriteMode::Unsynced));
    for seed in 0..12 {
        let (home, engine) = simulated(&unsynced);
        let mut digests = vec![engine.tree().digest()];
        for n in 0..60 {
            create(&engine, &format!("/{n}"), &[7; 2000]).unwrap();
            digests.push(engine.tree().digest());
        }
        if seed % 3 == 0 {
            engine.close().unwrap();
        } else {
            drop(engine);
        }
        home.cut_all(CrashImage::Random(seed));
        // As a voter, from now on.
        let (engine, report) = options().open_home(home.clone(), Box::new(Unobserved)).unwrap();
        let last = usize::try_from(report.last_zxid.get()).unwrap();
        assert_eq!(report.digest, digests[last]);
        assert!(last == 60 || seed % 3 != 0, "a close syncs: {last}");
        drop(engine);
        home.cut_all(CrashImage::DropUnsynced);
        let (_engine, again) = options().open_home(home, Box::new(Unobserved)).unwrap();
        assert_eq!((again.last_zxid, again.digest), (report.last_zxid, report.digest), "it was synced");
    }
}

#[test]
fn ls_12_recent_txns_are_bounded_and_plans_hold_beside_writers() {
    let (_home, engine) = simulated(&options().log(LogOptions::new()).recent(500, 4 << 20));
    let large = vec![7; 1 << 20];
    create(&engine, "/large", &large[..1000]).unwrap();
    for _ in 0..12 {
        let request = Request::SetData { path: "/large", data: Some(&large[..1_000_000]), version: -1 };
        engine.submit(&request, &Caller::default()).unwrap().wait().unwrap();
    }
    assert!((1..=4).contains(&engine.stats().recent_txns), "{}", engine.stats().recent_txns);
    let (_home, engine) = simulated(&options().recent(10, 1 << 20));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| grow(&engine, "a", 400));
        let mut peer = Zxid::ZERO;
        while !writer.is_finished() {
            let answer = engine.sync_plan(peer);
            match answer.decision.plan {
                SyncPlan::Diff { after, through } => {
                    let mut last = after;
                    engine
                        .txns_between(after, through, |txn| {
                            assert_eq!(txn.zxid, Zxid::new(last.get() + 1));
                            last = txn.zxid;
                        })
                        .unwrap();
                    assert_eq!(last, through);
                    peer = if last.get() % 7 == 0 { Zxid::new(1) } else { last };
                }
                SyncPlan::UpToDate => {}
                // There is no snapshot: all of the log is there.
                plan => panic!("{plan:?} for {peer}: {:?}", answer.decision.reason),
            }
        }
    });
}

#[test]
fn se_03_what_is_decided_does_not_depend_on_when_it_is_applied() {
    let acl = [Acl::open()];
    let ephemeral = |path| {
        Request::Create(CreateRequest { mode: CreateMode::Ephemeral, ..CreateRequest::new(path, b"", &acl) })
    };
    let plain = |path| Request::Create(CreateRequest::new(path, b"", &acl));
    let delete = |path| Request::Delete { path, version: -1 };
    let (timeout, close) = (Request::CreateSession { timeout_ms: 4000 }, Request::CloseSession);
    // Each with its session. What one that has ended asks for, beside ephemerals, is for the server to refuse.
    let script = [
        (1, timeout),
        (1, ephemeral("/e")),
        (1, close),
        (1, ephemeral("/e")),
        (3, plain("/p")),
        (2, timeout),
        (2, ephemeral("/e")),
        (1, timeout),
        (1, plain("/p")),
        (1, delete("/p")),
        (1, plain("/p")),
        (2, close),
        (1, ephemeral("/e")),
        (3, delete("/e")),
        (1, close),
        (2, timeout),
        (2, plain("/e")),
    ];
    let outcomes = |seed: u64| {
        let mut random = Random::from_seed(seed);
        let (home, engine) = simulated(&options().commit(Commit::ByServer));
        let (mut told, mut logged) = (Vec::new(), Zxid::ZERO);
        for (session_id, request) in &script {
            let caller = Caller { session_id: *session_id, ..Caller::default() };
            logged = engine.submit_at(request, &caller, 1).unwrap().zxid();
            // At once with seed 0, else by and by.
            if seed == 0 || random.below(3) == 0 {
                let back = if seed == 0 { 0 } else { random.below(4) };
                let through = Zxid::new(logged.get().saturating_sub(back));
                told.extend(engine.apply(through).unwrap().into_iter().map(|applied| applied.outcome));
            }
        }
        told.extend(engine.apply(logged).unwrap().into_iter().map(|applied| applied.outcome));
        let digest = engine.tree().digest();
        engine.close().unwrap();
        let (_engine, report) = options().open_home(home, Box::new(Unobserved)).unwrap();
        assert_eq!((report.digest, report.replay_failures), (digest, 0), "{seed}");
        (told, digest)
    };
    let (at_once, digest) = outcomes(0);
    assert!(at_once.iter().any(|outcome| matches!(outcome, Outcome::Failed(_))), "some are refused");
    for seed in 1..100 {
        assert_eq!(outcomes(seed), (at_once.clone(), digest), "{seed}");
    }
}
