use super::group::{BadGroup, verify_group};
use super::{Records, Replay, Window};
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid, limits};
use crate::format::layout::is_zero;
use crate::format::{
    DatabaseId, GROUP_HEADER_BYTES, GroupHeader, GroupKind, IndexEntry, SegmentFill, SegmentHeader,
};
use crate::io::File;

/// All there is to find out about one segment by reading it: a prefix of valid groups, what ended it, and
/// what else stands behind.
#[derive(Debug)]
pub(crate) struct SegmentScan {
    pub(crate) header: std::result::Result<SegmentHeader, Error>,
    pub(crate) file_len: u64,
    /// What the first group says came before it.
    pub(crate) floor_zxid: Option<Zxid>,
    pub(crate) first_zxid: Option<Zxid>,
    pub(crate) last_zxid: Option<Zxid>,
    /// Where the valid groups end.
    pub(crate) end_offset: u64,
    pub(crate) records: u64,
    pub(crate) groups: u64,
    pub(crate) index: Vec<IndexEntry>,
    pub(crate) time_max_ms: i64,
    pub(crate) epoch: Epoch,
    /// The most that a valid group claims to have been durable.
    pub(crate) claims: Zxid,
    pub(crate) stop: Stop,
    /// What stands behind the stop.
    pub(crate) beyond: Option<Beyond>,
}

/// Why the prefix of valid groups ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stop {
    pub(crate) kind: StopKind,
    pub(crate) offset: u64,
    pub(crate) bad: Option<BadGroup>,
}

/// The kinds of ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StopKind {
    /// The header page is not usable; nothing else was read.
    Header,
    /// The seal was reached.
    Sealed,
    /// The record was reached at which the manifest ends this segment.
    Limit,
    /// Only zeros follow, or nothing.
    Zeros,
    /// Bytes follow that are no valid group.
    Garbage,
    /// A valid group follows that does not continue the ones before it.
    Misfit,
}

/// Valid group headers behind the stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beyond {
    pub(crate) offset: u64,
    pub(crate) first_zxid: Zxid,
    pub(crate) last_zxid: Zxid,
    /// The most that one of them claims to have been durable.
    pub(crate) claims: Zxid,
}

impl SegmentScan {
    /// A written-through segment that is shorter than it was made.
    pub(crate) fn is_short(&self) -> bool {
        self.header.as_ref().is_ok_and(|h| h.fill != SegmentFill::Growing && self.file_len < h.capacity)
    }

    /// Prepared, never used.
    pub(crate) fn is_blank(&self) -> bool {
        self.header.is_ok() && self.groups == 0 && self.stop.kind == StopKind::Zeros && !self.is_short()
    }

    /// The most that any group of the file claims to have been durable.
    pub(crate) fn claims_anywhere(&self) -> Zxid {
        self.beyond.map_or(self.claims, |b| b.claims.max(self.claims))
    }

    /// Whether the file holds a valid group at all.
    pub(crate) fn has_groups(&self) -> bool {
        self.groups > 0 || self.beyond.is_some()
    }
}

/// Reads the record before the first one of a segment, if its first group can be read.
pub(crate) fn peek_floor(file: &dyn File, seq: u64, database_id: DatabaseId) -> Result<Option<Zxid>> {
    let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(file.name()))?;
    let mut window = Window::new(len);
    let page = usize::try_from(limits::SEGMENT_HEADER_BYTES).expect("a page");
    let header = window.get(file, 0, page)?.and_then(|b| SegmentHeader::decode(b).ok());
    let Some(header) = header.filter(|h| h.seq == seq && h.database_id == database_id) else {
        return Ok(None);
    };
    let offset = header.first_group_offset();
    let head = window.get(file, offset, GROUP_HEADER_BYTES)?;
    Ok(head.and_then(|b| GroupHeader::decode(b, header.seed(), seq, offset)).map(|g| g.prev_zxid))
}

/// Reads a whole segment. `limit` is the record at which the manifest ends it. The only errors are those of
/// the disk: whatever the bytes are, they make a [`SegmentScan`].
pub(crate) fn scan_segment(
    file: &dyn File,
    seq: u64,
    database_id: DatabaseId,
    limit: Option<Zxid>,
) -> Result<SegmentScan> {
    let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(file.name()))?;
    scan_through(&mut Window::new(len), file, seq, database_id, limit, None)
}

/// As [`scan_segment`], of a segment that this process has filled and named a moment ago: what stands before the first group is
/// read, the zeros behind it are not. Of those that are prepared beside a running log, not even that is.
pub(crate) fn scan_prepared(file: &dyn File, seq: u64, database_id: DatabaseId) -> Result<SegmentScan> {
    let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(file.name()))?;
    let mut scan = scan_head(&mut Window::new(len), file, seq, database_id)?;
    if scan.header.is_ok() {
        scan.stop = Stop { kind: StopKind::Zeros, offset: scan.end_offset, bad: None };
    }
    Ok(scan)
}

/// The same through a `window` of the whole file, with the records handed to `replay` as they are verified.
pub(crate) fn scan_through(
    window: &mut Window,
    file: &dyn File,
    seq: u64,
    database_id: DatabaseId,
    limit: Option<Zxid>,
    replay: Option<&mut Replay<'_>>,
) -> Result<SegmentScan> {
    let mut scan = scan_head(window, file, seq, database_id)?;
    let Ok(header) = scan.header.clone() else { return Ok(scan) };
    file.will_read();
    let walk =
        Walk { file, seq, seed: header.seed(), database_seed: database_id.seed(), block: header.block_bytes };
    scan.stop = walk.prefix(&mut scan, window, limit, replay)?;
    if matches!(scan.stop.kind, StopKind::Garbage | StopKind::Misfit) {
        walk.beyond(&mut scan, window)?;
    }
    Ok(scan)
}

/// Reads what stands before the first group: the header page, and no more than zeros behind it.
fn scan_head(window: &mut Window, file: &dyn File, seq: u64, database_id: DatabaseId) -> Result<SegmentScan> {
    let file_len = window.file_len();
    let page = usize::try_from(limits::SEGMENT_HEADER_BYTES.min(file_len)).expect("a page");
    let header = match window.get(file, 0, page)? {
        Some(page) => SegmentHeader::decode(page).and_then(|h| check_owner(h, seq, database_id)),
        None => Err(Error::corrupt("segment_header_short", "the file ends inside its header")),
    }
    .map_err(|e| e.in_file(file.name()).at_offset(0));
    let mut scan = SegmentScan {
        file_len,
        floor_zxid: None,
        first_zxid: None,
        last_zxid: None,
        end_offset: 0,
        records: 0,
        groups: 0,
        index: Vec::new(),
        time_max_ms: i64::MIN,
        epoch: Epoch::ZERO,
        claims: Zxid::ZERO,
        stop: Stop { kind: StopKind::Header, offset: 0, bad: None },
        beyond: None,
        header,
    };
    let Ok(header) = scan.header.clone() else { return Ok(scan) };
    scan.end_offset = header.first_group_offset();
    if !gap_is_zero(file, window, scan.end_offset)? {
        let error =
            Error::corrupt("segment_header_gap", "there are bytes between the header and the first group");
        scan.header = Err(error.in_file(file.name()).at_offset(limits::SEGMENT_HEADER_BYTES));
        scan.end_offset = 0;
    }
    Ok(scan)
}

/// Whether nothing stands between the header page and the first block boundary, where no checksum reaches.
fn gap_is_zero(file: &dyn File, window: &mut Window, end: u64) -> Result<bool> {
    let start = limits::SEGMENT_HEADER_BYTES;
    let gap = usize::try_from(end.min(window.file_len()).saturating_sub(start)).expect("less than a block");
    Ok(gap == 0 || window.get(file, start, gap)?.is_none_or(is_zero))
}

/// Whether a header is the one that the file's name and the log's identity ask for.
pub(crate) fn check_owner(header: SegmentHeader, seq: u64, database_id: DatabaseId) -> Result<SegmentHeader> {
    if header.database_id != database_id {
        return Err(Error::new(
            ErrorKind::WrongOwner,
            "segment_foreign",
            format!("the segment belongs to database {}, not to {database_id}", header.database_id),
        ));
    }
    if header.seq != seq {
        let is = header.seq;
        return Err(Error::corrupt(
            "segment_misnamed",
            format!("the segment is number {is}, not what its name says"),
        ));
    }
    Ok(header)
}

/// What stays the same while one segment is read.
struct Walk<'f> {
    file: &'f dyn File,
    seq: u64,
    seed: u32,
    database_seed: u32,
    block: u64,
}

impl Walk<'_> {
    /// Takes valid groups into `scan` until something ends them.
    fn prefix(
        &self,
        scan: &mut SegmentScan,
        window: &mut Window,
        limit: Option<Zxid>,
        mut replay: Option<&mut Replay<'_>>,
    ) -> Result<Stop> {
        loop {
            let offset = scan.end_offset;
            let stop = |kind, bad| Ok(Stop { kind, offset, bad });
            if limit.is_some() && scan.last_zxid == limit {
                return stop(StopKind::Limit, None);
            }
            let head = window.get(self.file, offset, GROUP_HEADER_BYTES)?;
            let Some(header) = head.and_then(|b| GroupHeader::decode(b, self.seed, self.seq, offset)) else {
                let zeros = zeros_from(self.file, window, offset)?;
                return stop(if zeros { StopKind::Zeros } else { StopKind::Garbage }, None);
            };
            if limit.is_some() && limit == Some(header.prev_zxid) {
                scan.floor_zxid.get_or_insert(header.prev_zxid);
                return stop(StopKind::Limit, None);
            }
            if !Self::follows(scan, &header) {
                return stop(StopKind::Misfit, None);
            }
            let total = header.total_bytes(self.block);
            let bytes = usize::try_from(total).unwrap_or(usize::MAX);
            if window.get(self.file, offset, bytes)?.is_none() {
                let bad = BadGroup {
                    offset: 0,
                    code: "group_short",
                    first_zxid: header.first_zxid,
                    last_zxid: header.last_zxid,
                };
                return stop(StopKind::Garbage, Some(bad));
            }
            let verified = window.verified(offset);
            let group = window.held(offset, bytes);
            let verify = || verify_group(&header, group, self.seed, self.database_seed);
            match verified.map_or_else(verify, Ok) {
                Err(bad) => return stop(StopKind::Garbage, Some(bad)),
                Ok(_) if limit.is_some_and(|l| l < header.last_zxid) => {
                    let limit = limit.expect("just seen");
                    let records = Records::of(&header, self.database_seed);
                    let kind = scan.take_part(&header, records, group, limit, total);
                    if let Some(replay) = replay.filter(|_| kind == StopKind::Limit) {
                        replay.group(&header, group, limit);
                    }
                    return stop(kind, None);
                }
                Ok(totals) => {
                    if let Some(replay) = replay.as_deref_mut() {
                        replay.group(&header, group, header.last_zxid);
                    }
                    scan.take(&header, totals.time_max_ms, total);
                }
            }
            if header.kind == GroupKind::Seal {
                return Ok(Stop { kind: StopKind::Sealed, offset: scan.end_offset, bad: None });
            }
        }
    }

    fn follows(scan: &SegmentScan, header: &GroupHeader) -> bool {
        scan.last_zxid.or(scan.floor_zxid).is_none_or(|last| header.prev_zxid == last)
            && header.epoch >= scan.epoch
            && (scan.groups == 0 || header.time_max_before_ms == scan.time_max_ms)
    }

    /// Looks at every block boundary behind the stop for valid group headers: they are the evidence.
    fn beyond(&self, scan: &mut SegmentScan, window: &mut Window) -> Result<()> {
        let first = if scan.stop.kind == StopKind::Misfit { 0 } else { self.block };
        let mut offset = scan.stop.offset + first;
        while let Some(head) = window.get(self.file, offset, GROUP_HEADER_BYTES)? {
            if let Some(header) = GroupHeader::decode(head, self.seed, self.seq, offset) {
                let beyond = scan.beyond.get_or_insert(Beyond {
                    offset,
                    first_zxid: header.first_zxid,
                    last_zxid: header.last_zxid,
                    claims: header.durable_zxid,
                });
                beyond.last_zxid = beyond.last_zxid.max(header.last_zxid);
                beyond.claims = beyond.claims.max(header.durable_zxid);
            }
            // No header is in a hole.
            let wrap = |e| Error::io("look for data in a segment", e).in_file(self.file.name());
            let next = self.file.next_data(offset + self.block).map_err(wrap)?;
            offset = next.next_multiple_of(self.block);
        }
        Ok(())
    }
}

impl SegmentScan {
    fn take(&mut self, header: &GroupHeader, time_max_ms: i64, total: u64) {
        let offset = self.end_offset;
        self.floor_zxid.get_or_insert(header.prev_zxid);
        if header.kind == GroupKind::Records {
            self.first_zxid.get_or_insert(header.first_zxid);
            if self.index.last().is_none_or(|e| offset - e.offset >= limits::INDEX_EVERY_BYTES) {
                let time_max_before_ms = header.time_max_before_ms;
                self.index.push(IndexEntry { first_zxid: header.first_zxid, offset, time_max_before_ms });
            }
        }
        self.last_zxid = Some(header.last_zxid);
        self.end_offset += total;
        self.records += u64::from(header.record_count);
        self.groups += 1;
        self.time_max_ms = time_max_ms;
        self.epoch = self.epoch.max(header.epoch);
        self.claims = self.claims.max(header.durable_zxid);
    }

    /// Takes the records of a group up to the limit inside it: the group is the segment's last, read up to that
    /// record. A limit that is no record of the group contradicts the manifest.
    fn take_part(
        &mut self,
        header: &GroupHeader,
        mut records: Records,
        group: &[u8],
        limit: Zxid,
        total: u64,
    ) -> StopKind {
        let (mut count, mut last, mut time) = (0, header.prev_zxid, header.time_max_before_ms);
        while let Some(record) = records.next(group).filter(|r| r.zxid <= limit) {
            (count, last, time) = (count + 1, record.zxid, time.max(record.time_ms));
        }
        if last != limit {
            return StopKind::Misfit;
        }
        let part = GroupHeader { record_count: count, last_zxid: limit, durable_zxid: Zxid::ZERO, ..*header };
        self.take(&part, time, total);
        StopKind::Limit
    }
}

/// Whether nothing stands behind the header page of a file.
pub(crate) fn is_blank_file(file: &dyn File) -> Result<bool> {
    let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(file.name()))?;
    let mut window = Window::new(len);
    zeros_from(file, &mut window, limits::SEGMENT_HEADER_BYTES)
}

/// Whether there are only zeros from `from` on. Holes are, and are not read.
fn zeros_from(file: &dyn File, window: &mut Window, from: u64) -> Result<bool> {
    let wrap = |e| Error::io("look for data in a segment", e).in_file(file.name());
    let mut offset = from;
    while offset < window.file_len() {
        offset = file.next_data(offset).map_err(wrap)?;
        let rest = window.rest(file, offset)?;
        if !is_zero(rest) {
            return Ok(false);
        }
        offset += rest.len() as u64;
        if rest.is_empty() {
            break;
        }
    }
    Ok(true)
}
