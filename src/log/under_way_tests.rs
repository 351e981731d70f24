//! What waits for writes that are under way, and what does not: epochs, closing, dropping, reading on.

use std::time::Duration;

use crate::base::{Clock, Epoch, ErrorKind, Result, Zxid};
use crate::format::segment_name;
use crate::io::WriteMode;
use crate::log::{AppendTicket, GroupPolicy, Health, Log, LogOptions, Record};
use crate::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};

fn options() -> LogOptions {
    LogOptions::new().segment_bytes(64 << 10).idle_mark(None)
}

fn open(disk: &SimDisk) -> Log {
    options().open_sim(disk).unwrap().0
}

fn in_epoch_1(disk: &SimDisk) -> Log {
    let log = open(disk);
    log.advance_epoch(Epoch::new(1)).unwrap();
    log
}

fn append(log: &Log, epoch: u32, counter: u32) -> Result<AppendTicket> {
    log.append(&Record::new(Zxid::from_parts(epoch, counter), 5, b"record"))
}

fn content(log: &Log) -> Vec<Zxid> {
    let (mut reader, mut found) = (log.reader(Zxid::ZERO).unwrap(), Vec::new());
    while let Some(record) = reader.next_record().unwrap() {
        found.push(record.zxid);
    }
    found
}

/// Looks again and again until it holds, for ten seconds at most.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let (clock, begin) = (Clock::real(), Clock::real().nanos());
    while !holds() {
        assert!(clock.nanos() - begin < 10_000_000_000, "{what} does not come");
        std::thread::yield_now();
    }
}

/// Looks again and again for a while: it has to hold each time.
fn all_the_while(what: &str, mut holds: impl FnMut() -> bool) {
    let (clock, begin) = (Clock::real(), Clock::real().nanos());
    while clock.nanos() - begin < 50_000_000 {
        assert!(holds(), "{what}");
        std::thread::yield_now();
    }
}

/// The next write to a segment does not end before it is let.
fn stall(disk: &SimDisk) {
    disk.inject(Fault::next(FaultOp::Write, Effect::Stall).on(NamePattern::Suffix(".seg".into())));
}

#[test]
fn ep_03_nothing_is_let_in_while_an_epoch_becomes_durable() {
    let disk = SimDisk::new(1);
    let log = in_epoch_1(&disk);
    let mut last = 0;
    std::thread::scope(|scope| {
        let held = log.hold_manifest();
        let changing = scope.spawn(|| log.advance_epoch(Epoch::new(2)));
        until("the word that an epoch changes", || match append(&log, 1, last + 1) {
            Ok(ticket) => {
                drop(ticket);
                last += 1;
                false
            }
            Err(error) => (error.kind(), error.code()) == (ErrorKind::Fenced, "epoch_changing"),
        });
        all_the_while("the new epoch is not durable", || {
            log.epoch() == Epoch::new(1) && !changing.is_finished()
        });
        assert_eq!(append(&log, 2, 1).map(drop).unwrap_err().kind(), ErrorKind::Fenced);
        drop(held);
        changing.join().unwrap().unwrap();
    });
    assert_eq!(log.epoch(), Epoch::new(2));
    append(&log, 2, 1).unwrap().wait().unwrap();
    let mut expected: Vec<Zxid> = (1..=last).map(|n| Zxid::from_parts(1, n)).collect();
    expected.push(Zxid::from_parts(2, 1));
    assert_eq!(content(&log), expected);
    // Also without a record of it.
    log.advance_epoch(Epoch::new(3)).unwrap();
    drop(log);
    disk.crash(CrashImage::DropUnsynced);
    assert_eq!(open(&disk).epoch(), Epoch::new(3));
}

#[test]
fn ep_03_no_epoch_changes_while_a_group_is_under_way() {
    let disk = SimDisk::new(1);
    let log = in_epoch_1(&disk);
    stall(&disk);
    let ticket = append(&log, 1, 1).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| ticket.wait());
        let changing = scope.spawn(|| log.advance_epoch(Epoch::new(2)));
        all_the_while("a group is under way", || log.epoch() == Epoch::new(1) && !changing.is_finished());
        disk.release_stalled();
        changing.join().expect("no panic").unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!((log.epoch(), log.durable_zxid()), (Epoch::new(2), Zxid::from_parts(1, 1)));
}

/// Whether the new epoch stands on disk is not known: neither leader may write before the log is opened anew.
#[test]
fn ep_03_an_epoch_that_could_not_be_written_lets_nobody_in() {
    for op in [FaultOp::Create, FaultOp::Write, FaultOp::Sync, FaultOp::Rename, FaultOp::SyncDir] {
        let disk = SimDisk::new(1);
        let log = in_epoch_1(&disk);
        append(&log, 1, 1).unwrap().wait().unwrap();
        let manifest =
            if op == FaultOp::SyncDir { NamePattern::Any } else { NamePattern::Suffix(".tmp".into()) };
        disk.inject(Fault::next(op, Effect::EIO).on(manifest).times(u64::MAX));
        assert_eq!(log.advance_epoch(Epoch::new(2)).unwrap_err().kind(), ErrorKind::Io, "{op:?}");
        assert_eq!(log.epoch(), Epoch::new(1), "{op:?}");
        disk.clear_faults();
        for epoch in [1, 2] {
            assert_eq!(
                append(&log, epoch, 2).map(drop).unwrap_err().kind(),
                ErrorKind::Poisoned,
                "{op:?} {epoch}"
            );
        }
        assert!(matches!(log.health(), Health::Failed(_)), "{op:?}");
        assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Poisoned, "{op:?}");
        let log = open(&disk);
        assert!((1..=2).contains(&log.epoch().get()), "{op:?}");
        log.advance_epoch(Epoch::new(2)).unwrap();
        append(&log, 2, 1).unwrap().wait().unwrap();
    }
}

#[test]
fn lk_01_a_dropped_log_waits_for_its_writes_and_lets_go() {
    let disk = SimDisk::new(1);
    let log = in_epoch_1(&disk);
    stall(&disk);
    let ticket = append(&log, 1, 1).unwrap();
    std::thread::scope(|scope| {
        // It leads the group, and is no thread of the log.
        let waiting = scope.spawn(|| ticket.wait());
        until("the write", || disk.fault_hits() > 0);
        let dropping = scope.spawn(|| drop(log));
        all_the_while("a write is under way", || !dropping.is_finished());
        disk.release_stalled();
        dropping.join().unwrap();
        drop(open(&disk));
        // The record is there; whether its ticket says so is a matter of who came first.
        let _either = waiting.join().unwrap();
    });
}

/// A write that may still come must not meet another owner.
#[test]
fn lk_01_a_log_whose_write_is_stuck_keeps_its_lock_until_it_has_ended() {
    let disk = SimDisk::new(1);
    let stuck = options().stuck_after(Duration::from_millis(20));
    let (log, _) = stuck.open_sim(&disk).unwrap();
    stall(&disk);
    let ticket = append(&log, 0, 1).unwrap();
    ticket.on_durable(|_| ());
    until("the write", || disk.fault_hits() > 0);
    drop(log);
    all_the_while("a write is under way", || {
        options().open_sim(&disk).map(drop).is_err_and(|error| error.kind() == ErrorKind::Locked)
    });
    disk.release_stalled();
    until("the lock", || options().open_sim(&disk).is_ok());
}

#[test]
fn lk_01_who_still_reads_holds_no_lock() {
    let disk = SimDisk::new(1);
    let log = in_epoch_1(&disk);
    append(&log, 1, 1).unwrap().wait().unwrap();
    let mut reader = log.reader(Zxid::ZERO).unwrap();
    drop(log);
    drop(open(&disk));
    assert_eq!(reader.next_record().unwrap().map(|record| record.zxid), Some(Zxid::from_parts(1, 1)));
}

/// Power goes at each operation of a close that has something to write yet.
#[test]
fn a_close_may_be_cut_short_anywhere_and_writes_all_that_is_logged() {
    for image in [CrashImage::DropUnsynced, CrashImage::KeepAll, CrashImage::Random(3), CrashImage::Random(4)]
    {
        for step in 1.. {
            let disk = SimDisk::new(step);
            let log = in_epoch_1(&disk);
            append(&log, 1, 1).unwrap().wait().unwrap();
            disk.crash_at(disk.operations() + step, image);
            // What is let go of is written soon: the cut may come before the last append.
            let is_logged = (2..=4).all(|counter| append(&log, 1, counter).map(drop).is_ok());
            let is_closed = log.close().is_ok();
            assert!(is_logged || !is_closed, "{step} {image:?}: closed after a failure");
            disk.crash(image);
            let (log, report) = options().open_sim(&disk).unwrap_or_else(|e| panic!("{step} {image:?}: {e}"));
            let found = content(&log);
            let expected: Vec<Zxid> = (1..=4).map(|n| Zxid::from_parts(1, n)).collect();
            assert!(expected.starts_with(&found) && !found.is_empty(), "{step} {image:?}: {found:?}");
            append(&log, 1, 1 + u32::try_from(found.len()).unwrap()).unwrap().wait().unwrap();
            if is_closed {
                assert_eq!(found, expected, "{step} {image:?}: {report}");
                break;
            }
            assert!(step < 100, "a close that does not end");
        }
    }
}

#[test]
fn who_waits_for_more_is_told_of_it_of_its_time_and_of_a_failure() {
    let disk = SimDisk::new(1);
    let log = in_epoch_1(&disk);
    let reader = log.reader(Zxid::ZERO).unwrap();
    let (brief, ample) = (Duration::from_millis(1), Duration::from_secs(10));
    let clock = Clock::real();
    let begin = clock.nanos();
    assert!(!reader.wait(brief).unwrap());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| reader.wait(ample).map(|more| (more, reader)));
        append(&log, 1, 1).unwrap().wait().unwrap();
        let (more, mut reader) = waiting.join().unwrap().unwrap();
        assert!(more && reader.next_record().unwrap().is_some());
        disk.inject(Fault::next(FaultOp::Write, Effect::EIO).times(u64::MAX));
        let waiting = scope.spawn(move || reader.wait(ample));
        assert_eq!(append(&log, 1, 2).unwrap().wait().unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Poisoned);
    });
    assert!(clock.nanos() - begin < 5_000_000_000, "nobody waits for the end of his time");
}

/// It could write into a directory that another one owns by then.
#[test]
fn lk_01_a_ticket_of_a_dropped_log_writes_nothing() {
    let disk = SimDisk::new(1);
    let (log, _) = options().group(GroupPolicy::new().delay(Duration::from_secs(1))).open_sim(&disk).unwrap();
    let ticket = append(&log, 0, 1).unwrap();
    drop(log);
    let before = disk.operations();
    // It may have been a second by then.
    let is_written = !disk.read_file(&segment_name(1)).unwrap()[4096..].iter().all(|byte| *byte == 0);
    assert_eq!(ticket.wait().is_ok(), is_written);
    assert_eq!(disk.operations(), before);
}

#[test]
fn a_close_leaves_no_thread_behind() {
    let log = open(&SimDisk::new(1));
    append(&log, 0, 1).unwrap().wait().unwrap();
    let shared = std::sync::Arc::downgrade(&log.shared);
    log.close().unwrap();
    assert_eq!(shared.strong_count(), 0);
}

/// Nothing is synced before: neither the segment in use nor those that were left.
#[test]
fn tt_14_a_clean_close_makes_an_unsynced_log_durable_or_says_that_it_did_not() {
    let options = options().segment_bytes(16 << 10).block_bytes(512).write_mode(WriteMode::Unsynced);
    for fault in [None, Some((FaultOp::Sync, ".seg")), Some((FaultOp::Write, ".tmp"))] {
        let disk = SimDisk::new(1);
        let (log, _) = options.open_sim(&disk).unwrap();
        for counter in 1..=60 {
            append(&log, 0, counter).unwrap().wait().unwrap();
        }
        assert!(log.stats().rolls >= 2);
        // The segment that comes next may be under way.
        until("the next segment", || !log.shared.inner().core.wants_next());
        if let Some((op, name)) = fault {
            disk.inject(Fault::next(op, Effect::EIO).on(NamePattern::Suffix(name.into())).times(u64::MAX));
            assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Io, "{op:?}");
            continue;
        }
        log.close().unwrap();
        disk.crash(CrashImage::DropUnsynced);
        let (log, report) = options.open_sim(&disk).unwrap();
        assert_eq!((content(&log).len(), log.durable_zxid()), (60, Zxid::from_parts(0, 60)), "{report}");
    }
}
