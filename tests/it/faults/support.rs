//! Logs to damage: built through the public API on a simulated disk, taken apart by the documented layout.

use std::collections::BTreeMap;

use arborlog::sim::{CrashImage, SimDisk};
use arborlog::{
    Epoch, Error, ErrorKind, Gather, GroupPolicy, Log, LogOptions, Record, RecoveryReport, SegmentFill, Zxid,
};

pub(super) const BLOCK: u64 = 512;
pub(super) const HEADER: u64 = 4096;
pub(super) const GROUP_HEADER: u64 = 96;
pub(super) const RECORD_HEADER: u64 = 32;
const GROUP_MAGIC: &[u8] = &0x5052_4741u32.to_le_bytes();

/// The zxid of T(n).
pub(super) fn t(n: u32) -> Zxid {
    Zxid::from_parts(1, n)
}

/// The payload of T(n): 100 bytes of which none is zero.
pub(super) fn payload(n: u32) -> Vec<u8> {
    (0..100u32).map(|i| u8::try_from((n * 31 + i * 7) % 255 + 1).expect("a byte")).collect()
}

pub(super) fn time_ms(n: u32) -> i64 {
    1_000 + i64::from(n)
}

/// Options whose segments hold exactly `records` groups of one T(n) each, at 512 bytes a group, and the seal.
pub(super) fn options(records: u64) -> LogOptions {
    LogOptions::new()
        .segment_bytes(HEADER + records * BLOCK + BLOCK)
        .block_bytes(BLOCK)
        .idle_mark(None)
        .group(GroupPolicy::new().bytes_max(64 * 1024).gather(Gather::Off))
}

pub(super) fn segment(seq: u64) -> String {
    format!("{seq:016x}.seg")
}

/// Opens a log that must open.
#[track_caller]
pub(super) fn open(disk: &SimDisk, options: &LogOptions) -> (Log, RecoveryReport) {
    options.open_sim(disk).unwrap_or_else(|error| panic!("it does not open: {error}"))
}

/// Appends T(first)..=T(last), each in a group of its own, each acknowledged.
pub(super) fn append(log: &Log, first: u32, last: u32) {
    for n in first..=last {
        let payload = payload(n);
        log.append(&Record::new(t(n), time_ms(n), &payload))
            .and_then(arborlog::AppendTicket::wait)
            .expect("acked");
    }
}

/// Appends T(first)..=T(last) as one group.
pub(super) fn append_batch(log: &Log, first: u32, last: u32) {
    let payloads: Vec<_> = (first..=last).map(|n| (n, payload(n))).collect();
    let records: Vec<_> = payloads.iter().map(|(n, p)| Record::new(t(*n), time_ms(*n), p)).collect();
    log.append_batch(&records).and_then(arborlog::AppendTicket::wait).expect("acked");
}

/// How a log was let go of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// `close`: the manifest proves everything durable.
    Closed,
    /// Dropped, with no mark: nothing proves the newest group durable.
    Dropped,
}

/// A log of T(1)..=T(last), each acknowledged in a group of its own.
pub(super) fn build(options: &LogOptions, last: u32, end: End) -> SimDisk {
    let disk = SimDisk::new(7);
    let (log, _) = open(&disk, options);
    log.advance_epoch(Epoch::new(1)).expect("a first epoch");
    append(&log, 1, last);
    let_go(log, end);
    disk
}

pub(super) fn let_go(log: Log, end: End) {
    match end {
        End::Closed => log.close().expect("a clean close"),
        End::Dropped => drop(log),
    }
}

/// Another disk with the same bytes.
pub(super) fn copy(disk: &SimDisk) -> SimDisk {
    disk.fork(CrashImage::KeepAll)
}

/// All records of a log, verified to be T(n) with n rising (I2, I3).
#[track_caller]
pub(super) fn read_all(log: &Log) -> Vec<u32> {
    let mut reader = log.reader(log.floor_zxid()).expect("a reader from the first record");
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().expect("after a successful open everything can be read") {
        let n = record.zxid.counter();
        assert_eq!((record.zxid, record.time_ms), (t(n), time_ms(n)));
        assert_eq!(record.payload, payload(n), "{n} is not what was appended");
        assert!(found.last().is_none_or(|last| *last < n), "{n} after {found:?}");
        found.push(n);
    }
    found
}

/// RECOVER(last): the log opens with T(1)..=T(last); after an append and a close it opens with that one more
/// (I1, I2, I3, I5).
#[track_caller]
pub(super) fn recovers(disk: &SimDisk, options: &LogOptions, last: u32) -> RecoveryReport {
    let (log, report) = open(disk, options);
    let all: Vec<u32> = (1..=last).collect();
    let last_zxid = if last == 0 { Zxid::ZERO } else { t(last) };
    assert_eq!(report.last_zxid, last_zxid, "{report}");
    assert_eq!(read_all(&log), all);
    log.advance_epoch(Epoch::new(1)).expect("the epoch of before, or the first");
    append(&log, last + 1, last + 1);
    log.close().expect("a clean close");
    let (log, again) = open(disk, options);
    assert_eq!((again.last_zxid, again.records), (t(last + 1), u64::from(last) + 1), "{again}");
    assert_eq!(read_all(&log), (1..=last + 1).collect::<Vec<_>>());
    report
}

/// I6: interrupts the recovery at every operation, with every kind of crash image; run again it gives the same.
#[track_caller]
pub(super) fn recovers_interrupted(disk: &SimDisk, options: &LogOptions, last: u32) {
    for operation in 1.. {
        let mut interrupted = false;
        for image in [CrashImage::DropUnsynced, CrashImage::KeepAll, CrashImage::Random(operation)] {
            let disk = copy(disk);
            disk.crash_at(operation, image);
            interrupted |= options.open_sim(&disk).is_err();
            disk.crash(image);
            recovers(&disk, options, last);
        }
        if !interrupted {
            return;
        }
    }
}

/// Every file but the lock.
pub(super) fn bytes_of(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let mut bytes = disk.snapshot_bytes();
    bytes.remove("LOCK");
    bytes
}

/// Whether a segment is what it was, but for unused zeros at its end that were given back.
pub(super) fn is_unharmed(before: &[u8], after: &[u8]) -> bool {
    before.starts_with(after) && before[after.len()..].iter().all(|b| *b == 0)
}

/// REFUSE: opening fails, twice in the same way, and not one byte changes.
#[track_caller]
pub(super) fn refuses(disk: &SimDisk, options: &LogOptions) -> Error {
    let before = bytes_of(disk);
    let error =
        options.open_sim(disk).map(|(_, report)| report.to_string()).expect_err("damage is not refused");
    assert!(before == bytes_of(disk), "a refused log was changed: {error}");
    let again = options.open_sim(disk).map(|(_, report)| report.to_string()).expect_err("refused once");
    assert_eq!((error.kind(), error.code(), error.at()), (again.kind(), again.code(), again.at()));
    error
}

/// REFUSE(Corrupt) with this code, in this file.
#[track_caller]
pub(super) fn refuses_as(disk: &SimDisk, options: &LogOptions, code: &str, file: &str) -> Error {
    let error = refuses(disk, options);
    assert_eq!((error.kind(), error.code()), (ErrorKind::Corrupt, code), "{error}");
    assert_eq!(error.at().file.as_deref(), Some(file), "{error}");
    error
}

/// The first and the last zxid that an error names.
pub(super) fn range_of(error: &Error) -> (Option<Zxid>, Option<Zxid>) {
    (error.at().zxid, error.at().zxid_end)
}

/// One group in a segment's bytes.
#[derive(Clone, Debug)]
pub(super) struct GroupAt {
    pub(super) offset: u64,
    /// 1: records, 2: seal, 3: mark.
    pub(super) kind: u16,
    pub(super) body_bytes: u64,
    pub(super) first: Zxid,
    pub(super) last: Zxid,
    pub(super) durable: Zxid,
    pub(super) records: Vec<RecordAt>,
}

impl GroupAt {
    /// The end of the body: padding follows.
    pub(super) fn body_end(&self) -> u64 {
        self.offset + GROUP_HEADER + self.body_bytes
    }

    pub(super) fn end(&self) -> u64 {
        self.body_end().next_multiple_of(BLOCK)
    }
}

/// One record in a segment's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordAt {
    pub(super) offset: u64,
    pub(super) zxid: Zxid,
    pub(super) payload_bytes: u64,
}

impl RecordAt {
    pub(super) fn payload(&self) -> u64 {
        self.offset + RECORD_HEADER
    }
}

pub(super) fn u32_at(bytes: &[u8], at: u64) -> u32 {
    u32::from_le_bytes(slice(bytes, at, 4).try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: u64) -> u64 {
    u64::from_le_bytes(slice(bytes, at, 8).try_into().expect("eight bytes"))
}

fn slice(bytes: &[u8], at: u64, len: usize) -> &[u8] {
    let at = usize::try_from(at).expect("an offset in memory");
    &bytes[at..at + len]
}

/// The groups of a segment, by their magic at block boundaries.
pub(super) fn groups(bytes: &[u8]) -> Vec<GroupAt> {
    let (mut groups, mut offset) = (Vec::new(), HEADER);
    while offset + GROUP_HEADER <= bytes.len() as u64 {
        if slice(bytes, offset, 4) != GROUP_MAGIC {
            offset += BLOCK;
            continue;
        }
        let zxid = |at| Zxid::new(u64_at(bytes, offset + at));
        let kind = u16::from_le_bytes(slice(bytes, offset + 8, 2).try_into().expect("two bytes"));
        let mut group = GroupAt {
            offset,
            kind,
            body_bytes: u64_at(bytes, offset + 16),
            first: zxid(40),
            last: zxid(48),
            durable: zxid(64),
            records: Vec::new(),
        };
        let mut at = offset + GROUP_HEADER;
        for _ in 0..u32_at(bytes, offset + 12) {
            let payload_bytes = u64::from(u32_at(bytes, at + 8));
            group.records.push(RecordAt {
                offset: at,
                zxid: Zxid::new(u64_at(bytes, at + 16)),
                payload_bytes,
            });
            at += (RECORD_HEADER + payload_bytes).next_multiple_of(8);
        }
        offset = group.end();
        groups.push(group);
    }
    groups
}

/// The group of a segment that holds T(n), and the record in it.
#[track_caller]
pub(super) fn find(disk: &SimDisk, seq: u64, n: u32) -> (GroupAt, RecordAt) {
    let bytes = disk.read_file(&segment(seq)).expect("the segment");
    let found = groups(&bytes).into_iter().find_map(|group| {
        let record = group.records.iter().copied().find(|record| record.zxid == t(n))?;
        Some((group, record))
    });
    found.unwrap_or_else(|| panic!("T({n}) is not in segment {seq}"))
}

/// Overwrites bytes of a file.
pub(super) fn put(disk: &SimDisk, name: &str, offset: u64, with: &[u8]) {
    let mut bytes = disk.read_file(name).expect("the file");
    let at = usize::try_from(offset).expect("an offset in memory");
    bytes[at..at + with.len()].copy_from_slice(with);
    disk.write_file(name, &bytes);
}

/// CRC-32 with a seed, as the format has it.
pub(super) fn crc32(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(bytes);
    hasher.finalize()
}

/// The seed of a database's record checksums, out of a segment of it.
pub(super) fn database_seed(segment: &[u8]) -> u32 {
    crc32(0, &segment[32..48])
}

/// The seed of a segment's group checksums.
pub(super) fn segment_seed(segment: &[u8]) -> u32 {
    crc32(database_seed(segment), &segment[56..64])
}

/// Makes the checksum of a segment's header page right.
pub(super) fn resign_header(segment: &mut [u8]) {
    let crc = crc32(0, &segment[12..4096]);
    segment[8..12].copy_from_slice(&crc.to_le_bytes());
}

/// Makes the checksum of a group's header right.
pub(super) fn resign_group(segment: &mut [u8], offset: u64) {
    let (seed, at) = (segment_seed(segment), usize::try_from(offset).expect("an offset"));
    let crc = crc32(seed, &segment[at + 8..at + 96]);
    segment[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
}

/// Makes the checksum of a record's header right, then the fold of its group, which holds that record alone.
pub(super) fn resign_record(segment: &mut [u8], group: &GroupAt) {
    let (seed, at) =
        (database_seed(segment), usize::try_from(group.offset + GROUP_HEADER).expect("an offset"));
    let crc = crc32(seed, &segment[at + 4..at + 32]);
    segment[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    let group_at = at - 96;
    segment[group_at + 88..group_at + 96].copy_from_slice(&fold_of(crc).to_le_bytes());
    resign_group(segment, group.offset);
}

/// What a group of one record carries of that record's header checksum.
pub(super) fn fold_of(header_crc: u32) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    (GOLDEN.rotate_left(23) ^ u64::from(header_crc)).wrapping_mul(GOLDEN)
}

/// Makes the checksum of a seal's body right.
pub(super) fn resign_seal(segment: &mut [u8], group: &GroupAt) {
    let (seed, at) = (segment_seed(segment), usize::try_from(group.offset).expect("an offset"));
    let end = usize::try_from(group.body_end()).expect("an offset");
    let crc = u64::from(crc32(seed, &segment[at + 96..end]));
    segment[at + 88..at + 96].copy_from_slice(&crc.to_le_bytes());
    resign_group(segment, group.offset);
}

/// The manifest with one line changed and its checksum made right.
pub(super) fn edit_manifest(disk: &SimDisk, edit: impl FnOnce(&str) -> String) {
    let text = String::from_utf8(disk.read_file("log.manifest").expect("a manifest")).expect("text");
    let body = edit(&text[..text.len() - "crc32 00000000\n".len()]);
    let signed = format!("{body}crc32 {:08x}\n", crc32(0, body.as_bytes()));
    disk.write_file("log.manifest", signed.as_bytes());
}

/// The value of a manifest's line.
pub(super) fn manifest_value(disk: &SimDisk, key: &str) -> String {
    let text = String::from_utf8(disk.read_file("log.manifest").expect("a manifest")).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {key} in {text}")).to_owned()
}

/// Options in the mode in which a file's length proves nothing.
pub(super) fn growing(options: LogOptions) -> LogOptions {
    options.fill(SegmentFill::Growing)
}
