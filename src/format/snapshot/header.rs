use crate::base::checksum::crc32;
use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::format::layout::{array, i64_at, is_zero, put, u32_at, u64_at};
use crate::format::{DatabaseId, Numbering};

/// The length of a snapshot's header.
pub(crate) const SNAPSHOT_HEADER_BYTES: usize = 512;

const MAGIC: &[u8; 8] = b"ARBORSNP";
const VERSION: u32 = 1;

/// The head of a snapshot: whose it is, and where its walk began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SnapshotHeader {
    pub(crate) database_id: DatabaseId,
    pub(crate) numbering: Numbering,
    /// Seeds every other checksum of the file, so that bytes of another snapshot never validate in it.
    pub(crate) salt: u64,
    /// The last txn whose effect is in every node: the walk began after it.
    pub(crate) start: Zxid,
    /// Wall-clock milliseconds; for people.
    pub(crate) created_ms: i64,
}

impl SnapshotHeader {
    pub(crate) fn encode(&self) -> [u8; SNAPSHOT_HEADER_BYTES] {
        let mut out = [0; SNAPSHOT_HEADER_BYTES];
        put(&mut out, 0, MAGIC);
        put(&mut out, 12, &VERSION.to_le_bytes());
        let numbering = match self.numbering {
            Numbering::Zxid => 1u32,
            Numbering::Index => 2,
        };
        put(&mut out, 20, &numbering.to_le_bytes());
        put(&mut out, 32, self.database_id.as_bytes());
        put(&mut out, 48, &self.salt.to_le_bytes());
        put(&mut out, 56, &self.start.get().to_le_bytes());
        put(&mut out, 64, &self.created_ms.to_le_bytes());
        let crc = crc32(0, &out[12..]);
        put(&mut out, 8, &crc.to_le_bytes());
        out
    }

    /// Reads a header. Tells damage from a newer version: in every version the magic, the checksum and the version
    /// stand where they stand now.
    pub(crate) fn decode(bytes: &[u8]) -> Result<SnapshotHeader> {
        let Some(bytes) = bytes.get(..SNAPSHOT_HEADER_BYTES) else {
            return Err(Error::corrupt("snapshot_truncated", "the file ends inside its header"));
        };
        if &bytes[..8] != MAGIC {
            return Err(Error::corrupt("snapshot_magic", "this is no snapshot"));
        }
        if crc32(0, &bytes[12..]) != u32_at(bytes, 8) {
            return Err(Error::corrupt("snapshot_header", "the header's checksum does not match"));
        }
        let (version, flags) = (u32_at(bytes, 12), u32_at(bytes, 16));
        if version != VERSION || flags != 0 {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "snapshot_version",
                format!("snapshot format {version} with flags {flags:#x} is unknown to this version"),
            ));
        }
        let invalid = || Error::corrupt("snapshot_header", "a field of the header is out of bounds");
        let numbering = match u32_at(bytes, 20) {
            1 => Numbering::Zxid,
            2 => Numbering::Index,
            _ => return Err(invalid()),
        };
        if u64_at(bytes, 24) != 0 || !is_zero(&bytes[72..]) {
            return Err(invalid());
        }
        Ok(SnapshotHeader {
            database_id: DatabaseId::from_bytes(array(bytes, 32)),
            numbering,
            salt: u64_at(bytes, 48),
            start: Zxid::new(u64_at(bytes, 56)),
            created_ms: i64_at(bytes, 64),
        })
    }

    /// The seed of this file's checksums.
    pub(crate) fn seed(&self) -> u32 {
        crc32(self.database_id.seed(), &self.salt.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    #[test]
    fn round_trips_and_every_flipped_byte_is_noticed() {
        let header = SnapshotHeader {
            database_id: DatabaseId::random(&mut Random::from_seed(7)),
            numbering: Numbering::Index,
            salt: 0x1122_3344_5566_7788,
            start: Zxid::new(9),
            created_ms: -5,
        };
        let bytes = header.encode();
        assert_eq!(SnapshotHeader::decode(&bytes).unwrap(), header);
        for at in 0..bytes.len() {
            let mut bad = bytes;
            bad[at] ^= 0x5a;
            assert_eq!(SnapshotHeader::decode(&bad).unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
        }
        assert_eq!(SnapshotHeader::decode(&bytes[..511]).unwrap_err().code(), "snapshot_truncated");
        let signed = |at: usize, value: u8| {
            let mut bad = bytes;
            bad[at] = value;
            let crc = crc32(0, &bad[12..]);
            put(&mut bad, 8, &crc.to_le_bytes());
            SnapshotHeader::decode(&bad).unwrap_err()
        };
        for at in [12, 16] {
            assert_eq!(signed(at, 2).kind(), ErrorKind::Unsupported, "a newer version is no damage");
        }
        for at in [20, 24, 28, 72, 511] {
            assert_eq!(signed(at, 9).code(), "snapshot_header", "byte {at}");
        }
    }
}
