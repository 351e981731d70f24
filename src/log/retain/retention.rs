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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{DatabaseId, SegmentFill, SegmentHeader};
    use crate::log::commit::RetiredSegment;

    /// Segments of 1000 bytes, each with a record, as late as is given; the last one is in use. One at time 0 has no
    /// record, and the time of those before it.
    fn segments(times_ms: &[i64]) -> SegmentSet {
        let mut set = SegmentSet::new();
        let mut time_max_ms = i64::MIN;
        let header = |seq| SegmentHeader {
            database_id: DatabaseId::from_bytes([7; 16]),
            seq,
            salt: seq,
            capacity: 4096,
            block_bytes: 512,
            fill: SegmentFill::Zeroed,
            created_ms: 0,
        };
        for (seq, time_ms) in (1..).zip(times_ms) {
            time_max_ms = time_max_ms.max(*time_ms);
            set.push_ended(RetiredSegment {
                header: header(seq),
                floor_zxid: Zxid::new(10 * (seq - 1)),
                last_zxid: Zxid::new(10 * seq),
                end_offset: 1000,
                records: u64::from(*time_ms > 0),
                time_max_ms,
                index: Vec::new(),
            });
        }
        let seq = times_ms.len() as u64 + 1;
        set.push_active(header(seq), Zxid::new(10 * (seq - 1)));
        set
    }

    #[test]
    fn pu_03_each_bound_is_what_is_kept_at_least() {
        let plan =
            |keep: Retention, unneeded| keep.plan(&segments(&[100, 200, 300]), Zxid::new(unneeded), 1000);
        for (unneeded, count) in [(9, 0), (10, 1), (29, 2), (30, 3), (99, 3)] {
            assert_eq!(plan(Retention::new(), unneeded), count, "{unneeded}");
        }
        for (bytes, count) in [(1, 2), (1000, 2), (1001, 1), (2000, 1), (2001, 0)] {
            assert_eq!(plan(Retention::new().bytes_min(bytes), 30), count, "{bytes}");
        }
        for (kept, count) in [(0, 3), (1, 3), (2, 2), (4, 0), (5, 0)] {
            assert_eq!(plan(Retention::new().segments_min(kept), 30), count, "{kept}");
        }
        // Younger than this: what is exactly as old is not.
        for (age_ms, count) in [(700, 3), (701, 2), (800, 2), (801, 1), (900, 1), (901, 0)] {
            let keep = Retention::new().age_min(Duration::from_millis(age_ms));
            assert_eq!(plan(keep, 30), count, "{age_ms}");
        }
    }

    #[test]
    fn pu_03_what_has_no_record_has_no_age_and_without_a_bound_the_future_is_none() {
        let keep = Retention::new().age_min(Duration::from_millis(100));
        assert_eq!(keep.plan(&segments(&[0]), Zxid::new(10), i64::MIN + 1), 1);
        assert_eq!(Retention::new().plan(&segments(&[5000]), Zxid::new(10), 1000), 1);
    }
}
