use super::DamagedBytes;
use super::tally::Tally;
use crate::base::{Epoch, Error, Zxid};
use crate::format::{SegmentFill, SegmentHeader};

/// What a segment's file is to the log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SegmentState {
    /// Whole, and closed by its seal: it will not change again.
    Sealed,
    /// The manifest ends it early; what stands behind that is no part of the log.
    Cut,
    /// Where the log ends.
    Active,
    /// Prepared, and not used yet.
    Blank,
    /// No part of the log, but still under its name: purged, cut away, or in flight when the log ended.
    Stale,
    /// Cut away and moved aside.
    Aside,
    /// Bytes of the log in it are damaged, or its header is.
    Damaged,
}

impl SegmentState {
    /// A stable lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            SegmentState::Sealed => "sealed",
            SegmentState::Cut => "cut",
            SegmentState::Active => "active",
            SegmentState::Blank => "blank",
            SegmentState::Stale => "stale",
            SegmentState::Aside => "aside",
            SegmentState::Damaged => "damaged",
        }
    }

    /// Whether records in it count.
    pub fn is_in_log(self) -> bool {
        matches!(
            self,
            SegmentState::Sealed | SegmentState::Cut | SegmentState::Active | SegmentState::Damaged
        )
    }
}

/// One segment's file, read from end to end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SegmentInfo {
    /// Its name.
    pub file: String,
    /// Its number, by its name.
    pub seq: u64,
    /// What it is to the log.
    pub state: SegmentState,
    /// Its first record.
    pub first_zxid: Option<Zxid>,
    /// Its last record.
    pub last_zxid: Option<Zxid>,
    /// How many records count.
    pub records: u64,
    /// How many groups hold them.
    pub groups: u64,
    /// Bytes of the records' payloads.
    pub payload_bytes: u64,
    /// Bytes of its groups: headers, records, indexes, padding.
    pub group_bytes: u64,
    /// Zeros behind groups, up to the next block.
    pub padding_bytes: u64,
    /// Where its valid groups end: behind the first ones, if there is damage.
    pub end_offset: u64,
    /// The file's length.
    pub file_bytes: u64,
    /// The unit that its groups are padded to; none if its header is damaged, as for the next two.
    pub block_bytes: Option<u64>,
    /// How it was prepared.
    pub fill: Option<SegmentFill>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: Option<i64>,
    /// The earliest and the latest time of its records.
    pub time_ms: Option<(i64, i64)>,
    /// The oldest and the newest epoch of its records.
    pub epochs: Option<(Epoch, Epoch)>,
    /// What is damaged in it; at most the first thousand places.
    pub damages: Vec<DamagedBytes>,
    /// How many places are damaged.
    pub damages_count: u64,
}

impl SegmentInfo {
    pub(super) fn new(file: String, seq: u64, state: SegmentState, file_bytes: u64) -> SegmentInfo {
        SegmentInfo {
            file,
            seq,
            state,
            first_zxid: None,
            last_zxid: None,
            records: 0,
            groups: 0,
            payload_bytes: 0,
            group_bytes: 0,
            padding_bytes: 0,
            end_offset: 0,
            file_bytes,
            block_bytes: None,
            fill: None,
            created_ms: None,
            time_ms: None,
            epochs: None,
            damages: Vec::new(),
            damages_count: 0,
        }
    }

    pub(super) fn with_header(mut self, header: &std::result::Result<SegmentHeader, Error>) -> SegmentInfo {
        match header {
            Ok(header) => {
                self.block_bytes = Some(header.block_bytes);
                self.fill = Some(header.fill);
                self.created_ms = Some(header.created_ms);
            }
            Err(error) => {
                self.damages_count += 1;
                self.damages.push(DamagedBytes {
                    file: self.file.clone(),
                    code: error.code(),
                    offset: 0,
                    end_offset: None,
                    first_zxid: error.at().zxid,
                    last_zxid: error.at().zxid_end,
                });
            }
        }
        self
    }

    pub(super) fn with_tally(self, tally: Tally, end_offset: u64) -> SegmentInfo {
        SegmentInfo {
            first_zxid: tally.first_zxid,
            last_zxid: tally.last_zxid,
            records: tally.records,
            groups: tally.groups,
            payload_bytes: tally.payload_bytes,
            group_bytes: tally.group_bytes,
            padding_bytes: tally.padding_bytes,
            time_ms: tally.time_ms,
            epochs: tally.epoch,
            damages_count: self.damages_count + tally.damages_count,
            damages: self.damages.into_iter().chain(tally.damages).collect(),
            end_offset,
            ..self
        }
    }
}
