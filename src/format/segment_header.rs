use super::DatabaseId;
use super::layout::{array, i64_at, is_zero, put, u32_at, u64_at};
use crate::base::checksum::crc32;
use crate::base::{Error, ErrorKind, Result, limits};

const MAGIC: &[u8; 8] = b"ARBORSEG";
const VERSION: u32 = 1;
#[expect(clippy::cast_possible_truncation, reason = "a page fits any usize")]
const BYTES: usize = limits::SEGMENT_HEADER_BYTES as usize;

/// How the blocks of a segment came to be before it was used. What it costs is in
/// `docs/decisions/0002-group-commit.md`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SegmentFill {
    /// Written through with zeros once, ahead of use: a later write changes no metadata, which makes a
    /// durable write 1.5 to 2 times as fast. A file shorter than its capacity is then proof of damage.
    #[default]
    Zeroed,
    /// Blocks reserved (`fallocate`) but never written.
    Allocated,
    /// Grows with each group. What a full disk falls back to.
    Growing,
}

/// The first page of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    pub(crate) database_id: DatabaseId,
    /// The segment's own number; its name says the same.
    pub(crate) seq: u64,
    /// Seeds every group checksum of this segment, so that bytes of another segment's life never validate here.
    pub(crate) salt: u64,
    /// The length the file had when it was put to use; groups begin below it, and a large one may end above.
    pub(crate) capacity: u64,
    /// The unit that groups are padded to.
    pub(crate) block_bytes: u64,
    pub(crate) fill: SegmentFill,
    /// Wall-clock milliseconds; for people.
    pub(crate) created_ms: i64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; BYTES];
        put(&mut page, 0, MAGIC);
        put(&mut page, 12, &VERSION.to_le_bytes());
        let fill = match self.fill {
            SegmentFill::Zeroed => 1u32,
            SegmentFill::Allocated => 2,
            SegmentFill::Growing => 3,
        };
        put(&mut page, 20, &fill.to_le_bytes());
        let block = u32::try_from(self.block_bytes).expect("a block fits 32 bits");
        put(&mut page, 24, &block.to_le_bytes());
        put(&mut page, 32, self.database_id.as_bytes());
        put(&mut page, 48, &self.seq.to_le_bytes());
        put(&mut page, 56, &self.salt.to_le_bytes());
        put(&mut page, 64, &self.capacity.to_le_bytes());
        put(&mut page, 72, &self.created_ms.to_le_bytes());
        let crc = crc32(0, &page[12..]);
        put(&mut page, 8, &crc.to_le_bytes());
        page
    }

    /// Reads a header page. Tells damage (`Corrupt`) from a newer version (`Unsupported`): in every version
    /// the magic, the checksum of the page and the version stand where they stand now.
    pub(crate) fn decode(page: &[u8]) -> Result<SegmentHeader> {
        if page.len() < BYTES {
            return Err(Error::corrupt("segment_header_short", "the file ends inside its header"));
        }
        let page = &page[..BYTES];
        if &page[..8] != MAGIC {
            return Err(Error::corrupt("segment_magic", "this is no segment of a log"));
        }
        if crc32(0, &page[12..]) != u32_at(page, 8) {
            return Err(Error::corrupt("segment_header_checksum", "the header's checksum does not match"));
        }
        let (version, flags) = (u32_at(page, 12), u32_at(page, 16));
        if version != VERSION || flags != 0 {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "segment_version",
                format!("segment format {version} with flags {flags:#x} is unknown to this version"),
            ));
        }
        let fill = match u32_at(page, 20) {
            1 => SegmentFill::Zeroed,
            2 => SegmentFill::Allocated,
            3 => SegmentFill::Growing,
            _ => return Err(invalid("its fill mode")),
        };
        let header = SegmentHeader {
            database_id: DatabaseId::from_bytes(array(page, 32)),
            seq: u64_at(page, 48),
            salt: u64_at(page, 56),
            capacity: u64_at(page, 64),
            block_bytes: u64::from(u32_at(page, 24)),
            fill,
            created_ms: i64_at(page, 72),
        };
        header.check(page)?;
        Ok(header)
    }

    fn check(&self, page: &[u8]) -> Result<()> {
        let block = self.block_bytes;
        if !block.is_power_of_two() || !(limits::BLOCK_BYTES_MIN..=limits::BLOCK_BYTES_MAX).contains(&block) {
            return Err(invalid("its block size"));
        }
        if !(limits::SEGMENT_HEADER_BYTES..=limits::SEGMENT_BYTES_MAX).contains(&self.capacity) {
            return Err(invalid("its capacity"));
        }
        if self.seq == 0 || u32_at(page, 28) != 0 || !is_zero(&page[80..]) {
            return Err(invalid("a reserved field"));
        }
        Ok(())
    }

    /// Where the first group stands: behind the header page, at a block boundary.
    pub(crate) fn first_group_offset(&self) -> u64 {
        limits::SEGMENT_HEADER_BYTES.next_multiple_of(self.block_bytes)
    }

    /// The seed of this segment's group checksums.
    pub(crate) fn seed(&self) -> u32 {
        crc32(self.database_id.seed(), &self.salt.to_le_bytes())
    }
}

fn invalid(what: &str) -> Error {
    Error::corrupt(
        "segment_header_field",
        format!("the header's checksum matches but {what} is out of bounds"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    pub(crate) fn sample() -> SegmentHeader {
        SegmentHeader {
            database_id: DatabaseId::random(&mut Random::from_seed(7)),
            seq: 3,
            salt: 0x1122_3344_5566_7788,
            capacity: 64 * 1024,
            block_bytes: 512,
            fill: SegmentFill::Zeroed,
            created_ms: -5,
        }
    }

    #[test]
    fn round_trips() {
        assert_eq!(SegmentHeader::decode(&sample().encode()).unwrap(), sample());
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let page = sample().encode();
        for at in 0..page.len() {
            let mut bad = page.clone();
            bad[at] ^= 0x5a;
            assert_eq!(SegmentHeader::decode(&bad).unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
        }
    }

    #[test]
    fn hz_08_a_newer_version_is_told_apart_from_damage() {
        let mut page = sample().encode();
        put(&mut page, 12, &2u32.to_le_bytes());
        let crc = crc32(0, &page[12..]);
        put(&mut page, 8, &crc.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&page).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(SegmentHeader::decode(&page[..100]).unwrap_err().code(), "segment_header_short");
        assert_eq!(SegmentHeader::decode(&[0; BYTES]).unwrap_err().code(), "segment_magic");
    }
}
