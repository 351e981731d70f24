use std::fmt;

use super::Record;
use crate::base::Zxid;
use crate::format::{
    GROUP_HEADER_BYTES, GroupHeader, GroupKind, RECORD_HEADER_BYTES, RecordHeader, frame_bytes,
};

/// Hands out the records of a log while it is scanned, so that an open which rebuilds a state reads every byte
/// once. It follows the log from segment to segment and ends for good where it does not go on as it should:
/// what lies behind is the judge's matter.
pub(crate) struct Replay<'v> {
    visit: &'v mut dyn FnMut(Record<'_>),
    /// Records up to here are not wanted.
    after: Zxid,
    /// The last record seen, wanted or not.
    last: Zxid,
    /// The segment that is to come next.
    seq: u64,
    ended: bool,
}

impl<'v> Replay<'v> {
    pub(crate) fn new(after: Zxid, visit: &'v mut dyn FnMut(Record<'_>)) -> Replay<'v> {
        Replay { visit, after, last: after, seq: 0, ended: false }
    }

    /// The record after which records are wanted.
    pub(crate) fn after(&self) -> Zxid {
        self.after
    }

    /// The last record seen, wanted or not.
    pub(crate) fn last(&self) -> Zxid {
        self.last
    }

    /// The last record that was handed out, or the one after which none was.
    pub(crate) fn handed_out(&self) -> Zxid {
        self.last.max(self.after)
    }

    /// The log begins with segment `seq`, after record `floor`.
    pub(crate) fn start(&mut self, seq: u64, floor: Zxid) {
        (self.seq, self.last) = (seq, floor);
    }

    /// Whether segment `seq` is the next one; none is after the end.
    pub(crate) fn enter(&mut self, seq: u64) -> bool {
        self.ended |= seq != self.seq;
        !self.ended
    }

    /// A segment of which nothing is wanted goes from `floor` to `last`, if it has groups.
    pub(crate) fn pass(&mut self, floor: Option<Zxid>, last: Option<Zxid>) {
        self.ended |= floor.is_some_and(|floor| floor != self.last);
        if let Some(last) = last.filter(|_| !self.ended) {
            self.last = last;
        }
    }

    /// A segment has been read; the log goes on in segment `next`, if it was `whole`.
    pub(crate) fn leave(&mut self, next: u64, whole: bool) {
        self.ended |= !whole;
        self.seq = next;
    }

    /// Takes in a group that was verified, up to its record `until`.
    pub(crate) fn group(&mut self, header: &GroupHeader, bytes: &[u8], until: Zxid) {
        self.ended |= self.last != header.prev_zxid;
        if self.ended {
            return;
        }
        self.last = header.last_zxid.min(until);
        if header.kind != GroupKind::Records || header.last_zxid <= self.after {
            return;
        }
        let mut at = GROUP_HEADER_BYTES;
        for _ in 0..header.record_count {
            let record = RecordHeader::of_verified(&bytes[at..at + RECORD_HEADER_BYTES]);
            let length = record.payload_bytes as usize;
            if record.zxid > until {
                return;
            }
            if record.zxid > self.after {
                let payload = &bytes[at + RECORD_HEADER_BYTES..at + RECORD_HEADER_BYTES + length];
                let (zxid, time_ms) = (record.zxid, record.time_ms);
                (self.visit)(Record { zxid, epoch: header.epoch, time_ms, payload });
            }
            at += frame_bytes(length);
        }
    }
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("after", &self.after).field("last", &self.last).finish_non_exhaustive()
    }
}
