use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Records, Window, verify_group};
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, GroupKind, SegmentHeader, segment_name};
use crate::io::File;
use crate::log::directory::open_segment;
use crate::log::engine::Shared;
use crate::log::retain::Pin;

/// One record, as it was appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Its place in the one total order.
    pub zxid: Zxid,
    /// The epoch in which it was appended.
    pub epoch: Epoch,
    /// The leader's wall clock in milliseconds since 1970. May jump either way.
    pub time_ms: i64,
    /// The opaque bytes.
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// A record in ZooKeeper's numbering: its epoch is the one in its zxid.
    pub const fn new(zxid: Zxid, time_ms: i64, payload: &'a [u8]) -> Record<'a> {
        Record { zxid, epoch: zxid.epoch(), time_ms, payload }
    }

    /// A record whose identifier is a plain index, with the epoch (a Raft term) beside it.
    pub const fn indexed(epoch: Epoch, index: Zxid, time_ms: i64, payload: &'a [u8]) -> Record<'a> {
        Record { zxid: index, epoch, time_ms, payload }
    }
}

/// Reads a log from some zxid on, in order, up to what is durable; follows it as it grows.
///
/// Every group is verified in the reader's own memory before a record of it is handed out. A reader pins
/// what it has not read yet, so purging leaves it alone; let go of readers that are not needed.
pub struct LogReader {
    shared: Arc<Shared>,
    pin: Pin,
    seq: u64,
    file: Option<Arc<dyn File>>,
    window: Window,
    offset: u64,
    /// The last record that was handed out, or that is to be passed over.
    last: Zxid,
    /// The last record of the last group that was read.
    chain: Option<Zxid>,
    group: Option<(GroupHeader, Records)>,
}

impl LogReader {
    /// A reader of the records after `after`.
    pub(crate) fn new(shared: Arc<Shared>, after: Zxid) -> Result<LogReader> {
        let pin = Pin::new(&shared, after)?;
        let mut reader = LogReader {
            shared,
            pin,
            seq: 0,
            file: None,
            window: Window::new(0),
            offset: 0,
            last: after,
            chain: None,
            group: None,
        };
        reader.seek();
        Ok(reader)
    }

    /// Stands at the group that holds the first record after `last`, as the index tells.
    fn seek(&mut self) {
        let segments = self.shared.segments.read();
        let segment = segments.holding(self.last).or(segments.first()).expect("a log has a segment");
        self.seq = segment.header.seq;
        let index = segment.ended.as_ref().map_or(&[][..], |e| &e.index);
        let at = index.partition_point(|e| e.first_zxid <= self.last);
        self.offset = at.checked_sub(1).map_or(segment.header.first_group_offset(), |i| index[i].offset);
    }

    /// The next record, or `None` when all that is durable has been read. Call again when there is more.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if what stands there is damaged, [`ErrorKind::Io`] if it cannot be read.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        // Found first and borrowed afterwards: a record is handed out as a loan from the window.
        let Some((at, length, header, time_ms, zxid)) = self.find()? else { return Ok(None) };
        self.last = zxid;
        let file = self.file.clone().expect("a group was read from a file");
        let payload = self.window.get(file.as_ref(), at, length)?.expect("verified with its group");
        Ok(Some(Record { zxid, epoch: header.epoch, time_ms, payload }))
    }

    fn find(&mut self) -> Result<Option<(u64, usize, GroupHeader, i64, Zxid)>> {
        loop {
            if let Some((header, mut records)) = self.group.take() {
                let file = self.file.clone().expect("a group was read from a file");
                let (bytes, end_zxid) = self.extent(&header);
                let group = self.window.get(file.as_ref(), header.offset, bytes)?.expect("verified before");
                while let Some(record) = records.next(group) {
                    if record.zxid > self.last {
                        let at = record.payload.as_ptr() as usize - group.as_ptr() as usize;
                        let found =
                            (header.offset + at as u64, record.payload.len(), header, record.time_ms, record.zxid);
                        if record.zxid > end_zxid {
                            break;
                        }
                        self.group = Some((header, records));
                        return Ok(Some(found));
                    }
                }
                self.offset = header.offset + bytes as u64;
                self.chain = Some(header.last_zxid);
            }
            if !self.next_group()? {
                return Ok(None);
            }
        }
    }

    /// How many bytes a group has, and the record at which its segment ends.
    fn extent(&self, header: &GroupHeader) -> (usize, Zxid) {
        let segments = self.shared.segments.read();
        let segment = segments.get(self.seq).expect("pinned while it is read");
        let bytes = usize::try_from(header.total_bytes(segment.header.block_bytes)).expect("it is in the file");
        (bytes, segment.ended.as_ref().map_or(Zxid::MAX, |e| e.last_zxid))
    }

    /// Reads the next group of records. False: there is none that is durable.
    fn next_group(&mut self) -> Result<bool> {
        loop {
            let durable = self.shared.durable();
            if self.last >= durable {
                return Ok(false);
            }
            let (segment, next) = {
                let segments = self.shared.segments.read();
                let segment = segments.get(self.seq).cloned();
                let segment = segment.ok_or_else(|| not_in_log(self.last, "the segment was purged"))?;
                (segment, segments.after(self.seq).map(|s| s.header.seq))
            };
            if let Some(ended) = &segment.ended
                && (self.offset >= ended.end_offset || self.chain.is_some_and(|c| c >= ended.last_zxid))
            {
                let Some(next) = next else { return Ok(false) };
                self.enter(next);
                continue;
            }
            let ended_zxid = segment.ended.as_ref().map_or(Zxid::MAX, |e| e.last_zxid);
            let Some(header) = self.read_group(&segment.header, durable, ended_zxid)? else { return Ok(false) };
            if header.kind == GroupKind::Records && header.last_zxid > self.last {
                self.group = Some((header, Records::of(&header, segment.header.database_id.seed())));
                return Ok(true);
            }
            self.offset = header.offset + header.total_bytes(segment.header.block_bytes);
            self.chain = Some(header.last_zxid);
        }
    }

    fn enter(&mut self, seq: u64) {
        let segments = self.shared.segments.read();
        let segment = segments.get(seq).expect("just seen");
        self.seq = seq;
        self.file = None;
        self.window = Window::new(0);
        self.offset = segment.header.first_group_offset();
        self.chain = Some(segment.floor_zxid);
        drop(segments);
        self.pin.advance(&self.shared, self.last);
    }

    fn read_group(
        &mut self,
        header: &SegmentHeader,
        durable: Zxid,
        ended_zxid: Zxid,
    ) -> Result<Option<GroupHeader>> {
        let name = segment_name(self.seq);
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                let file = open_segment(self.shared.directory.disk().as_ref(), &name)?;
                self.file = Some(file.clone());
                file
            }
        };
        let damaged = |code, at, first, last| {
            Err(Error::corrupt(code, "bytes that were durable have changed").in_file(&name).at_offset(at).with_zxids(first, last))
        };
        let offset = self.offset;
        let decode = |bytes: &[u8]| GroupHeader::decode(bytes, header.seed(), self.seq, offset);
        let mut found = self.window.get(file.as_ref(), offset, GROUP_HEADER_BYTES)?.and_then(decode);
        if found.is_none() {
            // What the window holds may have been read before it was written.
            let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(&name))?;
            self.window.forget_from(offset, len);
            found = self.window.get(file.as_ref(), offset, GROUP_HEADER_BYTES)?.and_then(decode);
        }
        let Some(group) = found else {
            let first = Zxid::new(self.last.get().saturating_add(1));
            return damaged("log_damaged", offset, first, durable);
        };
        if self.chain.is_some_and(|c| c != group.prev_zxid) {
            return damaged("group_misplaced", offset, group.first_zxid, group.last_zxid);
        }
        // Of a group in which the segment was cut, only the records before the cut are to be read.
        if group.last_zxid.min(ended_zxid) > durable {
            return Ok(None);
        }
        let bytes = usize::try_from(group.total_bytes(header.block_bytes)).unwrap_or(usize::MAX);
        for attempt in 0..2 {
            let whole = self.window.get(file.as_ref(), offset, bytes)?;
            let verdict = whole.map(|b| verify_group(&group, b, header.seed(), header.database_id.seed()));
            match verdict {
                Some(Ok(_)) => return Ok(Some(group)),
                Some(Err(bad)) if attempt == 1 => {
                    return damaged(bad.code, offset + bad.offset, bad.first_zxid, bad.last_zxid);
                }
                None if attempt == 1 => return damaged("group_short", offset, group.first_zxid, group.last_zxid),
                _ => {
                    let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(&name))?;
                    self.window.forget_from(offset, len);
                }
            }
        }
        unreachable!("the second attempt returns")
    }

    /// The last record that was read; what a new reader would start after.
    pub fn position(&self) -> Zxid {
        self.last
    }

    /// Blocks until there is something to read, the log fails or closes, or the time runs out. Returns
    /// whether there is.
    ///
    /// # Errors
    /// [`ErrorKind::Poisoned`] if the log has failed and all that is durable has been read.
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        self.shared.wait_for_growth(self.last, timeout)
    }
}

pub(crate) fn not_in_log(zxid: Zxid, why: &str) -> Error {
    Error::new(ErrorKind::NotInLog, "not_in_log", format!("what follows zxid {zxid} is not in the log: {why}"))
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader").field("position", &self.last).field("segment", &self.seq).finish_non_exhaustive()
    }
}
