use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Cursor, Window, verify_group};
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, GroupKind, IndexEntry, segment_name};
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
    /// Where in the group that was read last; its bytes are held in the window.
    cursor: Option<Cursor>,
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
            cursor: None,
        };
        reader.seek();
        Ok(reader)
    }

    /// Stands at the group that holds the first record after `last`, as the index tells.
    fn seek(&mut self) {
        let last = self.last;
        let entry = |index: &[IndexEntry]| {
            let at = index.partition_point(|e| e.first_zxid <= last);
            at.checked_sub(1).map(|i| index[i].offset)
        };
        let (in_use, in_use_offset) = {
            let inner = self.shared.inner();
            let active = inner.core.active();
            (active.header.seq, entry(&active.index))
        };
        let segments = self.shared.segments.read();
        let segment = segments.holding(last).or(segments.first()).expect("a log has a segment");
        self.seq = segment.header.seq;
        let offset = match &segment.ended {
            Some(ended) => entry(&ended.index),
            None if in_use == self.seq => in_use_offset,
            None => None, // rolled in between
        };
        self.offset = offset.unwrap_or(segment.header.first_group_offset());
    }

    /// The next record, or `None` when all that is durable has been read. Call again when there is more.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if what stands there is damaged, [`ErrorKind::Io`] if it cannot be read.
    /// [`ErrorKind::NotInLog`] if the log was truncated since, and all that is left of it has been read.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        // Found first and borrowed afterwards: a record is handed out as a loan from the window.
        loop {
            if let Some(found) = self.cursor.as_mut().and_then(|c| c.next(&self.window, self.last)) {
                self.check_not_cut(found.zxid)?;
                self.last = found.zxid;
                return Ok(Some(found.record(&self.window)));
            }
            self.cursor = None;
            if !self.next_group()? {
                self.check_not_cut(Zxid::MAX)?;
                return Ok(None);
            }
        }
    }

    /// What was durable when the log was open may be no part of it any more.
    fn check_not_cut(&self, zxid: Zxid) -> Result<()> {
        match self.shared.cut_after() {
            Some(last) if zxid > last => Err(not_in_log(self.last, "the log was truncated or replaced")),
            _ => Ok(()),
        }
    }

    /// A file that is missing is no damage if it went with what was cut off or replaced: if all that is left is read.
    fn of_what_was_cut(&self, error: Error) -> Error {
        match self.shared.cut_after() {
            Some(last) if last <= self.last && error.code() == "segment_missing" => {
                not_in_log(self.last, "the log was truncated or replaced")
            }
            _ => error,
        }
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
            let end_zxid = segment.ended.as_ref().map_or(Zxid::MAX, |e| e.last_zxid);
            let Some(header) = self.read_group(&segment.header, end_zxid, durable)? else { return Ok(false) };
            if header.kind == GroupKind::Records && header.last_zxid > self.last {
                self.cursor = Some(Cursor::new(&header, end_zxid));
            }
            self.offset = header.offset + header.total_bytes(segment.header.block_bytes);
            self.chain = Some(header.last_zxid);
            if self.cursor.is_some() {
                return Ok(true);
            }
        }
    }

    fn enter(&mut self, seq: u64) {
        let segments = self.shared.segments.read();
        let segment = segments.get(seq).expect("just seen");
        self.seq = seq;
        self.file = None;
        self.window.turn_to(0);
        self.offset = segment.header.first_group_offset();
        self.chain = Some(segment.floor_zxid);
        drop(segments);
        self.pin.advance(&self.shared, self.last);
    }

    fn read_group(
        &mut self,
        header: &crate::format::SegmentHeader,
        end_zxid: Zxid,
        durable: Zxid,
    ) -> Result<Option<GroupHeader>> {
        let name = segment_name(self.seq);
        let file = if let Some(file) = &self.file {
            file.clone()
        } else {
            let file = open_segment(self.shared.directory.disk().as_ref(), &name)
                .map_err(|error| self.of_what_was_cut(error))?;
            self.file = Some(file.clone());
            file
        };
        let damaged = |code, at, first, last| {
            Err(Error::corrupt(code, "bytes that were durable have changed")
                .in_file(&name)
                .at_offset(at)
                .with_zxids(first, last))
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
        // Of a group in which the segment was cut, only the records up to there count.
        if group.last_zxid.min(end_zxid) > durable {
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
                None if attempt == 1 => {
                    return damaged("group_short", offset, group.first_zxid, group.last_zxid);
                }
                _ => {
                    let len = file
                        .len()
                        .map_err(|e| Error::io("take the length of a segment", e).in_file(&name))?;
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
    Error::new(
        ErrorKind::NotInLog,
        "not_in_log",
        format!("what follows zxid {zxid} is not in the log: {why}"),
    )
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("position", &self.last)
            .field("segment", &self.seq)
            .finish_non_exhaustive()
    }
}
