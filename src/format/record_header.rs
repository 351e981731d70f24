use super::layout::{i64_at, put, u32_at, u64_at};
use crate::base::Zxid;
use crate::base::checksum::{Crc32, crc32};

/// The length of a record's header; its payload follows, padded with zeros to eight bytes.
pub(crate) const RECORD_HEADER_BYTES: usize = 32;

/// The head of one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RecordHeader {
    /// Of the bytes after it, seeded by the database.
    pub(crate) header_crc: u32,
    pub(crate) payload_crc: u32,
    pub(crate) payload_bytes: u32,
    pub(crate) zxid: Zxid,
    /// The leader's wall clock in milliseconds. May jump either way.
    pub(crate) time_ms: i64,
}

impl RecordHeader {
    /// The header of a payload whose checksum (unseeded CRC-32) the caller has already taken.
    pub(crate) fn encode(
        seed: u32,
        zxid: Zxid,
        time_ms: i64,
        payload_bytes: u32,
        payload_crc: u32,
    ) -> ([u8; RECORD_HEADER_BYTES], u32) {
        let mut out = [0; RECORD_HEADER_BYTES];
        put(&mut out, 4, &payload_crc.to_le_bytes());
        put(&mut out, 8, &payload_bytes.to_le_bytes());
        put(&mut out, 16, &zxid.get().to_le_bytes());
        put(&mut out, 24, &time_ms.to_le_bytes());
        let crc = crc32(seed, &out[4..]);
        put(&mut out, 0, &crc.to_le_bytes());
        (out, crc)
    }

    /// Reads a header, or `None` if its checksum does not match or a reserved bit is set.
    pub(crate) fn decode(bytes: &[u8], seed: u32) -> Option<RecordHeader> {
        RecordHeader::decode_next(bytes, &Crc32::seeded(seed))
    }

    /// The same for one header after the other, with a checksum that was [seeded](Crc32::seeded) once.
    #[inline]
    pub(crate) fn decode_next(bytes: &[u8], seeded: &Crc32) -> Option<RecordHeader> {
        let bytes = bytes.get(..RECORD_HEADER_BYTES)?;
        if seeded.clone().and(&bytes[4..]) != u32_at(bytes, 0) || u32_at(bytes, 12) != 0 {
            return None;
        }
        Some(RecordHeader::of_verified(bytes))
    }

    /// Takes the fields of a header that was verified in this very memory.
    pub(crate) fn of_verified(bytes: &[u8]) -> RecordHeader {
        RecordHeader {
            header_crc: u32_at(bytes, 0),
            payload_crc: u32_at(bytes, 4),
            payload_bytes: u32_at(bytes, 8),
            zxid: Zxid::new(u64_at(bytes, 16)),
            time_ms: i64_at(bytes, 24),
        }
    }
}

/// Header, payload and padding of a record.
pub(crate) const fn frame_bytes(payload_bytes: usize) -> usize {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        let (bytes, crc) = RecordHeader::encode(1, Zxid::new(5), -1, 200, 0xabcd);
        let header = RecordHeader::decode(&bytes, 1).unwrap();
        assert_eq!((header.zxid, header.time_ms, header.payload_bytes), (Zxid::new(5), -1, 200));
        assert_eq!((header.header_crc, header.payload_crc), (crc, 0xabcd));
        assert_eq!(RecordHeader::decode(&bytes, 2), None);
        assert_eq!((frame_bytes(0), frame_bytes(1), frame_bytes(200)), (32, 40, 232));
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let (bytes, _) = RecordHeader::encode(1, Zxid::new(5), -1, 200, 0xabcd);
        for at in 0..bytes.len() {
            let mut bad = bytes;
            bad[at] ^= 0x80;
            assert_eq!(RecordHeader::decode(&bad, 1), None, "byte {at}");
        }
    }

    #[test]
    fn reserved_bits_are_refused_even_with_a_right_checksum() {
        let (mut bytes, _) = RecordHeader::encode(1, Zxid::new(5), -1, 200, 0xabcd);
        bytes[14] = 4;
        let crc = crc32(1, &bytes[4..]);
        put(&mut bytes, 0, &crc.to_le_bytes());
        assert_eq!(RecordHeader::decode(&bytes, 1), None);
    }
}
