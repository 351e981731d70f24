//! States of the past, restored beside the engine that had them.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::base::{Epoch, ErrorKind, Zxid};
use crate::format::{Acl, AclBuf, Create, CreateKind, Txn, TxnBody};
use crate::log::{Execution, LogOptions};
use crate::tree::{CreateMode, CreateRequest, Request};

fn options() -> EngineOptions {
    EngineOptions::new().log(LogOptions::new().segment_bytes(64 << 10)).snap_count(0).snapshots_kept(2)
}

/// A directory of an engine with snapshots at its 20th and 40th txn, of sixty at times 1000, 2000 and so on, the
/// digest at each, and the engine, which is running.
fn source(dir: &Path) -> (Engine, BTreeMap<Zxid, u64>) {
    let engine = options().open(dir).unwrap().0;
    engine.enter_epoch(Epoch::new(3)).unwrap();
    let (acl, mut digests) = ([Acl::open()], BTreeMap::new());
    for n in 1..=60_i64 {
        let mode = if n % 3 == 0 { CreateMode::Ephemeral } else { CreateMode::Persistent };
        let path = format!("/node-{n}");
        let create = Request::Create(CreateRequest { mode, ..CreateRequest::new(&path, b"data", &acl) });
        let request = if n <= 3 { Request::CreateSession { timeout_ms: 900 } } else { create };
        let caller = Caller { session_id: 1 + n % 3, ..Caller::default() };
        let answer = engine.submit_at(&request, &caller, n * 1000).unwrap().wait().unwrap();
        assert!(answer.code().is_ok(), "{n}");
        digests.insert(answer.zxid, engine.tree().digest());
        if n % 20 == 0 && n < 60 {
            engine.snapshot().unwrap().join().unwrap();
        }
    }
    engine.accept_epoch(Epoch::new(8)).unwrap();
    (engine, digests)
}

#[test]
fn every_state_of_the_past_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, digests) = source(dir.path());
    for (n, (zxid, digest)) in (1_i64..).zip(&digests) {
        let by_time = RestoreTarget::TimeMs(n * 1000 + if n % 2 == 0 { 0 } else { 999 });
        let target = if n % 3 == 0 { RestoreTarget::Zxid(*zxid) } else { by_time };
        let dest = tempfile::tempdir().unwrap();
        let what = RestoreOptions::new().target(target);
        let sessions = usize::try_from(n).unwrap().min(3);
        // The log was purged up to the first snapshot.
        let report = match restore(dir.path(), dest.path(), &options(), &what) {
            Ok(report) => report,
            Err(error) => {
                assert!(n < 21 && error.kind() == ErrorKind::NotInLog, "{n}: {error}");
                continue;
            }
        };
        assert_eq!((report.source_zxid, report.last_zxid, report.digest), (*zxid, *zxid, *digest));
        assert_eq!((report.replay_failures, report.skipped.len()), (0, 0));
        let (restored, opened) = options().open(dest.path()).unwrap();
        assert_eq!((opened.last_zxid, opened.digest, opened.replayed), (*zxid, *digest, 0));
        assert_eq!(restored.accepted_epoch(), Epoch::new(8), "promises are kept");
        assert_eq!(restored.tree().sessions().len(), sessions);
        restored.enter_epoch(Epoch::new(8)).unwrap();
        let request = Request::Delete { path: "/node-4", version: -1 };
        assert!(
            n < 4 || restored.submit(&request, &Caller::default()).unwrap().wait().unwrap().code().is_ok()
        );
        assert!(restore(dir.path(), dest.path(), &options(), &what).is_err(), "it is in use");
    }
    assert_eq!(engine.applied_zxid(), *digests.last_key_value().unwrap().0);
    let dest = tempfile::tempdir().unwrap();
    let after = RestoreTarget::Zxid(Zxid::from_parts(3, 61));
    let error =
        restore(dir.path(), dest.path(), &options(), &RestoreOptions::new().target(after)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotInLog);
}

#[test]
fn sessions_are_left_out_and_damaged_snapshots_passed_over() {
    let (dir, dest) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (engine, digests) = source(dir.path());
    let newest = engine.snapshots()[0];
    drop(engine);
    let path = dir.path().join(format!("snapshots-1/{:016x}.snap", newest.get()));
    let mut bad = std::fs::read(&path).unwrap();
    bad[570] ^= 1;
    std::fs::write(&path, bad).unwrap();
    let before: Vec<_> =
        std::fs::read_dir(dir.path().join("log-1")).unwrap().map(|e| e.unwrap().path()).collect();
    let report =
        restore(dir.path(), dest.path(), &options(), &RestoreOptions::new().sessions(false)).unwrap();
    assert_eq!((report.skipped.len(), report.skipped[0].0, report.closed_sessions), (1, newest, 3));
    assert!(report.snapshot.is_some_and(|info| info.end < newest) && report.replayed == 40);
    assert_eq!(report.source_zxid, *digests.last_key_value().unwrap().0);
    assert_eq!(report.last_zxid.get(), report.source_zxid.get() + 3);
    let (restored, opened) = options().open(dest.path()).unwrap();
    assert_eq!((opened.last_zxid, opened.digest), (report.last_zxid, report.digest));
    let tree = restored.tree();
    assert!(tree.sessions().is_empty() && tree.ephemeral_owners().is_empty());
    assert!(tree.get("/node-6").is_none() && tree.get("/node-7").is_some());
    drop(tree);
    let after: Vec<_> =
        std::fs::read_dir(dir.path().join("log-1")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(before, after, "the source is as it was");
    let used = restore(dir.path(), dest.path(), &options(), &RestoreOptions::new()).unwrap_err();
    assert_eq!(used.kind(), ErrorKind::Invalid);
    let (nowhere, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let none = restore(nowhere.path(), empty.path(), &options(), &RestoreOptions::new()).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Invalid);
}

#[test]
fn an_earlier_state_takes_its_place_and_the_later_one_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, digests) = source(dir.path());
    let (last, digest) = digests.last_key_value().map(|(zxid, digest)| (*zxid, *digest)).unwrap();
    let what = RestoreOptions::new().target(RestoreTarget::Zxid(Zxid::from_parts(3, 50)));
    let error = restore_in_place(dir.path(), &options(), &what).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    engine.close().unwrap();
    let too_far = RestoreOptions::new().target(RestoreTarget::Zxid(Zxid::from_parts(3, 61)));
    let error = restore_in_place(dir.path(), &options(), &too_far).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotInLog);
    let (engine, report) = options().open(dir.path()).unwrap();
    assert_eq!((report.last_zxid, report.digest), (last, digest), "nothing was changed");
    let id = report.log.database_id;
    engine.close().unwrap();
    let report = restore_in_place(dir.path(), &options(), &what).unwrap();
    let wanted = digests[&Zxid::from_parts(3, 50)];
    assert_eq!((report.digest, report.database_id, report.kept_generation), (wanted, id, Some(1)));
    let (engine, opened) = options().open(dir.path()).unwrap();
    assert_eq!((opened.digest, opened.last_zxid), (wanted, Zxid::from_parts(3, 50)));
    assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (Epoch::new(8), Epoch::new(3)));
    engine.enter_epoch(Epoch::new(8)).unwrap();
    let acl = [Acl::open()];
    let create = Request::Create(CreateRequest::new("/goes-on", b"", &acl));
    engine.submit(&create, &Caller::default()).unwrap().wait().unwrap();
    engine.snapshot().unwrap().join().unwrap();
    engine.close().unwrap();
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(restore_in_place(empty.path(), &options(), &what).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(empty.path().read_dir().unwrap().count(), 0);
    // What was kept opens elsewhere, by hand: with its own log and snapshots and the manifest of this database.
    assert!(dir.path().join("log-1").exists() && dir.path().join("snapshots-1").exists());
    let (view, _) = LogOptions::new().open_read_only(dir.path().join("log-1")).unwrap();
    assert_eq!(view.last_zxid(), last);
}

#[test]
fn a_restore_in_place_is_one_state_or_the_other_whenever_the_power_is_cut() {
    use std::sync::Arc;

    use super::home::{Home, Room};
    use super::pipeline::Unobserved;
    use super::sim_home::{Cut, SimHome};
    use crate::sim::CrashImage;

    let options =
        EngineOptions::new().log(LogOptions::new().segment_bytes(16 << 10).idle_mark(None)).snap_count(0);
    let base = Arc::new(SimHome::new(3));
    let (engine, _) = options.open_home(base.clone(), Box::new(Unobserved)).unwrap();
    let (acl, mut digests) = ([Acl::open()], Vec::new());
    for n in 0..20 {
        let path = format!("/{n}");
        let create = Request::Create(CreateRequest::new(&path, b"data", &acl));
        engine.submit_at(&create, &Caller::default(), 1).unwrap().wait().unwrap();
        digests.push(engine.tree().digest());
    }
    engine.accept_epoch(Epoch::new(2)).unwrap();
    engine.close().unwrap();
    let what = RestoreOptions::new().target(RestoreTarget::Zxid(Zxid::new(12)));
    let (old, new) = (digests[19], digests[11]);
    let mut points = 0;
    for cut in [Cut::Disk(0), Cut::Disk(1), Cut::Disk(2), Cut::Next(Room::Log), Cut::Next(Room::Snapshots)] {
        for operations in 1..200 {
            let image =
                if operations % 2 == 0 { CrashImage::DropUnsynced } else { CrashImage::Random(operations) };
            let home = Arc::new(base.fork());
            home.cut_at(cut, operations, image);
            let dyn_home: Arc<dyn Home> = home.clone();
            let is_done = super::restore::in_place(&dyn_home, &options, &what).is_ok();
            home.cut_all(image);
            let (engine, report) = options.open_home(home.clone(), Box::new(Unobserved)).unwrap();
            assert!(report.digest == new || report.digest == old && !is_done, "{cut:?} {operations}");
            assert_eq!(engine.accepted_epoch(), Epoch::new(2));
            engine.close().unwrap();
            if report.digest == old {
                super::restore::in_place(&dyn_home, &options, &what).expect("the power is back");
                let (_engine, report) = options.open_home(home, Box::new(Unobserved)).unwrap();
                assert_eq!(report.digest, new);
            }
            points += 1;
            if is_done {
                break;
            }
        }
    }
    assert!(points > 20, "{points}");
}

#[test]
fn a_restore_makes_nothing_inside_what_it_reads() {
    let (dir, logs, trial) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    options().log_dir(logs.path()).open(dir.path()).unwrap().0.close().unwrap();
    let what = RestoreOptions::new().source_log_dir(logs.path());
    let new = |at: &Path| at.join("new");
    let (beside, inside_log) = (new(trial.path()), new(&logs.path().join("log-1")));
    std::fs::create_dir(&inside_log).unwrap();
    for (dest, log_dir) in [
        (new(dir.path()), None),
        (new(logs.path()), None),
        (inside_log.clone(), None),
        (beside.clone(), Some(dir.path().join("snapshots-1"))),
        (beside.clone(), Some(inside_log)),
    ] {
        let options = log_dir.iter().fold(options(), EngineOptions::log_dir);
        let error = restore(dir.path(), &dest, &options, &what).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Invalid && error.message().contains("lies inside"),
            "{dest:?}: {error}"
        );
    }
    assert!(!beside.exists() && !new(dir.path()).exists());
    std::fs::create_dir(&beside).unwrap();
    restore(dir.path(), &beside, &options(), &what).unwrap();
}

mod simulated {
    use std::sync::Arc;

    use super::super::home::{Home, Room};
    use super::super::manifest_file::ManifestFile;
    use super::super::pipeline::Unobserved;
    use super::super::sim_home::{Cut, SimHome};
    use super::*;
    use crate::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern};

    fn options() -> EngineOptions {
        EngineOptions::new().log(LogOptions::new().segment_bytes(16 << 10).idle_mark(None)).snap_count(0)
    }

    fn open(home: &Arc<SimHome>) -> (Engine, OpenReport) {
        options().open_home(home.clone(), Box::new(Unobserved)).unwrap()
    }

    fn in_place(home: &Arc<SimHome>, zxid: u32) -> crate::Result<RestoreReport> {
        let what = RestoreOptions::new().target(RestoreTarget::Zxid(Zxid::from_parts(2, zxid)));
        super::super::restore::in_place(&(home.clone() as Arc<dyn Home>), &options(), &what)
    }

    /// Thirty txns of the second epoch, with a snapshot at the 5th and one at the 10th.
    fn closed() -> Arc<SimHome> {
        let home = Arc::new(SimHome::new(3));
        let (engine, _) = open(&home);
        engine.enter_epoch(Epoch::new(2)).unwrap();
        let acl = [Acl::open()];
        for n in 1..=30 {
            let path = format!("/{n}");
            let create = Request::Create(CreateRequest::new(&path, b"data", &acl));
            engine.submit_at(&create, &Caller::default(), 1).unwrap().wait().unwrap();
            if n == 5 || n == 10 {
                engine.snapshot().unwrap().join().unwrap();
            }
        }
        // No txn tells of it.
        engine.enter_epoch(Epoch::new(3)).unwrap();
        engine.close().unwrap();
        home
    }

    /// What an attempt has left that failed is named before it is written, and goes with the next one or the next open.
    #[test]
    fn what_a_failed_restore_in_place_has_left_is_removed() {
        for opens in [false, true] {
            let home = closed();
            home.cut_at(Cut::Next(Room::Log), 3, CrashImage::KeepAll);
            assert!(in_place(&home, 20).is_err());
            assert_eq!(home.generations().unwrap(), [1, 2]);
            let spare = || ManifestFile::read(&home.root()).unwrap().unwrap().get().spare;
            assert_eq!(spare(), 2);
            home.cut_all(CrashImage::KeepAll);
            if opens {
                let (engine, report) = open(&home);
                assert_eq!(
                    (report.last_zxid, engine.current_epoch()),
                    (Zxid::from_parts(2, 30), Epoch::new(3))
                );
                engine.close().unwrap();
                assert_eq!((home.generations().unwrap(), spare()), (vec![1], 0));
            }
            let report = in_place(&home, 20).unwrap();
            let (engine, opened) = open(&home);
            assert_eq!((opened.digest, opened.last_zxid), (report.digest, Zxid::from_parts(2, 20)));
            assert_eq!(engine.current_epoch(), Epoch::new(3), "the log's fence stays");
            engine.close().unwrap();
            let now = home.generations().unwrap();
            assert!(now.len() == 2 && now[0] == 1, "what was in use and what is: {now:?}");
            // What was kept is nobody's spare, and its number is not given again.
            in_place(&home, 20).unwrap();
            assert_eq!(home.generations().unwrap().len(), 3);
        }
    }

    /// The new state is one that has been: where its log is lost, it is no new engine.
    #[test]
    fn sn_01_a_state_that_was_restored_in_place_may_not_lose_its_log() {
        let home = closed();
        in_place(&home, 20).unwrap();
        let manifest = ManifestFile::read(&home.root()).unwrap().unwrap().get();
        assert_eq!((manifest.generation, manifest.spare, manifest.established), (2, 0, true));
    }

    #[test]
    fn a_number_that_somebody_uses_is_not_given() {
        let home = closed();
        // Made by hand, and named by no manifest.
        home.room(Room::Snapshots, 7).unwrap();
        in_place(&home, 20).unwrap();
        assert_eq!(home.generations().unwrap(), [1, 7, 8]);
    }

    /// Another snapshot would do, and make a state without a fault; but whatever the disk fails at, it may fail at there.
    #[test]
    fn sn_01_a_restore_does_not_pass_over_a_snapshot_that_cannot_be_read() {
        let home = closed();
        let newest = crate::format::snapshot::snapshot_name(Zxid::from_parts(2, 10));
        let disk = home.disk(Room::Snapshots, 1);
        disk.inject(Fault::next(FaultOp::Read, Effect::EIO).on(NamePattern::Exact(newest)).times(u64::MAX));
        assert_eq!(in_place(&home, 20).unwrap_err().kind(), ErrorKind::Io);
        disk.clear_faults();
        assert_eq!(in_place(&home, 20).unwrap().snapshot.unwrap().end, Zxid::from_parts(2, 10));
    }
}

/// The source's promises go with its state, also one to a leader whose epoch it has not entered.
#[test]
fn ep_03_a_restored_engine_has_promised_what_its_source_had() {
    let (dir, dest) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (engine, _) = options().open(dir.path()).unwrap();
    engine.enter_epoch(Epoch::new(2)).unwrap();
    engine.accept_epoch(Epoch::new(6)).unwrap();
    restore(dir.path(), dest.path(), &options(), &RestoreOptions::new()).unwrap();
    let (restored, _) = options().open(dest.path()).unwrap();
    assert_eq!(restored.accepted_epoch(), Epoch::new(6));
    assert_eq!(restored.accept_epoch(Epoch::new(5)).unwrap_err().kind(), ErrorKind::Fenced);
}

/// An owner of nodes that is no session: its nodes are as good as those of sessions that ended.
#[test]
fn se_01_nodes_of_nobody_go_with_the_sessions() {
    let (dir, dest) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (engine, _) = options().open(dir.path()).unwrap();
    let acl = [Acl::open()];
    let acl: AclBuf = acl.iter().map(Acl::as_entry).collect();
    let kind = CreateKind::Plain { ephemeral: true };
    let create = Create { path: "/mine", data: None, acl: acl.as_list(), kind, parent_cversion: Some(1) };
    let body = TxnBody::Create(create);
    let txn = Txn { zxid: Zxid::new(1), time_ms: 1, session_id: 77, cxid: 0, digest: None, body };
    engine.append(Epoch::ZERO, &txn).unwrap().wait().unwrap();
    assert!(engine.tree().sessions().is_empty(), "or it would be one");
    let report =
        restore(dir.path(), dest.path(), &options(), &RestoreOptions::new().sessions(false)).unwrap();
    assert_eq!(report.closed_sessions, 1);
    let (restored, _) = options().open(dest.path()).unwrap();
    assert!(restored.tree().get("/mine").is_none() && restored.tree().ephemeral_owners().is_empty());
}

#[test]
fn what_cannot_be_restored_is_told_by_its_reason() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let engine = source(dir.path()).0;
    let newest = engine.snapshots();
    engine.close().unwrap();
    // The log was purged up to the first snapshot, and all that reach it are damaged.
    for end in &newest {
        let path = dir.path().join(format!("snapshots-1/{:016x}.snap", end.get()));
        let mut bad = std::fs::read(&path).unwrap();
        bad[570] ^= 1;
        std::fs::write(&path, bad).unwrap();
    }
    let try_it = |execution| {
        let dest = tempfile::tempdir().unwrap();
        let what = RestoreOptions::new().execution(execution);
        restore(dir.path(), dest.path(), &options(), &what).map(drop)
    };
    for execution in [Execution::Real, Execution::DryRun] {
        let error = try_it(execution).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "the damage is the matter: {error}");
    }
    // A trial refuses what the restore would refuse.
    let dest = tempfile::tempdir().unwrap();
    std::fs::write(dest.path().join("precious"), "x").unwrap();
    let what = RestoreOptions::new().execution(Execution::DryRun);
    let error = restore(dir.path(), dest.path(), &options(), &what).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Invalid, "restore_not_empty"));
    // The log of another database is no log of this one.
    options().open(other.path()).unwrap().0.close().unwrap();
    std::fs::remove_dir_all(dir.path().join("log-1")).unwrap();
    std::fs::rename(other.path().join("log-1"), dir.path().join("log-1")).unwrap();
    assert_eq!(try_it(Execution::Real).unwrap_err().kind(), ErrorKind::WrongOwner);
}

/// Before the lock, the long part, and the first byte.
#[test]
fn a_restore_in_place_with_options_that_are_out_of_bounds_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    options().open(dir.path()).unwrap().0.close().unwrap();
    let manifest = std::fs::read(dir.path().join("engine.manifest")).unwrap();
    for bad in [options().snapshots_kept(0), options().log(LogOptions::new().segment_bytes(1))] {
        let error = restore_in_place(dir.path(), &bad, &RestoreOptions::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{bad:?}");
    }
    assert!(std::fs::read(dir.path().join("engine.manifest")).unwrap() == manifest);
    // A state that no manifest names is no empty directory.
    std::fs::remove_file(dir.path().join("engine.manifest")).unwrap();
    let dest = tempfile::tempdir().unwrap();
    let error = restore(dir.path(), dest.path(), &options(), &RestoreOptions::new()).unwrap_err();
    assert_eq!(error.code(), "engine_manifest_missing", "{error}");
}

/// Nobody means the empty tree before the first txn, and without a txn nothing tells the time of a state.
#[test]
fn a_time_before_all_txns_is_no_state() {
    let (dir, dest) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |time_ms| {
        let what = RestoreOptions::new().target(RestoreTarget::TimeMs(time_ms)).execution(Execution::DryRun);
        restore(dir.path(), dest.path(), &options(), &what)
    };
    let (engine, _) = options().open(dir.path()).unwrap();
    let error = at(5000).unwrap_err();
    assert!(error.kind() == ErrorKind::NotInLog && error.message().contains("no txn yet"), "{error}");
    let request = Request::CreateSession { timeout_ms: 900 };
    let caller = Caller { session_id: 7, ..Caller::default() };
    let zxid = engine.submit_at(&request, &caller, 1000).unwrap().wait().unwrap().zxid;
    let error = at(999).unwrap_err();
    assert!(error.kind() == ErrorKind::NotInLog && error.message().contains("begins after"), "{error}");
    assert_eq!(at(1000).unwrap().last_zxid, zxid);
}
