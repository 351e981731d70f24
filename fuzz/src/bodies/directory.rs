//! What must hold for every directory, whatever stands in its files.

use std::collections::BTreeMap;

use arborlog::sim::SimDisk;
use arborlog::{Error, ErrorKind, GroupPolicy, Log, LogOptions, Numbering, Zxid};

use crate::allocations::peak_bytes;

/// The files of a directory by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// What became of a directory, or of a txn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The input makes no directory.
    Skipped,
    /// It was refused, and not a byte was changed.
    Refused,
    /// It was opened, read, appended to, and opened again; or decoded, and encoded again.
    Opened,
}

/// Memory that reading may take whatever the files are: windows, buffers for groups, the simulated disk's pages.
const MEMORY_BYTES: u64 = 8 << 20;
/// And for each byte of the files: a group is held whole, and a buffer may have doubled on the way to it.
const MEMORY_PER_BYTE: u64 = 4;

/// A record without its epoch, which a reader takes from the group.
type Entry = (Zxid, i64, Vec<u8>);

/// Looks at the directory, opens it, reads it, appends to it, and opens it again.
///
/// # Panics
/// If looking or opening takes memory out of proportion; if one of them takes the log and the other does not;
/// if a refusal has changed a byte; if an opened log cannot be read, is not in order, or is another one when it
/// is opened again.
pub(super) fn check(files: &Files) -> Outcome {
    let disk = SimDisk::new(1);
    files.iter().for_each(|(name, bytes)| disk.write_file(name, bytes));
    let memory_max = MEMORY_BYTES + MEMORY_PER_BYTE * files.values().map(|f| f.len() as u64).sum::<u64>();
    let before = disk.snapshot_bytes();

    let (viewed, peak) = peak_bytes(|| view(&disk));
    assert!(peak <= memory_max, "looking took {peak} bytes; at most {memory_max}");
    assert_eq!(disk.snapshot_bytes(), before, "looking has changed something");
    if matches!(&viewed, Err(error) if error.code() == "no_log") {
        return Outcome::Skipped;
    }

    let numbering = viewed.as_ref().map_or(Numbering::Zxid, |(_, numbering, _)| *numbering);
    let mut handed_out = Vec::new();
    let (opened, peak) = peak_bytes(|| match &viewed {
        // Every second of them by a replay, as a server opens.
        Ok((_, _, floor)) if files.len().is_multiple_of(2) => {
            options(numbering).open_replaying_sim(&disk, *floor, |r| {
                handed_out.push((r.zxid, r.time_ms, r.payload.to_vec()))
            })
        }
        _ => options(numbering).open_sim(&disk),
    });
    assert!(peak <= memory_max, "opening took {peak} bytes; at most {memory_max}");
    match (viewed, opened) {
        (Err(viewed), Err(opened)) => {
            assert_eq!(
                (viewed.kind(), viewed.code()),
                (opened.kind(), opened.code()),
                "two different refusals"
            );
            let mut after = disk.snapshot_bytes();
            after.retain(|name, _| before.contains_key(name) || name != "LOCK");
            assert_eq!(after, before, "a refusal has changed something");
            Outcome::Refused
        }
        (Ok((viewed, numbering, _)), Ok((log, report))) => {
            let records = read(&log, report.floor_zxid);
            if files.len().is_multiple_of(2) {
                assert_eq!(records, handed_out, "a replay and a reader have read different logs");
            }
            assert_eq!(records, viewed, "looking and opening have read different logs");
            assert_eq!(records.len() as u64, report.records, "the report counts other records");
            assert_eq!(
                records.last().map_or(report.floor_zxid, |r| r.0),
                report.last_zxid,
                "another last record"
            );
            append_and_reopen(&disk, numbering, log, records);
            Outcome::Opened
        }
        (Ok(_), Err(error)) => panic!("it can be looked at, but not opened: {error}"),
        (Err(error), Ok(_)) => panic!("it was opened, but may not be looked at: {error}"),
    }
}

fn options(numbering: Numbering) -> LogOptions {
    let group = GroupPolicy::new().bytes_max(4096).in_flight_max(1);
    let options = LogOptions::new().segment_bytes(16 * 1024).record_bytes_max(4096).idle_mark(None);
    options.group(group).numbering(numbering)
}

/// All records, as a view of the directory shows them, their numbering, and the log's floor.
fn view(disk: &SimDisk) -> Result<(Vec<Entry>, Numbering, Zxid), Error> {
    let (view, _report) = options(Numbering::Zxid).open_read_only_sim(disk)?;
    let mut reader = view.records(view.floor_zxid()).expect("a view holds what comes after its floor");
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().expect("what was verified can be read") {
        records.push((record.zxid, record.time_ms, record.payload.to_vec()));
    }
    Ok((records, view.numbering(), view.floor_zxid()))
}

fn read(log: &Log, floor: Zxid) -> Vec<Entry> {
    let mut reader = log.reader(floor).expect("a log holds what comes after its floor");
    let (mut records, mut last) = (Vec::new(), floor);
    while let Some(record) = reader.next_record().expect("what was verified can be read") {
        assert!(record.zxid > last, "{} comes after {last}", record.zxid);
        last = record.zxid;
        records.push((record.zxid, record.time_ms, record.payload.to_vec()));
    }
    records
}

/// One more record if the numbers have room for it; then a process that just ends, and the next one.
fn append_and_reopen(disk: &SimDisk, numbering: Numbering, log: Log, mut records: Vec<Entry>) {
    match log.append_next(log.epoch(), 7, b"one more") {
        Ok(ticket) => {
            let zxid = ticket.wait().expect("a disk without faults");
            records.push((zxid, 7, b"one more".to_vec()));
        }
        Err(error) => {
            // The last zxid or the epoch of the directory leaves no room.
            let kinds = [ErrorKind::CounterExhausted, ErrorKind::OutOfOrder, ErrorKind::Invalid];
            assert!(kinds.contains(&error.kind()), "an append that was not to be refused: {error}");
        }
    }
    drop(log);
    let (log, report) = options(numbering).open_sim(disk).expect("what was opened once can be opened again");
    assert_eq!(read(&log, report.floor_zxid), records, "another log when it is opened again");
}
