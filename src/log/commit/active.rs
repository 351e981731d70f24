use std::sync::Arc;

use crate::base::{Zxid, limits};
use crate::format::{GROUP_HEADER_BYTES, IndexEntry, Seal, SegmentHeader};
use crate::io::File;

/// The segment that groups are being written to: where the next one goes, and the index so far.
#[derive(Debug)]
pub(crate) struct ActiveSegment {
    pub(crate) header: SegmentHeader,
    pub(crate) file: Arc<dyn File>,
    pub(crate) seed: u32,
    /// Where the next group goes: a block boundary.
    pub(crate) offset: u64,
    /// The last record before this segment.
    pub(crate) floor_zxid: Zxid,
    pub(crate) records: u64,
    pub(crate) groups: u64,
    pub(crate) index: Vec<IndexEntry>,
}

/// A segment that the log has left: everything there is to know of it in memory.
#[derive(Clone, Debug)]
pub(crate) struct RetiredSegment {
    pub(crate) header: SegmentHeader,
    pub(crate) floor_zxid: Zxid,
    pub(crate) last_zxid: Zxid,
    pub(crate) end_offset: u64,
    pub(crate) records: u64,
    pub(crate) time_max_ms: i64,
    pub(crate) index: Vec<IndexEntry>,
}

impl ActiveSegment {
    /// A segment fresh from preparation.
    pub(crate) fn fresh(header: SegmentHeader, file: Arc<dyn File>, floor_zxid: Zxid) -> ActiveSegment {
        let offset = header.first_group_offset();
        ActiveSegment {
            seed: header.seed(),
            header,
            file,
            offset,
            floor_zxid,
            records: 0,
            groups: 0,
            // All at once, so that appends do not allocate; a segment can only hold more by growing.
            index: Vec::with_capacity(index_room(header.capacity)),
        }
    }

    /// Header, body and padding of a group with `body` bytes.
    pub(crate) fn group_bytes(&self, body: u64) -> u64 {
        (GROUP_HEADER_BYTES as u64 + body).next_multiple_of(self.header.block_bytes)
    }

    /// Whether a group with `body` bytes leaves room for the seal. The first group of a segment always fits:
    /// the file grows for it.
    pub(crate) fn takes(&self, body: u64) -> bool {
        let seal = Seal::encoded_bytes(self.index.len() + 1) as u64;
        self.groups == 0
            || self.offset + self.group_bytes(body) + self.group_bytes(seal) <= self.header.capacity
    }

    /// Books a group of `body` bytes and returns its offset.
    pub(crate) fn book(&mut self, body: u64, records: u32, first_zxid: Zxid, time_max_before_ms: i64) -> u64 {
        let offset = self.offset;
        let due = self.index.last().is_none_or(|e| offset - e.offset >= limits::INDEX_EVERY_BYTES);
        if records > 0 && due {
            self.index.push(IndexEntry { first_zxid, offset, time_max_before_ms });
        }
        self.offset += self.group_bytes(body);
        self.records += u64::from(records);
        self.groups += 1;
        offset
    }

    /// What is known of the segment once the log has left it after `last_zxid`.
    pub(crate) fn retire(self, last_zxid: Zxid, time_max_ms: i64) -> RetiredSegment {
        RetiredSegment {
            header: self.header,
            floor_zxid: self.floor_zxid,
            last_zxid,
            end_offset: self.offset,
            records: self.records,
            time_max_ms,
            index: self.index,
        }
    }
}

/// How many entries the index of a segment may get; of a huge one, those of its first part.
fn index_room(capacity: u64) -> usize {
    const ROOM_MAX: u64 = 16 * 1024;
    usize::try_from((capacity / limits::INDEX_EVERY_BYTES + 1).min(ROOM_MAX)).expect("few entries")
}
