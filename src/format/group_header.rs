use super::layout::{i64_at, put, u16_at, u32_at, u64_at};
use crate::base::checksum::crc32;
use crate::base::{Epoch, Zxid, limits};

/// The length of a group's header.
pub(crate) const GROUP_HEADER_BYTES: usize = 96;

const MAGIC: u32 = 0x5052_4741; // "AGRP"

/// What a group holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GroupKind {
    /// Records.
    Records,
    /// The end of a sealed segment: its index. Nothing follows it in the file.
    Seal,
    /// Nothing but the news in its header: how far the log was durable.
    Mark,
}

/// The head of a group: what one durable write carried, and what was known when it was written.
///
/// Groups begin at block boundaries, and are padded with zeros to the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupHeader {
    pub(crate) kind: GroupKind,
    pub(crate) record_count: u32,
    /// Bytes between this header and the padding.
    pub(crate) body_bytes: u64,
    /// Where in its file the group stands.
    pub(crate) offset: u64,
    /// The segment that the group belongs to.
    pub(crate) seq: u64,
    /// Its first record; for a group without records, the same as `last_zxid`.
    pub(crate) first_zxid: Zxid,
    /// Its last record; for a group without records, the last one before it.
    pub(crate) last_zxid: Zxid,
    /// The last record before this group, in whichever segment.
    pub(crate) prev_zxid: Zxid,
    /// The highest record known durable when this group was handed to the disk: the evidence that tells
    /// rot from a torn write.
    pub(crate) durable_zxid: Zxid,
    pub(crate) epoch: Epoch,
    /// The running maximum of the records' times before this group; `i64::MIN` before the first record.
    pub(crate) time_max_before_ms: i64,
    /// Records: the fold of their header checksums. Seal: the checksum of its body. Mark: zero.
    pub(crate) body_check: u64,
}

impl GroupHeader {
    pub(crate) fn encode(&self, seed: u32) -> [u8; GROUP_HEADER_BYTES] {
        let mut out = [0; GROUP_HEADER_BYTES];
        put(&mut out, 0, &MAGIC.to_le_bytes());
        let kind = match self.kind {
            GroupKind::Records => 1u16,
            GroupKind::Seal => 2,
            GroupKind::Mark => 3,
        };
        put(&mut out, 8, &kind.to_le_bytes());
        put(&mut out, 12, &self.record_count.to_le_bytes());
        put(&mut out, 16, &self.body_bytes.to_le_bytes());
        put(&mut out, 24, &self.offset.to_le_bytes());
        put(&mut out, 32, &self.seq.to_le_bytes());
        put(&mut out, 40, &self.first_zxid.get().to_le_bytes());
        put(&mut out, 48, &self.last_zxid.get().to_le_bytes());
        put(&mut out, 56, &self.prev_zxid.get().to_le_bytes());
        put(&mut out, 64, &self.durable_zxid.get().to_le_bytes());
        put(&mut out, 72, &self.epoch.get().to_le_bytes());
        put(&mut out, 80, &self.time_max_before_ms.to_le_bytes());
        put(&mut out, 88, &self.body_check.to_le_bytes());
        let crc = crc32(seed, &out[8..]);
        put(&mut out, 4, &crc.to_le_bytes());
        out
    }

    /// Reads the header at `offset` of segment `seq`, or `None` if these bytes are not one: wrong magic,
    /// checksum, place or kind, or fields that contradict each other.
    pub(crate) fn decode(bytes: &[u8], seed: u32, seq: u64, offset: u64) -> Option<GroupHeader> {
        let bytes = bytes.get(..GROUP_HEADER_BYTES)?;
        if u32_at(bytes, 0) != MAGIC || crc32(seed, &bytes[8..]) != u32_at(bytes, 4) {
            return None;
        }
        let kind = match (u16_at(bytes, 8), u16_at(bytes, 10)) {
            (1, 0) => GroupKind::Records,
            (2, 0) => GroupKind::Seal,
            (3, 0) => GroupKind::Mark,
            _ => return None,
        };
        let header = GroupHeader {
            kind,
            record_count: u32_at(bytes, 12),
            body_bytes: u64_at(bytes, 16),
            offset: u64_at(bytes, 24),
            seq: u64_at(bytes, 32),
            first_zxid: Zxid::new(u64_at(bytes, 40)),
            last_zxid: Zxid::new(u64_at(bytes, 48)),
            prev_zxid: Zxid::new(u64_at(bytes, 56)),
            durable_zxid: Zxid::new(u64_at(bytes, 64)),
            epoch: Epoch::new(u64_at(bytes, 72)),
            time_max_before_ms: i64_at(bytes, 80),
            body_check: u64_at(bytes, 88),
        };
        (header.seq == seq && header.offset == offset && header.is_consistent()).then_some(header)
    }

    fn is_consistent(&self) -> bool {
        let shape = match self.kind {
            GroupKind::Records => {
                self.record_count > 0
                    && self.record_count <= limits::GROUP_RECORDS_MAX
                    && self.first_zxid > self.prev_zxid
                    && self.first_zxid <= self.last_zxid
                    // Zxids rise by one or more, so the range cannot hold fewer than the count.
                    && self.last_zxid.get() - self.first_zxid.get() >= u64::from(self.record_count) - 1
            }
            GroupKind::Seal => self.record_count == 0 && self.last_zxid == self.prev_zxid,
            GroupKind::Mark => {
                self.record_count == 0 && self.body_bytes == 0 && self.last_zxid == self.prev_zxid
            }
        };
        shape && self.durable_zxid <= self.last_zxid && self.body_bytes <= limits::SEGMENT_BYTES_MAX
    }

    /// Header, body and padding.
    pub(crate) fn total_bytes(&self, block_bytes: u64) -> u64 {
        (GROUP_HEADER_BYTES as u64 + self.body_bytes).next_multiple_of(block_bytes)
    }
}

const _: () = assert!(GROUP_HEADER_BYTES as u64 <= limits::SECTOR_BYTES);
const _: () = assert!(GROUP_HEADER_BYTES.is_multiple_of(8));

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> GroupHeader {
        GroupHeader {
            kind: GroupKind::Records,
            record_count: 2,
            body_bytes: 500,
            offset: 8192,
            seq: 4,
            first_zxid: Zxid::new(11),
            last_zxid: Zxid::new(12),
            prev_zxid: Zxid::new(10),
            durable_zxid: Zxid::new(9),
            epoch: Epoch::new(3),
            time_max_before_ms: 77,
            body_check: 99,
        }
    }

    #[test]
    fn round_trips_and_knows_its_place() {
        let bytes = sample().encode(5);
        assert_eq!(GroupHeader::decode(&bytes, 5, 4, 8192), Some(sample()));
        assert_eq!(GroupHeader::decode(&bytes, 6, 4, 8192), None, "another seed");
        assert_eq!(GroupHeader::decode(&bytes, 5, 5, 8192), None, "another segment");
        assert_eq!(GroupHeader::decode(&bytes, 5, 4, 4096), None, "another place");
        assert_eq!(GroupHeader::decode(&bytes[..95], 5, 4, 8192), None, "cut short");
        assert_eq!(sample().total_bytes(512), 1024);
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let bytes = sample().encode(5);
        for at in 0..bytes.len() {
            let mut bad = bytes;
            bad[at] ^= 0x01;
            assert_eq!(GroupHeader::decode(&bad, 5, 4, 8192), None, "byte {at}");
        }
    }

    #[test]
    fn hz_04_zeros_are_never_a_header_whatever_the_seed() {
        for seed in 0..1000 {
            assert_eq!(GroupHeader::decode(&[0; GROUP_HEADER_BYTES], seed, 0, 0), None);
        }
    }

    #[test]
    fn contradictions_are_refused_even_with_a_right_checksum() {
        for change in [
            (|h| h.record_count = 0) as fn(&mut GroupHeader),
            |h| h.record_count = 3,
            |h| h.first_zxid = h.prev_zxid,
            |h| h.durable_zxid = Zxid::new(13),
            |h| h.body_bytes = u64::MAX,
            |h| h.kind = GroupKind::Seal,
            |h| h.kind = GroupKind::Mark,
            |h| (h.record_count, h.first_zxid) = (1, Zxid::new(13)),
            // With room for so many zxids, so that nothing else is the matter.
            |h| (h.record_count, h.last_zxid) = (limits::GROUP_RECORDS_MAX + 1, Zxid::new(1 << 40)),
        ] {
            let mut header = sample();
            change(&mut header);
            assert_eq!(GroupHeader::decode(&header.encode(5), 5, 4, 8192), None, "{header:?}");
        }
        // What has no records: a seal has a body, a mark has none, and neither adds a zxid.
        let last = Zxid::new(12);
        let empty = |kind, body_bytes, prev_zxid| {
            let header = GroupHeader { kind, record_count: 0, body_bytes, prev_zxid, ..sample() };
            GroupHeader::decode(&header.encode(5), 5, 4, 8192).is_some()
        };
        assert!(empty(GroupKind::Seal, 500, last) && empty(GroupKind::Mark, 0, last));
        assert!(!empty(GroupKind::Mark, 8, last), "a mark with a body");
        for (kind, body_bytes) in [(GroupKind::Seal, 500), (GroupKind::Mark, 0)] {
            assert!(!empty(kind, body_bytes, Zxid::new(11)), "{kind:?} that ends with another zxid");
        }
    }

    /// Bits that mean nothing today are no bits to pass over, whoever has set them.
    #[test]
    fn reserved_bits_are_refused_even_with_a_right_checksum() {
        for at in [10, 11] {
            let mut bytes = sample().encode(5);
            bytes[at] = 1;
            let crc = crc32(5, &bytes[8..]);
            put(&mut bytes, 4, &crc.to_le_bytes());
            assert_eq!(GroupHeader::decode(&bytes, 5, 4, 8192), None, "byte {at}");
        }
        assert_eq!(GroupHeader::decode(&sample().encode(0), 5, 4, 8192), None, "without a seed");
    }
}
