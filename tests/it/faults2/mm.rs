//! Nothing is mapped: what others do to a file under a reader is an error or is not seen, and never a signal.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use arborlog::{AppendTicket, ErrorKind, Log, LogOptions, Record, Zxid};
use tempfile::TempDir;

use super::support::{in_epoch_1, small, t};

/// Four MiB in one segment: a reader holds at most one MiB of it.
fn log_of_four_mib() -> (TempDir, Log, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = small().segment_bytes(8 << 20).open(dir.path()).unwrap();
    let log = in_epoch_1(log);
    for n in 1..=400 {
        let ticket = log.append(&Record::new(t(n), 0, &[n.to_le_bytes()[0]; 10_000])).unwrap();
        if n % 40 == 0 {
            ticket.wait().unwrap();
        }
    }
    log.flush().unwrap();
    let path = dir.path().join("0000000000000001.seg");
    (dir, log, path)
}

#[test]
fn mm_01_a_file_that_another_process_truncates_is_an_error() {
    for (size, bytes_left) in [("0", 0), ("50%", 1), ("1", 2)] {
        let (dir, log, path) = log_of_four_mib();
        let (view, _) = LogOptions::new().open_read_only(dir.path()).unwrap();
        let mut reader = log.reader(Zxid::ZERO).unwrap();
        let mut view_reader = view.records(Zxid::ZERO).unwrap();
        for n in 1..=5 {
            assert_eq!(reader.next_record().unwrap().unwrap().zxid, t(n));
            assert_eq!(view_reader.next_record().unwrap().unwrap().zxid, t(n));
        }
        let len = std::fs::metadata(&path).unwrap().len();
        let to = match bytes_left {
            0 => 0,
            1 => 2 << 20,
            _ => 4_000_000, // inside the last group
        };
        assert!(to < len, "{size}");
        let status = Command::new("truncate").arg("-s").arg(to.to_string()).arg(&path).status().unwrap();
        assert!(status.success());
        let error = loop {
            match reader.next_record() {
                Ok(Some(record)) => assert_eq!(record.payload, [record.zxid.get().to_le_bytes()[0]; 10_000]),
                Ok(None) => panic!("truncated to {to}, and the reader came to the end"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.at().offset.is_some() && error.at().zxid.is_some(), "{error}");
        let error = loop {
            match view_reader.next_record() {
                Ok(record) => assert!(record.is_some(), "truncated to {to}"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        // The writer is not disturbed: it goes on with what it has open.
        log.append(&Record::new(t(401), 0, b"x")).and_then(AppendTicket::wait).unwrap();
    }
}

/// Bytes change after a group was verified: its records are those that were verified. Bytes of groups that
/// come later are seen as they were, or the damage is found.
#[test]
fn mm_03_a_byte_that_changes_after_it_was_verified_is_not_used() {
    let (_dir, log, path) = log_of_four_mib();
    let mut reader = log.reader(Zxid::ZERO).unwrap();
    assert_eq!(reader.next_record().unwrap().unwrap().zxid, t(1));
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let len = file.metadata().unwrap().len();
    for offset in (4096..len).step_by(5_000) {
        file.write_all_at(&[0xee], offset).unwrap();
    }
    let mut read = 1;
    let error = loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                read += 1;
                assert_eq!(record.zxid, t(read));
                assert_eq!(record.payload, [read.to_le_bytes()[0]; 10_000], "{read}");
            }
            Ok(None) => panic!("the damage was not found"),
            Err(error) => break error,
        }
    };
    assert!(read >= 40, "the first group was verified before, and is whole: {read}");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}
