//! TT: a torn tail is told from damage in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arborlog::sim::{CrashImage, Effect, Fault, FaultOp, NamePattern, SimDisk};
use arborlog::{
    DamagedRecords, Epoch, ErrorKind, Execution, Gather, GroupPolicy, LogOptions, Record, SegmentFill,
    TailState, WriteMode, Zxid, repair_record_sim,
};

use super::support::*;

const ALL: u32 = 100;

/// A log of T(1)..=T(100) of which nothing proves that T(100) was ever durable.
fn unproven(options: &LogOptions) -> SimDisk {
    build(options, ALL, End::Dropped)
}

#[test]
fn tt_01_a_file_chopped_inside_the_newest_record_recovers_to_the_one_before() {
    let options = growing(options(200));
    let disk = unproven(&options);
    let (group, _) = find(&disk, 1, ALL);
    for at in 0..BLOCK {
        let disk = copy(&disk);
        disk.chop(&segment(1), group.offset + at);
        let report = recovers(&disk, &options, ALL - 1);
        if at == 0 {
            assert_eq!((report.tail, report.cut), (TailState::Unclean, None));
            continue;
        }
        let cut = report.cut.expect("a torn group is reported");
        assert_eq!((cut.file, cut.offset, cut.bytes), (segment(1), group.offset, at), "chopped at {at}");
        assert_eq!(report.tail, TailState::Torn);
    }
}

#[test]
fn tt_01_a_newest_record_that_ends_in_zeros_recovers_to_the_one_before() {
    let options = options(200);
    let disk = unproven(&options);
    let (group, _) = find(&disk, 1, ALL);
    let len = disk.read_file(&segment(1)).expect("a segment").len() as u64;
    for at in group.offset..group.body_end() {
        let disk = copy(&disk);
        disk.zero(&segment(1), at, group.body_end() - at);
        // The record's last bytes are its padding: zeroing those alone changes nothing.
        if at >= group.records[0].payload() + 100 {
            recovers(&disk, &options, ALL);
            continue;
        }
        let report = recovers(&disk, &options, ALL - 1);
        let kept = disk.read_file(&segment(1)).expect("a segment");
        let all = if at > group.offset { len } else { group.offset };
        assert_eq!(
            kept.len() as u64,
            all,
            "the cut bytes stay in their file, and unused zeros are given back"
        );
        let cut = report.cut.map(|cut| (cut.file, cut.offset, cut.bytes));
        let expected = (at > group.offset).then(|| (segment(1), group.offset, len - group.offset));
        assert_eq!(cut, expected, "zeroed from {at}");
    }
}

#[test]
fn tt_01_any_flipped_byte_of_the_newest_group_recovers_to_the_one_before() {
    let options = options(200);
    let disk = unproven(&options);
    let (group, _) = find(&disk, 1, ALL);
    for at in group.offset..group.end() {
        let disk = copy(&disk);
        disk.flip(&segment(1), at, 0x5a);
        let report = recovers(&disk, &options, ALL - 1);
        assert_eq!(report.tail, TailState::Torn, "byte {at}");
    }
}

#[test]
fn tt_01_recovery_of_a_torn_group_may_be_interrupted_anywhere() {
    for (options, at) in [(options(200), 120), (growing(options(200)), 40), (growing(options(200)), 0)] {
        let disk = unproven(&options);
        let (group, _) = find(&disk, 1, ALL);
        disk.zero(&segment(1), group.offset + at, group.body_end() - group.offset - at);
        recovers_interrupted(&disk, &options, ALL - 1);
    }
}

/// Power goes at every step of writing T(4), and any of its sectors may have landed: a group of three sectors.
#[test]
fn tt_01_power_cuts_inside_a_write_keep_all_that_was_acknowledged() {
    for options in [options(30), growing(options(30)), options(30).write_mode(WriteMode::BufferedThenSync)] {
        let disk = build(&options, 3, End::Dropped);
        let (log, _) = open(&disk, &options);
        disk.capture_moments(|_, _| true);
        append_batch(&log, 4, 9);
        drop(log);
        let moments = disk.take_moments();
        let (mut none, mut whole) = (0, 0);
        for (moment, seed) in moments.iter().flat_map(|m| (0..12).map(move |seed| (m, seed))) {
            let image = match seed {
                0 => CrashImage::DropUnsynced,
                1 => CrashImage::KeepAll,
                seed => CrashImage::Random(seed),
            };
            let (log, report) = open(&moment.image(image), &options);
            match report.last_zxid {
                last if last == t(3) => none += 1,
                last if last == t(9) => whole += 1,
                last => panic!("a batch came back in part: {last}"),
            }
            assert_eq!(read_all(&log).len() as u64, report.records);
        }
        assert!(none > 0 && whole > 0, "{none} without the batch, {whole} with it");
    }
}

/// The neighbour: the same damage where something proves T(100) durable is no torn tail.
#[test]
fn tt_01_the_same_damage_is_refused_where_the_record_is_proven() {
    let plain = options(200);
    let marked = options(200).idle_mark(Some(Duration::from_millis(1)));
    let with_mark = || {
        let disk = SimDisk::new(7);
        let (log, _) = open(&disk, &marked);
        log.advance_epoch(Epoch::new(1)).expect("an epoch");
        append(&log, 1, ALL);
        let mark =
            |disk: &SimDisk| groups(&disk.read_file(&segment(1)).expect("a segment")).pop().expect("groups");
        let deadline = 5_000;
        assert!((0..deadline).any(|_| {
            std::thread::yield_now();
            log.reader(t(ALL)).expect("a reader").wait(Duration::from_millis(1)).expect("nothing fails");
            mark(&disk).kind == 3
        }));
        drop(log);
        assert_eq!((mark(&disk).kind, mark(&disk).durable), (3, t(ALL)));
        disk
    };
    for (disk, what) in [(build(&plain, ALL, End::Closed), "a clean close"), (with_mark(), "an idle mark")] {
        let (group, record) = find(&disk, 1, ALL);
        for at in [group.offset, group.offset + 60, record.offset, record.offset + 9, record.payload() + 50] {
            let disk = copy(&disk);
            disk.flip(&segment(1), at, 0x5a);
            let error = refuses_as(&disk, &plain, "log_damaged", &segment(1));
            assert_eq!(range_of(&error).0, Some(t(ALL)), "{what}: {error}");
        }
        let chopped = copy(&disk);
        chopped.chop(&segment(1), group.offset + 100);
        refuses_as(&chopped, &plain, "segment_short", &segment(1));
    }
    // The length of a segment that was written through proves the loss by itself.
    let disk = unproven(&plain);
    let (group, _) = find(&disk, 1, ALL);
    for at in [0, 1, 95, 96, 200, 511, 512] {
        let disk = copy(&disk);
        disk.chop(&segment(1), group.offset + at);
        refuses_as(&disk, &plain, "segment_short", &segment(1));
    }
}

/// TT-03's damages of one record, and the offset at which each is to be found.
fn damages(group: &GroupAt, record: &RecordAt, file_len: u64) -> Vec<(&'static str, u64, u64, u64)> {
    let (start, payload) = (record.offset, record.payload());
    vec![
        ("its length", start + 8, 4, start),
        ("its checksums and length", start, 12, start),
        ("its header", start, 32, start),
        ("its last byte", payload + 99, 1, start),
        ("all from its header on", start, file_len - start, start),
        ("all from its payload on", payload, file_len - payload, start),
        ("its group", group.offset, BLOCK, group.offset),
        ("its group's magic", group.offset, 4, group.offset),
        ("all from its group on", group.offset, file_len - group.offset, group.offset),
    ]
}

/// There is no salvage mode in the log yet; the part of the entry that asks for one is not tested.
#[test]
fn tt_03_zeros_in_the_middle_are_refused_whatever_follows() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let disk = build(&options, 200, end);
        for (seq, n) in [(1, 50), (1, 1), (1, 100), (2, 101), (2, 150)] {
            let file_len = disk.read_file(&segment(seq)).expect("a segment").len() as u64;
            let (group, record) = find(&disk, seq, n);
            for (what, at, len, offset) in damages(&group, &record, file_len) {
                // With everything behind it gone from the newest segment, nothing proves these records.
                if end == End::Dropped && seq == 2 && at + len == file_len {
                    continue;
                }
                let disk = copy(&disk);
                disk.zero(&segment(seq), at, len);
                let error = refuses_as(&disk, &options, "log_damaged", &segment(seq));
                assert_eq!(error.at().offset, Some(offset), "{what} of {n}, {end:?}: {error}");
                let (first, last) = range_of(&error);
                // What stood before the first record is zero, and the damage begins right after it.
                let begins = if n == 1 && offset == group.offset { Zxid::new(1) } else { t(n) };
                assert_eq!(first, Some(begins), "{what} of {n}: {error}");
                assert!(last.is_none_or(|last| last >= t(n)));
            }
        }
    }
}

#[test]
fn tt_03_any_flipped_byte_in_the_middle_is_refused() {
    let options = options(23);
    let disk = build(&options, 50, End::Dropped);
    let bytes = disk.read_file(&segment(1)).expect("a segment");
    let end = groups(&bytes).last().expect("a seal").end();
    // The header page, every group, the seal, all padding: every byte is covered by some checksum.
    for at in (0..HEADER).step_by(37).chain((HEADER..end).step_by(3)) {
        let disk = copy(&disk);
        disk.flip(&segment(1), at, 0x01);
        let error = refuses(&disk, &options);
        assert_eq!(
            (error.kind(), error.at().file.as_deref()),
            (ErrorKind::Corrupt, Some(&*segment(1))),
            "{at}"
        );
    }
}

#[test]
fn tt_05_short_and_interrupted_reads_are_no_end_of_the_log() {
    let options = options(100);
    for end in [End::Closed, End::Dropped] {
        let disk = build(&options, 100, end);
        let before = disk.read_file(&segment(1)).expect("a segment");
        disk.inject(Fault::next(FaultOp::Read, Effect::Interrupted).times(u64::MAX));
        recovers(&disk, &options, 100);
        assert!(disk.fault_hits() > 0);
        if end == End::Dropped {
            let after = disk.read_file(&segment(1)).expect("a segment");
            assert!(is_unharmed(&before, &after), "the segment was changed");
        }
    }
}

#[test]
fn tt_05_a_read_that_fails_refuses_and_cuts_nothing() {
    let options = options(30);
    let disk = build(&options, 100, End::Dropped);
    for (op, name) in [
        (FaultOp::Read, NamePattern::Suffix(".seg".into())),
        (FaultOp::Read, NamePattern::Exact("log.manifest".into())),
        (FaultOp::Open, NamePattern::Suffix(".seg".into())),
        (FaultOp::List, NamePattern::Any),
    ] {
        for nth in 1.. {
            let disk = copy(&disk);
            let before = bytes_of(&disk);
            disk.inject(Fault::next(op, Effect::EIO).on(name.clone()).nth(nth));
            let opened = options.open_sim(&disk).map(|(log, _)| drop(log));
            if disk.fault_hits() == 0 {
                assert!(nth > 1, "{op:?} on {name:?} never happened");
                break;
            }
            let changed = bytes_of(&disk) != before;
            match opened {
                // Giving unused zeros back only costs space if it fails.
                Ok(()) => {
                    assert!(op == FaultOp::Open, "{op:?} number {nth} of {name:?} failed and was not told")
                }
                Err(error) => {
                    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Io, Some(5)), "{error}");
                    // Segments 1 to 4 and the manifest are read before anything is written, and 4 once more
                    // to be written again.
                    let judging = op == FaultOp::List || nth <= if op == FaultOp::Read { 4 } else { 1 };
                    assert!(
                        !(changed && judging),
                        "{op:?} number {nth} of {name:?} changed the log: {error}"
                    );
                }
            }
            for (name, bytes) in before.iter().filter(|(name, _)| name.ends_with(".seg")) {
                // A prepared segment that was never used may go.
                let kept = disk.read_file(name);
                let unharmed = kept.map_or(groups(bytes).is_empty(), |after| is_unharmed(bytes, &after));
                assert!(unharmed, "{op:?} number {nth}: {name}");
            }
            disk.clear_faults();
            recovers(&disk, &options, 100);
        }
    }
}

#[test]
fn tt_06_damage_in_one_segment_touches_no_other_and_deletes_nothing() {
    let options = growing(options(100));
    let disk = build(&options, 200, End::Dropped);
    let (group, record) = find(&disk, 2, 150);
    let first = disk.read_file(&segment(1));
    for at in [group.offset + 1, record.offset + 3, record.payload() + 7] {
        let disk = copy(&disk);
        disk.chop(&segment(2), at);
        let torn = disk.read_file(&segment(2));
        let names = disk.names();
        recovers(&disk, &options, 149);
        assert_eq!(disk.read_file(&segment(1)), first, "segment 1 was touched");
        assert_eq!(disk.read_file(&segment(2)), torn, "the cut bytes are kept where they are");
        assert!(
            names
                .iter()
                .filter(|n| n.ends_with(".seg"))
                .all(|n| n == &segment(3) || disk.names().contains(n))
        );
    }
}

/// 51'..60' differ from the 51..60 that were cut.
fn append_again(log: &arborlog::Log, first: u32, last: u32) {
    for n in first..=last {
        let record = Record::new(t(n), time_ms(n), b"again");
        log.append(&record).and_then(arborlog::AppendTicket::wait).expect("acked");
    }
}

fn assert_again(disk: &SimDisk, options: &LogOptions, cut: u32, last: u32) {
    let (log, report) = open(disk, options);
    assert_eq!((report.last_zxid, report.records), (t(last), u64::from(last)), "{report}");
    let mut reader = log.reader(Zxid::ZERO).expect("a reader");
    for n in 1..=last {
        let record =
            reader.next_record().expect("readable").unwrap_or_else(|| panic!("{n} is gone, cut at {cut}"));
        assert_eq!(record.zxid, t(n), "cut at {cut}");
        let expected = if n <= cut { payload(n) } else { b"again".to_vec() };
        assert_eq!(record.payload, expected, "{n}, cut at {cut}");
    }
    assert_eq!(reader.next_record().expect("readable"), None);
    drop(log);
    for name in disk.names().iter().filter(|name| name.ends_with(".seg")) {
        let groups = groups(&disk.read_file(name).expect("a segment"));
        assert!(groups.windows(2).all(|w| w[0].end() == w[1].offset), "a hole in {name}");
    }
}

#[test]
fn tt_08_appends_after_a_truncation_leave_no_hole() {
    let options = options(30);
    let disk = build(&options, 100, End::Closed);
    for cut in [1, 29, 30, 31, 50, 60, 61, 99, 100] {
        let disk = copy(&disk);
        let (log, _) = open(&disk, &options);
        let (log, report) = log.truncate(t(cut)).expect("a truncation");
        assert_eq!((report.last_zxid, report.exact), (t(cut), true));
        append_again(&log, cut + 1, cut + 10);
        log.close().expect("a clean close");
        assert_again(&disk, &options, cut, cut + 10);
    }
}

/// The neighbour: the cut lies inside a group.
#[test]
fn tt_08_a_truncation_inside_a_group_keeps_what_stands_before_it() {
    let options = options(30);
    let disk = SimDisk::new(7);
    let (log, _) = open(&disk, &options);
    log.advance_epoch(Epoch::new(1)).expect("an epoch");
    (0..10).for_each(|batch| append_batch(&log, batch * 10 + 1, batch * 10 + 10));
    log.close().expect("a clean close");
    for (cut, end) in [(1, End::Closed), (45, End::Closed), (45, End::Dropped), (99, End::Dropped)] {
        let disk = copy(&disk);
        let (log, _) = open(&disk, &options);
        let (log, report) = log.truncate(t(cut)).expect("a truncation");
        assert_eq!((report.last_zxid, report.exact), (t(cut), true));
        assert_eq!(read_all(&log), (1..=cut).collect::<Vec<_>>(), "right after it was cut at {cut}");
        append_again(&log, cut + 1, cut + 10);
        let_go(log, end);
        assert_again(&disk, &options, cut, cut + 10);
    }
}

/// And once more inside the group that was cut before.
#[test]
fn tt_08_a_group_may_be_cut_twice() {
    let options = options(30);
    let disk = SimDisk::new(7);
    let (log, _) = open(&disk, &options);
    log.advance_epoch(Epoch::new(1)).expect("an epoch");
    append_batch(&log, 1, 10);
    let (log, _) = log.truncate(t(8)).expect("a truncation");
    let (log, report) = log.truncate(t(6)).expect("another");
    assert_eq!((report.last_zxid, report.was_zxid, report.exact), (t(6), t(8), true));
    assert_eq!(log.verify().expect("a scrub"), []);
    assert_eq!(
        log.reader(t(4)).and_then(|mut r| Ok(r.next_record()?.map(|r| r.zxid))).expect("readable"),
        Some(t(5))
    );
    append_again(&log, 7, 9);
    let error = log.truncate(t(10)).map(drop).expect_err("10 was cut");
    assert_eq!(error.kind(), ErrorKind::NotInLog);
    assert_again(&disk, &options, 6, 9);
}

#[test]
fn tt_08_a_group_of_which_half_was_written_leaves_no_hole() {
    for (bytes, effect) in [(0, 28), (200, 28), (512, 28), (700, 5), (1024, 28)] {
        let options = options(100);
        let disk = build(&options, 50, End::Dropped);
        let (log, _) = open(&disk, &options);
        let effect = Effect::ShortThenError { bytes, errno: effect };
        disk.inject(Fault::next(FaultOp::Write, effect).on(NamePattern::Suffix(".seg".into())));
        let payloads: Vec<_> = (51..=60).map(payload).collect();
        let records: Vec<_> =
            (51u32..).zip(&payloads).map(|(n, p)| Record::new(t(n), time_ms(n), p)).collect();
        let ticket = log.append_batch(&records).expect("ordered");
        assert_eq!(ticket.wait().expect_err("the write failed").kind(), ErrorKind::Poisoned);
        assert_eq!(log.append(&records[0]).expect_err("poisoned").kind(), ErrorKind::Poisoned);
        drop(log);
        disk.clear_faults();
        let (log, report) = open(&disk, &options);
        assert_eq!(report.last_zxid, t(50), "{bytes} bytes landed");
        append_again(&log, 51, 60);
        log.close().expect("a clean close");
        assert_again(&disk, &options, 50, 60);
    }
}

#[test]
fn tt_09_a_damaged_payload_of_the_newest_batch_is_found_at_open() {
    let options = options(200);
    let disk = SimDisk::new(7);
    let (log, _) = open(&disk, &options);
    log.advance_epoch(Epoch::new(1)).expect("an epoch");
    append(&log, 1, 96);
    append_batch(&log, 97, 100);
    drop(log);
    for n in 97..=100 {
        let (_, record) = find(&disk, 1, n);
        for at in [record.payload(), record.payload() + 50, record.payload() + 99, record.payload() + 101] {
            let disk = copy(&disk);
            disk.flip(&segment(1), at, 0x5a);
            // All of a batch or none: it goes as a whole. `recovers` reads every record.
            let report = recovers(&disk, &options, 96);
            assert_eq!(report.tail, TailState::Torn);
        }
    }
}

/// xorshift64*: the tests' own source of variety.
struct Dice(u64);

fn seed_of(run: u64) -> u64 {
    run.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound
    }
}

#[test]
fn tt_11_random_logs_chopped_in_their_newest_group_never_fail_to_open() {
    for seed in 1..=300 {
        let mut dice = Dice(seed_of(seed));
        let options = growing(options(23 + dice.below(60)));
        let disk = SimDisk::new(seed);
        let (log, _) = open(&disk, &options);
        log.advance_epoch(Epoch::new(1)).expect("an epoch");
        let count = 1 + u32::try_from(dice.below(12)).expect("small");
        let mut sizes = Vec::new();
        for n in 1..=count {
            let scale = [1, 40, 3_000, 50_000, 1 << 20]
                [usize::try_from(dice.below(if seed % 10 == 0 { 5 } else { 4 })).expect("small")];
            let size = usize::try_from(dice.below(scale)).expect("small");
            sizes.push(size);
            let record = Record::new(t(n), 0, &vec![n.to_le_bytes()[0]; size]).zxid;
            let payload = vec![n.to_le_bytes()[0]; size];
            log.append(&Record::new(record, 0, &payload))
                .and_then(arborlog::AppendTicket::wait)
                .expect("acked");
        }
        drop(log);
        let newest = (1..).map(segment).take_while(|name| disk.read_file(name).is_some());
        let name = newest
            .filter(|n| !groups(&disk.read_file(n).expect("there")).is_empty())
            .last()
            .expect("a group");
        let bytes = disk.read_file(&name).expect("there");
        let start = groups(&bytes).last().expect("a group").offset;
        let at = start + dice.below(bytes.len() as u64 - start + 1);
        disk.chop(&name, at);
        let (log, report) = open(&disk, &options);
        let whole = at == bytes.len() as u64;
        assert_eq!(
            report.last_zxid,
            if count == 1 && !whole { Zxid::ZERO } else { t(count - u32::from(!whole)) },
            "seed {seed}"
        );
        let mut reader = log.reader(Zxid::ZERO).expect("a reader");
        let mut read = 0;
        while let Some(record) = reader.next_record().expect("readable") {
            let size = sizes[usize::try_from(record.zxid.counter()).expect("small") - 1];
            assert!(
                record.payload.len() == size
                    && record.payload.iter().all(|b| *b == record.zxid.get().to_le_bytes()[0])
            );
            read += 1;
        }
        assert_eq!(read, report.records, "seed {seed}");
    }
}

/// One log whose T(49)..=T(52) share a group, and one where each has its own.
fn grouped() -> [(SimDisk, LogOptions); 2] {
    let options = options(200);
    let disk = SimDisk::new(7);
    let (log, _) = open(&disk, &options);
    log.advance_epoch(Epoch::new(1)).expect("an epoch");
    append(&log, 1, 48);
    append_batch(&log, 49, 52);
    append(&log, 53, 100);
    log.close().expect("a clean close");
    [(disk, options.clone()), (build(&options, 100, End::Closed), options)]
}

fn damage_payload(disk: &SimDisk, n: u32) {
    let (_, record) = find(disk, 1, n);
    disk.flip(&segment(1), record.payload() + 20, 0x5a);
}

fn damage_header(disk: &SimDisk, n: u32) {
    let (_, record) = find(disk, 1, n);
    disk.flip(&segment(1), record.offset + 17, 0x5a);
}

#[test]
fn tt_13_a_refusal_names_exactly_the_damaged_records() {
    for (n, (disk, options)) in grouped().iter().enumerate() {
        let alone = n == 1;
        for (list, range) in [
            (&[50][..], (Some(t(50)), None)),
            (&[50, 51], (Some(t(50)), if alone { None } else { Some(t(51)) })),
            (&[49, 50, 51, 52], (Some(t(49)), if alone { None } else { Some(t(52)) })),
        ] {
            let disk = copy(disk);
            list.iter().for_each(|n| damage_payload(&disk, *n));
            let error = refuses_as(&disk, options, "log_damaged", &segment(1));
            assert_eq!(range_of(&error), range, "{error}");
            assert_eq!(error.at().offset, Some(find(&disk, 1, list[0]).1.offset));
        }
        // A damaged header hides where the next record begins: named from there to the end of the group.
        let disk = copy(disk);
        damage_header(&disk, 50);
        let error = refuses_as(&disk, options, "log_damaged", &segment(1));
        assert_eq!(range_of(&error), (Some(t(50)), (!alone).then_some(t(52))), "{error}");
    }
}

fn repair(disk: &SimDisk, n: u32) -> arborlog::Result<arborlog::RepairReport> {
    repair_record_sim(disk, t(n), time_ms(n), &payload(n), Execution::Real)
}

#[test]
fn tt_13_a_repair_takes_the_right_bytes_and_leads_to_recovery() {
    for (disk, options) in &grouped() {
        for damage in [damage_payload, damage_header] {
            for n in [49, 50, 52, 1, 100] {
                let (whole, disk) = (bytes_of(disk), copy(disk));
                let (_, record) = find(&disk, 1, n);
                damage(&disk, n);
                refuses(&disk, options);
                let before = bytes_of(&disk);
                let told = repair_record_sim(&disk, t(n), time_ms(n), &payload(n), Execution::DryRun);
                assert!(bytes_of(&disk) == before, "a dry run changes nothing");
                let report = repair(&disk, n).expect("the right bytes");
                assert_eq!(told.expect("it fits"), report, "what was told is what was done");
                assert_eq!((report.file.as_str(), report.offset), (&*segment(1), record.offset));
                assert_eq!((report.written_bytes, report.left.len()), (136, 0));
                assert!(bytes_of(&disk) == whole, "the repaired log is not what it was");
                let again = repair(&disk, n).expect("once more");
                assert_eq!(again.written_bytes, 0, "there was nothing left to write");
                recovers(&disk, options, 100);
            }
        }
    }
}

#[test]
fn tt_13_a_repair_refuses_bytes_that_do_not_fit() {
    for (disk, options) in &grouped() {
        for damage in [damage_payload, damage_header] {
            let disk = copy(disk);
            damage(&disk, 50);
            let before = bytes_of(&disk);
            let (right, mut wrong) = (payload(50), payload(50));
            wrong[99] ^= 1;
            for (what, zxid, time, payload) in [
                ("wrong bytes", t(50), time_ms(50), wrong.as_slice()),
                ("short by a byte", t(50), time_ms(50), &right[..99]),
                ("nothing", t(50), time_ms(50), &[]),
                ("another time", t(50), time_ms(51), &right),
                ("another record's bytes", t(50), time_ms(50), &payload(51)),
                ("the neighbour's place", t(49), time_ms(50), &right),
                ("another epoch", Zxid::from_parts(2, 50), time_ms(50), &right),
                ("beyond the end", t(101), time_ms(50), &right),
                ("before the start", Zxid::ZERO, time_ms(50), &right),
            ] {
                let error = repair_record_sim(&disk, zxid, time, payload, Execution::Real).expect_err(what);
                let kinds = [ErrorKind::Invalid, ErrorKind::NotInLog, ErrorKind::Corrupt];
                assert!(kinds.contains(&error.kind()), "{what}: {error}");
                assert!(bytes_of(&disk) == before, "{what} was written");
            }
            refuses(&disk, options);
        }
    }
}

#[test]
fn tt_13_damaged_neighbours_are_repaired_one_by_one() {
    let [(disk, options), _] = grouped();
    damage_payload(&disk, 49);
    damage_payload(&disk, 51);
    damage_header(&disk, 50);
    // The header of 50 hides nothing: its bytes complete the chain whatever the payloads around it are.
    let report = repair(&disk, 50).expect("the chain is one of headers");
    assert_eq!(
        report.left.iter().map(|d| (d.first, d.last)).collect::<Vec<_>>(),
        [(t(49), t(49)), (t(51), t(51))]
    );
    repair(&disk, 51).expect("right");
    refuses(&disk, &options);
    repair(&disk, 49).expect("right");
    recovers(&disk, &options, 100);
    // Two headers of one group leave nothing to hold either of them against.
    let [(disk, _), _] = grouped();
    damage_header(&disk, 50);
    damage_header(&disk, 51);
    assert_eq!(repair(&disk, 50).expect_err("cannot be proven").code(), "repair_blocked");
    // And a damaged group's header leaves no chain at all.
    let [(disk, _), _] = grouped();
    disk.flip(&segment(1), find(&disk, 1, 50).0.offset + 90, 1);
    assert_eq!(repair(&disk, 50).expect_err("cannot be found").kind(), ErrorKind::NotInLog);
}

#[test]
fn tt_13_an_interrupted_repair_is_run_again() {
    for (disk, options) in &grouped() {
        for damage in [damage_payload, damage_header] {
            damaged_and_interrupted(disk, options, damage);
        }
    }
}

fn damaged_and_interrupted(disk: &SimDisk, options: &LogOptions, damage: fn(&SimDisk, u32)) {
    let disk = copy(disk);
    damage(&disk, 50);
    for (op, effect) in [
        (FaultOp::Write, Effect::EIO),
        (FaultOp::Write, Effect::ShortThenError { bytes: 50, errno: 5 }),
        (FaultOp::Sync, Effect::SyncFailsAndDropsPages),
        (FaultOp::Open, Effect::EIO),
        (FaultOp::Read, Effect::EIO),
    ] {
        let disk = copy(&disk);
        disk.inject(Fault::next(op, effect).on(NamePattern::Suffix(".seg".into())));
        repair(&disk, 50).expect_err("a repair that failed says so");
        assert_eq!(disk.fault_hits(), 1);
        disk.clear_faults();
        disk.crash(CrashImage::DropUnsynced);
        repair(&disk, 50).expect("run again");
        recovers(&disk, options, 100);
    }
    for operation in 1..=4 {
        for image in [CrashImage::DropUnsynced, CrashImage::KeepAll, CrashImage::Random(operation)] {
            let disk = copy(&disk);
            disk.crash_at(operation, image);
            let done = repair(&disk, 50).is_ok();
            disk.crash(image);
            if !done {
                repair(&disk, 50).expect("run again");
            }
            recovers(&disk, options, 100);
        }
    }
}

fn ranges(damage: &[DamagedRecords]) -> Vec<(u64, u64, &'static str)> {
    damage.iter().map(|d| (d.first.counter().into(), d.last.counter().into(), d.code)).collect()
}

#[test]
fn tt_13_a_running_log_finds_the_same_list_and_goes_on() {
    for (disk, options) in &grouped() {
        let disk = copy(disk);
        let (log, _) = open(&disk, options);
        assert_eq!(log.verify().expect("a scrub"), []);
        append(&log, 101, 103);
        damage_payload(&disk, 50);
        damage_payload(&disk, 20);
        damage_header(&disk, 70);
        let list = [(20, 20, "record_checksum"), (50, 50, "record_checksum"), (70, 70, "record_header")];
        assert_eq!(ranges(&log.verify().expect("a scrub")), list);
        append(&log, 104, 104);
        damage_payload(&disk, 51);
        damage_payload(&disk, 103);
        let found = log.verify().expect("a scrub");
        assert_eq!(found.iter().map(|d| (d.first, d.last)).next_back(), Some((t(103), t(103))));
        assert_eq!(found[1].first, t(50));
        assert!(found.iter().any(|d| d.last == t(51)), "{found:?}");
        assert!(found.iter().all(|d| d.file == segment(1)));
        append(&log, 105, 105);
        assert_eq!(log.durable_zxid(), t(105));
    }
}

/// The neighbours: a group's header, a seal, a missing file, the middle of several segments.
#[test]
fn tt_13_a_scrub_names_lost_groups_seals_and_files() {
    let options = options(30);
    let disk = build(&options, 135, End::Closed);
    let verify = |change: &dyn Fn(&SimDisk)| {
        let disk = copy(&disk);
        let (log, _) = open(&disk, &options);
        change(&disk);
        let found = log.verify().expect("a scrub");
        append(&log, 136, 136);
        found
    };
    assert_eq!(verify(&|_| {}), []);
    let found = verify(&|disk| disk.flip(&segment(2), find(disk, 2, 45).0.offset, 1));
    assert_eq!(ranges(&found), [(45, 45, "log_damaged")]);
    let found = verify(&|disk| {
        [58, 59, 60].iter().for_each(|n| disk.zero(&segment(2), find(disk, 2, *n).0.offset, 4));
    });
    assert_eq!(ranges(&found), [(58, 60, "log_damaged")]);
    let found = verify(&|disk| disk.remove_file(&segment(3)));
    assert_eq!(ranges(&found), [(61, 90, "segment_missing")]);
    let found = verify(&|disk| disk.chop(&segment(3), find(disk, 3, 75).0.offset));
    assert_eq!(ranges(&found), [(75, 90, "log_damaged")]);
    let seal = groups(&disk.read_file(&segment(2)).expect("there")).pop().expect("a seal");
    assert_eq!(seal.kind, 2);
    let found = verify(&|disk| disk.flip(&segment(2), seal.offset + 100, 1));
    assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), ["seal_checksum"]);
    let found = verify(&|disk| disk.flip(&segment(5), find(disk, 5, 135).1.payload(), 1));
    assert_eq!(ranges(&found), [(135, 135, "record_checksum")]);
}

/// The bytes that an append is writing are no damage.
#[test]
fn tt_13_a_scrub_beside_appends_finds_nothing() {
    let options = options(23);
    let disk = build(&options, 50, End::Closed);
    let (log, _) = open(&disk, &options);
    let (log, done) = (Arc::new(log), Arc::new(AtomicU32::new(0)));
    #[expect(clippy::disallowed_methods, reason = "appends have to go on beside the scrub")]
    let writer = std::thread::spawn({
        let (log, done) = (log.clone(), done.clone());
        move || {
            append(&log, 51, 350);
            done.store(1, Ordering::Release);
        }
    });
    let mut scrubs = 0;
    while done.load(Ordering::Acquire) == 0 || scrubs < 3 {
        assert_eq!(log.verify().expect("a scrub"), []);
        scrubs += 1;
    }
    writer.join().expect("the writer");
}

#[test]
fn tt_14_the_verdict_is_the_same_under_every_combination_of_options() {
    let mut combinations = 0;
    for fill in [SegmentFill::Zeroed, SegmentFill::Allocated, SegmentFill::Growing] {
        for mode in [WriteMode::DirectDsync, WriteMode::DirectThenSync, WriteMode::BufferedThenSync] {
            for (in_flight, gather, delay) in [
                (1, Gather::Off, 0),
                (2, Gather::Adaptive, 0),
                (16, Gather::Always(Duration::from_micros(50)), 100),
            ] {
                let policy = GroupPolicy::new().bytes_max(8192).in_flight_max(in_flight).gather(gather);
                let policy = policy.delay(Duration::from_micros(delay));
                let options = options(23).fill(fill).write_mode(mode).group(policy);
                let options =
                    if in_flight == 2 { options.idle_mark(Some(Duration::from_millis(1))) } else { options };
                verdict_under(&options);
                combinations += 1;
            }
        }
    }
    assert_eq!(combinations, 27);
}

/// Where nothing is synced, nothing claims to be durable: a hole is what a power cut may leave.
#[test]
fn tt_14_an_unsynced_log_claims_nothing() {
    let options = options(23).write_mode(WriteMode::Unsynced);
    let disk = build(&options, 20, End::Dropped);
    let bytes = disk.read_file(&segment(1)).expect("a segment");
    assert!(groups(&bytes).iter().all(|group| group.durable == Zxid::ZERO));
    disk.zero(&segment(1), find(&disk, 1, 10).0.offset, BLOCK);
    let report = recovers(&disk, &options, 9);
    assert_eq!(report.tail, TailState::Torn, "what is lost is told");
}

fn verdict_under(options: &LogOptions) {
    let disk = build(options, 30, End::Dropped);
    // Each group's claim is the last record of the group acknowledged before it.
    let mut before = Zxid::ZERO;
    for seq in 1..=2 {
        for group in groups(&disk.read_file(&segment(seq)).expect("a segment")) {
            assert_eq!(group.durable, before, "{options:?}");
            before = group.last;
        }
    }
    let (group, record) = find(&disk, 1, 10);
    for (what, at, len, offset) in damages(&group, &record, group.end()) {
        let disk = copy(&disk);
        disk.zero(&segment(1), at, len.min(group.end() - at));
        let error = refuses_as(&disk, options, "log_damaged", &segment(1));
        assert_eq!(
            (error.at().offset, range_of(&error)),
            (Some(offset), (Some(t(10)), last_of(&error))),
            "{what}"
        );
    }
}

fn last_of(error: &arborlog::Error) -> Option<Zxid> {
    error.at().zxid_end
}
