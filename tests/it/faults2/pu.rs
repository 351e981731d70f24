//! Purging.

use std::time::Duration;

use arborlog::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};
use arborlog::{Epoch, ErrorKind, Health, Log, Record, Retention, Zxid};

use super::support::{EIO, EPERM, content, in_epoch_1, model, put_range, refused, t, tens};

fn log_of_fifty(seed: u64) -> (SimDisk, Log) {
    let disk = SimDisk::new(seed);
    let log = in_epoch_1(tens().open_sim(&disk).unwrap().0);
    put_range(&log, 1..=50);
    (disk, log)
}

fn segments(disk: &SimDisk) -> usize {
    disk.names().iter().filter(|name| name.ends_with(".seg")).count()
}

/// A segment that begins before the snapshot but holds records after it stays: for every place of the snapshot.
#[test]
fn pu_01_nothing_after_the_named_zxid_is_purged() {
    for through in 0..=50 {
        let (disk, log) = log_of_fifty(u64::from(through));
        let named = if through == 0 { Zxid::ZERO } else { t(through) };
        let report = log.purge(named, &Retention::new()).unwrap();
        let gone = if through == 50 { 40 } else { through / 10 * 10 };
        assert_eq!(report.floor_zxid, if gone == 0 { Zxid::ZERO } else { t(gone) }, "{through}");
        assert_eq!(content(&log), model((gone + 1..=50).map(t)), "{through}");
        disk.crash(CrashImage::DropUnsynced);
        drop(log);
        let (log, _) = tens().open_sim(&disk).unwrap();
        assert_eq!(content(&log), model((gone + 1..=50).map(t)), "{through}");
    }
}

/// Every rule of retention keeps, and only all together let go.
#[test]
fn pu_03_each_rule_of_retention_keeps_what_it_says() {
    let hour = Duration::from_secs(3600);
    let rules: [(Retention, u32); 6] = [
        (Retention::new(), 40),
        (Retention::new().segments_min(3), 20),
        (Retention::new().segments_min(100), 0),
        (Retention::new().bytes_min(45_000), 10),
        (Retention::new().bytes_min(u64::MAX), 0),
        // The records' times are those of 1970: all of them are old.
        (Retention::new().age_min(hour), 40),
    ];
    for (rule, gone) in rules {
        let (_, log) = log_of_fifty(1);
        log.purge(t(50), &rule).unwrap();
        assert_eq!(log.floor_zxid(), if gone == 0 { Zxid::ZERO } else { t(gone) }, "{rule:?}");
    }
    let disk = SimDisk::new(1);
    let log = in_epoch_1(tens().open_sim(&disk).unwrap().0);
    let young = i64::MAX;
    for n in 1..=30 {
        log.append(&Record::new(t(n), young, &[0; 1100])).unwrap().wait().unwrap();
    }
    assert!(log.purge(t(30), &Retention::new().age_min(hour)).unwrap().removed.is_empty(), "all are young");
}

/// A smaller zxid after a larger one takes nothing back, in either order and over a crash.
#[test]
fn pu_04_the_floor_never_falls() {
    for (first, second) in [(35, 15), (15, 35)] {
        let (disk, log) = log_of_fifty(1);
        log.purge(t(first), &Retention::new()).unwrap();
        let floor = log.floor_zxid();
        log.purge(t(second), &Retention::new()).unwrap();
        assert!(log.floor_zxid() >= floor);
        assert_eq!(log.floor_zxid(), t(30));
        disk.crash(CrashImage::DropUnsynced);
        drop(log);
        let (log, report) = tens().open_sim(&disk).unwrap();
        assert_eq!((log.floor_zxid(), report.floor_zxid), (t(30), t(30)));
    }
    // At once, from two threads.
    let (_, log) = log_of_fifty(2);
    std::thread::scope(|scope| {
        for through in [15, 35, 25] {
            let log = &log;
            scope.spawn(move || log.purge(t(through), &Retention::new()).unwrap());
        }
    });
    assert_eq!(content(&log), model((31..=50).map(t)));
}

/// Power goes at every operation of a purge: the log opens, and has lost nothing that it may not lose.
#[test]
fn pu_04_a_crash_in_a_purge_loses_nothing() {
    for step in 1..100 {
        for image in [
            CrashImage::DropUnsynced,
            CrashImage::KeepAll,
            CrashImage::Random(step),
            CrashImage::Random(!step),
        ] {
            let (disk, log) = log_of_fifty(1);
            disk.crash_at(disk.operations() + step, image);
            let done = log.purge(t(35), &Retention::new()).is_ok();
            disk.crash(image);
            drop(log);
            let (log, _) = tens().open_sim(&disk).unwrap_or_else(|e| panic!("{step} {image:?}: {e}"));
            let floor = log.floor_zxid().counter();
            assert!(floor == 30 || floor == 0 && !done, "{step} {image:?}: {floor}");
            assert_eq!(content(&log), model((floor + 1..=50).map(t)), "{step} {image:?}");
            if floor == 30 {
                assert!(segments(&disk) <= 4, "the next open removes what is left: {:?}", disk.names());
            }
            if done && image == CrashImage::KeepAll {
                return;
            }
        }
    }
    panic!("the purge never ended");
}

/// A file that cannot be removed is told, does not stop the others, and goes at the next open.
#[test]
fn pu_06_a_file_that_stays_is_told_and_removed_later() {
    let (disk, log) = log_of_fifty(1);
    disk.inject(Fault::next(FaultOp::Remove, Effect::Error(EPERM)).on(NamePattern::Suffix(".seg".into())));
    let report = log.purge(t(35), &Retention::new()).unwrap();
    assert_eq!((report.removed.len(), report.left.len(), disk.fault_hits()), (2, 1, 1));
    let (name, error) = &report.left[0];
    assert_eq!(error.raw_os_error(), Some(EPERM));
    assert!(disk.names().contains(name));
    assert_eq!(content(&log), model((31..=50).map(t)));
    assert!(matches!(log.health(), Health::Fine));
    drop(log);
    let (log, report) = tens().open_sim(&disk).unwrap();
    assert!(report.removed.contains(name), "{report}");
    assert!(!disk.names().contains(name));
    assert_eq!(content(&log), model((31..=50).map(t)));
}

/// What cannot be read as a segment of ours is never removed, and does not stop the others.
#[test]
fn pu_06_what_is_not_known_to_be_ours_is_left() {
    let (disk, log) = log_of_fifty(1);
    let first = disk.names().into_iter().find(|n| n.ends_with(".seg")).unwrap();
    disk.put_other(&first);
    let report = log.purge(t(35), &Retention::new()).unwrap();
    assert_eq!((report.removed.len(), report.left.len()), (2, 1));
    assert_eq!((report.left[0].0.as_str(), report.left[0].1.code()), (first.as_str(), "not_a_file"));
    drop(log);
    // A purged segment with a damaged header stays as well when the log is opened again.
    let (disk, log) = log_of_fifty(1);
    disk.inject(Fault::next(FaultOp::Remove, Effect::Error(EPERM)).on(NamePattern::Suffix(".seg".into())));
    log.purge(t(35), &Retention::new()).unwrap();
    drop(log);
    disk.flip(&first, 40, 0x5a);
    let (log, _) = tens().open_sim(&disk).unwrap();
    assert!(disk.names().contains(&first), "it may be somebody's");
    assert_eq!(content(&log), model((31..=50).map(t)));
}

/// The manifest comes before the files: if it cannot be written, no file goes.
#[test]
fn pu_06_a_manifest_that_fails_removes_nothing() {
    let (disk, log) = log_of_fifty(1);
    let before = segments(&disk);
    disk.inject(
        Fault::next(FaultOp::Write, Effect::Error(EIO)).on(NamePattern::Suffix("manifest.tmp".into())),
    );
    refused(log.purge(t(35), &Retention::new()));
    // The next segment may have been prepared meanwhile; none is gone.
    assert!(segments(&disk) >= before && disk.fault_hits() == 1);
    assert_eq!(refused(log.append_next(Epoch::new(1), 0, b"")).kind(), ErrorKind::Poisoned);
    drop(log);
    assert_eq!(content(&tens().open_sim(&disk).unwrap().0), model((1..=50).map(t)));
}

/// A pin and a reader keep what they need, and nothing after they are let go.
#[test]
fn pu_07_pins_and_readers_keep_what_they_need() {
    let (_, log) = log_of_fifty(1);
    let pin = log.pin(t(15)).unwrap();
    let report = log.purge(t(50), &Retention::new()).unwrap();
    assert!(report.held_by_pin);
    assert_eq!(log.floor_zxid(), t(10));
    let mut reader = log.reader(t(25)).unwrap();
    drop(pin);
    log.purge(t(50), &Retention::new()).unwrap();
    assert_eq!(log.floor_zxid(), t(20), "the reader needs 26 and what follows");
    for n in 26..=50 {
        assert_eq!(reader.next_record().unwrap().unwrap().zxid, t(n));
    }
    assert!(log.purge(t(30), &Retention::new()).unwrap().removed.len() == 1, "it needs 21..30 no more");
    drop(reader);
    let report = log.purge(t(50), &Retention::new()).unwrap();
    assert!(!report.held_by_pin);
    assert_eq!(log.floor_zxid(), t(40));
    assert_eq!(refused(log.pin(t(15))).kind(), ErrorKind::NotInLog);
    assert_eq!(refused(log.reader(t(39))).kind(), ErrorKind::NotInLog);
    // There is no lease that ends by itself: a pin is an object, and lives as long as its owner wants.
}
