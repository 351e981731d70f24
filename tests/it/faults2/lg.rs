//! Batches as a whole, many segments, and nothing left behind.

use std::time::{Duration, Instant};

use arborlog::sim::{CrashImage, Effect, Fault, FaultOp, SimDisk};
use arborlog::{AppendTicket, BackendChoice, ErrorKind, Record, Retention, WriteMode};

use super::children::Process;
use super::support::{body, content, in_epoch_1, model, now, put_range, refused, small, t, tens};

/// Batches of 2 to 50 records while the log rolls and is purged, and power goes at any operation: each batch
/// is there whole or not at all, and whole if it was acknowledged.
#[test]
fn tx_08_a_batch_is_there_whole_or_not_at_all() {
    for round in 0..120_u32 {
        let disk = SimDisk::new(u64::from(round));
        let log = in_epoch_1(tens().open_sim(&disk).unwrap().0);
        put_range(&log, 1..=3);
        let image = match round % 3 {
            0 => CrashImage::DropUnsynced,
            1 => CrashImage::Random(u64::from(round)),
            _ => CrashImage::KeepAll,
        };
        disk.crash_at(disk.operations() + 1 + u64::from(round / 2), image);
        let (mut ends, mut acked, mut next) = (vec![3], 3, 4);
        for count in [2, 7, 13, 50, 3, 20] {
            let bodies: Vec<_> = (next..next + count).map(|n| (t(n), body(t(n)))).collect();
            let records: Vec<_> = bodies.iter().map(|(zxid, body)| Record::new(*zxid, 0, body)).collect();
            next += count;
            ends.push(next - 1);
            match log.append_batch(&records).and_then(AppendTicket::wait) {
                Ok(last) => {
                    assert_eq!(last, t(next - 1));
                    acked = next - 1;
                }
                Err(_) => break,
            }
            if count == 13 && log.purge(t(acked), &Retention::new()).is_err() {
                break;
            }
        }
        disk.crash(image);
        drop(log);
        let (log, report) = tens().open_sim(&disk).unwrap_or_else(|e| panic!("{round} {image:?}: {e}"));
        let last = report.last_zxid.counter();
        assert!(
            last >= acked && ends.contains(&last),
            "{round} {image:?}: {acked} acknowledged, {last} there"
        );
        let floor = log.floor_zxid().counter();
        assert!(floor == 0 || ends.contains(&floor), "a purge parts no batch: {floor}");
        assert_eq!(content(&log), model((floor + 1..=last).map(t)), "{round} {image:?}");
    }
}

/// A batch with one bad record is refused whole.
#[test]
fn tx_08_a_batch_with_a_bad_record_is_refused_whole() {
    let disk = SimDisk::new(1);
    let log = in_epoch_1(tens().open_sim(&disk).unwrap().0);
    let record = |n| Record::new(t(n), 0, b"x");
    assert_eq!(refused(log.append_batch(&[record(1), record(2), record(2)])).kind(), ErrorKind::OutOfOrder);
    assert_eq!(refused(log.append_batch(&[])).kind(), ErrorKind::Invalid);
    assert_eq!(log.logged_zxid().get(), 0);
    log.append_batch(&[record(1), record(2), record(3)]).and_then(AppendTicket::wait).unwrap();
    assert_eq!(content(&log).len(), 3);
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let start: Instant = now();
    let value = run();
    (value, start.elapsed())
}

/// Thousands of segments: opening takes a time that grows with them and not with their square, and keeps no
/// file open for each.
#[test]
fn lg_06_many_segments_open_in_linear_time() {
    let dir = tempfile::tempdir().unwrap();
    let options = || small().segment_bytes(16 * 1024).block_bytes(4096).write_mode(WriteMode::Unsynced);
    let mut log = in_epoch_1(options().open(dir.path()).unwrap().0);
    let mut took = Vec::new();
    let mut next = 1;
    for segments in [1000, 2000] {
        while log.stats().rolls < 1000 {
            let payload = [7; 500];
            let records: Vec<_> = (next..next + 10).map(|n| Record::new(t(n), 0, &payload)).collect();
            log.append_batch(&records).and_then(AppendTicket::wait).unwrap();
            next += 10;
        }
        log.close().unwrap();
        // A busy machine makes any one of them slow.
        let mut best = Duration::MAX;
        for attempt in 0..20 {
            let ((log, report), time) = timed(|| options().open(dir.path()).unwrap());
            assert!((segments..segments + 3).contains(&report.segments), "{report}");
            assert_eq!(report.records, u64::from(next - 1));
            log.close().unwrap();
            best = best.min(time);
            let is_linear = took.first().is_some_and(|first: &Duration| best < *first * 4);
            if attempt >= 2 && (took.is_empty() || is_linear) {
                break;
            }
        }
        took.push(best);
        log = options().open(dir.path()).unwrap().0;
    }
    assert!(took[1] < took[0] * 4 && took[1] < Duration::from_secs(5), "{took:?}");
    let (read, time) = timed(|| content(&log).len());
    assert_eq!(read, next as usize - 1);
    assert!(time < Duration::from_secs(5), "{time:?}");
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let ours = open.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(dir.path())));
    assert!(ours.count() < 10, "files of the log that are open");
}

/// An open that fails at any call leaves nothing that the next one minds: neither lock nor half-done change.
#[test]
fn pf_06_an_open_that_fails_leaves_nothing_behind() {
    let base = SimDisk::new(6);
    put_range(&in_epoch_1(tens().open_sim(&base).unwrap().0), 1..=25);
    let ops = [
        FaultOp::Create,
        FaultOp::Open,
        FaultOp::Read,
        FaultOp::Write,
        FaultOp::Sync,
        FaultOp::SyncDir,
        FaultOp::Rename,
        FaultOp::Remove,
        FaultOp::SetLen,
        FaultOp::Allocate,
        FaultOp::List,
        FaultOp::Lock,
    ];
    let mut failed = 0;
    for op in ops {
        for nth in 1..=12 {
            let disk = base.fork(CrashImage::KeepAll);
            disk.inject(Fault::next(op, Effect::EIO).nth(nth).times(u64::MAX));
            let outcome = tens().open_sim(&disk);
            failed += u32::from(outcome.is_err());
            if let Err(error) = &outcome {
                assert!(matches!(error.kind(), ErrorKind::Io), "{op:?} {nth}: {error}");
            }
            drop(outcome);
            disk.clear_faults();
            let (log, _) = tens().open_sim(&disk).unwrap_or_else(|e| panic!("{op:?} {nth}: {e}"));
            assert_eq!(content(&log), model((1..=25).map(t)), "{op:?} {nth}");
            put_range(&log, 26..=26);
        }
    }
    assert!(failed > 20, "{failed}");
}

/// Opens, failed opens, rolls, purges and readers leave no descriptor and no thread.
#[test]
fn pf_06_descriptors_and_threads_are_given_back() {
    for backend in [BackendChoice::Threads, BackendChoice::Auto] {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Process::start("leaves_nothing_behind", dir.path(), backend, false);
        let outcome = process.next("outcome").expect("the child told its counts");
        assert!(
            outcome.ends_with("true"),
            "{backend:?}: descriptors and threads before and after: {outcome}"
        );
        assert!(process.succeeded());
    }
}
