use std::path::Path;
use std::sync::Arc;

use super::overlay::Overlay;
use super::truncate::{Execution, open_for};
use crate::base::checksum::{self, Fold};
use crate::base::{Error, ErrorKind, Result, Zxid, limits};
use crate::format::{
    Cut, GROUP_HEADER_BYTES, GroupHeader, GroupKind, Manifest, Name, RECORD_HEADER_BYTES, RecordHeader,
    SegmentHeader, frame_bytes, segment_name,
};
use crate::io::{Disk, File, OpenMode};
use crate::log::directory::{open_segment, read_manifest, take_lock_unless};
use crate::log::read::{Damage, Window, not_in_log, payload_is_right, segment_damage};
use crate::log::segment_file::segment_header;

/// What a repair did or would do, and what is still damaged in the same segment then.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RepairReport {
    /// The segment that holds the record.
    pub file: String,
    /// Where the record begins.
    pub offset: u64,
    /// How many bytes were written, or would be; zero if the record was whole already.
    pub written_bytes: u64,
    /// What else is damaged in this segment.
    pub left: Vec<Damage>,
}

/// Puts a damaged record back from a copy of it, such as a peer has: offline, in the directory of a log that
/// opening refuses.
///
/// Only bytes that fit are taken. If the record's header is whole, the payload must have the length and the
/// checksum that it names. If the header is damaged, the one made of these arguments must complete the chain
/// of checksums that the group's header holds. Else nothing is written. Only the record's own bytes are; they
/// are synced and verified before this returns. Run it again if it was interrupted. A dry run takes no lock and
/// writes nothing.
///
/// # Errors
/// [`ErrorKind::Invalid`] if the record does not fit, [`ErrorKind::NotInLog`] if no group that can be read
/// holds its zxid (a group whose own header is damaged cannot be repaired so), [`ErrorKind::Corrupt`] if
/// another record has to be repaired first, [`ErrorKind::Locked`] if the log is open, [`ErrorKind::Io`].
pub fn repair_record(
    dir: impl AsRef<Path>,
    zxid: Zxid,
    time_ms: i64,
    payload: &[u8],
    execution: Execution,
) -> Result<RepairReport> {
    let disk = open_for(execution, dir.as_ref())?;
    repair_on(&disk, zxid, time_ms, payload, execution)
}

/// The same on a simulated disk.
///
/// # Errors
/// As [`repair_record`].
#[cfg(any(test, feature = "sim"))]
pub fn repair_record_sim(
    disk: &crate::sim::SimDisk,
    zxid: Zxid,
    time_ms: i64,
    payload: &[u8],
    execution: Execution,
) -> Result<RepairReport> {
    repair_on(&disk.handle(), zxid, time_ms, payload, execution)
}

fn repair_on(
    disk: &Arc<dyn Disk>,
    zxid: Zxid,
    time_ms: i64,
    payload: &[u8],
    execution: Execution,
) -> Result<RepairReport> {
    let plan = || Plan::make(disk, zxid, time_ms, payload);
    if execution == Execution::DryRun {
        let plan = plan()?;
        let file = open_segment(disk.as_ref(), &plan.place.name)?;
        let bytes = plan.frame.clone();
        return plan.report(&Overlay { file, offset: plan.offset(), bytes });
    }
    let _lock = take_lock_unless(disk.as_ref(), || plan().map(drop))?;
    let plan = plan()?;
    if plan.is_needed() {
        plan.write(disk.as_ref())?;
    }
    plan.report(open_segment(disk.as_ref(), &plan.place.name)?.as_ref())
}

/// What to write, and where.
struct Plan {
    manifest: Manifest,
    place: Found,
    zxid: Zxid,
    /// Where in the group.
    at: usize,
    frame: Vec<u8>,
}

impl Plan {
    fn make(disk: &Arc<dyn Disk>, zxid: Zxid, time_ms: i64, payload: &[u8]) -> Result<Plan> {
        let payload_bytes =
            u32::try_from(payload.len()).ok().filter(|b| u64::from(*b) <= limits::RECORD_BYTES_MAX);
        let payload_bytes = payload_bytes.ok_or_else(|| misfit("the payload is larger than any record"))?;
        let manifest =
            read_manifest(disk.as_ref())?.ok_or_else(|| not_in_log(zxid, "there is no log here"))?;
        let place = find_group(disk, &manifest, zxid)?.ok_or_else(|| {
            not_in_log(Zxid::new(zxid.get().saturating_sub(1)), "no group that can be read holds the record")
        })?;
        let seed = manifest.database_id.seed();
        let payload_crc = checksum::crc32(0, payload);
        let mut frame = RecordHeader::encode(seed, zxid, time_ms, payload_bytes, payload_crc).0.to_vec();
        frame.extend_from_slice(payload);
        frame.resize(frame_bytes(payload.len()), 0);
        let at = place
            .fit(&frame, zxid, seed)
            .map_err(|e| e.in_file(&place.name).at_offset(place.group.offset).with_zxids(zxid, zxid))?;
        Ok(Plan { manifest, place, zxid, at, frame })
    }

    fn offset(&self) -> u64 {
        self.place.group.offset + self.at as u64
    }

    fn is_needed(&self) -> bool {
        self.place.bytes[self.at..self.at + self.frame.len()] != self.frame
    }

    fn write(&self, disk: &dyn Disk) -> Result<()> {
        let name = &self.place.name;
        let wrap = |e| Error::io("repair a record", e).in_file(name).at_offset(self.offset());
        let file = disk.open(name, OpenMode::Write { direct: false }).map_err(wrap)?;
        file.write_all_at(self.offset(), &self.frame).map_err(wrap)?;
        file.sync().map_err(wrap)
    }

    /// What is damaged with the record in its place, as `file` has it.
    fn report(&self, file: &dyn File) -> Result<RepairReport> {
        let (name, offset, zxid) = (self.place.name.clone(), self.offset(), self.zxid);
        let left = self.place.left(file, &self.manifest)?;
        if let Some(still) = left.iter().find(|d| d.first <= zxid && zxid <= d.last) {
            let why =
                format!("the record is damaged still, with the right bytes in its place ({})", still.code);
            return Err(Error::corrupt("repair_failed", why)
                .in_file(&name)
                .at_offset(offset)
                .with_zxids(zxid, zxid));
        }
        let written_bytes = if self.is_needed() { self.frame.len() as u64 } else { 0 };
        Ok(RepairReport { file: name, offset, written_bytes, left })
    }
}

/// The group that holds the record, and the segment around it.
struct Found {
    name: String,
    header: SegmentHeader,
    group: GroupHeader,
    bytes: Vec<u8>,
}

impl Found {
    /// Where in the group the record belongs, if `frame` fits there.
    fn fit(&self, frame: &[u8], zxid: Zxid, seed: u32) -> Result<usize> {
        let body_end = GROUP_HEADER_BYTES + usize::try_from(self.group.body_bytes).unwrap_or(usize::MAX);
        let body = self.bytes.get(..body_end).ok_or_else(|| blocked("the group is cut short"))?;
        let (mut at, mut last, mut fold) = (GROUP_HEADER_BYTES, self.group.prev_zxid, Fold::new());
        let mut rebuilt = None;
        for _ in 0..self.group.record_count {
            let there = body
                .get(at..)
                .and_then(|b| RecordHeader::decode(b, seed))
                .filter(|r| r.zxid > last && at + frame_bytes(r.payload_bytes as usize) <= body.len());
            let record = match there {
                Some(record) if record.zxid == zxid => return Self::fit_payload(&record, at, frame, seed),
                Some(record) => record,
                None if rebuilt.is_none() => {
                    rebuilt = Some(at);
                    RecordHeader::decode(frame, seed).ok_or_else(|| misfit("the frame is none"))?
                }
                None => return Err(blocked("the header of another record is damaged too")),
            };
            fold.add(record.header_crc);
            (at, last) = (at + frame_bytes(record.payload_bytes as usize), record.zxid);
        }
        let chain = at == body_end && last == self.group.last_zxid && fold.value() == self.group.body_check;
        match rebuilt.filter(|_| chain) {
            Some(at) => Ok(at),
            None => Err(misfit("the record does not complete the group's chain of checksums")),
        }
    }

    fn fit_payload(record: &RecordHeader, at: usize, frame: &[u8], seed: u32) -> Result<usize> {
        let offered = RecordHeader::decode(frame, seed);
        if offered == Some(*record) && payload_is_right(record, &frame[RECORD_HEADER_BYTES..]) {
            return Ok(at);
        }
        Err(misfit("time, length or checksum are not those of the record's header"))
    }

    fn left(&self, file: &dyn File, manifest: &Manifest) -> Result<Vec<Damage>> {
        let end = EndOf::find(file, &self.header, manifest.cut_of(self.header.seq))?;
        segment_damage(file, &self.header, Some(end.offset), end.floor, end.last)
    }
}

/// How far the groups of a segment reach, as far as its valid group headers tell.
struct EndOf {
    offset: u64,
    floor: Zxid,
    last: Zxid,
}

impl EndOf {
    fn find(file: &dyn File, header: &SegmentHeader, cut: Option<Cut>) -> Result<EndOf> {
        let mut end = EndOf { offset: header.first_group_offset(), floor: Zxid::ZERO, last: Zxid::ZERO };
        let mut first = true;
        each_group(file, header, &mut |group| {
            if std::mem::take(&mut first) {
                end.floor = group.prev_zxid;
            }
            if cut.is_none_or(|c| group.prev_zxid < c.last_zxid) {
                end.offset = group.offset + group.total_bytes(header.block_bytes);
                end.last = group.last_zxid;
            }
            true
        })?;
        Ok(end)
    }
}

/// Looks through the segments of the log for the group whose range holds `zxid`.
fn find_group(disk: &Arc<dyn Disk>, manifest: &Manifest, zxid: Zxid) -> Result<Option<Found>> {
    let entries = disk.list().map_err(|e| Error::io("list the log's directory", e))?;
    let mut seqs: Vec<u64> = entries
        .iter()
        .filter_map(|e| if let Name::Segment(seq) = Name::parse(&e.name) { Some(seq) } else { None })
        .filter(|seq| *seq >= manifest.first_seq && !manifest.is_cut_away(*seq))
        .collect();
    seqs.sort_unstable();
    for seq in seqs {
        if manifest.cut_of(seq).is_some_and(|cut| zxid > cut.last_zxid) {
            continue;
        }
        let name = segment_name(seq);
        let file = open_segment(disk.as_ref(), &name)?;
        let wrap = |e| Error::io("read a segment", e).in_file(&name);
        // A segment whose header is damaged, or that is another database's, holds nothing to repair.
        let Ok(header) = segment_header(file.as_ref()).map_err(wrap)? else { continue };
        if header.database_id != manifest.database_id || header.seq != seq {
            continue;
        }
        let mut found = None;
        each_group(file.as_ref(), &header, &mut |group| {
            let holds =
                group.kind == GroupKind::Records && group.first_zxid <= zxid && zxid <= group.last_zxid;
            found = holds.then_some(group);
            !holds
        })?;
        if let Some(group) = found {
            let len = file.len().map_err(wrap)?;
            let total = group.total_bytes(header.block_bytes).min(len - group.offset);
            let mut bytes = vec![0; usize::try_from(total).map_err(|_| blocked("the group exceeds memory"))?];
            file.read_at(group.offset, &mut bytes).map_err(wrap)?;
            return Ok(Some(Found { name, header, group, bytes }));
        }
    }
    Ok(None)
}

/// Hands every valid group header to `visit` until it returns false; steps over what is damaged.
fn each_group(
    file: &dyn File,
    header: &SegmentHeader,
    visit: &mut dyn FnMut(GroupHeader) -> bool,
) -> Result<()> {
    let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(file.name()))?;
    let (mut window, mut offset) = (Window::new(len), header.first_group_offset());
    while let Some(head) = window.get(file, offset, GROUP_HEADER_BYTES)? {
        let Some(group) = GroupHeader::decode(head, header.seed(), header.seq, offset) else {
            offset += header.block_bytes;
            continue;
        };
        if !visit(group) {
            return Ok(());
        }
        offset += group.total_bytes(header.block_bytes);
    }
    Ok(())
}

fn misfit(why: &str) -> Error {
    Error::new(ErrorKind::Invalid, "repair_misfit", format!("nothing was written: {why}"))
}

fn blocked(why: &str) -> Error {
    Error::corrupt("repair_blocked", format!("nothing was written: {why}"))
}
