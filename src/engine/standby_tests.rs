//! A standby beside an owner, and in its place.

use std::path::Path;

use super::*;
use crate::base::{Epoch, ErrorKind, Zxid};
use crate::format::{Acl, Txn, TxnBody};
use crate::log::LogOptions;
use crate::tree::{CreateRequest, Request};

fn options() -> EngineOptions {
    EngineOptions::new().log(LogOptions::new().segment_bytes(256 << 10)).snap_count(0)
}

fn make(engine: &Engine, path: &str) -> Zxid {
    let acl = [Acl::open()];
    let create = Request::Create(CreateRequest::new(path, path.as_bytes(), &acl));
    let answer = engine.submit(&create, &Caller::default()).unwrap().wait().unwrap();
    assert!(answer.code().is_ok(), "{path}");
    answer.zxid
}

fn same(standby: &Standby, engine: &Engine) {
    let tree = engine.tree();
    assert_eq!((standby.tree().digest(), standby.last_zxid()), (tree.digest(), tree.last_zxid()));
}

fn names(dir: &Path) -> Vec<(std::ffi::OsString, u64)> {
    let entries = dir.read_dir().unwrap().map(Result::unwrap);
    let mut names: Vec<_> = entries.map(|e| (e.file_name(), e.metadata().unwrap().len())).collect();
    names.sort();
    names
}

#[test]
fn a_standby_follows_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(options().open_standby(dir.path()).unwrap_err().code(), "no_log");
    // Not so small that the owner prepares its next segment while the standby is watched: all change would be its.
    let large = options().log(LogOptions::new().segment_bytes(8 << 20));
    let (engine, _) = large.open(dir.path()).unwrap();
    let mut standby = options().open_standby(dir.path()).unwrap();
    same(&standby, &engine);
    engine.enter_epoch(Epoch::new(1)).unwrap();
    engine.accept_epoch(Epoch::new(2)).unwrap();
    let anew = options().open_standby(dir.path()).unwrap();
    assert_eq!((anew.accepted_epoch(), anew.current_epoch()), (Epoch::new(2), Epoch::new(1)));
    engine.enter_epoch(Epoch::new(2)).unwrap();
    for round in 0..5 {
        for n in 0..20 {
            make(&engine, &format!("/{round}-{n}"));
        }
        if round == 2 {
            engine.snapshot().unwrap().join().unwrap();
            engine.enter_epoch(Epoch::new(3)).unwrap();
        }
        let before = [names(dir.path()), names(&dir.path().join("log-1"))];
        let caught = standby.catch_up().unwrap();
        assert_eq!((caught.txns, caught.reloaded), (20, false));
        same(&standby, &engine);
        assert_eq!(before, [names(dir.path()), names(&dir.path().join("log-1"))]);
    }
    assert_eq!((standby.accepted_epoch(), standby.current_epoch()), (Epoch::new(3), Epoch::new(3)));
    assert_eq!(standby.catch_up().unwrap().txns, 0);
}

#[test]
fn a_standby_reads_anew_what_has_become_another_state() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().snapshots_kept(1).open(dir.path()).unwrap();
    let keep = make(&engine, "/keep");
    let gone = make(&engine, "/gone");
    let mut standby = options().open_standby(dir.path()).unwrap();
    // The same zxids again, with other txns.
    let (engine, _, _) = engine.truncate(Epoch::ZERO, keep).unwrap();
    assert_eq!(make(&engine, "/other"), gone);
    assert!(standby.catch_up().unwrap().reloaded);
    same(&standby, &engine);
    assert!(standby.tree().get("/gone").is_none());
    // Purged before it was read.
    for n in 0..3000 {
        let path = format!("/{n}-{:0200}", 0);
        let acl = [Acl::open()];
        let create = Request::Create(CreateRequest::new(&path, b"", &acl));
        drop(engine.submit(&create, &Caller::default()).unwrap());
    }
    make(&engine, "/many");
    engine.snapshot().unwrap().join().unwrap();
    assert!(engine.changes(standby.last_zxid(), "").is_err(), "it is purged");
    assert!(standby.catch_up().unwrap().reloaded);
    same(&standby, &engine);
    // Another whole state.
    let mut bytes = Vec::new();
    engine.send_snapshot(&mut bytes).unwrap();
    let (engine, _) = engine.install(Epoch::ZERO, &mut bytes.as_slice()).unwrap();
    make(&engine, "/after-install");
    assert!(standby.catch_up().unwrap().reloaded);
    same(&standby, &engine);
    make(&engine, "/more");
    assert!(!standby.catch_up().unwrap().reloaded);
    same(&standby, &engine);
}

/// The state that was installed since ends with the same zxid, and the log has no txn yet by which it could be told from
/// the one that was followed: it is another one all the same.
#[test]
fn ls_09_a_state_of_another_generation_is_not_taken_for_the_one_that_was_followed() {
    let leader = |path| {
        let dir = tempfile::tempdir().unwrap();
        let (engine, _) = options().open(dir.path()).unwrap();
        let (mut bytes, end) = (Vec::new(), make(&engine, path));
        engine.send_snapshot(&mut bytes).unwrap();
        (bytes, end, engine.tree().digest())
    };
    let (first, second) = (leader("/first"), leader("/second"));
    assert!(first.1 == second.1 && first.2 != second.2);
    for follows in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (engine, _) = options().open(dir.path()).unwrap();
        let (engine, _) = engine.install(Epoch::ZERO, &mut first.0.as_slice()).unwrap();
        let mut standby = options().open_standby(dir.path()).unwrap();
        same(&standby, &engine);
        let (engine, _) = engine.install(Epoch::ZERO, &mut second.0.as_slice()).unwrap();
        engine.close().unwrap();
        if follows {
            assert!(standby.catch_up().unwrap().reloaded);
            assert_eq!(standby.tree().digest(), second.2);
        }
        let (engine, _) = standby.promote(Epoch::new(1)).unwrap();
        assert_eq!(engine.tree().digest(), second.2, "{follows}");
    }
}

#[test]
fn ep_a_promotion_is_fenced_and_durable_before_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    engine.enter_epoch(Epoch::new(4)).unwrap();
    make(&engine, "/a");
    let mut standby = options().open_standby(dir.path()).unwrap();
    make(&engine, "/b");
    let error = standby.promote(Epoch::new(5)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert_eq!(engine.accepted_epoch(), Epoch::new(4), "nothing was changed");
    assert!(!standby.catch_up().unwrap().reloaded, "nor was the standby");
    make(&engine, "/c");
    // Killed, as it were.
    drop(engine);
    for old in 0..4 {
        assert_eq!(standby.promote(Epoch::new(old)).unwrap_err().kind(), ErrorKind::Fenced);
    }
    let (engine, report) = standby.promote(Epoch::new(5)).unwrap();
    assert_eq!((report.went_on, report.replayed), (Some(Zxid::from_parts(4, 2)), 1));
    assert!(report.to_string().contains("standby"), "{report}");
    assert!(engine.tree().get("/c").is_some());
    assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (Epoch::new(5), Epoch::new(5)));
    assert_eq!(make(&engine, "/d"), Zxid::from_parts(5, 1));
    let body = TxnBody::CreateSession { timeout_ms: 1 };
    let txn = Txn { zxid: Zxid::from_parts(4, 4), time_ms: 1, session_id: 7, cxid: 0, digest: None, body };
    assert_eq!(engine.append(Epoch::new(4), &txn).unwrap_err().kind(), ErrorKind::Fenced);
    // Another standby of the directory that missed all of this.
    let digest = engine.tree().digest();
    drop(engine);
    for old in [0, 4] {
        assert_eq!(standby.promote(Epoch::new(old)).unwrap_err().kind(), ErrorKind::Fenced, "for ever");
    }
    assert!(standby.catch_up().unwrap().reloaded, "its tree was given away");
    let (engine, _) = standby.promote(Epoch::new(5)).unwrap();
    assert_eq!(engine.tree().digest(), digest);
    let error = standby.promote(Epoch::new(1 << 32)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn a_promotion_does_not_go_on_from_what_was_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    let keep = make(&engine, "/keep");
    let gone = make(&engine, "/gone");
    let mut standby = options().open_standby(dir.path()).unwrap();
    let (engine, _, _) = engine.truncate(Epoch::ZERO, keep).unwrap();
    assert_eq!(make(&engine, "/other"), gone);
    let digest = engine.tree().digest();
    engine.close().unwrap();
    let (engine, report) = standby.promote(Epoch::new(1)).unwrap();
    assert_eq!((report.went_on, report.digest), (None, digest));
    // Nor from what the log does not reach.
    let mut standby = options().open_standby(dir.path()).unwrap();
    let (engine, _, _) = engine.truncate(Epoch::new(1), keep).unwrap();
    let digest = engine.tree().digest();
    drop(engine);
    let (_engine, report) = standby.promote(Epoch::new(2)).unwrap();
    assert_eq!((report.went_on, report.digest), (None, digest));
}

/// The log has no txn yet by which a standby could tell where it is; then what it has not read is purged.
#[test]
fn what_is_purged_behind_an_installed_state_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let options = options().log(LogOptions::new().segment_bytes(16 << 10)).snapshots_kept(1);
    let (engine, _) = options.open(dir.path()).unwrap();
    make(&engine, "/a");
    let mut bytes = Vec::new();
    let end = engine.send_snapshot(&mut bytes).unwrap().end;
    let (engine, _) = engine.install(Epoch::ZERO, &mut bytes.as_slice()).unwrap();
    let mut standby = options.open_standby(dir.path()).unwrap();
    for n in 0..200 {
        make(&engine, &format!("/more-{n}"));
    }
    engine.snapshot().unwrap().join().unwrap();
    assert_eq!(engine.changes(end, "").unwrap_err().kind(), ErrorKind::NotInLog, "it is purged");
    assert!(standby.catch_up().unwrap().reloaded);
    same(&standby, &engine);
}

/// A follower that takes older history goes on in its log, with no promise of its own: who takes its place has to be newer
/// than that, too, and the refusal changes nothing.
#[test]
fn ep_03_an_epoch_that_was_seen_in_the_log_is_a_promise_for_a_standby() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    let body = TxnBody::CreateSession { timeout_ms: 1 };
    let txn = Txn { zxid: Zxid::from_parts(3, 1), time_ms: 1, session_id: 7, cxid: 0, digest: None, body };
    engine.append(Epoch::new(5), &txn).unwrap().wait().unwrap();
    let mut standby = options().open_standby(dir.path()).unwrap();
    assert_eq!((standby.accepted_epoch(), standby.current_epoch()), (Epoch::new(3), Epoch::new(3)));
    let body = TxnBody::CreateSession { timeout_ms: 1 };
    let txn = Txn { zxid: Zxid::from_parts(4, 1), time_ms: 1, session_id: 7, cxid: 0, digest: None, body };
    engine.append(Epoch::new(5), &txn).unwrap().wait().unwrap();
    standby.catch_up().unwrap();
    assert_eq!((standby.accepted_epoch(), standby.current_epoch()), (Epoch::new(4), Epoch::new(4)));
    drop(engine);
    assert_eq!(standby.promote(Epoch::new(2)).unwrap_err().kind(), ErrorKind::Fenced);
    assert!(!standby.catch_up().unwrap().reloaded, "it keeps its tree");
    let (engine, report) = standby.promote(Epoch::new(5)).unwrap();
    assert_eq!((report.went_on, engine.accepted_epoch()), (Some(Zxid::from_parts(4, 1)), Epoch::new(5)));
}

/// The epoch is durable before the engine is opened: a promotion that fails there has fenced the old leader all the same.
#[test]
fn ep_03_a_promotion_that_cannot_open_has_fenced_the_old_leader() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    engine.enter_epoch(Epoch::new(1)).unwrap();
    make(&engine, "/a");
    let mut standby = options().open_standby(dir.path()).unwrap();
    engine.close().unwrap();
    let manifest = dir.path().join("log-1/log.manifest");
    let kept = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, b"damaged").unwrap();
    assert_eq!(standby.promote(Epoch::new(4)).unwrap_err().kind(), ErrorKind::Corrupt);
    std::fs::write(&manifest, kept).unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    assert_eq!((engine.accepted_epoch(), engine.current_epoch()), (Epoch::new(4), Epoch::new(1)));
    drop(engine);
    let (engine, _) = standby.promote(Epoch::new(4)).unwrap();
    assert_eq!(engine.current_epoch(), Epoch::new(4));
}
