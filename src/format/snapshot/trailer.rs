use super::SNAPSHOT_BLOCK_HEADER_BYTES;
use crate::base::Zxid;
use crate::base::checksum::crc32;
use crate::format::layout::{is_zero, put, u32_at, u64_at};

/// The length of a snapshot's last bytes.
pub(crate) const SNAPSHOT_TRAILER_BYTES: usize = 128;

const MAGIC: &[u8; 8] = b"ARBOREND";
const ENTRY: usize = 16;

/// What ends a snapshot: only a file that was written to its end has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SnapshotTrailer {
    /// All blocks before the index.
    pub(crate) blocks: u64,
    /// Where the index is.
    pub(crate) index_offset: u64,
    pub(crate) nodes: u64,
    pub(crate) sessions: u64,
    pub(crate) txns: u64,
    /// As in the header.
    pub(crate) start: Zxid,
    /// Where the snapshot is consistent, once its own txns are replayed.
    pub(crate) end: Zxid,
    /// The tree's digest there.
    pub(crate) digest: u64,
    /// The length of the whole file.
    pub(crate) file_bytes: u64,
}

impl SnapshotTrailer {
    pub(crate) fn encode(&self, seed: u32) -> [u8; SNAPSHOT_TRAILER_BYTES] {
        let mut out = [0; SNAPSHOT_TRAILER_BYTES];
        put(&mut out, 0, MAGIC);
        let fields = [
            self.blocks,
            self.index_offset,
            self.nodes,
            self.sessions,
            self.txns,
            self.start.get(),
            self.end.get(),
            self.digest,
            self.file_bytes,
        ];
        for (bytes, field) in out[16..].chunks_exact_mut(8).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        let crc = crc32(seed, &out[12..]);
        put(&mut out, 8, &crc.to_le_bytes());
        out
    }

    /// Reads a trailer, or `None` if these bytes are none of this snapshot.
    pub(crate) fn decode(bytes: &[u8], seed: u32) -> Option<SnapshotTrailer> {
        let bytes = bytes.get(..SNAPSHOT_TRAILER_BYTES)?;
        if &bytes[..8] != MAGIC || crc32(seed, &bytes[12..]) != u32_at(bytes, 8) {
            return None;
        }
        let field = |at: usize| u64_at(bytes, 16 + 8 * at);
        let trailer = SnapshotTrailer {
            blocks: field(0),
            index_offset: field(1),
            nodes: field(2),
            sessions: field(3),
            txns: field(4),
            start: Zxid::new(field(5)),
            end: Zxid::new(field(6)),
            digest: field(7),
            file_bytes: field(8),
        };
        (u32_at(bytes, 12) == 0 && is_zero(&bytes[88..]) && trailer.start <= trailer.end).then_some(trailer)
    }
}

/// Where a block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockPlace {
    pub(crate) offset: u64,
    pub(crate) body_bytes: u32,
}

impl BlockPlace {
    /// Where the next one begins.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(SNAPSHOT_BLOCK_HEADER_BYTES as u64 + u64::from(self.body_bytes))
    }
}

/// The body of the index.
pub(crate) fn encode_index(places: &[BlockPlace]) -> Vec<u8> {
    let mut out = vec![0; places.len() * ENTRY];
    for (bytes, place) in out.chunks_exact_mut(ENTRY).zip(places) {
        put(bytes, 0, &place.offset.to_le_bytes());
        put(bytes, 8, &place.body_bytes.to_le_bytes());
    }
    out
}

/// Reads an index; `None` unless its blocks fill the file from `from` to `to` without a gap.
pub(crate) fn decode_index(body: &[u8], from: u64, to: u64) -> Option<Vec<BlockPlace>> {
    if !body.len().is_multiple_of(ENTRY) {
        return None;
    }
    let mut at = from;
    let place = |bytes: &[u8]| {
        let place = BlockPlace { offset: u64_at(bytes, 0), body_bytes: u32_at(bytes, 8) };
        let fits = place.offset == at && u32_at(bytes, 12) == 0;
        at = place.end();
        fits.then_some(place)
    };
    let places = body.chunks_exact(ENTRY).map(place).collect::<Option<Vec<_>>>()?;
    (at == to).then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_round_trips_and_every_flipped_byte_is_noticed() {
        let trailer = SnapshotTrailer {
            blocks: 1,
            index_offset: 2,
            nodes: 3,
            sessions: 4,
            txns: 5,
            start: Zxid::new(6),
            end: Zxid::new(7),
            digest: 8,
            file_bytes: 9,
        };
        let bytes = trailer.encode(3);
        assert_eq!(SnapshotTrailer::decode(&bytes, 3), Some(trailer));
        assert_eq!(SnapshotTrailer::decode(&bytes, 4), None);
        for at in 0..bytes.len() {
            let mut bad = bytes;
            bad[at] ^= 0x10;
            assert_eq!(SnapshotTrailer::decode(&bad, 3), None, "byte {at}");
        }
    }

    #[test]
    fn an_index_has_no_gap() {
        let places = [BlockPlace { offset: 512, body_bytes: 6 }, BlockPlace { offset: 582, body_bytes: 0 }];
        let body = encode_index(&places);
        assert_eq!(decode_index(&body, 512, 646), Some(places.to_vec()));
        for (from, to) in [(511, 646), (512, 645), (512, 647)] {
            assert_eq!(decode_index(&body, from, to), None);
        }
        assert_eq!(decode_index(&body[..31], 512, 646), None);
        assert_eq!(decode_index(&[], 512, 512), Some(Vec::new()));
    }
}
