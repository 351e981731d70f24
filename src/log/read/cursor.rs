use super::{Record, Window};
use crate::base::{Epoch, Zxid};
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, RECORD_HEADER_BYTES, RecordHeader, frame_bytes};

/// A place between two records of a group that was verified in a window and is still held there, so that no
/// record of it has to be verified again.
#[derive(Debug)]
pub(crate) struct Cursor {
    epoch: Epoch,
    offset: u64,
    left: u32,
    /// The record at which the segment ends, though the group may go on.
    end_zxid: Zxid,
}

/// A record's coordinates: a reader moves on by them before it lends the record out of its window.
pub(crate) struct Found {
    pub(crate) zxid: Zxid,
    epoch: Epoch,
    time_ms: i64,
    payload_offset: u64,
    payload_bytes: usize,
}

impl Cursor {
    /// Before the first record of `group`.
    pub(crate) fn new(group: &GroupHeader, end_zxid: Zxid) -> Cursor {
        let offset = group.offset + GROUP_HEADER_BYTES as u64;
        Cursor { epoch: group.epoch, offset, left: group.record_count, end_zxid }
    }

    /// The next record after `last`.
    pub(crate) fn next(&mut self, window: &Window, last: Zxid) -> Option<Found> {
        while self.left > 0 {
            let header = RecordHeader::of_verified(window.held(self.offset, RECORD_HEADER_BYTES));
            let payload_bytes = header.payload_bytes as usize;
            let payload_offset = self.offset + RECORD_HEADER_BYTES as u64;
            self.offset += frame_bytes(payload_bytes) as u64;
            self.left -= 1;
            if header.zxid > self.end_zxid {
                self.left = 0;
            } else if header.zxid > last {
                let RecordHeader { zxid, time_ms, .. } = header;
                return Some(Found { zxid, epoch: self.epoch, time_ms, payload_offset, payload_bytes });
            }
        }
        None
    }
}

impl Found {
    /// The record itself, out of the window in which it was found.
    pub(crate) fn record<'w>(&self, window: &'w Window) -> Record<'w> {
        let payload = window.held(self.payload_offset, self.payload_bytes);
        Record { zxid: self.zxid, epoch: self.epoch, time_ms: self.time_ms, payload }
    }
}
