//! LC: lengths are not believed before their checksum, and no error is dropped.

use std::time::{Duration, Instant};

use arborlog::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};
use arborlog::{Epoch, Error, ErrorKind, GroupPolicy, Log, LogOptions, Record, Retention, Zxid};

use super::support::*;
use crate::allocations::peak_bytes;

/// Makes the checksums right again over changed bytes.
type Resign = Box<dyn Fn(&mut [u8])>;

/// A field that says how much of something there is, or where: its place in a file and its width.
struct Field {
    name: &'static str,
    seq: u64,
    offset: u64,
    bytes: usize,
    resign: Resign,
}

fn fields(disk: &SimDisk, n: u32, seq: u64) -> Vec<Field> {
    let (group, _) = find(disk, seq, n);
    let seal = groups(&disk.read_file(&segment(1)).expect("a segment")).pop().expect("a seal");
    assert_eq!(seal.kind, 2);
    let of_header = |name, offset, bytes| Field { name, seq, offset, bytes, resign: Box::new(resign_header) };
    let of_group = |name, at, bytes| {
        let start = group.offset;
        let resign = Box::new(move |b: &mut [u8]| resign_group(b, start));
        Field { name, seq, offset: start + at, bytes, resign }
    };
    let of_record = |name, at, bytes| {
        let group = group.clone();
        let offset = group.offset + GROUP_HEADER + at;
        Field { name, seq, offset, bytes, resign: Box::new(move |b: &mut [u8]| resign_record(b, &group)) }
    };
    let of_seal_body = |name, at| {
        let seal = seal.clone();
        let offset = seal.offset + GROUP_HEADER + at;
        Field { name, seq: 1, offset, bytes: 8, resign: Box::new(move |b: &mut [u8]| resign_seal(b, &seal)) }
    };
    let of_seal = |name, at, bytes| {
        let start = seal.offset;
        let resign = Box::new(move |b: &mut [u8]| resign_group(b, start));
        Field { name, seq: 1, offset: start + at, bytes, resign }
    };
    vec![
        of_header("version", 12, 4),
        of_header("block_bytes", 24, 4),
        of_header("sequence", 48, 8),
        of_header("capacity", 64, 8),
        of_group("record_count", 12, 4),
        of_group("body_bytes", 16, 8),
        of_group("offset", 24, 8),
        of_group("sequence of a group", 32, 8),
        of_group("first_zxid", 40, 8),
        of_group("last_zxid", 48, 8),
        of_group("prev_zxid", 56, 8),
        of_group("durable_zxid", 64, 8),
        of_group("time_max_before", 80, 8),
        of_record("payload_bytes", 8, 4),
        of_record("reserved of a record", 12, 4),
        of_record("zxid", 16, 8),
        of_seal("record_count of a seal", 12, 4),
        of_seal("body_bytes of a seal", 16, 8),
        of_seal_body("records", 0),
        of_seal_body("entries", 8),
        of_seal_body("zxid of an entry", 16),
        of_seal_body("offset of an entry", 24),
    ]
}

/// The values of the entry, for a field that holds `now` in a file of this size.
fn nasty(now: u64, file_bytes: u64) -> Vec<u64> {
    let mut values = vec![0x7fff_ffff, 0xffff_ffff, 0x8000_0000, u64::MAX, u64::MAX - 1, u64::MAX >> 1, 0];
    values.extend([now.wrapping_add(1), now.wrapping_sub(1), file_bytes, file_bytes + 1]);
    values.extend([1 << 20, 1 << 34, (1 << 34) + 1, (1 << 20) + 1]);
    values
}

/// Opens and reads all within the bounds of memory and time. What opens has all the records that are proven.
#[track_caller]
fn opens_whole_or_refuses(disk: &SimDisk, options: &LogOptions, what: &str, at_least: u32, all: u32) -> bool {
    let before = bytes_of(disk);
    let file_bytes = before.values().map(Vec::len).max().unwrap_or(0) as u64;
    #[expect(clippy::disallowed_methods, reason = "the entry bounds the time")]
    let start = Instant::now();
    let (opened, peak) = peak_bytes(|| options.open_sim(disk));
    let took = start.elapsed();
    assert!(peak <= 2 * file_bytes + (16 << 20), "{what}: {peak} bytes of memory for {file_bytes} of file");
    assert!(took < Duration::from_secs(1), "{what}: {took:?}");
    match opened {
        Ok((log, report)) => {
            let (read, peak) = peak_bytes(|| read_all(&log));
            assert!(
                peak <= 2 * file_bytes + (4 << 20),
                "{what}: {peak} bytes of memory to read {file_bytes}"
            );
            assert!(
                read.len() as u64 == report.records && read.len() >= at_least as usize,
                "{what}: {report}"
            );
            assert_eq!(read, (1..=all).take(read.len()).collect::<Vec<_>>(), "{what}");
            true
        }
        Err(error) => {
            let kinds = [ErrorKind::Corrupt, ErrorKind::Unsupported];
            assert!(kinds.contains(&error.kind()), "{what}: {error}");
            assert!(before == bytes_of(disk), "{what}: a refused log was changed");
            false
        }
    }
}

/// The tree's and the snapshots' lengths do not exist yet; neither does null data.
#[test]
fn lc_01_no_length_field_makes_a_large_allocation() {
    let options = options(23).group(GroupPolicy::new().bytes_max(64 * 1024));
    let (mut refused, mut opened) = (0, 0);
    for (end, n, seq) in
        [(End::Closed, 10, 1), (End::Dropped, 10, 1), (End::Closed, 40, 2), (End::Dropped, 40, 2)]
    {
        let built = build(&options, 40, end);
        for field in fields(&built, n, seq) {
            let bytes = built.read_file(&segment(field.seq)).expect("a segment");
            let now = if field.bytes == 4 {
                u32_at(&bytes, field.offset).into()
            } else {
                u64_at(&bytes, field.offset)
            };
            for value in nasty(now, bytes.len() as u64) {
                let at = usize::try_from(field.offset).expect("an offset");
                let mut stale = bytes.clone();
                stale[at..at + field.bytes].copy_from_slice(&value.to_le_bytes()[..field.bytes]);
                if stale == bytes {
                    continue;
                }
                let mut signed = stale.clone();
                (field.resign)(&mut signed);
                for (bytes, checksum) in [(&stale, "stale"), (&signed, "right")] {
                    let disk = copy(&built);
                    disk.write_file(&segment(field.seq), bytes);
                    let what = format!("{} = {value:#x}, checksum {checksum}, T({n}), {end:?}", field.name);
                    // Only the newest group of a log that was not closed may go as torn.
                    let newest = n == 40 && end == End::Dropped;
                    let whole = opens_whole_or_refuses(&disk, &options, &what, 40 - u32::from(newest), 40);
                    assert!(!whole || checksum == "right" || newest, "{what}: not noticed");
                    (refused, opened) = (refused + u32::from(!whole), opened + u32::from(whole));
                }
            }
        }
    }
    assert!(refused > 1500 && opened > 50, "{refused} refused, {opened} opened");
}

#[test]
fn lc_01_no_number_of_the_manifest_makes_a_large_allocation_or_a_wrap() {
    let options = options(23);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 40, end);
        let size = built.read_file("log.manifest").expect("a manifest").len() as u64;
        for (key, hex) in [
            ("version", false),
            ("epoch", false),
            ("durable_zxid", true),
            ("first_seq", false),
            ("floor_zxid", true),
        ] {
            let old = manifest_value(&built, key);
            let now = old
                .strip_prefix("0x")
                .map_or_else(|| old.parse(), |h| u64::from_str_radix(h, 16))
                .expect("a number");
            for value in nasty(now, size) {
                let new = if hex { format!("{value:#x}") } else { value.to_string() };
                let change =
                    |text: &str| text.replacen(&format!("{key} {old}\n"), &format!("{key} {new}\n"), 1);
                let disk = copy(&built);
                let stale =
                    change(&String::from_utf8(disk.read_file("log.manifest").expect("there")).expect("text"));
                disk.write_file("log.manifest", stale.as_bytes());
                if new != old {
                    refuses_as(&disk, &options, "manifest_damaged", "log.manifest");
                }
                let disk = copy(&built);
                edit_manifest(&disk, change);
                opens_whole_or_refuses(&disk, &options, &format!("{key} {new}, {end:?}"), 40, 40);
            }
        }
        for cut in [
            "1 0x100000017 2",
            "1 0x100000005 2",
            "1 0x1ffffffff 2",
            "1 0x0 2",
            "2 0x100000028 18446744073709551615",
            "18446744073709551614 0x100000028 18446744073709551615",
            "18446744073709551615 0x0 18446744073709551616",
        ] {
            let disk = copy(&built);
            edit_manifest(&disk, |text| format!("{text}cut {cut}\n"));
            let what = format!("cut {cut}, {end:?}");
            // A cut that a checksum vouches for may end the log early; it may not make it wrap or lie.
            let opened = options.open_sim(&disk).map(|(log, _)| read_all(&log));
            assert!(
                opened.is_err()
                    || opened.as_ref().is_ok_and(|r| *r == (1..=40).take(r.len()).collect::<Vec<_>>()),
                "{what}"
            );
        }
        for bytes in [Vec::new(), b"\n".repeat(100), vec![b'9'; 1 << 16], vec![0xff; 5 << 20]] {
            let disk = copy(&built);
            disk.write_file("log.manifest", &bytes);
            let (error, peak) = peak_bytes(|| options.open_sim(&disk).map(drop).expect_err("no manifest"));
            assert_eq!(error.code(), "manifest_damaged");
            assert!(peak < 1 << 20, "{peak} bytes for a manifest of {}", bytes.len());
        }
    }
}

#[test]
fn lc_03_what_an_append_takes_can_be_read_under_any_later_limit() {
    let limit = 100_000usize;
    for bytes_max in [4096, 64 * 1024] {
        let options =
            options(23).record_bytes_max(limit as u64).group(GroupPolicy::new().bytes_max(bytes_max));
        let disk = build(&options, 1, End::Dropped);
        let (log, _) = open(&disk, &options);
        let body = |len: usize| vec![7u8; len];
        let append = |n: u32, len: usize| {
            log.append(&Record::new(t(n), 0, &body(len))).and_then(arborlog::AppendTicket::wait)
        };
        append(2, limit - 1).expect("below the limit");
        append(3, limit).expect("at the limit");
        let before = bytes_of(&disk);
        for len in [limit + 1, 2 * limit, 1 << 24] {
            let error = append(4, len).expect_err("above the limit");
            assert_eq!(error.kind(), ErrorKind::TooLarge);
        }
        // As part of a batch, too: nothing of it is taken.
        let large = body(limit + 1);
        let batch = [Record::new(t(4), 0, b"small"), Record::new(t(5), 0, &large)];
        assert_eq!(
            log.append_batch(&batch).map(drop).expect_err("above the limit").kind(),
            ErrorKind::TooLarge
        );
        assert_eq!(log.logged_zxid(), t(3));
        let segments = |bytes: &std::collections::BTreeMap<String, Vec<u8>>| {
            bytes
                .iter()
                .filter(|(name, bytes)| name.ends_with(".seg") && !groups(bytes).is_empty())
                .map(|(n, b)| (n.clone(), b.clone()))
                .collect::<Vec<_>>()
        };
        assert!(segments(&before) == segments(&bytes_of(&disk)), "something was written");
        append(4, 0).expect("an empty record");
        log.close().expect("a clean close");
        for lowered in [limit / 2, 100, 1] {
            let options = options.clone().record_bytes_max(lowered as u64);
            let (log, report) = open(&disk, &options);
            assert_eq!((report.last_zxid, report.records), (t(4), 4));
            let mut reader = log.reader(t(1)).expect("a reader");
            for len in [limit - 1, limit, 0] {
                let record = reader.next_record().expect("readable").expect("there");
                assert!(record.payload == body(len), "{len} bytes");
            }
            drop(reader);
            log.close().expect("a clean close");
        }
    }
}

/// Records of 1 GiB are left to the tests of large things; here the arithmetic of the limit.
#[test]
fn lc_04_limits_work_or_are_refused_and_never_wrap() {
    for limit in
        [1 << 30, (1 << 30) - 1, (1 << 31) - 1, 1 << 31, u32::MAX.into(), 1 << 32, u64::MAX - 1, u64::MAX, 0]
    {
        let disk = SimDisk::new(7);
        let options = options(100).record_bytes_max(limit);
        let opened = options.open_sim(&disk);
        if (1..=1 << 30).contains(&limit) {
            let (log, _) = opened.expect("within the bounds");
            log.advance_epoch(Epoch::new(1)).expect("an epoch");
            append(&log, 1, 3);
            let large = vec![3u8; 3 << 20];
            log.append(&Record::new(t(4), 0, &large))
                .and_then(arborlog::AppendTicket::wait)
                .expect("far below the limit");
            log.close().expect("a clean close");
            let (log, report) = open(&disk, &options);
            assert_eq!(report.last_zxid, t(4));
            let mut reader = log.reader(t(3)).expect("a reader");
            assert!(reader.next_record().expect("readable").expect("there").payload == large);
        } else {
            assert_eq!(opened.map(drop).expect_err("out of bounds").kind(), ErrorKind::Invalid, "{limit}");
            assert!(disk.names().is_empty(), "a wrong option touched the disk");
        }
    }
}

#[test]
fn lc_06_bytes_that_moved_are_noticed() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 200, end);
        let bytes = [1, 2].map(|seq| built.read_file(&segment(seq)).expect("a segment"));
        let piece = |seq: usize, from: u64, len: u64| {
            let from = usize::try_from(from).expect("an offset");
            bytes[seq - 1][from..from + usize::try_from(len).expect("small")].to_vec()
        };
        let (g20, r20) = find(&built, 1, 20);
        let (g40, r40) = find(&built, 1, 40);
        let moves = [
            ("group 20 over 40", 1, g40.offset, piece(1, g20.offset, BLOCK)),
            ("group 40 over 20", 1, g20.offset, piece(1, g40.offset, BLOCK)),
            ("record 20 over 40", 1, r40.offset, piece(1, r20.offset, 136)),
            ("payload 20 over 40", 1, r40.payload(), piece(1, r20.payload(), 100)),
            ("header and payload checksum 20 over 40", 1, r40.offset, piece(1, r20.offset, 8)),
            ("a page of segment 1 onto segment 2", 2, 8192, piece(1, 8192, 4096)),
            ("a page of segment 2 onto segment 1", 1, 8192, piece(2, 8192, 4096)),
            ("the header page of segment 1 onto segment 2", 2, 0, piece(1, 0, 4096)),
            ("all but one group of segment 1 onto segment 2", 2, 4096, piece(1, 4096, 99 * BLOCK)),
            ("a page one page on", 1, 12288, piece(1, 8192, 4096)),
        ];
        for (what, seq, at, with) in moves {
            let disk = copy(&built);
            put(&disk, &segment(seq), at, &with);
            let error = refuses(&disk, &options);
            assert_eq!(
                (error.kind(), error.at().file.clone()),
                (ErrorKind::Corrupt, Some(segment(seq))),
                "{what}: {error}"
            );
        }
    }
}

/// The limit of the evidence: with every group of the newest segment overwritten, nothing tells that they ever
/// were, unless the log was closed. It is reported as a torn tail of that many bytes.
#[test]
fn lc_06_a_newest_segment_overwritten_whole_is_reported_at_least() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let disk = build(&options, 200, end);
        let other = disk.read_file(&segment(1)).expect("a segment");
        put(&disk, &segment(2), HEADER, &other[4096..4096 + 100 * 512]);
        if end == End::Closed {
            refuses_as(&disk, &options, "log_damaged", &segment(2));
        } else {
            let cut = recovers(&disk, &options, 100).cut.expect("reported");
            assert_eq!((cut.file, cut.offset), (segment(2), HEADER));
        }
    }
}

/// The stretch between the header page and the first block boundary belongs to no group.
#[test]
fn lc_06_bytes_before_the_first_group_are_noticed() {
    let options = options(200).block_bytes(16 * 1024).segment_bytes(256 * 1024);
    for end in [End::Closed, End::Dropped] {
        let built = build(&options, 10, end);
        for at in [4096, 5000, 16 * 1024 - 1] {
            let disk = copy(&built);
            disk.flip(&segment(1), at, 1);
            let error = refuses_as(&disk, &options, "segment_header_gap", &segment(1));
            assert_eq!(error.at().offset, Some(4096));
        }
        recovers(&built, &options, 10);
    }
}

/// Within one group, where the group's own place tells nothing.
#[test]
fn lc_06_records_that_moved_within_their_group_are_noticed() {
    let options = options(100);
    let built = SimDisk::new(7);
    let (log, _) = open(&built, &options);
    log.advance_epoch(Epoch::new(1)).expect("an epoch");
    append_batch(&log, 1, 10);
    append(&log, 11, 20);
    log.close().expect("a clean close");
    let bytes = built.read_file(&segment(1)).expect("a segment");
    let frame = |n: u32| {
        let at = usize::try_from(find(&built, 1, n).1.offset).expect("an offset");
        bytes[at..at + 136].to_vec()
    };
    for (from, to) in [(2, 3), (3, 2), (9, 10), (1, 10)] {
        let disk = copy(&built);
        put(&disk, &segment(1), find(&built, 1, to).1.offset, &frame(from));
        refuses_as(&disk, &options, "log_damaged", &segment(1));
        put(&disk, &segment(1), find(&built, 1, from).1.offset, &frame(to));
        refuses_as(&disk, &options, "log_damaged", &segment(1));
    }
}

/// What a workload saw of a failure.
#[derive(Default)]
struct Told {
    errors: Vec<Error>,
    /// The statistics count a preparation that failed; it is tried again.
    by_statistics: bool,
    /// Acknowledged, and not cut off again on purpose.
    acked: u32,
    /// The most that may be there.
    logged: u32,
}

impl Told {
    fn take<T>(&mut self, result: arborlog::Result<T>) -> Option<T> {
        result.map_err(|error| self.errors.push(error)).ok()
    }

    fn append(&mut self, log: &Log, last: u32) -> Option<()> {
        for n in self.logged + 1..=last {
            let payload = payload(n);
            let ticket = log.append(&Record::new(t(n), time_ms(n), &payload));
            self.logged = n;
            self.take(ticket.and_then(arborlog::AppendTicket::wait))?;
            self.acked = n;
        }
        Some(())
    }

    /// Lets the log's threads come to rest, and asks whether the preparer has failed.
    #[expect(clippy::disallowed_methods, reason = "the background is watched from outside")]
    fn settle(&mut self, log: &Log, disk: &SimDisk) {
        for _ in 0..400 {
            let failed = log.stats().prepare_failures > 0;
            let active = disk
                .names()
                .into_iter()
                .filter(|n| n.ends_with(".seg"))
                .rfind(|n| !groups(&disk.read_file(n).unwrap_or_default()).is_empty());
            let next = disk.names().into_iter().rfind(|n| n.ends_with(".seg"));
            let before = disk.counters();
            std::thread::sleep(Duration::from_millis(3));
            if (failed || active < next) && before == disk.counters() {
                break;
            }
        }
        self.by_statistics |= log.stats().prepare_failures > 0;
    }
}

/// Every kind of call that a log makes: create, append over several segments, read, scrub, purge, close, open,
/// let go of, open after that, truncate, append again.
fn workload(disk: &SimDisk, options: &LogOptions, told: &mut Told) -> Option<()> {
    let (log, _) = told.take(options.open_sim(disk))?;
    told.take(log.advance_epoch(Epoch::new(1)))?;
    told.append(&log, 60)?;
    let mut reader = told.take(log.reader(Zxid::ZERO))?;
    while told.take(reader.next_record())?.is_some() {}
    drop(reader);
    told.take(log.verify())?;
    let purged = told.take(log.purge(t(30), &Retention::new()))?;
    told.errors.extend(purged.left.into_iter().map(|(_, error)| error));
    told.settle(&log, disk);
    told.take(log.close())?;
    let (log, _) = told.take(options.open_sim(disk))?;
    told.append(&log, 65)?;
    told.settle(&log, disk);
    drop(log);
    let (log, _) = told.take(options.open_sim(disk))?;
    told.settle(&log, disk);
    told.acked = 62;
    let (log, _) = told.take(log.truncate(t(62)))?;
    told.logged = 62;
    told.append(&log, 70)?;
    told.settle(&log, disk);
    told.take(log.close())
}

/// What may fail without a word, because it costs space and nothing else: the reserve for a full disk is kept if
/// it can be, and unused zeros of a segment that the log has left are given back.
fn may_be_ignored(disk: &SimDisk, op: FaultOp, name: &str) -> bool {
    match op {
        FaultOp::Create | FaultOp::Write | FaultOp::Sync | FaultOp::Remove => name == "log.reserve",
        FaultOp::Open | FaultOp::SetLen if name.ends_with(".seg") => {
            let bytes = disk.read_file(name).expect("a segment");
            groups(&bytes).last().is_some_and(|group| group.kind != 2 && group.end() < bytes.len() as u64)
        }
        _ => false,
    }
}

/// The static half of the entry is among the house rules.
#[test]
fn lc_08_every_failing_call_is_told() {
    use FaultOp::{Allocate, Create, List, Lock, Open, Read, Remove, Rename, SetLen, Sync, SyncDir, Write};
    let options = options(23);
    let (clean, mut told) = (SimDisk::new(7), Told::default());
    workload(&clean, &options, &mut told).expect("nothing fails");
    assert_eq!((told.acked, told.errors.len()), (70, 0));
    let mut names: Vec<String> = (1..=8).flat_map(|n| [segment(n), format!("{}.tmp", segment(n))]).collect();
    names.extend(["log.manifest", "log.manifest.tmp", "log.reserve", "LOCK", ""].map(str::to_owned));
    let (mut calls, mut ignored) = (0, 0);
    for op in [Create, Open, Read, Write, Sync, SyncDir, Rename, Remove, SetLen, Allocate, List, Lock] {
        for name in &names {
            for nth in 1.. {
                let (disk, mut told) = (SimDisk::new(7), Told::default());
                disk.inject(Fault::next(op, Effect::EIO).on(NamePattern::Exact(name.clone())).nth(nth));
                // Its result is in `told`.
                let _done = workload(&disk, &options, &mut told);
                if disk.fault_hits() == 0 {
                    break;
                }
                calls += 1;
                let what = format!("{op:?} number {nth} of {name:?}");
                if told.errors.is_empty() && !told.by_statistics {
                    assert!(may_be_ignored(&disk, op, name), "{what} failed and nobody was told");
                    ignored += 1;
                }
                disk.clear_faults();
                disk.crash(CrashImage::KeepAll);
                still_there(&disk, &options, &told, &what);
            }
        }
    }
    assert!(calls > 150 && ignored > 0, "{calls} calls, {ignored} ignored");
}

/// After whatever failed: the log opens, and has all that was acknowledged and nothing that was not appended.
#[track_caller]
fn still_there(disk: &SimDisk, options: &LogOptions, told: &Told, what: &str) {
    let (log, report) = options.open_sim(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let last = report.last_zxid.counter();
    assert!(
        (told.acked..=told.logged.max(told.acked)).contains(&last),
        "{what}: {} acked, {last} there",
        told.acked
    );
    let floor = report.floor_zxid.counter();
    assert_eq!(read_all(&log), (floor + 1..=last).collect::<Vec<_>>(), "{what}");
}
