//! An open that hands out the log's records while it verifies them.

use std::collections::BTreeMap;
use std::path::Path;

use arborlog::{BackendChoice, Epoch, ErrorKind, Log, LogOptions, Record, Retention, Zxid};

fn options() -> LogOptions {
    LogOptions::new().segment_bytes(1 << 20).backend(BackendChoice::Threads).idle_mark(None)
}

/// Records of all sizes, up to some that are larger than what is read ahead at once.
fn body(n: u64) -> Vec<u8> {
    let len = if n.is_multiple_of(97) { 700_000 } else { usize::try_from(n * 131 % 5000).unwrap() };
    n.to_le_bytes().iter().copied().cycle().take(len).collect()
}

const LAST: u64 = 400;

fn fill(dir: &Path, clean: bool) {
    let (log, _) = options().open(dir).unwrap();
    for n in 1..=LAST {
        // The flush waits for all of them.
        drop(log.append_next(Epoch::ZERO, i64::try_from(n).unwrap(), &body(n)).unwrap());
        if n.is_multiple_of(7) {
            log.flush().unwrap();
        }
    }
    log.flush().unwrap();
    if clean {
        log.close().unwrap();
    }
}

fn replay(dir: &Path, after: u64) -> arborlog::Result<(Log, BTreeMap<u64, Vec<u8>>)> {
    let (mut seen, mut last) = (BTreeMap::new(), Zxid::ZERO);
    let (log, _) = options().open_replaying(dir, Zxid::new(after), |record: Record<'_>| {
        assert!(record.zxid > last, "{} after {last}", record.zxid);
        assert_eq!(record.time_ms, i64::try_from(record.zxid.get()).unwrap());
        last = record.zxid;
        seen.insert(record.zxid.get(), record.payload.to_vec());
    })?;
    Ok((log, seen))
}

#[test]
fn a_replaying_open_hands_out_exactly_the_records_after_a_zxid() {
    for clean in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path(), clean);
        for after in [0, 1, 96, 97, 200, LAST - 1, LAST, LAST + 100] {
            let (log, seen) = replay(dir.path(), after).unwrap();
            let wanted: BTreeMap<u64, Vec<u8>> = (after + 1..=LAST).map(|n| (n, body(n))).collect();
            assert!(seen == wanted, "after {after}: {} records", seen.len());
            assert_eq!(log.durable_zxid(), Zxid::new(LAST));
            if clean {
                log.close().unwrap();
            }
        }
    }
}

#[test]
fn a_new_log_has_nothing_to_hand_out() {
    let dir = tempfile::tempdir().unwrap();
    let (log, seen) = replay(dir.path(), 0).unwrap();
    assert!(seen.is_empty());
    log.append_next(Epoch::ZERO, 1, b"x").unwrap().wait().unwrap();
}

#[test]
fn what_was_purged_cannot_be_handed_out() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), true);
    let (log, _) = options().open(dir.path()).unwrap();
    let report = log.purge(Zxid::new(300), &Retention::new()).unwrap();
    let floor = report.floor_zxid.get();
    assert!(floor > 1, "nothing was purged");
    log.close().unwrap();
    let error = replay(dir.path(), floor - 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotInLog);
    let (_, seen) = replay(dir.path(), floor).unwrap();
    assert_eq!(seen.len() as u64, LAST - floor);
}

#[test]
fn damage_ends_a_replay_and_refuses_the_open() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), true);
    let path = dir.path().join("0000000000000002.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[300_000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let mut seen = 0;
    let plain = options().open(dir.path()).map(drop).unwrap_err();
    let error =
        options().open_replaying(dir.path(), Zxid::ZERO, |r| seen = r.zxid.get()).map(drop).unwrap_err();
    assert_eq!(error.to_string(), plain.to_string());
    assert!(seen > 0 && seen < LAST, "{seen} records were handed out");
}

#[test]
fn damage_is_told_before_what_was_purged() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), true);
    let (log, _) = options().open(dir.path()).unwrap();
    assert!(log.purge(Zxid::new(200), &Retention::new()).unwrap().floor_zxid.get() > 1);
    let seq = std::fs::read_dir(dir.path()).unwrap().filter_map(|e| {
        let name = e.unwrap().file_name().into_string().unwrap();
        name.ends_with(".seg").then_some(name)
    });
    let path = dir.path().join(seq.min().unwrap());
    log.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[300_000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let plain = options().open(dir.path()).map(drop).unwrap_err();
    assert_eq!(plain.kind(), ErrorKind::Corrupt);
    assert_eq!(replay(dir.path(), 1).map(drop).unwrap_err().to_string(), plain.to_string());
}

#[test]
fn making_a_new_log_is_not_counted_as_reading() {
    let dir = tempfile::tempdir().unwrap();
    let (log, report) = options().segment_bytes(32 << 20).open(dir.path()).unwrap();
    assert!(report.created && report.read_ns * 2 < report.total_ns, "{report}");
    log.close().unwrap();
}

#[test]
fn a_roll_has_the_next_record_begin_a_segment() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = options().open(dir.path()).unwrap();
    let put = |n: u64| {
        let ticket = log.append_next(Epoch::ZERO, i64::try_from(n).unwrap(), &body(n)).unwrap();
        ticket.wait().unwrap();
    };
    log.roll();
    (1..=5).for_each(put);
    assert_eq!(log.stats().rolls, 0, "a log without a record has nothing to close");
    for n in 6..=9 {
        log.roll();
        log.roll();
        put(n);
        assert_eq!(log.stats().rolls, n - 5);
    }
    put(10);
    assert_eq!(log.stats().rolls, 4);
    // All before the last segment may go: the roll is what lets a purge reach so far.
    assert_eq!(log.purge(Zxid::new(8), &Retention::new()).unwrap().floor_zxid, Zxid::new(8));
    log.roll();
    log.close().unwrap();
    let (_, seen) = replay(dir.path(), 8).unwrap();
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), [9, 10]);
}
