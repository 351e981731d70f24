use crate::base::checksum::crc32;
use crate::base::{Error, ErrorKind, Result};
use crate::format::layout::{put, u16_at, u32_at, u64_at};

/// The length of a block's header; its body follows, and the next block at once.
pub(crate) const SNAPSHOT_BLOCK_HEADER_BYTES: usize = 64;

const MAGIC: u32 = 0x424e_5341; // "ASNB"

/// What a block holds. In a file they come in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum SnapshotBlockKind {
    Nodes,
    Sessions,
    Txns,
    /// Where the other blocks are; the last one.
    Index,
}

/// The head of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SnapshotBlock {
    pub(crate) kind: SnapshotBlockKind,
    /// Entries in it.
    pub(crate) count: u32,
    /// The block's number, from 0.
    pub(crate) index: u64,
    /// Where in its file it stands.
    pub(crate) offset: u64,
    pub(crate) body_bytes: u32,
    /// See [`body_check`].
    pub(crate) body_crc: u32,
}

/// The checksum of a body: it holds for the block of this number in this file, and for no other.
pub(crate) fn body_check(seed: u32, index: u64, body: &[u8]) -> u32 {
    crc32(block_seed(seed, index), body)
}

fn block_seed(seed: u32, index: u64) -> u32 {
    crc32(seed, &index.to_le_bytes())
}

impl SnapshotBlock {
    pub(crate) fn encode(&self, seed: u32) -> [u8; SNAPSHOT_BLOCK_HEADER_BYTES] {
        let mut out = [0; SNAPSHOT_BLOCK_HEADER_BYTES];
        put(&mut out, 0, &MAGIC.to_le_bytes());
        let kind = match self.kind {
            SnapshotBlockKind::Nodes => 1u16,
            SnapshotBlockKind::Sessions => 2,
            SnapshotBlockKind::Txns => 3,
            SnapshotBlockKind::Index => 4,
        };
        put(&mut out, 8, &kind.to_le_bytes());
        put(&mut out, 12, &self.count.to_le_bytes());
        put(&mut out, 16, &self.index.to_le_bytes());
        put(&mut out, 24, &self.offset.to_le_bytes());
        // As it would be without compression, and as it is stored.
        put(&mut out, 32, &self.body_bytes.to_le_bytes());
        put(&mut out, 36, &self.body_bytes.to_le_bytes());
        put(&mut out, 40, &self.body_crc.to_le_bytes());
        let crc = crc32(block_seed(seed, self.index), &out[8..]);
        put(&mut out, 4, &crc.to_le_bytes());
        out
    }

    /// Reads the header of block `index` at `offset`. The checksum comes first, so that lengths are trusted.
    pub(crate) fn decode(bytes: &[u8], seed: u32, index: u64, offset: u64) -> Result<SnapshotBlock> {
        let bad = || Error::corrupt("snapshot_block", "no block of this snapshot stands here");
        let bytes = bytes.get(..SNAPSHOT_BLOCK_HEADER_BYTES).ok_or_else(bad)?;
        if u32_at(bytes, 0) != MAGIC || crc32(block_seed(seed, index), &bytes[8..]) != u32_at(bytes, 4) {
            return Err(bad());
        }
        let (kind, encoding) = (u16_at(bytes, 8), u16_at(bytes, 10));
        if encoding != 0 {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "snapshot_version",
                format!("a block's compression {encoding:#x} is unknown to this version"),
            ));
        }
        let kind = match kind {
            1 => SnapshotBlockKind::Nodes,
            2 => SnapshotBlockKind::Sessions,
            3 => SnapshotBlockKind::Txns,
            4 => SnapshotBlockKind::Index,
            _ => return Err(bad()),
        };
        let block = SnapshotBlock {
            kind,
            count: u32_at(bytes, 12),
            index: u64_at(bytes, 16),
            offset: u64_at(bytes, 24),
            body_bytes: u32_at(bytes, 36),
            body_crc: u32_at(bytes, 40),
        };
        let reserved_is_zero = u32_at(bytes, 44) == 0 && u64_at(bytes, 48) == 0 && u64_at(bytes, 56) == 0;
        let fits = block.index == index && block.offset == offset && u32_at(bytes, 32) == block.body_bytes;
        // No entry is empty.
        if !fits || !reserved_is_zero || block.count > block.body_bytes {
            return Err(bad());
        }
        Ok(block)
    }

    /// Header and body.
    pub(crate) fn total_bytes(&self) -> u64 {
        SNAPSHOT_BLOCK_HEADER_BYTES as u64 + u64::from(self.body_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> SnapshotBlock {
        let body_crc = body_check(5, 3, b"body of it");
        SnapshotBlock {
            kind: SnapshotBlockKind::Txns,
            count: 2,
            index: 3,
            offset: 9000,
            body_bytes: 10,
            body_crc,
        }
    }

    #[test]
    fn knows_its_place_and_file() {
        let bytes = sample().encode(5);
        assert_eq!(SnapshotBlock::decode(&bytes, 5, 3, 9000).unwrap(), sample());
        for (seed, index, offset) in [(6, 3, 9000), (5, 2, 9000), (5, 3, 8000)] {
            assert_eq!(
                SnapshotBlock::decode(&bytes, seed, index, offset).unwrap_err().code(),
                "snapshot_block"
            );
        }
        assert_ne!(body_check(5, 3, b"body of it"), body_check(5, 4, b"body of it"));
    }

    #[test]
    fn every_flipped_byte_is_noticed() {
        let bytes = sample().encode(5);
        for at in 0..bytes.len() {
            let mut bad = bytes;
            bad[at] ^= 0x01;
            assert_eq!(SnapshotBlock::decode(&bad, 5, 3, 9000).unwrap_err().code(), "snapshot_block", "{at}");
        }
    }

    #[test]
    fn an_unknown_compression_is_no_damage() {
        let mut bytes = sample().encode(5);
        bytes[10] = 1;
        let crc = crc32(block_seed(5, 3), &bytes[8..]);
        put(&mut bytes, 4, &crc.to_le_bytes());
        assert_eq!(SnapshotBlock::decode(&bytes, 5, 3, 9000).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
