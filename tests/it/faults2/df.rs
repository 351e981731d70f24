//! A full disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arborlog::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};
use arborlog::{AppendTicket, ErrorKind, Health, Log, Retention, SegmentFill};

use super::support::{
    EIO, ENOSPC, append, content, eventually, in_epoch_1, model, now, put_range, refused, seen, t, tens,
};

const WRITING: [FaultOp; 6] =
    [FaultOp::Create, FaultOp::Write, FaultOp::Rename, FaultOp::SetLen, FaultOp::Allocate, FaultOp::SyncDir];

fn on_segments(op: FaultOp, effect: Effect) -> Fault {
    Fault::next(op, effect).on(NamePattern::Suffix(".seg".into()))
}

fn log_of(disk: &SimDisk, records: u32) -> Log {
    let log = in_epoch_1(tens().open_sim(disk).unwrap().0);
    put_range(&log, 1..=records);
    log
}

/// k bytes of the group land before the disk is full. Everyone is told; nothing is acknowledged behind the
/// fragment; the next open has what was acknowledged, and the same numbers can be used again.
#[test]
fn df_01_a_fragment_of_a_group_hides_nothing() {
    for errno in [ENOSPC, EIO] {
        for bytes in (0..=1536).step_by(97) {
            let disk = SimDisk::new(bytes);
            let log = log_of(&disk, 5);
            disk.inject(on_segments(FaultOp::Write, Effect::ShortThenError { bytes, errno }));
            let tickets: Vec<_> = (6..=8).map(|n| append(&log, t(n)).unwrap()).collect();
            for ticket in tickets {
                let error = refused(ticket.wait());
                assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Poisoned, Some(errno)));
            }
            assert_eq!(disk.fault_hits(), 1);
            // There is space again by now, and still nothing is taken: what is on disk is not known.
            assert_eq!(refused(append(&log, t(9))).kind(), ErrorKind::Poisoned);
            assert_eq!((log.durable_zxid(), content(&log).len()), (t(5), 5), "what is durable can be read");
            drop(log);
            let (log, _) = tens().open_sim(&disk).unwrap();
            let is = content(&log);
            assert!((5..=8).any(|n| is == model((1..=n).map(t))), "{bytes}: {}", is.len());
            let next = log.durable_zxid().counter() + 1;
            put_range(&log, next..=next + 12);
            disk.crash(CrashImage::DropUnsynced);
            drop(log);
            assert_eq!(content(&tens().open_sim(&disk).unwrap().0), model((1..=next + 12).map(t)));
        }
    }
}

/// Every write-type call says that the disk is full, from the start.
#[test]
fn df_03_a_full_disk_can_be_read_and_is_not_harmed() {
    for clean in [false, true] {
        let disk = SimDisk::new(3);
        let log = log_of(&disk, 25);
        if clean {
            log.close().unwrap();
        } else {
            drop(log);
        }
        let kept = disk.fork(CrashImage::KeepAll);
        for op in WRITING {
            disk.inject(Fault::next(op, Effect::Error(ENOSPC)).times(u64::MAX));
        }
        let before = disk.snapshot_bytes();
        let (view, report) = tens().open_read_only_sim(&disk).unwrap();
        assert_eq!((seen(&view), report.records), (model((1..=25).map(t)), 25));
        assert!(disk.snapshot_bytes() == before, "a view changes nothing");
        let error = refused(tens().open_sim(&disk));
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        let (view, _) = tens().open_read_only_sim(&disk).unwrap();
        assert_eq!(seen(&view), model((1..=25).map(t)));
        disk.clear_faults();
        let (log, _) = tens().open_sim(&disk).unwrap();
        put_range(&log, 26..=40);
        assert_eq!(content(&log), model((1..=40).map(t)));
        drop(kept);
    }
}

/// A disk that is really full, blocks and all: the log opens after a crash and after a clean close, can be
/// purged, and goes on in the space that the purge gave back.
#[test]
fn df_03_a_full_disk_can_be_opened_and_purged() {
    for clean in [false, true] {
        let disk = SimDisk::new(3);
        let log = log_of(&disk, 45);
        eventually("the next segment is ready", || {
            disk.names().iter().filter(|n| n.ends_with(".seg")).count() == 6
        });
        if clean {
            log.close().unwrap();
        } else {
            drop(log);
        }
        let used: usize = disk.snapshot_bytes().values().map(|b| b.len().next_multiple_of(4096)).sum();
        disk.set_space_bytes(Some(used as u64));
        let (log, _) = tens().open_sim(&disk).unwrap_or_else(|e| panic!("clean {clean}: {e}"));
        assert_eq!(content(&log), model((1..=45).map(t)));
        let report = log.purge(t(40), &Retention::new()).unwrap();
        assert_eq!(report.removed.len(), 4);
        put_range(&log, 46..=60);
        drop(log);
        let (log, _) = tens().open_sim(&disk).unwrap();
        assert_eq!(content(&log), model((41..=60).map(t)));
    }
}

/// No blocks can be reserved: the log goes on in segments that grow.
#[test]
fn df_04_a_refused_reservation_is_no_failure() {
    for fill in [SegmentFill::Zeroed, SegmentFill::Allocated] {
        let disk = SimDisk::new(4);
        let (log, _) = tens().fill(fill).open_sim(&disk).unwrap();
        let log = in_epoch_1(log);
        disk.inject(Fault::next(FaultOp::Allocate, Effect::ENOSPC).times(u64::MAX));
        put_range(&log, 1..=55);
        assert!(disk.fault_hits() > 2 && log.stats().rolls == 5, "{:?}", log.stats());
        assert!(matches!(log.health(), Health::Fine));
        disk.crash(CrashImage::DropUnsynced);
        drop(log);
        assert_eq!(content(&tens().open_sim(&disk).unwrap().0), model((1..=55).map(t)));
    }
}

/// The next segment cannot be made at all: what is in use is filled, then appends are told so, and go on by
/// themselves when there is space again.
#[test]
fn df_04_no_space_for_the_next_segment_passes_by_itself() {
    let disk = SimDisk::new(4);
    let log = log_of(&disk, 1);
    eventually("the next segment is ready", || {
        disk.names().iter().filter(|n| n.ends_with(".seg")).count() == 2
    });
    disk.inject(
        Fault::next(FaultOp::Create, Effect::ENOSPC)
            .on(NamePattern::Suffix(".seg.tmp".into()))
            .times(u64::MAX),
    );
    let start = now();
    let mut last = 1;
    let error = loop {
        match append(&log, t(last + 1)).and_then(AppendTicket::wait) {
            Ok(_) => last += 1,
            Err(error) => break error,
        }
        assert!(last <= 20 && start.elapsed() < Duration::from_secs(5), "two segments take 20 records");
    };
    assert_eq!((error.kind(), last), (ErrorKind::NoSpace, 20), "{error}");
    assert_eq!(
        refused(log.try_append(&arborlog::Record::new(t(21), 0, &[0; 1100]))).kind(),
        ErrorKind::NoSpace
    );
    assert!(matches!(log.health(), Health::Fine) && log.stats().prepare_failures > 0);
    assert_eq!(content(&log), model((1..=20).map(t)));
    disk.clear_faults();
    eventually("appends go on", || append(&log, t(21)).is_ok_and(|ticket| ticket.wait().is_ok()));
    put_range(&log, 22..=45);
    // The next segment may be on its way; nothing half made stays.
    eventually("no temporary file stays", || !disk.names().iter().any(|n| n.ends_with(".tmp")));
    log.close().unwrap();
    assert_eq!(content(&tens().open_sim(&disk).unwrap().0), model((1..=45).map(t)));
}

/// A permanent failure reaches everyone within a second: threads that wait, polls, callbacks, later appends,
/// the health; and letting go of the log returns.
#[test]
fn df_06_a_failure_reaches_everyone() {
    for errno in [EIO, ENOSPC] {
        let disk = SimDisk::new(6);
        let log = log_of(&disk, 5);
        disk.inject(on_segments(FaultOp::Write, Effect::Error(errno)).times(u64::MAX));
        let start = now();
        let calls = Arc::new(AtomicU32::new(0));
        let counted = calls.clone();
        append(&log, t(6)).unwrap().on_durable(move |outcome| {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Poisoned);
            counted.fetch_add(1, Ordering::SeqCst);
        });
        let log = &log;
        std::thread::scope(|scope| {
            for n in 7..=12 {
                // Those that come after the failure are refused at once.
                let Ok(ticket) = append(log, t(n)) else { continue };
                scope.spawn(move || {
                    assert_eq!(
                        refused(ticket.wait_timeout(Duration::from_secs(5))).kind(),
                        ErrorKind::Poisoned
                    )
                });
            }
        });
        eventually("the callback", || calls.load(Ordering::SeqCst) == 1);
        assert_eq!(refused(append(log, t(20))).kind(), ErrorKind::Poisoned);
        assert_eq!(refused(log.flush()).kind(), ErrorKind::Poisoned);
        assert_eq!(refused(log.purge(t(1), &Retention::new())).kind(), ErrorKind::Poisoned);
        refused(log.advance_epoch(arborlog::Epoch::new(2)));
        match log.health() {
            Health::Failed(error) => assert_eq!(error.raw_os_error(), Some(errno)),
            health => panic!("{health:?}"),
        }
        let reader = log.reader(t(5)).unwrap();
        refused(reader.wait(Duration::from_secs(5)));
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        assert_eq!(calls.load(Ordering::SeqCst), 1, "told once");
    }
    let disk = SimDisk::new(6);
    let log = log_of(&disk, 5);
    disk.inject(on_segments(FaultOp::Write, Effect::Error(EIO)).times(u64::MAX));
    let ticket = append(&log, t(6)).unwrap();
    let start = now();
    assert_eq!(refused(log.close()).kind(), ErrorKind::Poisoned);
    assert_eq!(refused(ticket.wait()).kind(), ErrorKind::Poisoned);
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// The manifest cannot be written when the epoch changes: whether it is the new one is not known, so nothing
/// more is let in.
#[test]
fn df_06_a_manifest_that_fails_poisons() {
    for op in [FaultOp::Create, FaultOp::Write, FaultOp::Sync, FaultOp::Rename, FaultOp::SyncDir] {
        let disk = SimDisk::new(6);
        let log = log_of(&disk, 15);
        eventually("the next segment is ready", || {
            disk.names().iter().filter(|n| n.ends_with(".seg")).count() == 3
        });
        disk.inject(Fault::next(op, Effect::EIO).times(u64::MAX));
        assert_eq!(refused(log.advance_epoch(arborlog::Epoch::new(2))).kind(), ErrorKind::Io, "{op:?}");
        assert_eq!(refused(append(&log, t(16))).kind(), ErrorKind::Poisoned, "{op:?}");
        disk.clear_faults();
        drop(log);
        let (log, _) = tens().open_sim(&disk).unwrap();
        assert!([1, 2].contains(&log.epoch().get()), "{op:?}");
        assert_eq!(content(&log), model((1..=15).map(t)), "{op:?}");
    }
}

/// A change of the manifest that a full disk refuses leaves nothing behind, and changes nothing; what a crash left of one
/// is cleared away by the next open.
#[test]
fn df_03_a_change_that_is_refused_leaves_no_half_of_a_manifest() {
    const TEMP: &str = "log.manifest.tmp";
    for op in [FaultOp::Create, FaultOp::Write, FaultOp::Sync, FaultOp::Rename] {
        let disk = SimDisk::new(3);
        log_of(&disk, 25).close().unwrap();
        let (log, _) = tens().open_sim(&disk).unwrap();
        let fault = Fault::next(op, Effect::Error(ENOSPC)).on(NamePattern::Exact(TEMP.into()));
        disk.inject(fault.times(u64::MAX));
        assert_eq!(refused(log.truncate(t(5))).kind(), ErrorKind::NoSpace, "{op:?}");
        assert!(!disk.names().iter().any(|name| name == TEMP), "{op:?}: {:?}", disk.names());
        disk.clear_faults();
        disk.write_file(TEMP, b"");
        let (log, report) = tens().open_sim(&disk).unwrap();
        assert_eq!((report.last_zxid, content(&log)), (t(25), model((1..=25).map(t))), "{op:?}");
        assert!(!disk.names().iter().any(|name| name == TEMP), "{op:?}: {:?}", disk.names());
    }
}
