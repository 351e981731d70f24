use std::collections::BTreeMap;

use crate::base::Zxid;
use crate::format::{IndexEntry, SegmentHeader};
use crate::log::commit::RetiredSegment;

/// The segments that make up the log, oldest first, the one in use last.
///
/// Readers take what they need from here under a short lock and then read the files by themselves.
#[derive(Clone, Debug)]
pub(crate) struct SegmentSet {
    segments: BTreeMap<u64, Segment>,
}

/// One segment of the log.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    /// The last record before it.
    pub(crate) floor_zxid: Zxid,
    /// Known once the log has left it.
    pub(crate) ended: Option<EndedSegment>,
}

/// What is fixed about a segment once the log has left it.
#[derive(Clone, Debug)]
pub(crate) struct EndedSegment {
    pub(crate) last_zxid: Zxid,
    pub(crate) end_offset: u64,
    pub(crate) records: u64,
    pub(crate) time_max_ms: i64,
    pub(crate) index: Vec<IndexEntry>,
}

impl SegmentSet {
    pub(crate) fn new() -> SegmentSet {
        SegmentSet { segments: BTreeMap::new() }
    }

    /// Adds a segment that the log has left.
    pub(crate) fn push_ended(&mut self, segment: RetiredSegment) {
        let ended = EndedSegment {
            last_zxid: segment.last_zxid,
            end_offset: segment.end_offset,
            records: segment.records,
            time_max_ms: segment.time_max_ms,
            index: segment.index,
        };
        let seq = segment.header.seq;
        let entry = Segment { header: segment.header, floor_zxid: segment.floor_zxid, ended: Some(ended) };
        self.segments.insert(seq, entry);
    }

    /// Adds the segment that is in use from now on.
    pub(crate) fn push_active(&mut self, header: SegmentHeader, floor_zxid: Zxid) {
        self.segments.insert(header.seq, Segment { header, floor_zxid, ended: None });
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.segments.values()
    }

    pub(crate) fn first(&self) -> Option<&Segment> {
        self.segments.values().next()
    }

    /// The segment that holds the first record after `zxid`, or would hold it.
    pub(crate) fn holding(&self, zxid: Zxid) -> Option<&Segment> {
        self.segments.values().rev().find(|s| s.floor_zxid <= zxid)
    }

    /// The segment where the log goes on after segment `seq`.
    pub(crate) fn after(&self, seq: u64) -> Option<&Segment> {
        self.segments.range(seq + 1..).next().map(|(_, s)| s)
    }

    pub(crate) fn get(&self, seq: u64) -> Option<&Segment> {
        self.segments.get(&seq)
    }

    /// Forgets the segments before `seq`.
    pub(crate) fn drop_before(&mut self, seq: u64) {
        self.segments = self.segments.split_off(&seq);
    }
}
