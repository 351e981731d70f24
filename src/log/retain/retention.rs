use std::time::Duration;

use crate::base::Zxid;
use crate::log::segments::SegmentSet;

/// Which old segments may go. A segment goes only if every rule that is set lets it go, it is not the one
/// in use, nobody has pinned it, and it holds nothing after the zxid that the caller names: the newest
/// record that a verified snapshot covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_field_names, reason = "each is a minimum, and says so")]
pub struct Retention {
    pub(crate) segments_min: u64,
    pub(crate) bytes_min: u64,
    pub(crate) age_min: Duration,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { segments_min: 1, bytes_min: 0, age_min: Duration::ZERO }
    }
}

impl Retention {
    /// Keep nothing that is not needed.
    pub fn new() -> Retention {
        Retention::default()
    }

    /// Keep at least this many segments, the one in use included (default 1).
    #[must_use]
    pub fn segments_min(mut self, segments: u64) -> Retention {
        self.segments_min = segments;
        self
    }

    /// Keep at least this many bytes of log (default 0).
    #[must_use]
    pub fn bytes_min(mut self, bytes: u64) -> Retention {
        self.bytes_min = bytes;
        self
    }

    /// Keep segments whose newest record is younger than this, by the records' own clock (default 0).
    #[must_use]
    pub fn age_min(mut self, age: Duration) -> Retention {
        self.age_min = age;
        self
    }

    /// How many segments from the oldest on may go, given what is `unneeded` up to a zxid and the time now.
    /// A pure function of its arguments.
    pub(crate) fn plan(&self, segments: &SegmentSet, unneeded: Zxid, now_ms: i64) -> usize {
        let mut left = segments.iter().count() as u64;
        let mut bytes: u64 = segments.iter().filter_map(|s| s.ended.as_ref()).map(|e| e.end_offset).sum();
        let age_ms = i64::try_from(self.age_min.as_millis()).unwrap_or(i64::MAX);
        let mut count = 0;
        for segment in segments.iter() {
            let Some(ended) = &segment.ended else { break };
            let young = ended.records > 0 && ended.time_max_ms > now_ms.saturating_sub(age_ms) && age_ms > 0;
            let few =
                left <= self.segments_min.max(1) || bytes.saturating_sub(ended.end_offset) < self.bytes_min;
            if ended.last_zxid > unneeded || young || few {
                break;
            }
            left -= 1;
            bytes -= ended.end_offset;
            count += 1;
        }
        count
    }
}
