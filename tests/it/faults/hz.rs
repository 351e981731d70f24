//! HZ: headers, files without content, and zeros that are no end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use arborlog::sim::{CrashImage, Effect, Fault, FaultOp, Side, SimDisk};
use arborlog::{
    BackendChoice, DatabaseId, Epoch, ErrorKind, LogOptions, Record, SegmentFill, TailState, Zxid,
};

use super::support::*;

/// A disk that holds segments 1 to `seq` and nothing prepared behind them.
fn only(disk: &SimDisk, seq: u64) -> SimDisk {
    let disk = copy(disk);
    for name in disk.names().into_iter().filter(|name| name.contains(".seg") && *name > segment(seq)) {
        disk.remove_file(&name);
    }
    disk
}

/// What may stand under the name of a newest segment that was never used.
fn unused(header: &[u8], len: usize) -> Vec<(&'static str, Vec<u8>)> {
    let page = header[..4096].to_vec();
    let mut whole = page.clone();
    whole.resize(len, 0);
    vec![
        ("nothing", Vec::new()),
        ("half a page", page[..2048].to_vec()),
        ("a page of zeros", vec![0; 4096]),
        ("zeros to its end", vec![0; len]),
        ("its header alone", page),
        ("all of it", whole),
    ]
}

/// The entry asks for an empty only segment below a snapshot, too; snapshots do not exist yet.
#[test]
fn hz_01_an_empty_newest_segment_is_no_part_of_the_log() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 100, end);
        let header = built.read_file(&segment(1)).expect("a segment");
        for (what, bytes) in unused(&header, header.len()) {
            let disk = only(&built, 1);
            disk.write_file(&segment(2), &bytes);
            let report = recovers(&disk, &options, 100);
            assert_ne!(report.tail, TailState::Torn, "{what}");
            let gone = report.removed.contains(&segment(2))
                || report.moved_aside.iter().any(|n| n.starts_with(&segment(2)));
            assert!(gone, "{what}: {report}");
        }
    }
}

#[test]
fn hz_01_an_empty_middle_segment_is_refused_with_what_it_held() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let disk = build(&options, 300, end);
        for seq in [1, 2, 3] {
            let disk = copy(&disk);
            disk.chop(&segment(seq), 0);
            let error = refuses_as(&disk, &options, "segment_header_short", &segment(seq));
            let first = u32::try_from(seq).expect("small") * 100 - 99;
            let first = if first == 1 { Zxid::new(1) } else { t(first) };
            let (from, until) = range_of(&error);
            assert_eq!((error.at().offset, from), (Some(0), Some(first)), "{error}");
            // Of the newest segment of a log that was not closed, nobody knows how far it went.
            if seq < 3 || end == End::Closed {
                assert!(until >= Some(t(u32::try_from(seq).expect("small") * 100)), "{error}");
            }
        }
    }
}

#[test]
fn hz_01_an_only_segment_may_be_empty_if_the_log_is() {
    let options = options(100);
    let disk = SimDisk::new(7);
    open(&disk, &options).0.close().expect("a clean close");
    for len in [0, 1, 4096, 5000] {
        let disk = only(&disk, 1);
        disk.chop(&segment(1), len);
        recovers(&disk, &options, 0);
    }
    let disk = only(&disk, 0);
    recovers(&disk, &options, 0);
    let disk = build(&options, 1, End::Closed);
    for len in [0, 1, 4096, 4300, 4607] {
        let disk = only(&disk, 1);
        disk.chop(&segment(1), len);
        refuses(&disk, &options);
    }
}

/// Power goes before and after each operation of a log that rolls three times; half of the segments' files are
/// there or are not, as the image says.
#[test]
fn hz_03_a_crash_anywhere_in_a_roll_keeps_all_that_was_acknowledged() {
    for fill in [SegmentFill::Zeroed, SegmentFill::Allocated, SegmentFill::Growing] {
        let options = options(23).fill(fill);
        let disk = build(&options, 0, End::Dropped);
        let (acked, known) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(BTreeMap::new())));
        let (log, _) = open(&disk, &options);
        disk.capture_moments({
            let (acked, known) = (acked.clone(), known.clone());
            move |operation, side| {
                known.lock().expect("whole").insert((operation, side), acked.load(Ordering::Acquire));
                true
            }
        });
        for n in 1..=80 {
            append(&log, n, n);
            acked.store(n, Ordering::Release);
        }
        drop(log);
        let moments = disk.take_moments();
        assert!(moments.len() > 160);
        for moment in &moments {
            let acked = known.lock().expect("whole")[&(moment.operation(), moment.side())];
            for image in
                [CrashImage::DropUnsynced, CrashImage::KeepAll, CrashImage::Random(moment.operation())]
            {
                let disk = moment.image(image);
                let (log, report) = open(&disk, &options);
                let last = report.last_zxid.counter();
                // One append was under way at most.
                assert!(
                    last == acked || last == acked + 1,
                    "{acked} acked, {last} there, {image:?} of {moment:?}"
                );
                assert_eq!(read_all(&log), (1..=last).collect::<Vec<_>>());
            }
        }
        assert!(moments.iter().any(|m| m.side() == Side::Before));
    }
}

/// The seal of the segment before landed and the first group of the next one did not.
#[test]
fn hz_03_a_sealed_segment_needs_its_successor() {
    let options = options(100);
    let built = build(&options, 101, End::Dropped);
    let page = built.read_file(&segment(2)).expect("a segment");
    for (what, bytes) in unused(&page, page.len()) {
        let disk = only(&built, 1);
        disk.write_file(&segment(2), &bytes);
        if what == "all of it" {
            recovers(&disk, &options, 100);
            recovers_interrupted(
                &{
                    let disk = only(&built, 1);
                    disk.write_file(&segment(2), &bytes);
                    disk
                },
                &options,
                100,
            );
        } else {
            let error = refuses(&disk, &options);
            assert_eq!(
                (error.kind(), error.at().file.clone()),
                (ErrorKind::Corrupt, Some(segment(2))),
                "{what}"
            );
        }
    }
    let disk = only(&built, 1);
    let error = refuses_as(&disk, &options, "segment_missing", &segment(2));
    assert_eq!(range_of(&error).0, Some(t(101)));
}

#[test]
fn hz_03_a_sealed_segment_that_is_empty_or_absent_is_refused() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 150, end);
        let page = built.read_file(&segment(1)).expect("a segment");
        for (what, bytes) in unused(&page, page.len()) {
            let disk = copy(&built);
            disk.write_file(&segment(1), &bytes);
            let error = refuses(&disk, &options);
            assert_eq!(
                (error.kind(), error.at().file.clone()),
                (ErrorKind::Corrupt, Some(segment(1))),
                "{what}"
            );
        }
        let disk = copy(&built);
        disk.remove_file(&segment(1));
        refuses_as(&disk, &options, "segment_missing", &segment(1));
    }
}

/// The 32 bits `x` for which `crc(x)` is `target`: a CRC is affine in the bits that it covers.
fn solve(target: u32, crc: impl Fn(u32) -> u32) -> u32 {
    let constant = crc(0);
    let mut rows: Vec<(u32, u32)> = (0..32).map(|bit| (crc(1 << bit) ^ constant, 1u32 << bit)).collect();
    let (mut wanted, mut x) = (target ^ constant, 0);
    for bit in (0..32).rev() {
        let at =
            rows.iter().position(|(image, _)| image >> bit == 1).expect("32 bits in a row are a bijection");
        let (image, source) = rows.swap_remove(at);
        for row in rows.iter_mut().filter(|row| row.0 >> bit & 1 == 1) {
            *row = (row.0 ^ image, row.1 ^ source);
        }
        if wanted >> bit & 1 == 1 {
            (wanted, x) = (wanted ^ image, x ^ source);
        }
    }
    assert_eq!(crc(x), target);
    x
}

fn record_header(payload_crc: u32, payload_bytes: u32, zxid: u64, time: i64) -> Vec<u8> {
    let mut bytes = payload_crc.to_le_bytes().to_vec();
    bytes.extend(payload_bytes.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(zxid.to_le_bytes());
    bytes.extend(time.to_le_bytes());
    bytes
}

fn with_nonce(nonce: u32) -> Vec<u8> {
    let mut payload = b"a nonce that makes a checksum: ....".to_vec();
    let at = payload.len() - 4;
    payload[at..].copy_from_slice(&nonce.to_le_bytes());
    payload
}

#[test]
fn hz_04_checksums_that_are_zero_are_checksums() {
    let id = DatabaseId::from_bytes(*b"hz-04: zero crc.");
    let seed = crc32(0, id.as_bytes());
    let options = options(100).expected_database_id(id);
    let disk = SimDisk::new(7);
    let (log, _) = open(&disk, &options);
    log.advance_epoch(Epoch::new(1)).expect("an epoch");
    append(&log, 1, 10);
    // The payload's own checksum is zero.
    let no_payload_crc = with_nonce(solve(0, |nonce| crc32(0, &with_nonce(nonce))));
    // The header's checksum is zero: by the payload checksum that this takes, and the payload that has it.
    let bytes = u32::try_from(with_nonce(0).len()).expect("small");
    let crc = solve(0, |crc| crc32(seed, &record_header(crc, bytes, t(12).get(), 0)));
    let no_header_crc = with_nonce(solve(crc, |nonce| crc32(0, &with_nonce(nonce))));
    for (n, payload) in [(11, &no_payload_crc), (12, &no_header_crc), (13, &Vec::new()), (14, &vec![0; 100])]
    {
        log.append(&Record::new(t(n), 0, payload)).and_then(arborlog::AppendTicket::wait).expect("acked");
    }
    log.close().expect("a clean close");
    let segment_bytes = disk.read_file(&segment(1)).expect("a segment");
    assert_eq!(u32_at(&segment_bytes, find(&disk, 1, 11).1.offset + 4), 0);
    assert_eq!(u32_at(&segment_bytes, find(&disk, 1, 12).1.offset), 0);
    let (log, report) = open(&disk, &options);
    assert_eq!((report.last_zxid, report.tail), (t(14), TailState::Clean));
    append_group_with_zero_checksum(&disk, &log);
    append(&log, 17, 20);
    drop(log);
    let (log, report) = open(&disk, &options);
    assert_eq!((report.last_zxid, report.records), (t(20), 20));
    let mut reader = log.reader(t(10)).expect("a reader");
    for payload in [no_payload_crc, no_header_crc, Vec::new(), vec![0; 100]] {
        assert_eq!(reader.next_record().expect("readable").expect("there").payload, payload);
    }
    // The same in the middle of the log, damaged: still no end of it.
    drop(log);
    for n in [11, 12, 13, 14, 16] {
        let disk = copy(&disk);
        disk.zero(&segment(1), find(&disk, 1, n).0.offset, BLOCK);
        let error = refuses(&disk, &options);
        assert_eq!((error.kind(), range_of(&error).0), (ErrorKind::Corrupt, Some(t(n))), "{error}");
    }
}

/// Appends T(15), whose time makes the checksum of T(16)'s group header zero.
fn append_group_with_zero_checksum(disk: &SimDisk, log: &arborlog::Log) {
    let bytes = disk.read_file(&segment(1)).expect("a segment");
    let before = groups(&bytes).pop().expect("groups");
    let (seed, database) = (segment_seed(&bytes), database_seed(&bytes));
    let time = |x: u32| 1 << 40 | i64::from(x);
    let payload = payload(16);
    let record = record_header(crc32(0, &payload), 100, t(16).get(), 0);
    let fold = fold_of(crc32(database, &record));
    let header = |x: u32| {
        let mut header = 1u32.to_le_bytes().to_vec();
        header.extend(1u32.to_le_bytes());
        let offset = before.end() + BLOCK;
        for value in [136, offset, 1, t(16).get(), t(16).get(), t(15).get(), t(15).get(), 1] {
            header.extend(value.to_le_bytes());
        }
        header.extend(time(x).to_le_bytes());
        header.extend(fold.to_le_bytes());
        header
    };
    let x = solve(0, |x| crc32(seed, &header(x)));
    for record in [Record::new(t(15), time(x), b"a time"), Record::new(t(16), 0, &payload)] {
        log.append(&record).and_then(arborlog::AppendTicket::wait).expect("acked");
    }
    let bytes = disk.read_file(&segment(1)).expect("a segment");
    let group = groups(&bytes).pop().expect("groups");
    assert_eq!((group.first, u32_at(&bytes, group.offset + 4)), (t(16), 0), "the checksum is not zero");
}

/// A database whose seed makes 32 zeros a record header with the right checksum: they are none all the same.
#[test]
fn hz_04_zeros_are_no_record_even_where_their_checksum_matches() {
    let seed = solve(0, |seed| crc32(seed, &[0; 28]));
    let id = |nonce: u32| {
        let mut id = *b"hz-04: seed ....";
        id[12..].copy_from_slice(&nonce.to_le_bytes());
        id
    };
    let id = DatabaseId::from_bytes(id(solve(seed, |nonce| crc32(0, &id(nonce)))));
    assert_eq!(crc32(crc32(0, id.as_bytes()), &[0; 28]), 0);
    let options = options(100).expected_database_id(id);
    for end in [End::Closed, End::Dropped] {
        let disk = build(&options, 50, end);
        for n in [1, 20, 49] {
            let (group, record) = find(&disk, 1, n);
            for (at, len) in [(record.offset, 32), (record.offset, 136), (group.offset, BLOCK)] {
                let disk = copy(&disk);
                disk.zero(&segment(1), at, len);
                refuses_as(&disk, &options, "log_damaged", &segment(1));
            }
        }
        recovers(&disk, &options, 50);
    }
}

/// A reservation that is not there is worked without; EINTR never gets here, the backends repeat the call.
#[test]
fn hz_06_a_failed_reservation_is_no_failed_append() {
    for fill in [SegmentFill::Zeroed, SegmentFill::Allocated] {
        for (errno, name) in
            [(95, "EOPNOTSUPP"), (22, "EINVAL"), (28, "ENOSPC"), (27, "EFBIG"), (122, "EDQUOT")]
        {
            let options = options(23).fill(fill);
            let disk = SimDisk::new(7);
            disk.inject(Fault::next(FaultOp::Allocate, Effect::Error(errno)).times(u64::MAX));
            let (log, _) = open(&disk, &options);
            log.advance_epoch(Epoch::new(1)).expect("an epoch");
            append(&log, 1, 60);
            log.close().expect("a clean close");
            assert!(disk.fault_hits() >= 3, "{name}");
            let full = matches!(errno, 28 | 27 | 122);
            let expected = if full { 3 } else { u32::from(fill == SegmentFill::Allocated) + 1 };
            assert_eq!(
                u32_at(&disk.read_file(&segment(2)).expect("a segment"), 20),
                expected,
                "{name}, {fill:?}"
            );
            recovers(&disk, &options, 60);
        }
    }
    // Any other error is told, and nothing is left of the attempt.
    let disk = SimDisk::new(7);
    disk.inject(Fault::next(FaultOp::Allocate, Effect::EIO));
    let error = options(23).open_sim(&disk).map(drop).expect_err("the medium failed");
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Io, Some(5)));
    assert_eq!(disk.names(), ["LOCK"]);
    recovers(&disk, &options(23), 0);
}

/// Segments are not recycled; bytes of other lives get behind the tail all the same.
#[test]
fn hz_07_old_groups_behind_the_tail_never_come_back() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 150, end);
        let tail = find(&built, 2, 150).0.end();
        let (first, second) =
            (built.read_file(&segment(1)).expect("1"), built.read_file(&segment(2)).expect("2"));
        let piece = |bytes: &[u8], from: u64, groups: u64| {
            let from = usize::try_from(from).expect("an offset");
            bytes[from..from + usize::try_from(groups * BLOCK).expect("small")].to_vec()
        };
        for (what, bytes) in [
            ("the same offsets of the segment before", piece(&first, tail, 10)),
            ("the start of the segment before", piece(&first, HEADER, 10)),
            ("its own first groups", piece(&second, HEADER, 10)),
            ("its own newest group", piece(&second, tail - BLOCK, 1)),
            ("a seal", piece(&first, HEADER + 100 * BLOCK, 1)),
        ] {
            for gap in [0, 1, 3] {
                let disk = copy(&built);
                put(&disk, &segment(2), tail + gap * BLOCK, &bytes);
                let report = recovers(&disk, &options, 150);
                assert_eq!(report.tail, TailState::Torn, "{what} behind {gap} empty blocks is reported");
            }
        }
        // Instead of the newest group: it is refused where it was proven, and cut where it was not.
        let disk = copy(&built);
        put(&disk, &segment(2), tail - BLOCK, &piece(&first, tail - BLOCK, 1));
        match end {
            End::Closed => drop(refuses_as(&disk, &options, "log_damaged", &segment(2))),
            End::Dropped => drop(recovers(&disk, &options, 149)),
        }
    }
}

#[test]
fn hz_07_a_whole_old_segment_under_a_newer_name_is_not_read() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 150, end);
        let disk = only(&built, 2);
        disk.copy_file(&segment(1), &segment(3));
        let report = recovers(&disk, &options, 150);
        assert!(report.moved_aside.iter().any(|name| name.starts_with(&segment(3))), "{report}");
        for (from, to) in [(1, 2), (2, 1)] {
            let disk = copy(&built);
            disk.copy_file(&segment(from), &segment(to));
            refuses_as(&disk, &options, "segment_misnamed", &segment(to));
        }
    }
}

/// A segment of the same number and the same records in another directory's life.
fn foreign_segment(options: &LogOptions, seq: u64) -> Vec<u8> {
    let other = options.clone().expected_database_id(DatabaseId::from_bytes([9; 16]));
    build(&other, 250, End::Closed).read_file(&segment(seq)).expect("a segment")
}

#[test]
fn hz_08_files_that_are_something_else_are_refused_by_their_kind() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 250, end);
        for seq in [1, 2, 3] {
            let own = built.read_file(&segment(seq)).expect("a segment");
            let signed = |change: &dyn Fn(&mut Vec<u8>)| {
                let mut bytes = own.clone();
                change(&mut bytes);
                resign_header(&mut bytes);
                bytes
            };
            let mut blob = own.clone();
            blob.iter_mut()
                .zip(0u32..)
                .for_each(|(b, i)| *b ^= (i.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0] | 1);
            for (code, kind, bytes) in [
                ("segment_foreign", ErrorKind::WrongOwner, foreign_segment(&options, seq)),
                ("segment_version", ErrorKind::Unsupported, signed(&|b| b[12] = 2)),
                ("segment_version", ErrorKind::Unsupported, signed(&|b| b[16] = 1)),
                ("segment_header_field", ErrorKind::Corrupt, signed(&|b| b[20] = 9)),
                ("segment_header_field", ErrorKind::Corrupt, signed(&|b| b[4095] = 1)),
                ("segment_magic", ErrorKind::Corrupt, blob),
                (
                    "segment_magic",
                    ErrorKind::Corrupt,
                    built.read_file("log.manifest").expect("a manifest").repeat(100),
                ),
                ("segment_magic", ErrorKind::Corrupt, b"ZKSN".repeat(2000)),
            ] {
                let disk = copy(&built);
                disk.write_file(&segment(seq), &bytes);
                let error = refuses(&disk, &options);
                assert_eq!((error.kind(), error.code()), (kind, code), "segment {seq}: {error}");
                assert_eq!(error.at().file, Some(segment(seq)));
            }
            let disk = copy(&built);
            disk.put_other(&segment(seq));
            refuses_as(&disk, &options, "not_a_file", &segment(seq));
        }
        let disk = copy(&built);
        disk.put_other("log.manifest");
        refuses_as(&disk, &options, "not_a_file", "log.manifest");
        let disk = copy(&built);
        disk.copy_file(&segment(1), "log.manifest");
        refuses_as(&disk, &options, "manifest_damaged", "log.manifest");
        let asked = options.clone().expected_database_id(DatabaseId::from_bytes([9; 16]));
        assert_eq!(refuses(&built, &asked).code(), "database_foreign");
    }
}

/// Files on a real disk, with names, lengths and contents; a link by what it points to.
fn listing(dir: &Path) -> BTreeMap<String, (u64, Vec<u8>)> {
    let entries = fs::read_dir(dir).expect("a directory").map(|e| e.expect("an entry"));
    let found = entries.filter(|e| e.file_name() != "LOCK").map(|entry| {
        let meta = entry.path().symlink_metadata().expect("metadata");
        let bytes = if meta.is_file() { fs::read(entry.path()).expect("readable") } else { Vec::new() };
        (entry.file_name().into_string().expect("text"), (meta.len(), bytes))
    });
    found.collect()
}

/// Directories, links and pipes: refused without following, blocking or changing anything.
#[test]
fn hz_08_a_directory_a_link_or_a_pipe_is_refused_and_never_blocks() {
    let built = tempfile::tempdir().expect("a directory");
    let options = options(100).backend(BackendChoice::Threads);
    let (log, _) = options.open(built.path()).expect("it opens");
    log.advance_epoch(Epoch::new(1)).expect("an epoch");
    append(&log, 1, 250);
    log.close().expect("a clean close");
    let outside = built.path().join("outside");
    for name in [segment(1), segment(3), "log.manifest".to_owned()] {
        let path = built.path().join(&name);
        fs::rename(&path, &outside).expect("renamed");
        let puts: [(&str, &dyn Fn()); 4] = [
            ("directory", &|| fs::create_dir(&path).expect("a directory")),
            ("link", &|| std::os::unix::fs::symlink(&outside, &path).expect("a link")),
            ("dangling link", &|| std::os::unix::fs::symlink("nowhere", &path).expect("a link")),
            ("pipe", &|| assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success())),
        ];
        for (what, put) in puts {
            put();
            let before = listing(built.path());
            let error = options.open(built.path()).map(drop).expect_err(what);
            assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, "not_a_file"), "{what}: {error}");
            assert_eq!(error.at().file.as_deref(), Some(&*name), "{what}");
            assert!(listing(built.path()) == before, "a {what} made it change something");
            if what == "directory" { fs::remove_dir(&path) } else { fs::remove_file(&path) }
                .expect("removed");
        }
        fs::rename(&outside, &path).expect("renamed");
    }
    let (log, report) = options.open(built.path()).expect("it opens again");
    assert_eq!((report.last_zxid, report.tail), (t(250), TailState::Clean));
    assert_eq!(read_all(&log).len(), 250);
}

/// What is not part of the log is no reason to refuse it, and is not thrown away either.
#[test]
fn hz_08_a_foreign_segment_behind_the_end_is_kept() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let disk = only(&build(&options, 150, end), 2);
        let foreign = foreign_segment(&options, 3);
        disk.write_file(&segment(3), &foreign);
        let report = recovers(&disk, &options, 150);
        let [aside] = report.moved_aside.as_slice() else { panic!("{report}") };
        assert_eq!(disk.read_file(aside), Some(foreign));
        assert!(aside.starts_with(&format!("{}.cut-", segment(3))));
    }
}
