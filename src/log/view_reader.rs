use std::fmt;
use std::sync::Arc;

use crate::base::{Error, Result, Zxid};
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, GroupKind, segment_name};
use crate::io::{Disk, File};
use crate::log::commit::RetiredSegment;
use crate::log::directory::{open_segment, read_manifest};
use crate::log::read::{Cursor, Record, Window, not_in_log, verify_group};
use crate::log::recover::Judgement;

/// Reads the records of a [`LogView`](crate::LogView), in order, to its end.
///
/// Every group is verified in the reader's own memory before a record of it is handed out.
pub struct ViewReader {
    disk: Arc<dyn Disk>,
    judged: Arc<Judgement>,
    /// Which of the segments is being read.
    at: usize,
    file: Option<Arc<dyn File>>,
    window: Window,
    offset: u64,
    /// The last record that was handed out, or that is to be passed over.
    last: Zxid,
    /// The last record of the last group that was read, or before the segment.
    chain: Option<Zxid>,
    /// Where in the group that was read last; its bytes are held in the window.
    cursor: Option<Cursor>,
}

impl ViewReader {
    pub(crate) fn new(disk: &Arc<dyn Disk>, judged: &Arc<Judgement>, after: Zxid) -> Result<ViewReader> {
        if after < judged.manifest.floor_zxid {
            return Err(not_in_log(after, "it was purged"));
        }
        let at = judged.segments.partition_point(|s| s.last_zxid <= after);
        let mut reader = ViewReader {
            disk: disk.clone(),
            judged: judged.clone(),
            at,
            file: None,
            window: Window::new(0),
            offset: 0,
            last: after,
            chain: None,
            cursor: None,
        };
        reader.enter(at);
        Ok(reader)
    }

    /// Stands at the group of segment `at` that holds the first record after `last`, as the index tells.
    fn enter(&mut self, at: usize) {
        self.at = at;
        self.file = None;
        self.chain = None;
        if let Some(segment) = self.judged.segments.get(at) {
            let entry = segment.index.partition_point(|e| e.first_zxid <= self.last);
            let start = entry.checked_sub(1).map(|i| segment.index[i].offset);
            self.offset = start.unwrap_or(segment.header.first_group_offset());
            self.chain = start.is_none().then_some(segment.floor_zxid);
        }
    }

    /// The next record, or `None` at the end of the view.
    ///
    /// # Errors
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if what stands there is damaged now,
    /// [`Io`](crate::ErrorKind::Io) if it cannot be read, [`NotInLog`](crate::ErrorKind::NotInLog) if it was
    /// purged or cut off since.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        // Found first and borrowed afterwards: a record is handed out as a loan from the window.
        loop {
            if let Some(found) = self.cursor.as_mut().and_then(|c| c.next(&self.window, self.last)) {
                self.last = found.zxid;
                return Ok(Some(found.record(&self.window)));
            }
            self.cursor = None;
            if !self.next_group()? {
                return Ok(None);
            }
        }
    }

    /// The last record that was read; what a new reader would start after.
    pub fn position(&self) -> Zxid {
        self.last
    }

    /// Goes to the next group that holds records after `last`. False: the view ends.
    fn next_group(&mut self) -> Result<bool> {
        let judged = self.judged.clone();
        while let Some(segment) = judged.segments.get(self.at) {
            if self.chain.is_some_and(|c| c >= segment.last_zxid) {
                self.enter(self.at + 1);
                continue;
            }
            let header = self.read_group(segment)?;
            self.offset = header.offset + header.total_bytes(segment.header.block_bytes);
            self.chain = Some(header.last_zxid);
            if header.kind == GroupKind::Records && header.last_zxid > self.last {
                self.cursor = Some(Cursor::new(&header, segment.last_zxid));
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn read_group(&mut self, segment: &RetiredSegment) -> Result<GroupHeader> {
        let seq = segment.header.seq;
        let file = self.file_of(seq)?;
        let offset = self.offset;
        let next = Zxid::new(self.chain.unwrap_or(self.last).get().saturating_add(1));
        let damaged = |code, at, first, last| {
            let error = Error::corrupt(code, "bytes that were whole before have changed");
            Err(error.in_file(file.name()).at_offset(at).with_zxids(first, last))
        };
        let head = self.window.get(file.as_ref(), offset, GROUP_HEADER_BYTES)?;
        let Some(header) = head.and_then(|b| GroupHeader::decode(b, segment.header.seed(), seq, offset))
        else {
            return damaged("log_damaged", offset, next, segment.last_zxid);
        };
        if self.chain.is_some_and(|c| c != header.prev_zxid) {
            return damaged("group_misplaced", offset, header.first_zxid, header.last_zxid);
        }
        let Some(group) = self.window.get(file.as_ref(), offset, group_bytes(&header, segment))? else {
            return damaged("group_short", offset, header.first_zxid, header.last_zxid);
        };
        match verify_group(&header, group, segment.header.seed(), segment.header.database_id.seed()) {
            Ok(_) => Ok(header),
            Err(bad) => damaged(bad.code, offset + bad.offset, bad.first_zxid, bad.last_zxid),
        }
    }

    fn file_of(&mut self, seq: u64) -> Result<Arc<dyn File>> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let name = segment_name(seq);
        let file = match open_segment(self.disk.as_ref(), &name) {
            Err(error) if error.code() == "segment_missing" && self.is_given_up(seq)? => {
                return Err(not_in_log(self.last, "it was purged or cut off since the log was looked at"));
            }
            opened => opened?,
        };
        let len = file.len().map_err(|e| Error::io("take the length of a segment", e).in_file(&name))?;
        self.window = Window::new(len);
        self.file = Some(file.clone());
        Ok(file)
    }

    /// Whether the log has gone on without this segment by now.
    fn is_given_up(&self, seq: u64) -> Result<bool> {
        let now = read_manifest(self.disk.as_ref())?;
        Ok(now.is_some_and(|m| {
            m.version > self.judged.manifest.version && (seq < m.first_seq || m.is_cut_away(seq))
        }))
    }
}

fn group_bytes(header: &GroupHeader, segment: &RetiredSegment) -> usize {
    usize::try_from(header.total_bytes(segment.header.block_bytes)).unwrap_or(usize::MAX)
}

impl fmt::Debug for ViewReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewReader").field("position", &self.last).finish_non_exhaustive()
    }
}
