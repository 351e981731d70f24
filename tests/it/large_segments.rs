//! Segments beyond 2 and 4 GiB: an offset that is cut to 32 bits shows here and nowhere else.

use std::os::unix::fs::FileExt;

use arborlog::{BackendChoice, ErrorKind, LogOptions, Record, SegmentFill, TailState, WriteMode, Zxid};

const RECORDS: u64 = 4200;

fn options(segment_bytes: u64) -> LogOptions {
    LogOptions::new()
        .segment_bytes(segment_bytes)
        .fill(SegmentFill::Growing)
        .write_mode(WriteMode::BufferedThenSync)
        .backend(BackendChoice::Threads)
}

/// Sizes at the edges of 31 and 32 bits are sizes like others.
#[test]
fn lg_04_a_segment_may_have_any_size_around_2_and_4_gib() {
    for bytes in [(1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1] {
        let dir = tempfile::tempdir().unwrap();
        for n in 1..=3 {
            let (log, report) = options(bytes).open(dir.path()).unwrap();
            assert_eq!(report.last_zxid, Zxid::new(n - 1), "{bytes}");
            // In the one segment that was made, not in one that came in its place.
            let (others, is_clean) = (report.moved_aside.len(), report.tail == TailState::Clean);
            assert_eq!((report.segments, others, is_clean), (1, 0, true), "{bytes}: {report}");
            log.append(&Record::new(Zxid::new(n), 0, b"record")).unwrap().wait().unwrap();
            log.close().unwrap();
        }
    }
}

/// One segment that is written beyond 4 GiB: all of it is read, sought, cut and purged at the right places.
#[test]
#[ignore = "writes 4.1 GiB"]
fn lg_04_a_segment_is_written_beyond_4_gib_and_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(5 << 30);
    let (log, _) = options.open(dir.path()).unwrap();
    let mut data = vec![0; 1 << 20];
    for n in 1..=RECORDS {
        data[..8].copy_from_slice(&n.to_le_bytes());
        let ticket = log.append(&Record::new(Zxid::new(n), 0, &data)).unwrap();
        if n % 64 == 0 || n == RECORDS {
            ticket.wait().unwrap();
        }
    }
    drop(log);
    let (log, report) = options.open(dir.path()).unwrap();
    assert_eq!((report.records, report.last_zxid), (RECORDS, Zxid::new(RECORDS)));
    for after in [0, 2047, 2048, 4090, 4096, RECORDS - 1] {
        let mut reader = log.reader(Zxid::new(after)).unwrap();
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!((record.zxid.get(), &record.payload[..8]), (after + 1, &(after + 1).to_le_bytes()[..]));
    }
    let (log, cut) = log.truncate(Zxid::new(RECORDS - 10)).unwrap();
    assert_eq!(cut.last_zxid, Zxid::new(RECORDS - 10));
    log.append(&Record::new(Zxid::new(RECORDS), 0, b"behind")).unwrap().wait().unwrap();
    log.close().unwrap();
    let (log, report) = options.open(dir.path()).unwrap();
    assert_eq!((report.records, report.last_zxid), (RECORDS - 9, Zxid::new(RECORDS)));
    log.close().unwrap();
    // One bit behind 4 GiB.
    let path = dir.path().join("0000000000000001.seg");
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let at = (1 << 32) + (1 << 20);
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    let error = options.open(dir.path()).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let offset = error.at().offset.unwrap();
    assert!((1 << 32..=at).contains(&offset), "{error}");
}
