use std::sync::Arc;

use super::damaged_bytes::DamagedBytes;
use crate::base::{Epoch, Error, Result, Zxid};
use crate::format::layout::is_zero;
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, GroupKind, SegmentHeader};
use crate::io::File;
use crate::log::read::{Records, Window, verify_group};

/// Goes through the groups of one segment, past damage to the next valid group at a block boundary.
#[derive(Debug)]
pub(crate) struct Walk {
    file: Arc<dyn File>,
    pub(crate) header: SegmentHeader,
    window: Window,
    pub(crate) offset: u64,
    until: Until,
    /// The last record before `offset`; none behind damage, until the next group tells.
    pub(crate) last: Option<Zxid>,
    epoch: Epoch,
    /// The end of the last damage that was handed out: what stands there is taken as it is.
    resumed_at: Option<u64>,
    /// The seal was passed, or damage that nothing valid follows.
    is_over: bool,
}

/// How far a segment counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Until {
    /// The last record, if the manifest ends the segment early.
    pub(crate) zxid: Option<Zxid>,
    /// Where the log ends, if that is known to be in this segment.
    pub(crate) offset: Option<u64>,
}

/// What a step came upon.
#[derive(Debug)]
pub(crate) enum Step {
    Group(GroupHeader, Records),
    Damage(DamagedBytes),
}

impl Walk {
    /// From the first group on; `before` is the last record before the segment, where it is known.
    pub(crate) fn new(
        file: Arc<dyn File>,
        header: SegmentHeader,
        before: Option<Zxid>,
        until: Until,
    ) -> Result<Walk> {
        let mut walk = Walk {
            window: Window::new(0),
            file,
            header,
            offset: header.first_group_offset(),
            until,
            last: before,
            epoch: Epoch::ZERO,
            resumed_at: None,
            is_over: false,
        };
        walk.refresh()?;
        Ok(walk)
    }

    /// Forgets what was read from here on: a live log may have written it since.
    pub(crate) fn refresh(&mut self) -> Result<()> {
        let wrap = |e| Error::io("take the length of a segment", e).in_file(self.file.name());
        let len = self.file.len().map_err(wrap)?;
        self.window.forget_from(self.offset, len);
        Ok(())
    }

    /// Goes back to where damage was seen, to look again.
    pub(crate) fn back_to(&mut self, offset: u64, last: Option<Zxid>) -> Result<()> {
        (self.offset, self.last, self.resumed_at, self.is_over) = (offset, last, None, false);
        self.refresh()
    }

    /// The file's length, as it was last looked at.
    pub(crate) fn file_len(&self) -> u64 {
        self.window.file_len()
    }

    /// The log ends here, whatever stands behind.
    pub(crate) fn end_at(&mut self, offset: u64) {
        self.until.offset = Some(offset);
    }

    /// The next group, damage, or `None` at the end: the seal, the manifest's cut, or zeros up to the end of
    /// the file. Never more than one damage before a group.
    pub(crate) fn step(&mut self) -> Result<Option<Step>> {
        if self.is_over || self.is_at_end() {
            return Ok(None);
        }
        let Some(group) = self.group_header(self.offset)? else {
            if self.is_zero_from(self.offset)? {
                return Ok(None);
            }
            return self.damage("group_header", self.offset + self.header.block_bytes, None).map(Some);
        };
        if self.until.zxid.is_some_and(|until| group.prev_zxid >= until) {
            return Ok(None);
        }
        if self.resumed_at != Some(self.offset) && !self.follows(&group) {
            let first = self.last.map(after);
            let (offset, file) = (self.offset, self.file.name().to_owned());
            self.resumed_at = Some(offset);
            let last_zxid = Some(group.prev_zxid).filter(|prev| first.is_some_and(|first| first <= *prev));
            let first_zxid = first.filter(|_| last_zxid.is_some());
            let end_offset = Some(offset);
            let code = "group_misplaced";
            return Ok(Some(Step::Damage(DamagedBytes {
                file,
                code,
                offset,
                end_offset,
                first_zxid,
                last_zxid,
            })));
        }
        let total = group.total_bytes(self.header.block_bytes);
        let bytes = usize::try_from(total).unwrap_or(usize::MAX);
        let (seed, database_seed) = (self.header.seed(), self.header.database_id.seed());
        let Some(whole) = self.window.get(self.file.as_ref(), self.offset, bytes)? else {
            return self.damage("group_short", self.offset + total, Some(group.last_zxid)).map(Some);
        };
        if let Err(bad) = verify_group(&group, whole, seed, database_seed) {
            return self.damage(bad.code, self.offset + total, Some(group.last_zxid)).map(Some);
        }
        self.offset += total;
        self.last = Some(group.last_zxid);
        self.epoch = group.epoch;
        self.is_over = group.kind == GroupKind::Seal;
        Ok(Some(Step::Group(group, Records::of(&group, database_seed))))
    }

    /// The bytes of the group that was just handed out.
    pub(crate) fn group_bytes(&mut self, group: &GroupHeader) -> Result<&[u8]> {
        let total = group.total_bytes(self.header.block_bytes);
        let bytes = usize::try_from(total).unwrap_or(usize::MAX);
        let whole = self.window.get(self.file.as_ref(), group.offset, bytes)?;
        Ok(whole.expect("a group is in memory from its verification until the next step"))
    }

    fn is_at_end(&self) -> bool {
        let by_offset = self.until.offset.is_some_and(|until| self.offset >= until);
        let by_zxid = self.until.zxid.is_some_and(|until| self.last.is_some_and(|last| last >= until));
        by_offset || by_zxid
    }

    fn follows(&self, group: &GroupHeader) -> bool {
        self.last.is_none_or(|last| last == group.prev_zxid) && group.epoch >= self.epoch
    }

    fn group_header(&mut self, offset: u64) -> Result<Option<GroupHeader>> {
        let head = self.window.get(self.file.as_ref(), offset, GROUP_HEADER_BYTES)?;
        Ok(head.and_then(|b| GroupHeader::decode(b, self.header.seed(), self.header.seq, offset)))
    }

    fn is_zero_from(&mut self, from: u64) -> Result<bool> {
        let mut offset = from;
        loop {
            offset = self.behind_hole(offset)?;
            let rest = self.window.rest(self.file.as_ref(), offset)?;
            if rest.is_empty() || !is_zero(rest) {
                return Ok(rest.is_empty());
            }
            offset += rest.len() as u64;
        }
    }

    /// Damage at the present offset. Looks for the next valid group from `from` on and goes there. `known` is
    /// the last record that the damaged bytes are known to have held.
    fn damage(&mut self, code: &'static str, from: u64, known: Option<Zxid>) -> Result<Step> {
        let offset = self.offset;
        let first = self.last.map(after);
        let end = self.next_group(from)?;
        let last_zxid = match &end {
            Some(group) => Some(group.prev_zxid),
            None => known,
        };
        // Where the next group follows the last good record, no record stood between: a mark or a seal did.
        let (first_zxid, last_zxid) = match (first, last_zxid) {
            (Some(first), Some(last)) if first > last => (None, None),
            range => range,
        };
        let end_offset = end.map(|group| group.offset);
        self.offset = end_offset.unwrap_or(self.window.file_len());
        self.resumed_at = end_offset;
        self.is_over = end.is_none();
        self.last = end.map(|group| group.prev_zxid).or(self.last);
        let file = self.file.name().to_owned();
        Ok(Step::Damage(DamagedBytes { file, code, offset, end_offset, first_zxid, last_zxid }))
    }

    fn next_group(&mut self, from: u64) -> Result<Option<GroupHeader>> {
        let mut offset = from;
        while offset.saturating_add(GROUP_HEADER_BYTES as u64) <= self.window.file_len() {
            let group = self.group_header(offset)?;
            if group.is_some() {
                return Ok(group);
            }
            // No header is in a hole.
            let next = self.behind_hole(offset + self.header.block_bytes)?;
            offset = next.next_multiple_of(self.header.block_bytes);
        }
        Ok(None)
    }

    /// Where there are bytes again from `offset` on.
    fn behind_hole(&self, offset: u64) -> Result<u64> {
        let wrap = |e| Error::io("look for data in a segment", e).in_file(self.file.name());
        self.file.next_data(offset).map_err(wrap)
    }
}

/// Counts the records of a file that can be read from byte `from` on, up to the record `until`: those that a walk
/// past all damage comes upon.
pub(crate) fn count_records(
    file: Arc<dyn File>,
    header: &SegmentHeader,
    from: u64,
    until: Option<Zxid>,
) -> Result<u64> {
    let mut walk = Walk::new(file, *header, None, Until { zxid: until, offset: None })?;
    let mut count = 0;
    while let Some(step) = walk.step()? {
        let Step::Group(group, mut records) = step else { continue };
        if group.offset < from {
            continue;
        }
        let bytes = walk.group_bytes(&group)?;
        while records.next(bytes).is_some_and(|record| until.is_none_or(|until| record.zxid <= until)) {
            count += 1;
        }
    }
    Ok(count)
}

pub(crate) fn after(zxid: Zxid) -> Zxid {
    Zxid::new(zxid.get().saturating_add(1))
}
