//! Doubles of an engine.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::base::{Epoch, ErrorKind, Zxid};
use crate::format::Acl;
use crate::log::LogOptions;
use crate::tree::{CreateRequest, Request};

fn options() -> EngineOptions {
    EngineOptions::new().log(LogOptions::new().segment_bytes(64 << 10)).snap_count(0).snapshots_kept(2)
}

fn make(engine: &Engine, path: &str) -> Zxid {
    let (acl, data) = ([Acl::open()], [7; 900]);
    let create = Request::Create(CreateRequest::new(path, &data, &acl));
    let answer = engine.submit(&create, &Caller::default()).unwrap().wait().unwrap();
    assert!(answer.code().is_ok(), "{path}");
    answer.zxid
}

/// All files below a directory, with their bytes.
fn bytes(dir: &Path) -> HashMap<std::path::PathBuf, Vec<u8>> {
    let mut found = HashMap::new();
    for entry in dir.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(bytes(&entry));
        } else {
            found.insert(entry.clone(), std::fs::read(&entry).unwrap());
        }
    }
    found
}

#[test]
fn a_checkpoint_is_an_engine_of_its_own() {
    let (dir, double, again) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (engine, _) = options().open(dir.path()).unwrap();
    // Of an empty engine.
    let report = engine.checkpoint(again.path()).unwrap();
    assert_eq!((report.last_zxid, report.snapshots.len()), (Zxid::ZERO, 0));
    assert_eq!(options().open(again.path()).unwrap().1.last_zxid, Zxid::ZERO);
    assert_eq!(engine.checkpoint(again.path()).unwrap_err().kind(), ErrorKind::Invalid);
    engine.enter_epoch(Epoch::new(2)).unwrap();
    for round in 0..4 {
        for n in 0..150 {
            make(&engine, &format!("/{round}-{n}"));
        }
        if round % 2 == 1 {
            engine.snapshot().unwrap().join().unwrap();
        }
    }
    let last = make(&engine, "/last");
    engine.accept_epoch(Epoch::new(3)).unwrap();
    let digest = engine.tree().digest();
    let report = engine.checkpoint(double.path()).unwrap();
    assert_eq!((report.last_zxid, report.snapshots.len()), (last, 2));
    assert!(report.linked_files > 6 && report.copied_files < 4, "{report:?}");
    assert!(report.copied_bytes < 200 << 10, "{report:?}");
    let kept = bytes(double.path());
    // The engine goes on, snapshots and purges, and is opened anew after a crash and a clean close.
    engine.enter_epoch(Epoch::new(3)).unwrap();
    for round in 4..7 {
        for n in 0..150 {
            make(&engine, &format!("/{round}-{n}"));
        }
        engine.snapshot().unwrap().join().unwrap();
    }
    drop(engine);
    options().open(dir.path()).unwrap().0.close().unwrap();
    let whole = bytes(dir.path());
    assert!(bytes(double.path()) == kept, "the engine has written into its checkpoint");
    let (opened, report) = options().open(double.path()).unwrap();
    assert_eq!((report.last_zxid, report.digest), (last, digest));
    assert_eq!((opened.accepted_epoch(), opened.current_epoch()), (Epoch::new(3), Epoch::new(2)));
    opened.enter_epoch(Epoch::new(4)).unwrap();
    for n in 0..300 {
        make(&opened, &format!("/own-{n}"));
    }
    opened.snapshot().unwrap().join().unwrap();
    opened.verify_snapshot(opened.snapshots()[0]).unwrap();
    let (opened, _, _) = opened.truncate(Epoch::new(4), Zxid::from_parts(4, 290)).unwrap();
    drop(opened);
    options().open(double.path()).unwrap().0.close().unwrap();
    assert!(bytes(dir.path()) == whole, "the checkpoint has written into its engine");
    options().open(dir.path()).unwrap().0.close().unwrap();
}

#[test]
fn a_checkpoint_of_a_truncated_and_crashed_log_opens() {
    let dir = tempfile::tempdir().unwrap();
    let (mut engine, _) = options().open(dir.path()).unwrap();
    for round in 0..4_u32 {
        let zxids: Vec<Zxid> = (0..120).map(|n| make(&engine, &format!("/{round}-{n}"))).collect();
        engine = match round % 3 {
            0 => engine.truncate(Epoch::ZERO, zxids[100]).unwrap().0,
            1 => {
                drop(engine);
                options().open(dir.path()).unwrap().0
            }
            _ => {
                engine.close().unwrap();
                options().open(dir.path()).unwrap().0
            }
        };
        for is_idle in [true, false] {
            if !is_idle {
                make(&engine, &format!("/after-{round}"));
            }
            let double = tempfile::tempdir().unwrap();
            let report = engine.checkpoint(double.path()).unwrap();
            let (opened, opening) = options().open(double.path()).unwrap();
            assert_eq!(report.last_zxid, engine.applied_zxid());
            assert_eq!(opened.tree().digest(), engine.tree().digest(), "round {round}");
            assert!(opening.log.cut.is_none(), "nothing was torn: {opening}");
            make(&opened, "/own");
        }
    }
}

#[test]
fn a_checkpoint_is_taken_beside_writers() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = options().open(dir.path()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stopped = Stop(&stop);
        for thread in 0..4 {
            let (engine, stop) = (&engine, &stop);
            scope.spawn(move || {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    make(engine, &format!("/{thread}-{n}"));
                    n += 1;
                }
            });
        }
        for round in 0..8 {
            let double = tempfile::tempdir().unwrap();
            let before = engine.durable_zxid();
            let report = engine.checkpoint(double.path()).unwrap();
            assert!(report.last_zxid >= before && report.last_zxid <= engine.durable_zxid());
            let (opened, opening) = options().open(double.path()).unwrap();
            assert_eq!((opening.last_zxid, opening.replay_failures), (report.last_zxid, 0));
            // All txns create a node.
            let nodes = opened.tree().len();
            assert_eq!(nodes - empty_nodes(), report.last_zxid.get(), "round {round}");
            if round == 4 {
                engine.snapshot().unwrap().join().unwrap();
            }
        }
    });
}

/// Ends the writers, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_checkpoint_that_was_cut_short_is_no_engine() {
    use std::sync::Arc;

    use super::home::Room;
    use super::pipeline::Unobserved;
    use super::sim_home::{Cut, SimHome};
    use crate::sim::CrashImage;

    let home = Arc::new(SimHome::new(1));
    let options = EngineOptions::new().log(LogOptions::new().segment_bytes(16 << 10)).snap_count(0);
    let (engine, _) = options.open_home(home, Box::new(Unobserved)).unwrap();
    make(&engine, "/a");
    engine.snapshot().unwrap().join().unwrap();
    (0..40).for_each(|n| assert!(make(&engine, &format!("/{n}")) > Zxid::ZERO));
    let mut points = 0;
    for cut in [Cut::Disk(0), Cut::Next(Room::Log), Cut::Next(Room::Snapshots)] {
        for operations in 1.. {
            let double = Arc::new(SimHome::new(2));
            let image = if operations % 2 == 0 { CrashImage::KeepAll } else { CrashImage::DropUnsynced };
            double.cut_at(cut, operations, image);
            let made = engine.checkpoint_to(double.as_ref());
            double.cut_all(image);
            let opened = options.open_home(double, Box::new(Unobserved));
            points += 1;
            match (made, opened) {
                (Ok(report), Ok((_, opening))) => {
                    assert_eq!(opening.last_zxid, report.last_zxid);
                    break;
                }
                // All was done but the last sync.
                (Err(_), Ok((opened, _))) => assert_eq!(opened.tree().digest(), engine.tree().digest()),
                (Err(_), Err(error)) => assert_eq!(error.code(), "engine_manifest_missing", "{error}"),
                (Ok(_), Err(error)) => panic!("{cut:?} {operations}: {error}"),
            }
        }
    }
    assert!(points > 15, "{points}");
}

/// The nodes of an empty tree.
fn empty_nodes() -> u64 {
    crate::tree::DataTree::new().len()
}
