//! SG: segments that are missing, doubled, out of order or in the way.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arborlog::sim::{CrashImage, SimDisk};
use arborlog::{
    BackendChoice, Epoch, ErrorKind, Gather, GroupPolicy, Log, LogOptions, Record, Retention, SegmentFill,
    TailState, Zxid,
};

use super::support::*;

/// Without snapshots the oldest segment is always needed; the entry's case of one that covers it waits.
#[test]
fn sg_01_a_missing_segment_is_refused_with_what_it_held() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 300, end);
        for seq in 1..=3u32 {
            let disk = copy(&built);
            disk.remove_file(&segment(seq.into()));
            let error = refuses_as(&disk, &options, "segment_missing", &segment(seq.into()));
            let first = if seq == 1 { Zxid::new(1) } else { t(seq * 100 - 99) };
            let known_until = if seq == 3 && end == End::Dropped { None } else { Some(t(seq * 100)) };
            let (from, until) = range_of(&error);
            assert_eq!(from, Some(first), "{error}");
            // Of a log that was not closed nobody knows how far its newest segment went.
            assert!(known_until.is_none() || until >= known_until, "{error}");
            assert!(seq != 2 || until == Some(t(if end == End::Closed { 300 } else { 200 })), "{error}");
        }
        // Several, and all of them.
        for missing in [&[1, 2][..], &[2, 3], &[1, 3], &[1, 2, 3]] {
            let disk = copy(&built);
            missing.iter().for_each(|seq| disk.remove_file(&segment(*seq)));
            refuses_as(&disk, &options, "segment_missing", &segment(missing[0]));
        }
        let disk = copy(&built);
        disk.remove_file("log.manifest");
        refuses_as(&disk, &options, "manifest_missing", &segment(1));
    }
}

#[test]
fn sg_01_the_only_segment_may_not_go_missing() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let disk = build(&options, 10, end);
        disk.remove_file(&segment(1));
        refuses_as(&disk, &options, "segment_missing", &segment(1));
    }
    // Nor one that was purged up to, nor the one after a purge.
    let disk = build(&options, 250, End::Closed);
    let (log, _) = open(&disk, &options);
    let purged = log.purge(t(200), &Retention::new()).expect("a purge");
    assert_eq!((purged.floor_zxid, purged.removed.len()), (t(200), 2));
    log.close().expect("a clean close");
    let (log, report) = open(&disk, &options);
    assert_eq!((report.floor_zxid, report.last_zxid, report.records), (t(200), t(250), 50));
    log.close().expect("a clean close");
    disk.remove_file(&segment(3));
    refuses_as(&disk, &options, "segment_missing", &segment(3));
}

/// Segments of a log that was cut, back under their old names: what a crash between the cut and the clearing
/// away leaves behind.
fn superseded(options: &LogOptions) -> (SimDisk, SimDisk) {
    let old = build(options, 250, End::Closed);
    let disk = copy(&old);
    let (log, _) = open(&disk, options);
    let (log, report) = log.truncate(t(130)).expect("a truncation");
    assert_eq!(report.moved_aside.len(), 1);
    log.advance_epoch(Epoch::new(2)).expect("a newer epoch");
    for n in 1..=2 {
        let record = Record::new(Zxid::from_parts(2, n), 0, b"rewritten");
        log.append(&record).and_then(arborlog::AppendTicket::wait).expect("acked");
    }
    log.close().expect("a clean close");
    (old, disk)
}

fn assert_rewritten(disk: &SimDisk, options: &LogOptions) -> arborlog::RecoveryReport {
    let (log, report) = open(disk, options);
    assert_eq!((report.last_zxid, report.records), (Zxid::from_parts(2, 2), 132), "{report}");
    let mut reader = log.reader(t(129)).expect("a reader");
    let mut zxids = Vec::new();
    while let Some(record) = reader.next_record().expect("readable") {
        zxids.push(record.zxid);
    }
    assert_eq!(zxids, [t(130), Zxid::from_parts(2, 1), Zxid::from_parts(2, 2)]);
    report
}

#[test]
fn sg_03_stale_segments_of_a_cut_log_are_known_and_moved_aside() {
    let options = options(100);
    let (old, disk) = superseded(&options);
    let aside =
        disk.names().into_iter().find(|n| n.contains(".seg.cut-")).expect("the segment that was cut away");
    assert!(aside.starts_with(&segment(3)));
    assert_rewritten(&copy(&disk), &options);
    for close in [false, true] {
        let disk = copy(&disk);
        disk.rename_file(&aside, &segment(3));
        if close {
            // As after a crash: the manifest is not that of a clean close.
            edit_manifest(&disk, |text| text.replace("clean yes", "clean no"));
        }
        let stale = disk.read_file(&segment(3));
        let report = assert_rewritten(&disk, &options);
        let [moved] = report.moved_aside.as_slice() else { panic!("{report}") };
        assert_eq!(disk.read_file(moved), stale, "what was moved aside is kept");
        assert_eq!(disk.read_file(&segment(2)).map(|b| b.len()), old.read_file(&segment(2)).map(|b| b.len()));
        assert_rewritten(&disk, &options);
    }
}

#[test]
fn sg_03_without_the_cut_the_same_files_are_a_contradiction() {
    let options = options(100);
    let (old, disk) = superseded(&options);
    // The cut is lost, and nothing else: what stands behind 130 in segment 2 contradicts what follows it.
    let without_cut =
        |text: &str| text.lines().filter(|l| !l.starts_with("cut ")).fold(String::new(), |t, l| t + l + "\n");
    let gone = copy(&disk);
    edit_manifest(&gone, without_cut);
    refuses(&gone, &options);
    let back = copy(&disk);
    let aside = back.names().into_iter().find(|n| n.contains(".seg.cut-")).expect("cut away");
    back.rename_file(&aside, &segment(3));
    edit_manifest(&back, without_cut);
    refuses(&back, &options);
    // A true gap: 201..250 stand there and 101..200 do not.
    let gap = copy(&old);
    gap.remove_file(&segment(2));
    let error = refuses_as(&gap, &options, "segment_missing", &segment(2));
    assert_eq!(range_of(&error).0, Some(t(101)));
    // The cut segment itself, or the one that goes on after it, is gone.
    let in_use =
        |name: &String| name.ends_with(".seg") && !groups(&disk.read_file(name).expect("there")).is_empty();
    let newest = disk.names().into_iter().rfind(in_use).expect("a segment");
    for name in [segment(2), newest] {
        let gone = copy(&disk);
        gone.remove_file(&name);
        let error = refuses(&gone, &options);
        assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "segment_missing"), "{name}: {error}");
    }
}

#[test]
fn sg_04_a_zxid_that_does_not_rise_is_refused_and_nothing_is_written() {
    let options = options(100);
    let disk = build(&options, 5, End::Closed);
    let (log, _) = open(&disk, &options);
    append(&log, 6, 6);
    let before = disk.read_file(&segment(1));
    for n in [6, 5, 1, 0] {
        let error = log.append(&Record::new(t(n), 0, b"again")).map(drop).expect_err("out of order");
        assert_eq!(error.kind(), ErrorKind::OutOfOrder, "{error}");
    }
    let batches = [[t(7), t(7)], [t(7), t(6)], [t(8), t(7)], [t(6), t(7)]];
    for zxids in batches {
        let records = zxids.map(|zxid| Record::new(zxid, 0, b"again"));
        let error = log.append_batch(&records).map(drop).expect_err("out of order");
        assert_eq!(error.kind(), ErrorKind::OutOfOrder, "{zxids:?}");
        assert_eq!(log.logged_zxid(), t(6));
    }
    log.flush().expect("nothing to write");
    assert_eq!(disk.read_file(&segment(1)), before, "something was written");
    append(&log, 7, 8);
    drop(log);
    recovers(&disk, &options, 8);
    // And it is the same after the log was opened anew.
    let (log, _) = open(&disk, &options);
    assert_eq!(
        log.append(&Record::new(t(9), 0, b"")).map(drop).expect_err("9 is there").kind(),
        ErrorKind::OutOfOrder
    );
}

/// Importing a log that holds a zxid twice waits for the import.
#[test]
fn sg_04_many_appenders_beside_a_purge_never_share_a_zxid() {
    let options = options(23);
    let disk = build(&options, 0, End::Dropped);
    let (log, _) = open(&disk, &options);
    let seen = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let ticket = log.append_next(Epoch::new(1), 0, b"many").expect("ordered");
                    let zxid = ticket.wait().expect("acked");
                    assert!(seen.lock().expect("whole").insert(zxid), "{zxid} was given twice");
                }
            });
        }
        scope.spawn(|| {
            while log.durable_zxid() < t(800) {
                log.purge(Zxid::new(log.durable_zxid().get().saturating_sub(50)), &Retention::new())
                    .expect("a purge");
            }
        });
    });
    assert_eq!(*seen.lock().expect("whole"), (1..=800).map(t).collect());
    log.close().expect("a clean close");
    let (log, report) = open(&disk, &options);
    assert_eq!(report.last_zxid, t(800));
    let mut reader = log.reader(report.floor_zxid).expect("a reader");
    for n in report.floor_zxid.counter() + 1..=800 {
        assert_eq!(reader.next_record().expect("readable").map(|r| r.zxid), Some(t(n)));
    }
}

/// Names that are nearly ours, and names of others.
const FOREIGN: &[&str] = &[
    "log.9",
    "log.a",
    "log.10",
    "log.ffffffff",
    "log.100000000",
    "log.5.bak",
    "log.",
    "log.zz",
    "LOG.7",
    "snapshot.5.tmp",
    ".snapshot.7.swp",
    "1.seg",
    "0000000000000001.SEG",
    "0000000000000001.seg.bak",
    "000000000000000A.seg",
    "00000000000000001.seg",
    "0000000000000001.seg~",
    "0000000000000000.seg",
    "lock",
    "log.manifest.bak",
    "log.manifest.tmp.tmp",
    "0000000000000001.seg.cut-",
    "0000000000000001.seg.cut-x",
];

#[test]
fn sg_06_foreign_names_are_listed_and_left_alone() {
    let options = options(23);
    for end in [End::Closed, End::Dropped] {
        let disk = build(&options, 60, end);
        let content = disk.read_file(&segment(2)).expect("a segment");
        FOREIGN.iter().for_each(|name| disk.write_file(name, &content));
        disk.put_other("log.8");
        let (log, report) = open(&disk, &options);
        let mut expected: Vec<_> =
            FOREIGN.iter().map(|n| (*n).to_owned()).chain(["log.8".to_owned()]).collect();
        expected.sort();
        assert_eq!(report.foreign, expected);
        log.purge(t(46), &Retention::new()).expect("a purge");
        let (log, _) = log.truncate(t(50)).expect("a truncation");
        append(&log, 51, 100);
        log.close().expect("a clean close");
        assert!(
            FOREIGN.iter().all(|name| disk.read_file(name).as_ref() == Some(&content)),
            "a foreign file was changed"
        );
        assert_eq!(open(&disk, &options).1.last_zxid, t(100));
    }
}

/// Segment 9 comes before a, f before 10; 20 segments of 23 records.
#[test]
fn sg_06_segments_are_ordered_by_number() {
    let options = options(23);
    let disk = build(&options, 23 * 20, End::Closed);
    assert!(
        ["0000000000000009.seg", "000000000000000a.seg", "0000000000000010.seg"]
            .iter()
            .all(|n| disk.read_file(n).is_some())
    );
    recovers(&disk, &options, 23 * 20);
}

#[test]
fn sg_06_a_name_that_contradicts_its_file_is_refused() {
    let options = options(23);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 100, end);
        for (a, b) in [(1, 2), (2, 4), (3, 4)] {
            let disk = copy(&built);
            disk.rename_file(&segment(a), "between");
            disk.rename_file(&segment(b), &segment(a));
            disk.rename_file("between", &segment(b));
            refuses_as(&disk, &options, "segment_misnamed", &segment(a));
        }
    }
}

/// Numbers at the end of their range, under which no log ever gets.
#[test]
fn sg_06_a_number_beyond_all_others_does_not_wrap() {
    let options = options(23);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 30, end);
        for name in [
            "ffffffffffffffff.seg",
            "fffffffffffffffe.seg",
            "ffffffffffffffff.seg.tmp",
            "ffffffffffffffff.seg.cut-7",
        ] {
            let disk = copy(&built);
            disk.write_file(name, b"");
            refuses_as(&disk, &options, "segment_number", name);
            disk.remove_file(name);
            recovers(&disk, &options, 30);
        }
        // A large number that can be counted on from.
        let disk = copy(&built);
        disk.copy_file(&segment(2), "00000000ffffffff.seg");
        let report = recovers(&disk, &options, 30);
        assert!(
            report.moved_aside.iter().any(|name| name.starts_with("00000000ffffffff.seg.cut-")),
            "{report}"
        );
    }
}

/// What may stand in the way of the next segment, and the last record then.
#[test]
fn sg_07_leftovers_under_the_next_name_are_replaced_or_kept_aside_at_open() {
    let options = options(23);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 40, end);
        let page = built.read_file(&segment(2)).expect("a segment")[..4096].to_vec();
        let old = built.read_file(&segment(1)).expect("a segment");
        for (what, bytes) in [
            ("empty", Vec::new()),
            ("header only", page),
            ("zeros", vec![0; old.len()]),
            ("valid records of another number", old.clone()),
            ("noise", vec![0xa5; 20_000]),
        ] {
            for name in [segment(3), format!("{}.tmp", segment(3)), segment(4), format!("{}.tmp", segment(7))]
            {
                let disk = copy(&built);
                disk.write_file(&name, &bytes);
                let (log, report) = open(&disk, &options);
                assert_eq!(report.last_zxid, t(40), "{what} as {name}");
                let aside = report.moved_aside.iter().find(|aside| aside.starts_with(&name));
                assert!(aside.is_some() || report.removed.contains(&name), "{what} as {name}: {report}");
                if let Some(aside) = aside {
                    assert_eq!(disk.read_file(aside).as_ref(), Some(&bytes), "{what} as {name} was changed");
                } else {
                    assert!(
                        name.ends_with(".tmp"),
                        "{what} as {name} was removed, though it was no temporary file"
                    );
                }
                append(&log, 41, 100);
                log.close().expect("a clean close");
                let (log, _) = open(&disk, &options);
                assert_eq!(read_all(&log), (1..=100).collect::<Vec<_>>(), "{what} as {name}");
            }
        }
        // What is no file is said to be none.
        for name in [segment(3), format!("{}.tmp", segment(3))] {
            let disk = copy(&built);
            disk.put_other(&name);
            let error = options.open_sim(&disk).map(drop).expect_err("no file");
            assert_eq!(error.at().file.as_ref(), Some(&name), "{error}");
        }
    }
}

/// A next segment that holds records of this log is part of the log, or the log is refused.
#[test]
fn sg_07_a_next_segment_with_records_is_never_written_over() {
    let options = options(23);
    let built = build(&options, 60, End::Closed);
    // The manifest of a time at which the log ended in segment 2, before 3 was begun.
    let early = build(&options, 30, End::Closed);
    let early_durable = manifest_value(&early, "durable_zxid");
    edit_manifest(&built, |text| {
        let now = format!("durable_zxid {}", t(60));
        text.replace(&now, &format!("durable_zxid {early_durable}"))
    });
    let disk = copy(&built);
    recovers(&disk, &options, 60);
    // With the groups 31..46 of segment 2 and its seal gone, segment 3 proves that they were there.
    let disk = copy(&built);
    let from = find(&disk, 2, 31).0.offset;
    let end = groups(&disk.read_file(&segment(2)).expect("there")).pop().expect("a seal").end();
    disk.zero(&segment(2), from, end - from);
    let error = refuses(&disk, &options);
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// A file that turns up under the next name while the log is open: kept, and the log says why it cannot go on.
#[test]
fn sg_07_a_file_that_turns_up_under_the_next_name_is_never_written_over() {
    let options = options(23);
    let disk = build(&options, 10, End::Closed);
    let other = build(&options, 60, End::Closed).read_file(&segment(3)).expect("a segment");
    let (log, _) = open(&disk, &options);
    let wait_for = |name: &str| (0..2_000).any(|_| disk.read_file(name).is_some() || pause());
    assert!(wait_for(&segment(2)), "the next segment is prepared ahead");
    disk.write_file(&segment(3), &other);
    let payload = payload(1);
    let appended = (11..=200).try_for_each(|n| {
        log.append(&Record::new(t(n), 0, &payload)).and_then(arborlog::AppendTicket::wait).map(drop)
    });
    let error = appended.expect_err("there is no room for a third segment");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "segment_exists"), "{error}");
    assert_eq!(error.at().file, Some(segment(3)));
    assert_eq!(disk.read_file(&segment(3)), Some(other), "it was written over");
    // Taken away, the log goes on by itself.
    disk.remove_file(&segment(3));
    let last = log.logged_zxid().counter();
    let record = Record::new(t(last + 1), 0, &payload);
    let goes_on = (0..2_000).any(|_| match log.append(&record) {
        Ok(ticket) => ticket.wait().is_ok(),
        Err(_) => pause(),
    });
    assert!(goes_on, "it does not go on");
    log.close().expect("a clean close");
    assert_eq!(open(&disk, &options).1.last_zxid, t(last + 1));
}

#[expect(clippy::disallowed_methods, reason = "the log's own thread is waited for from outside")]
fn pause() -> bool {
    std::thread::sleep(Duration::from_millis(2));
    false
}

/// On a real disk: the leftovers cannot be written to, and are moved or told all the same.
#[test]
fn sg_07_a_read_only_leftover_is_told_or_moved() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options(23).backend(BackendChoice::Threads);
    let (log, _) = options.open(dir.path()).expect("it opens");
    log.advance_epoch(Epoch::new(1)).expect("an epoch");
    append(&log, 1, 40);
    log.close().expect("a clean close");
    for name in [segment(3), segment(4), format!("{}.tmp", segment(4))] {
        let path = dir.path().join(&name);
        // The prepared segment may be there already; it is then what is made read-only.
        if !path.exists() {
            fs::write(&path, b"left over").expect("written");
        }
        let mut permissions = fs::metadata(&path).expect("there").permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).expect("set");
    }
    match options.open(dir.path()) {
        Ok((log, report)) => {
            assert_eq!(report.last_zxid, t(40));
            append(&log, 41, 120);
            log.close().expect("a clean close");
        }
        Err(error) => assert!(error.at().file.is_some(), "{error}"),
    }
}

/// Four appenders over segments of 23 groups, with purges, marks and flushes between; power goes at random.
/// Rolling by time or by a snapshot does not exist: a segment ends when it is full.
#[test]
fn sg_09_appends_race_with_rolls_and_power_cuts() {
    for round in 1..=24u64 {
        let fill = [SegmentFill::Zeroed, SegmentFill::Allocated, SegmentFill::Growing]
            [usize::try_from(round % 3).expect("small")];
        let policy = GroupPolicy::new()
            .bytes_max(4096)
            .gather(Gather::Off)
            .in_flight_max(1 + usize::try_from(round % 4).expect("small"));
        let options = options(23).fill(fill).group(policy).idle_mark(Some(Duration::from_millis(1)));
        let disk = build(&options, 0, End::Dropped);
        let (log, _) = open(&disk, &options);
        let image = [CrashImage::DropUnsynced, CrashImage::KeepAll, CrashImage::Random(round)]
            [usize::try_from(round / 3 % 3).expect("small")];
        disk.crash_at(disk.operations() + 40 + round * 37 % 400, image);
        let acked = race(&log);
        drop(log);
        disk.crash(image);
        assert_after_race(&disk, &options, &acked, round);
    }
}

/// Appends from four threads until power goes; returns what was acknowledged.
fn race(log: &Log) -> BTreeSet<Zxid> {
    let acked = Arc::new(Mutex::new(BTreeSet::new()));
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let acked = acked.clone();
            scope.spawn(move || {
                for n in 0..150usize {
                    let payload = vec![1; 20 + n * 7 % 900];
                    let Ok(ticket) = log.append_next(Epoch::new(1), 0, &payload) else { return };
                    match ticket.wait() {
                        Ok(zxid) => assert!(acked.lock().expect("whole").insert(zxid), "{zxid} twice"),
                        Err(_) => return,
                    }
                    if thread == 0 && n % 10 == 9 && log.flush().is_err() {
                        return;
                    }
                }
            });
        }
    });
    Arc::into_inner(acked).expect("all threads have ended").into_inner().expect("whole")
}

fn assert_after_race(disk: &SimDisk, options: &LogOptions, acked: &BTreeSet<Zxid>, round: u64) {
    let (log, report) = open(disk, options);
    let mut reader = log.reader(Zxid::ZERO).expect("a reader");
    let mut found = BTreeSet::new();
    while let Some(record) = reader.next_record().expect("readable") {
        assert!(found.last().is_none_or(|last| *last < record.zxid), "round {round}");
        found.insert(record.zxid);
    }
    assert!(acked.is_subset(&found), "round {round}: acknowledged and gone: {:?}", acked.difference(&found));
    assert_eq!(found.len() as u64, report.records);
    assert_eq!(found, (1..=report.last_zxid.counter()).map(t).collect(), "round {round}: a hole");
    drop(log);
    for name in disk.names().iter().filter(|name| name.ends_with(".seg")) {
        let groups = groups(&disk.read_file(name).expect("there"));
        let seal = groups.iter().position(|group| group.kind == 2);
        assert!(
            seal.is_none_or(|at| at + 1 == groups.len()),
            "round {round}: a group behind the seal of {name}"
        );
    }
}

/// The neighbour: an empty active segment has no first record, whatever stands before it.
#[test]
fn sg_09_an_empty_newest_segment_has_no_record() {
    let options = options(23);
    let disk = build(&options, 23, End::Dropped);
    let (log, report) = open(&disk, &options);
    assert_eq!((report.last_zxid, report.records, report.tail), (t(23), 23, TailState::Unclean));
    assert_eq!(log.reader(t(23)).expect("a reader").next_record().expect("readable"), None);
    drop(log);
    for _ in 0..3 {
        let (_log, report) = open(&disk, &options);
        assert_eq!((report.last_zxid, report.records), (t(23), 23));
    }
    recovers(&disk, &options, 23);
}
