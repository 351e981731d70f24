//! What a double of a log is made of.

use super::*;
use crate::base::{Clock, Epoch, ErrorKind};
use crate::log::{AppendTicket, LogOptions, Record, Retention};
use crate::sim::{Effect, Fault, FaultOp, NamePattern, SimDisk};

fn zxid(counter: u32) -> Zxid {
    Zxid::from_parts(1, counter)
}

fn options() -> LogOptions {
    LogOptions::new().segment_bytes(16 * 1024).block_bytes(512).idle_mark(None)
}

fn append(log: &Log, counters: std::ops::RangeInclusive<u32>) {
    for counter in counters {
        log.append(&Record::new(zxid(counter), 5, b"payload")).and_then(AppendTicket::wait).unwrap();
    }
}

/// A log of so many records; a segment takes 23 of them.
fn log_of(records: u32) -> Log {
    let (log, _) = options().open_sim(&SimDisk::new(1)).unwrap();
    log.advance_epoch(Epoch::new(1)).unwrap();
    append(&log, 1..=records);
    log
}

/// What is linked, what is copied, and the cuts, each with its segment, its last record and where it goes on.
type Parts = (Vec<u64>, Vec<u64>, Vec<(u64, u32, u64)>);

fn parts(log: &Log) -> Parts {
    let plan = plan(&log.shared).unwrap();
    let manifest = &plan.manifest;
    assert_eq!((manifest.durable_zxid, manifest.clean, manifest.epoch), (plan.last_zxid, true, log.epoch()));
    assert_eq!(plan.last_zxid, log.durable_zxid());
    let cuts = manifest.cuts.iter().map(|cut| (cut.seq, cut.last_zxid.counter(), cut.next_seq)).collect();
    (plan.sealed.clone(), plan.open.iter().map(|(seq, _)| *seq).collect(), cuts)
}

#[test]
fn sealed_segments_are_linked_and_the_one_in_use_is_copied_as_far_as_it_counts() {
    let log = log_of(80);
    assert_eq!(parts(&log), (vec![1, 2, 3], vec![4], vec![(4, 80, 5)]));
    let end = log.shared.inner().core.active().offset;
    assert_eq!(plan(&log.shared).unwrap().open, [(4, end)]);
    // Of an empty log too there is a segment.
    assert_eq!(parts(&log_of(0)), (vec![], vec![1], vec![(1, 0, 2)]));
}

/// A segment that was cut is shortened by its log, and read by another rule: it is nobody's but its own.
#[test]
fn a_segment_that_was_cut_is_copied_and_ends_but_once() {
    let (log, _) = log_of(80).truncate(zxid(40)).unwrap();
    let in_use = log.shared.inner().core.active().header.seq;
    // Nothing stands in the one in use yet.
    assert_eq!(parts(&log), (vec![1], vec![2], vec![(2, 40, in_use + 1)]));
    append(&log, 41..=42);
    let cuts = vec![(2, 40, in_use), (in_use, 42, in_use + 1)];
    assert_eq!(parts(&log), (vec![1], vec![2, in_use], cuts));
}

#[test]
fn what_is_not_durable_is_in_no_double() {
    let disk = SimDisk::new(1);
    let (log, _) = options().open_sim(&disk).unwrap();
    disk.inject(Fault::next(FaultOp::Write, Effect::Stall).on(NamePattern::Suffix(".seg".into())));
    let ticket = log.append_next(Epoch::ZERO, 0, b"not yet").unwrap();
    let last_zxid = plan(&log.shared).unwrap().last_zxid;
    assert_eq!((log.logged_zxid(), last_zxid), (ticket.zxid(), Zxid::ZERO));
    // Whoever closes the log writes it, and waits for it.
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| log.close());
        while !closing.is_finished() {
            disk.release_stalled();
            std::thread::yield_now();
        }
        closing.join().unwrap().unwrap();
    });
    ticket.wait().unwrap();
}

#[test]
fn what_a_double_is_made_of_is_not_purged_meanwhile() {
    let log = log_of(80);
    let held = plan(&log.shared).unwrap();
    let report = log.purge(zxid(70), &Retention::new()).unwrap();
    assert!(report.held_by_pin && report.removed.is_empty(), "{report:?}");
    drop(held);
    assert_eq!(log.purge(zxid(70), &Retention::new()).unwrap().floor_zxid, zxid(69));
}

#[test]
fn a_log_that_has_failed_has_no_double() {
    let disk = SimDisk::new(1);
    let (log, _) = options().open_sim(&disk).unwrap();
    disk.inject(Fault::next(FaultOp::Write, Effect::EIO).on(NamePattern::Suffix(".seg".into())));
    log.append_next(Epoch::ZERO, 0, b"lost").unwrap().wait().unwrap_err();
    let to = SimDisk::new(2);
    assert_eq!(log.checkpoint(&to.handle()).unwrap_err().kind(), ErrorKind::Poisoned);
    assert!(to.handle().list().unwrap().is_empty(), "nothing was begun");
}

/// Epoch, floor and cuts are of one moment: changes of the log as a whole come one by one.
#[test]
fn doubles_purges_and_epochs_come_one_by_one() {
    let log = log_of(80);
    let changes: [&(dyn Fn() + Sync); 3] = [
        &|| drop(plan(&log.shared).unwrap()),
        &|| drop(log.purge(zxid(40), &Retention::new()).unwrap()),
        &|| log.advance_epoch(Epoch::new(2)).unwrap(),
    ];
    for change in changes {
        std::thread::scope(|scope| {
            let held = log.shared.rare.lock();
            let changing = scope.spawn(change);
            let (clock, begin) = (Clock::real(), Clock::real().nanos());
            while clock.nanos() - begin < 30_000_000 {
                assert!(!changing.is_finished(), "beside another one");
                std::thread::yield_now();
            }
            drop(held);
            changing.join().unwrap();
        });
    }
    assert_eq!((log.floor_zxid(), log.epoch()), (zxid(23), Epoch::new(2)));
}
