//! Which of two faults an open tells of, and what it leaves where it is refused.

use super::super::pipeline::Unobserved;
use super::super::sim_home::SimHome;
use super::super::{Caller, Engine};
use super::*;
use crate::format::{Acl, segment_name, snapshot::snapshot_name};
use crate::io::OpenMode;
use crate::sim::SimDisk;
use crate::tree::{CreateRequest, Request};

fn options() -> EngineOptions {
    let log = LogOptions::new().segment_bytes(16 << 10).block_bytes(512).idle_mark(None);
    EngineOptions::new().log(log).snap_count(0).snapshots_kept(1)
}

fn open(home: &Arc<SimHome>) -> Result<(Engine, OpenReport)> {
    options().open_home(home.clone(), Box::new(Unobserved))
}

/// Eighty txns; a snapshot at the 60th, up to which the log may be purged, if there is to be one.
fn closed(has_snapshot: bool) -> Arc<SimHome> {
    let home = Arc::new(SimHome::new(3));
    let (engine, _) = open(&home).unwrap();
    for n in 1..=80 {
        assert_eq!(make(&engine, &format!("/{n}")), Zxid::new(n));
        if n == 60 && has_snapshot {
            engine.snapshot().unwrap().join().unwrap();
        }
    }
    engine.close().unwrap();
    home
}

fn make(engine: &Engine, path: &str) -> Zxid {
    let acl = [Acl::open()];
    let create = Request::Create(CreateRequest::new(path, b"", &acl));
    engine.submit(&create, &Caller::default()).unwrap().wait().unwrap().zxid
}

fn damage(disk: &SimDisk, name: &str, offset: u64) {
    let file = disk.handle().open(name, OpenMode::Write { direct: false }).unwrap();
    file.write_all_at(offset, &[0xa5; 64]).unwrap();
}

/// The first segment that the log has still.
fn first_segment(home: &SimHome) -> String {
    let names = home.disk(Room::Log, 1).handle().list().unwrap().into_iter().map(|entry| entry.name);
    names.filter(|name| name.ends_with(".seg")).min().unwrap()
}

#[test]
fn sn_01_the_damage_that_keeps_an_engine_shut_is_the_one_that_is_told() {
    let home = closed(true);
    let snapshot = snapshot_name(Zxid::new(60));
    assert_ne!(first_segment(&home), segment_name(1), "the log was purged");
    damage(&home.disk(Room::Snapshots, 1), &snapshot, 570);
    let error = open(&home).map(drop).unwrap_err();
    assert_eq!(
        (error.kind(), error.at().file.as_deref()),
        (ErrorKind::Corrupt, Some(&snapshot[..])),
        "{error}"
    );
    // Where the log is damaged, no snapshot would help.
    let first = first_segment(&home);
    damage(&home.disk(Room::Log, 1), &first, 4096 + 512);
    let error = open(&home).map(drop).unwrap_err();
    assert_eq!((error.kind(), error.at().file.as_deref()), (ErrorKind::Corrupt, Some(&first[..])), "{error}");
}

/// Somebody has cut the log by itself: what the snapshot has and the log has not would be numbered a second time.
#[test]
fn a_log_that_ends_before_the_snapshot_is_refused() {
    let home = closed(false);
    // More are to be kept, so that nothing is purged.
    let options = options().snapshots_kept(3);
    let (engine, _) = options.open_home(home.clone(), Box::new(Unobserved)).unwrap();
    assert_eq!(engine.snapshot().unwrap().join().unwrap().end, Zxid::new(80));
    engine.close().unwrap();
    let (log, _) = options.log.open_sim(&home.disk(Room::Log, 1)).unwrap();
    log.truncate(Zxid::new(70)).unwrap().0.close().unwrap();
    let error = open(&home).map(drop).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "log_behind_snapshot"), "{error}");
}

/// Until the state in use is known to be whole, the other one may be all there is.
#[test]
fn ls_09_the_spare_state_is_there_until_the_one_in_use_has_opened() {
    let home = closed(true);
    let manifest = ManifestFile::read(&home.root()).unwrap().unwrap();
    for room in [Room::Snapshots, Room::Log] {
        home.room(room, 2).unwrap();
    }
    manifest.commit(|manifest| manifest.spare = 2).unwrap();
    let whole = home.fork();
    damage(&home.disk(Room::Log, 1), &first_segment(&home), 4096 + 512);
    open(&home).map(drop).unwrap_err();
    let spare = ManifestFile::read(&home.root()).unwrap().unwrap().get().spare;
    assert_eq!((home.generations().unwrap(), spare), (vec![1, 2], 2));
    let whole = Arc::new(whole);
    open(&whole).unwrap().0.close().unwrap();
    let spare = ManifestFile::read(&whole.root()).unwrap().unwrap().get().spare;
    assert_eq!((whole.generations().unwrap(), spare), (vec![1], 0));
}
