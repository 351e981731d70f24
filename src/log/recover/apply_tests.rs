//! What an open goes on with, and what it leaves of the last life.

use super::*;
use crate::format::SegmentFill;
use crate::log::{AppendTicket, Log, Record};
use crate::sim::{CrashImage, SimDisk};

/// Segments of 23 groups of one record.
fn options() -> LogOptions {
    LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None)
}

fn zxid(counter: u32) -> Zxid {
    Zxid::from_parts(1, counter)
}

fn append(log: &Log, counters: std::ops::RangeInclusive<u32>) {
    for counter in counters {
        log.append(&Record::new(zxid(counter), 5, b"payload")).and_then(AppendTicket::wait).unwrap();
    }
}

fn log_of(disk: &SimDisk, options: &LogOptions, records: u32) -> Log {
    let (log, _) = options.open_sim(disk).unwrap();
    log.advance_epoch(Epoch::new(1)).unwrap();
    append(&log, 1..=records);
    log
}

fn names(disk: &SimDisk) -> Vec<String> {
    disk.handle().list().unwrap().into_iter().map(|entry| entry.name).collect()
}

/// Waits until the prepared segment with this number is there, for ten seconds at most.
fn until_prepared(disk: &SimDisk, seq: u64) {
    let (clock, begin) = (Clock::real(), Clock::real().nanos());
    while !names(disk).contains(&segment_name(seq)) {
        assert!(clock.nanos() - begin < 10_000_000_000, "segment {seq} does not come");
        std::thread::yield_now();
    }
}

/// Else its seal counts wrong, its index begins late, or a group goes where the seal belongs.
#[test]
fn a_segment_is_gone_on_with_as_it_was_left() {
    let disk = SimDisk::new(1);
    log_of(&disk, &options(), 10).close().unwrap();
    let (log, _) = options().open_sim(&disk).unwrap();
    append(&log, 11..=11);
    {
        let inner = log.shared.inner();
        let active = inner.core.active();
        assert_eq!((active.header.seq, active.records, active.groups), (1, 11, 11));
        assert_eq!(active.index.first().map(|entry| entry.first_zxid), Some(zxid(1)));
    }
    append(&log, 12..=23);
    log.close().unwrap();
    let (log, _) = options().open_sim(&disk).unwrap();
    append(&log, 24..=24);
    assert_eq!(log.shared.inner().core.active().header.seq, 2, "the first one is full");
    log.close().unwrap();
    assert_eq!(options().open_sim(&disk).unwrap().1.last_zxid, zxid(24));
}

#[test]
fn a_prepared_segment_is_taken_over_if_it_is_as_one_would_be_made_now() {
    let disk = SimDisk::new(1);
    let log = log_of(&disk, &options(), 3);
    until_prepared(&disk, 2);
    log.close().unwrap();
    let (log, report) = options().open_sim(&disk).unwrap();
    assert_eq!((report.removed.len(), report.moved_aside.len()), (0, 0), "{report:?}");
    assert!(!log.shared.inner().core.wants_next());
    log.close().unwrap();
    let (_log, report) = options().segment_bytes(32 * 1024).open_sim(&disk).unwrap();
    assert_eq!((report.removed, report.moved_aside.len()), (vec![segment_name(2)], 0));
}

/// What an open has found counts as durable from then on: it was made so.
#[test]
fn tt_01_what_was_recovered_once_is_no_torn_end_the_next_time() {
    let disk = SimDisk::new(1);
    // Of a length that says nothing.
    let options = options().fill(SegmentFill::Growing);
    drop(log_of(&disk, &options, 5));
    let (log, report) = options.open_sim(&disk).unwrap();
    assert_eq!(report.last_zxid, zxid(5));
    drop(log);
    let name = segment_name(1);
    let file = disk.handle().open(&name, OpenMode::Write { direct: false }).unwrap();
    file.write_all_at(4096 + 4 * 512, &[0; 512]).unwrap();
    let error = options.open_sim(&disk).map(drop).unwrap_err();
    assert_eq!((error.kind(), error.at().zxid), (ErrorKind::Corrupt, Some(zxid(5))), "{error}");
}

/// Who starts again after a crash does not wait for a whole segment to be written.
#[test]
fn after_a_crash_the_log_goes_on_in_a_small_segment() {
    let disk = SimDisk::new(1);
    let options = options().segment_bytes(8 << 20);
    drop(log_of(&disk, &options, 2));
    disk.crash(CrashImage::DropUnsynced);
    let (log, _) = options.open_sim(&disk).unwrap();
    assert_eq!(log.shared.inner().core.active().header.capacity, FRESH_BYTES);
    append(&log, 3..=3);
    log.close().unwrap();
}

#[test]
fn a_segment_of_which_the_making_was_cut_short_is_cleared_away() {
    let disk = SimDisk::new(1);
    log_of(&disk, &options(), 2).close().unwrap();
    let temp = segment_temp_name(9);
    disk.handle().open(&temp, OpenMode::CreateNew { direct: false }).unwrap();
    let (log, report) = options().open_sim(&disk).unwrap();
    assert!(report.removed.contains(&temp), "{report:?}");
    // By the thread that has the time.
    let (clock, begin) = (Clock::real(), Clock::real().nanos());
    while names(&disk).contains(&temp) {
        assert!(clock.nanos() - begin < 10_000_000_000, "it stays");
        std::thread::yield_now();
    }
    log.close().unwrap();
}

/// A log that moved to a disk with larger sectors: its blocks are too small for direct writes there.
#[test]
fn small_blocks_are_written_through_the_cache_where_they_are_not_taken_directly() {
    let disk = SimDisk::new(1);
    disk.set_direct_align_bytes(Some(512));
    log_of(&disk, &options(), 2).close().unwrap();
    disk.set_direct_align_bytes(Some(4096));
    let (log, _) = options().open_sim(&disk).unwrap();
    append(&log, 3..=4);
    log.close().unwrap();
    assert_eq!(options().open_sim(&disk).unwrap().1.last_zxid, zxid(4));
}

/// A truncated log is a clean one until it is used, and says what was cut from it as long as that is there.
#[test]
fn tr_05_a_truncated_log_is_clean_and_names_what_was_cut() {
    let disk = SimDisk::new(1);
    let (log, report) = log_of(&disk, &options(), 80).truncate(zxid(40)).unwrap();
    drop(log);
    let disk_of_view = disk.fork(CrashImage::KeepAll);
    let (log, opened) = options().open_sim(&disk).unwrap();
    assert_eq!((&opened.asides, opened.tail), (&report.moved_aside, TailState::Unclean), "{opened:?}");
    log.close().unwrap();
    let found = super::super::survey(&disk_of_view.handle()).unwrap();
    assert_eq!(found.asides, report.moved_aside);
    let again = SimDisk::new(2);
    log_of(&again, &options(), 80).close().unwrap();
    crate::log::retain::truncate_on(&again.handle(), zxid(40), crate::log::Execution::Real).unwrap();
    assert_eq!(options().open_sim(&again).unwrap().1.tail, TailState::Clean);
}

/// A segment without a record has no time of its own: the running maximum is that of what came before it.
#[test]
fn cl_01_the_running_maximum_of_the_times_goes_on_over_an_empty_segment() {
    let disk = SimDisk::new(1);
    drop(log_of(&disk, &options(), 3));
    // Goes on in a new segment, in which nothing comes to stand.
    options().open_sim(&disk).unwrap().0.close().unwrap();
    let (log, _) = options().open_sim(&disk).unwrap();
    log.append(&Record::new(zxid(4), -7, b"earlier")).unwrap().wait().unwrap();
    let index = log.shared.inner().core.active().index.clone();
    assert_eq!((index[0].first_zxid, index[0].time_max_before_ms), (zxid(4), 5));
}
