use super::{Window, verify_group};
use crate::base::{Error, Result, Zxid, checksum};
use crate::format::layout::is_zero;
use crate::format::{
    GROUP_HEADER_BYTES, GroupHeader, GroupKind, RECORD_HEADER_BYTES, RecordHeader, SegmentHeader, frame_bytes,
};
use crate::io::File;

/// Records whose bytes have changed since they were acknowledged: what to ask a peer for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The segment's name inside the log's directory.
    pub file: String,
    /// Where the damaged bytes begin, as far as that is known: the record's or the group's first byte.
    pub offset: u64,
    /// The first zxid that may be lost by it.
    pub first: Zxid,
    /// The last zxid that may be lost by it. Where the damage is no record's (padding, a seal), this and
    /// `first` are the last record before it.
    pub last: Zxid,
    /// A stable word for what is wrong; see [`Error::code`](crate::Error::code).
    pub code: &'static str,
}

/// Lists everything that is damaged in a segment, from its first group to `end_offset` or to the record
/// `through`, whichever comes first, and goes on behind each damage where it can. `floor` is the last record
/// before the segment.
pub(crate) fn segment_damage(
    file: &dyn File,
    header: &SegmentHeader,
    end_offset: Option<u64>,
    floor: Zxid,
    through: Zxid,
) -> Result<Vec<Damage>> {
    let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(file.name()))?;
    let (mut window, mut found) = (Window::new(len), Vec::new());
    let (mut offset, mut last) = (header.first_group_offset(), floor);
    // Behind its last record an ended segment has its seal; the one in use has what is being written.
    let ended = end_offset.is_some();
    let end_offset = end_offset.unwrap_or(len);
    while offset < end_offset && (ended || last < through) {
        let Some((group, at)) = next_group(file, header, &mut window, offset, end_offset)? else {
            // Behind the last record nothing is lost but the seal.
            found.push(unreadable(file, offset, last, through));
            return Ok(found);
        };
        if at > offset || group.prev_zxid != last {
            found.push(unreadable(file, offset, last, group.prev_zxid));
        }
        if group.kind == GroupKind::Records && group.first_zxid > through {
            break;
        }
        let bytes = group.total_bytes(header.block_bytes);
        match window.get(file, at, usize::try_from(bytes).unwrap_or(usize::MAX))? {
            Some(whole) => found.extend(group_damage(file.name(), &group, header, whole)),
            None => found.push(Damage { code: "group_short", ..unreadable(file, at, last, group.last_zxid) }),
        }
        (offset, last) = (at + bytes, group.last_zxid);
    }
    Ok(found)
}

fn unreadable(file: &dyn File, offset: u64, last: Zxid, through: Zxid) -> Damage {
    let first = through.min(after(last));
    Damage { file: file.name().to_owned(), offset, first, last: through.max(first), code: "log_damaged" }
}

/// The first valid group header at `offset` or at a block boundary behind it.
fn next_group(
    file: &dyn File,
    header: &SegmentHeader,
    window: &mut Window,
    from: u64,
    end_offset: u64,
) -> Result<Option<(GroupHeader, u64)>> {
    let mut offset = from;
    while offset < end_offset {
        let Some(head) = window.get(file, offset, GROUP_HEADER_BYTES)? else { return Ok(None) };
        if let Some(group) = GroupHeader::decode(head, header.seed(), header.seq, offset) {
            return Ok(Some((group, offset)));
        }
        offset += header.block_bytes;
    }
    Ok(None)
}

/// Names every damaged record of a group. Where a record's header is damaged, the records behind it are
/// found again by their own checksums.
fn group_damage(file: &str, group: &GroupHeader, header: &SegmentHeader, bytes: &[u8]) -> Vec<Damage> {
    let seed = header.database_id.seed();
    let Err(bad) = verify_group(group, bytes, header.seed(), seed) else { return Vec::new() };
    let damage = |at: usize, first, last, code| Damage {
        file: file.to_owned(),
        offset: group.offset + at as u64,
        first,
        last,
        code,
    };
    let mut found: Vec<Damage> = Vec::new();
    let (mut at, mut last) = (GROUP_HEADER_BYTES, group.prev_zxid);
    let body_end = GROUP_HEADER_BYTES + usize::try_from(group.body_bytes).unwrap_or(usize::MAX);
    let body = bytes.get(..body_end).unwrap_or(bytes);
    while group.kind == GroupKind::Records && at < body.len() {
        let Some((record, start)) = next_record(body, at, seed, last, group.last_zxid) else {
            let first = group.first_zxid.max(after(last));
            found.push(damage(at, first.min(group.last_zxid), group.last_zxid, "record_header"));
            break;
        };
        if start > at {
            let first = group.first_zxid.max(after(last));
            found.push(damage(at, first, Zxid::new(record.zxid.get() - 1).max(first), "record_header"));
        }
        let end = start + frame_bytes(record.payload_bytes as usize);
        if !payload_is_right(&record, &body[start + RECORD_HEADER_BYTES..end]) {
            match found.last_mut().filter(|d| d.code == "record_checksum" && after(d.last) == record.zxid) {
                Some(damage) => damage.last = record.zxid,
                None => found.push(damage(start, record.zxid, record.zxid, "record_checksum")),
            }
        }
        (at, last) = (end, record.zxid);
    }
    if found.is_empty() {
        let at = usize::try_from(bad.offset).unwrap_or(0);
        found.push(damage(at, bad.first_zxid, bad.last_zxid, bad.code));
    }
    found
}

/// The first record at `from` or behind it whose header and length hold.
fn next_record(body: &[u8], from: usize, seed: u32, last: Zxid, end: Zxid) -> Option<(RecordHeader, usize)> {
    (from..body.len()).step_by(8).find_map(|at| {
        let record = RecordHeader::decode(&body[at..], seed)?;
        let fits = at + frame_bytes(record.payload_bytes as usize) <= body.len();
        (fits && record.zxid > last && record.zxid <= end).then_some((record, at))
    })
}

/// Whether the bytes between two record headers are this record's payload and its padding.
pub(crate) fn payload_is_right(record: &RecordHeader, bytes: &[u8]) -> bool {
    bytes.split_at_checked(record.payload_bytes as usize).is_some_and(|(payload, padding)| {
        checksum::crc32(0, payload) == record.payload_crc && is_zero(padding)
    })
}

fn after(zxid: Zxid) -> Zxid {
    Zxid::new(zxid.get().saturating_add(1))
}
