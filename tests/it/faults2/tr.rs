//! Truncation.

use std::collections::BTreeMap;

use arborlog::sim::{CrashImage, SimDisk};
use arborlog::{AppendTicket, Epoch, ErrorKind, Log, LogOptions, Record, Zxid};

use super::support::{body, content, digest, in_epoch_1, model, put, put_range, refused, t, tens};

fn z(epoch: u32, counter: u32) -> Zxid {
    Zxid::from_parts(epoch, counter)
}

fn new_log(disk: &SimDisk) -> Log {
    in_epoch_1(tens().open_sim(disk).unwrap().0)
}

/// (1,1..100), (2,1..50), and targets in holes, at edges, before and behind.
#[test]
fn tr_01_a_target_that_is_not_in_the_log_cuts_at_the_record_before_it() {
    let all = || (1..=100).map(|n| z(1, n)).chain((1..=50).map(|n| z(2, n)));
    let disk = SimDisk::new(1);
    let log = new_log(&disk);
    put(&log, all().filter(|x| *x < z(2, 0)));
    log.advance_epoch(Epoch::new(2)).unwrap();
    put(&log, all().filter(|x| *x > z(2, 0)));
    log.close().unwrap();
    let targets = [
        (z(1, 150), z(1, 100)),
        (z(2, 0), z(1, 100)),
        (z(1, 100), z(1, 100)),
        (z(1, 37), z(1, 37)),
        (z(0, 5), Zxid::ZERO),
        (Zxid::ZERO, Zxid::ZERO),
        (z(2, 50), z(2, 50)),
    ];
    for (target, last) in targets {
        let disk = disk.fork(CrashImage::KeepAll);
        let (log, report) = tens().open_sim(&disk).unwrap().0.truncate(target).unwrap();
        assert_eq!((report.last_zxid, report.was_zxid), (last, z(2, 50)), "{target}");
        assert_eq!(report.exact, target == last, "{target}");
        assert_eq!(content(&log), model(all().filter(|x| *x <= target)), "{target}");
        let next = z(2, if last == z(2, 50) { 51 } else { 7 });
        put(&log, [next]);
        drop(log);
        let (log, _) = tens().open_sim(&disk).unwrap();
        assert_eq!(content(&log), model(all().filter(|x| *x <= target).chain([next])), "{target}");
    }
    // Behind the end: an error, and nothing changed.
    let (log, _) = tens().open_sim(&disk).unwrap();
    assert_eq!(refused(log.truncate(z(3, 1))).kind(), ErrorKind::NotInLog);
    assert_eq!(content(&tens().open_sim(&disk).unwrap().0), model(all()));
    // Before what is kept: an error, and nothing changed.
    let (log, _) = tens().open_sim(&disk).unwrap();
    log.purge(z(1, 60), &arborlog::Retention::new()).unwrap();
    let (floor, kept) = (log.floor_zxid(), content(&log));
    assert!(floor >= z(1, 40), "{floor}");
    assert_eq!(refused(log.truncate(z(1, 10))).kind(), ErrorKind::NotInLog);
    let (log, _) = tens().open_sim(&disk).unwrap();
    assert_eq!(content(&log), kept);
    let (log, report) = log.truncate(floor).unwrap();
    assert_eq!((report.last_zxid, content(&log).len()), (floor, 0));
}

/// Power goes at every operation of the truncation, of the open behind it and of the appends after it, and
/// keeps any subset. Never is anything of the tail that was cut seen once an append was acknowledged.
#[test]
fn tr_03_a_crash_in_a_truncation_and_a_rewrite_leaves_the_old_or_the_new_log() {
    let base = SimDisk::new(3);
    put_range(&new_log(&base), 1..=45);
    let base = base.fork(CrashImage::KeepAll);
    let old = model((1..=45).map(t));
    let cut = model((1..=13).map(t));
    let rewritten = |n: u32| {
        let mut all = cut.clone();
        all.extend((14..14 + n).map(|n| (t(n), digest(b"rewritten"))));
        all
    };
    let mut outcomes = [0; 4];
    for step in 1..400 {
        for image in
            [CrashImage::DropUnsynced, CrashImage::KeepAll].into_iter().chain((1..=3).map(CrashImage::Random))
        {
            let disk = base.fork(CrashImage::KeepAll);
            let (log, _) = tens().open_sim(&disk).unwrap();
            disk.crash_at(disk.operations() + step, image);
            let mut acked = 0;
            let done = log.truncate(t(13)).map(|(log, _)| {
                for n in [14, 15] {
                    match log.append(&Record::new(t(n), 0, b"rewritten")).and_then(AppendTicket::wait) {
                        Ok(_) => acked = n - 13,
                        Err(_) => break,
                    }
                }
            });
            let over = done.is_ok() && acked == 2;
            disk.crash(image);
            // What is acknowledged is there; an append more may be.
            let (log, _) = tens().open_sim(&disk).unwrap_or_else(|e| panic!("{step} {image:?} {acked}: {e}"));
            let is = content(&log);
            let found = (acked..=2).find(|n| is == rewritten(*n));
            assert!(
                found.is_some() || done.is_err() && is == old,
                "{step} {image:?} {acked} {:?}",
                is.keys().collect::<Vec<_>>()
            );
            outcomes[found.map_or(3, |n| n as usize)] += 1;
            put_range(&log, 46..=46);
            drop(log);
            let (log, _) = tens().open_sim(&disk).unwrap();
            assert_eq!(content(&log).len(), is.len() + 1);
            if over && image == CrashImage::Random(3) {
                assert!(outcomes.iter().all(|n| *n > 0), "{outcomes:?}");
                return;
            }
        }
    }
    panic!("the truncation never ended");
}

/// Five segments of ten: every target, then three more records; and each again with groups of ten records, so
/// that most targets lie inside a group, and again on what a truncation has left.
#[test]
fn tr_06_every_target_of_five_segments() {
    for grouped in [false, true] {
        let base = SimDisk::new(6);
        let log = new_log(&base);
        if grouped {
            for first in (1..=50).step_by(10) {
                let bodies: Vec<_> = (first..first + 10).map(|n| (t(n), body(t(n)))).collect();
                let records: Vec<_> = bodies.iter().map(|(zxid, body)| Record::new(*zxid, 0, body)).collect();
                log.append_batch(&records).and_then(AppendTicket::wait).unwrap();
            }
        } else {
            put_range(&log, 1..=50);
        }
        assert_eq!(log.stats().rolls, 4, "five segments of ten");
        log.close().unwrap();
        for target in 0..=50 {
            let disk = base.fork(CrashImage::KeepAll);
            let to = if target == 0 { Zxid::ZERO } else { t(target) };
            let (log, _) = tens().open_sim(&disk).unwrap();
            let (log, report) = log.truncate(to).unwrap();
            assert!(report.exact, "{target} {grouped}");
            let mut expected: BTreeMap<_, _> = model((1..=target).map(t));
            assert_eq!(content(&log), expected, "{target} {grouped}");
            put_range(&log, 51..=53);
            expected.extend(model((51..=53).map(t)));
            assert_eq!(content(&log), expected, "{target} {grouped}");
            log.close().unwrap();
            let (log, report) = tens().open_sim(&disk).unwrap();
            assert_eq!(report.records, expected.len() as u64);
            assert_eq!(content(&log), expected, "{target} {grouped}");
            // Once more, into what is left of the group or segment.
            let again = target / 2;
            let to = if again == 0 { Zxid::ZERO } else { t(again) };
            let (log, report) = log.truncate(to).unwrap();
            assert!(report.exact, "{target} then {again} {grouped}");
            let mut expected: BTreeMap<_, _> = model((1..=again).map(t));
            assert_eq!(content(&log), expected, "{target} then {again} {grouped}");
            put_range(&log, 60..=60);
            expected.extend(model([t(60)]));
            disk.crash(CrashImage::DropUnsynced);
            drop(log);
            let (log, _) = tens().open_sim(&disk).unwrap();
            assert_eq!(content(&log), expected, "{target} then {again} {grouped}, after a crash");
            let (view, _) = tens().open_read_only_sim(&disk).unwrap();
            assert_eq!(super::support::seen(&view), expected, "{target} then {again} {grouped}, as a view");
        }
    }
}

/// What was cut is kept in the directory, byte for byte, as the report says.
#[test]
fn tr_05_what_was_cut_is_kept() {
    let disk = SimDisk::new(5);
    let log = new_log(&disk);
    put_range(&log, 1..=25);
    log.close().unwrap();
    let before = disk.snapshot_bytes();
    let (log, report) = tens().open_sim(&disk).unwrap().0.truncate(t(13)).unwrap();
    let shortened = report.shortened.unwrap();
    let after = disk.snapshot_bytes();
    assert_eq!(
        digest(&after[&shortened]),
        digest(&before[&shortened]),
        "{shortened}: the bytes behind the end stay"
    );
    assert_eq!(report.moved_aside.len(), 1);
    for aside in &report.moved_aside {
        let name = aside.split(".cut-").next().unwrap();
        assert_eq!(after[aside][..12_000], before[name][..12_000], "{aside}");
    }
    put_range(&log, 14..=40);
    log.close().unwrap();
    let (log, _) = tens().open_sim(&disk).unwrap();
    assert_eq!(log.durable_zxid(), t(40));
    assert_eq!(digest(&disk.read_file(&shortened).unwrap()), digest(&before[&shortened]));
}

/// Nothing in memory remembers what was cut: watermarks, readers, the index of times.
#[test]
fn tr_08_memory_forgets_what_was_cut() {
    let disk = SimDisk::new(8);
    let log = new_log(&disk);
    put_range(&log, 1..=100);
    let (log, _) = log.truncate(t(90)).unwrap();
    assert_eq!((log.durable_zxid(), log.logged_zxid(), log.stats().logged_zxid), (t(90), t(90), t(90)));
    assert!(log.reader(t(90)).unwrap().next_record().unwrap().is_none());
    assert!(
        log.reader_at_time(91).unwrap().next_record().unwrap().is_none(),
        "the times of 91..100 are forgotten"
    );
    assert_eq!(log.reader_at_time(90).unwrap().next_record().unwrap().unwrap().zxid, t(90));
    assert_eq!(log.append_next(Epoch::new(1), 0, b"x").and_then(AppendTicket::wait).unwrap(), t(91));
}

/// A reader that a truncation meets is told of it when it has read what is left, and not of damage before that.
#[test]
fn tr_08_a_reader_is_told_of_what_was_cut_and_of_nothing_else() {
    for is_lost in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (log, _) = LogOptions::new()
            .segment_bytes(16 << 10)
            .block_bytes(512)
            .idle_mark(None)
            .open(dir.path())
            .unwrap();
        log.advance_epoch(Epoch::new(1)).unwrap();
        for counter in 1..=200 {
            let record = Record::new(Zxid::from_parts(1, counter), 0, &[7; 300]);
            log.append(&record).unwrap().wait().unwrap();
        }
        let mut reader = log.reader(Zxid::ZERO).unwrap();
        reader.next_record().unwrap();
        let left = Zxid::from_parts(1, 190);
        let (log, _) = log.truncate(left).unwrap();
        if is_lost {
            std::fs::remove_file(dir.path().join("0000000000000002.seg")).unwrap();
        }
        let end = loop {
            match reader.next_record() {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error) => break Some(error.code()),
            }
        };
        if is_lost {
            assert_eq!(end, Some("segment_missing"), "at {}", reader.position());
        } else {
            assert!(matches!(end, None | Some("not_in_log")), "{end:?}");
            assert_eq!(reader.position(), left);
        }
        drop(log);
    }
}
