//! Epochs.

use arborlog::sim::{CrashImage, SimDisk};
use arborlog::{AppendTicket, Epoch, ErrorKind, Numbering, Record, Zxid};

use super::support::{append, content, model, put, put_range, refused, t, tens};

#[test]
fn ep_01_the_counter_never_carries_into_the_next_epoch() {
    let disk = SimDisk::new(1);
    let (log, _) = tens().open_sim(&disk).unwrap();
    log.advance_epoch(Epoch::new(7)).unwrap();
    let last = [Zxid::from_parts(7, u32::MAX - 1), Zxid::from_parts(7, u32::MAX)];
    put(&log, last);
    assert_eq!(refused(log.append_next(Epoch::new(7), 0, b"x")).kind(), ErrorKind::CounterExhausted);
    assert_eq!(refused(last[1].next_in_epoch()).kind(), ErrorKind::CounterExhausted);
    // (8,0) is the marker of a new epoch and no transaction, in the old epoch and in its own.
    assert_eq!(refused(append(&log, Zxid::from_parts(8, 0))).kind(), ErrorKind::Fenced);
    assert_eq!(refused(append(&log, Zxid::from_parts(8, 1))).kind(), ErrorKind::Fenced);
    // The epoch that is given beside it is right, and that in the zxid is not, and the other way round.
    for (beside, within) in [(7, 8), (7, 6), (8, 7), (6, 7)] {
        let zxid = Zxid::from_parts(within, 9);
        let record = Record { epoch: Epoch::new(beside), ..Record::new(zxid, 0, b"") };
        let error = refused(log.append(&record));
        assert!(
            matches!(error.kind(), ErrorKind::Fenced | ErrorKind::OutOfOrder),
            "{beside} {within}: {error}"
        );
    }
    drop(log);

    let (log, report) = tens().open_sim(&disk).unwrap();
    assert_eq!((report.last_zxid, log.epoch()), (last[1], Epoch::new(7)));
    assert_eq!(content(&log), model(last));
    log.advance_epoch(Epoch::new(8)).unwrap();
    assert_eq!(refused(append(&log, Zxid::from_parts(8, 0))).kind(), ErrorKind::OutOfOrder);
    let next = log.append_next(Epoch::new(8), 0, b"x").and_then(AppendTicket::wait).unwrap();
    assert_eq!(next, Zxid::from_parts(8, 1));
    // The log has no `rollover_near` event: the server sees the counter of each zxid that it appends.
}

/// Power goes at every operation of an epoch change: the old epoch or the new one stands, with all records,
/// and the log opens. Once the call has returned, it is the new one.
#[test]
fn ep_03_a_crash_in_an_epoch_change_leaves_the_old_or_the_new_one() {
    let mut seen = [0, 0];
    for step in 1..200 {
        for image in images() {
            let disk = SimDisk::new(step);
            let (log, _) = tens().open_sim(&disk).unwrap();
            log.advance_epoch(Epoch::new(1)).unwrap();
            put_range(&log, 1..=15);
            disk.crash_at(disk.operations() + step, image);
            let changed = log.advance_epoch(Epoch::new(2)).is_ok();
            disk.crash(image);
            drop(log);
            let (log, report) = tens().open_sim(&disk).unwrap_or_else(|e| panic!("{step} {image:?}: {e}"));
            assert_eq!(report.last_zxid, t(15), "{step} {image:?}");
            let epoch = log.epoch().get();
            assert!(if changed { epoch == 2 } else { epoch == 1 || epoch == 2 }, "{step} {image:?}: {epoch}");
            seen[usize::from(epoch == 2)] += 1;
            log.advance_epoch(Epoch::new(2)).unwrap();
            put(&log, [Zxid::from_parts(2, 1)]);
            if changed && step > 1 && image == CrashImage::KeepAll {
                assert!(seen[0] > 0 && seen[1] > 0, "a crash before and one after: {seen:?}");
                return;
            }
        }
    }
    panic!("the change of an epoch never ended");
}

fn images() -> impl Iterator<Item = CrashImage> {
    let random = (1..=4).map(CrashImage::Random);
    [CrashImage::DropUnsynced].into_iter().chain(random).chain([CrashImage::KeepAll])
}

/// An epoch survives what has no record of it, a truncation and an old leader.
#[test]
fn ep_03_an_epoch_is_never_forgotten() {
    let disk = SimDisk::new(1);
    let (log, _) = tens().open_sim(&disk).unwrap();
    log.advance_epoch(Epoch::new(1)).unwrap();
    put_range(&log, 1..=5);
    log.advance_epoch(Epoch::new(3)).unwrap();
    let (log, _) = log.truncate(t(2)).unwrap();
    assert_eq!(log.epoch(), Epoch::new(3));
    assert_eq!(refused(append(&log, t(3))).kind(), ErrorKind::Fenced);
    assert_eq!(refused(log.advance_epoch(Epoch::new(2))).kind(), ErrorKind::Fenced);
    disk.crash(CrashImage::DropUnsynced);
    drop(log);
    let (log, _) = tens().open_sim(&disk).unwrap();
    assert_eq!((log.epoch(), log.durable_zxid()), (Epoch::new(3), t(2)));
    assert_eq!(refused(log.advance_epoch(Epoch::new(2))).kind(), ErrorKind::Fenced);
    let error = refused(log.advance_epoch(Epoch::new(1 << 32)));
    assert_eq!(error.kind(), ErrorKind::Invalid, "it would not fit the upper half of a zxid");
}

/// A new epoch makes all that came before it certain: damage to its newest record is no torn write any more.
#[test]
fn ep_03_an_epoch_change_proves_what_came_before_it() {
    let disk = SimDisk::new(1);
    let (log, _) = tens().open_sim(&disk).unwrap();
    log.advance_epoch(Epoch::new(1)).unwrap();
    put_range(&log, 1..=5);
    let (torn, newest) = (disk.fork(CrashImage::KeepAll), "0000000000000001.seg");
    log.advance_epoch(Epoch::new(2)).unwrap();
    let proven = disk.fork(CrashImage::KeepAll);
    drop(log);
    // Groups of three blocks of 512 begin behind the header page.
    for disk in [&torn, &proven] {
        disk.flip(newest, 4096 + 4 * 1536 + 700, 0x5a);
    }
    assert_eq!(tens().open_sim(&torn).unwrap().1.last_zxid, t(4));
    let error = refused(tens().open_sim(&proven));
    assert_eq!((error.kind(), error.at().zxid), (ErrorKind::Corrupt, Some(t(5))), "{error}");
}

/// What is numbered by epochs and what by an index are told apart when it is opened, not at the first append.
#[test]
fn ep_01_a_log_goes_on_as_it_was_numbered() {
    for (is, other) in [(Numbering::Zxid, Numbering::Index), (Numbering::Index, Numbering::Zxid)] {
        let disk = SimDisk::new(1);
        tens().numbering(is).open_sim(&disk).unwrap().0.close().unwrap();
        let before = disk.snapshot_bytes();
        let error = refused(tens().numbering(other).open_sim(&disk));
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(disk.snapshot_bytes() == before, "nothing is touched");
        tens().numbering(is).open_sim(&disk).unwrap();
    }
}

/// Whatever is damaged: the last zxid is the one that all records lead to, or an error; never a name's, never
/// one that an error path left over.
#[test]
fn ep_05_the_last_zxid_is_right_or_an_error() {
    let disk = SimDisk::new(1);
    let (log, _) = tens().open_sim(&disk).unwrap();
    log.advance_epoch(Epoch::new(1)).unwrap();
    put_range(&log, 1..=25);
    log.close().unwrap();
    let segments: Vec<_> = disk.names().into_iter().filter(|n| n.ends_with(".seg")).collect();
    let (mut refusals, mut opened) = (0, 0);
    for name in segments.iter().map(String::as_str).chain(["log.manifest"]) {
        let len = disk.read_file(name).unwrap().len() as u64;
        let step = if name == "log.manifest" { 1 } else { 509 };
        for offset in (0..len).step_by(step) {
            for damage in 0..3 {
                let hurt = disk.fork(CrashImage::KeepAll);
                match damage {
                    0 => hurt.flip(name, offset, 0x5a),
                    1 => hurt.zero(name, offset, (len - offset).min(700)),
                    _ => hurt.chop(name, offset),
                }
                match tens().open_sim(&hurt) {
                    Err(error) => {
                        assert!(
                            matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
                            "{error}"
                        );
                        refusals += 1;
                    }
                    Ok((log, report)) => {
                        assert_eq!(
                            (report.last_zxid, log.durable_zxid()),
                            (t(25), t(25)),
                            "{name} {offset} {damage}"
                        );
                        assert_eq!(content(&log).len(), 25, "{name} {offset} {damage}");
                        opened += 1;
                    }
                }
            }
        }
    }
    assert!(refusals > 100 && opened > 10, "{refusals} {opened}");
}

/// A newest segment that holds nothing says nothing of the last zxid, however it is named.
#[test]
fn ep_05_an_empty_newest_segment_has_no_say() {
    let disk = SimDisk::new(1);
    let (log, _) = tens().open_sim(&disk).unwrap();
    log.advance_epoch(Epoch::new(1)).unwrap();
    put_range(&log, 1..=10);
    drop(log);
    for name in ["00000000000001f5.seg.tmp", "0000000100000064"] {
        disk.write_file(name, b"");
    }
    let (log, report) = tens().open_sim(&disk).unwrap();
    assert_eq!(report.last_zxid, t(10));
    log.append(&Record::new(t(11), 0, b"")).and_then(AppendTicket::wait).unwrap();
}
