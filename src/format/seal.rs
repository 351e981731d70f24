use super::layout::{i64_at, put, u64_at};
use crate::base::Zxid;

/// One entry of a segment's sparse index: a group, and what came before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IndexEntry {
    pub(crate) first_zxid: Zxid,
    pub(crate) offset: u64,
    /// The running maximum of the records' times before this group; `i64::MIN` before the first record.
    pub(crate) time_max_before_ms: i64,
}

const HEAD: usize = 16;
const ENTRY: usize = 24;

/// The body of the group that seals a segment: how much it holds, and its index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seal {
    pub(crate) records: u64,
    /// In the order of the file: offsets and zxids rise.
    pub(crate) index: Vec<IndexEntry>,
}

impl Seal {
    /// The length of the body for an index of `entries`.
    pub(crate) const fn encoded_bytes(entries: usize) -> usize {
        HEAD + entries * ENTRY
    }

    pub(crate) fn encode(records: u64, index: &[IndexEntry]) -> Vec<u8> {
        let mut out = vec![0; Seal::encoded_bytes(index.len())];
        put(&mut out, 0, &records.to_le_bytes());
        put(&mut out, 8, &(index.len() as u64).to_le_bytes());
        for (entry, bytes) in index.iter().zip(out[HEAD..].chunks_exact_mut(ENTRY)) {
            put(bytes, 0, &entry.first_zxid.get().to_le_bytes());
            put(bytes, 8, &entry.offset.to_le_bytes());
            put(bytes, 16, &entry.time_max_before_ms.to_le_bytes());
        }
        out
    }

    /// Reads a body whose checksum has been verified. `None` if its count does not fit its length or the
    /// entries do not rise.
    pub(crate) fn decode(body: &[u8]) -> Option<Seal> {
        if body.len() < HEAD || !(body.len() - HEAD).is_multiple_of(ENTRY) {
            return None;
        }
        let entries = (body.len() - HEAD) / ENTRY;
        if u64_at(body, 8) != entries as u64 {
            return None;
        }
        let index: Vec<IndexEntry> = body[HEAD..]
            .chunks_exact(ENTRY)
            .map(|bytes| IndexEntry {
                first_zxid: Zxid::new(u64_at(bytes, 0)),
                offset: u64_at(bytes, 8),
                time_max_before_ms: i64_at(bytes, 16),
            })
            .collect();
        let rises = index.windows(2).all(|w| {
            w[0].first_zxid < w[1].first_zxid
                && w[0].offset < w[1].offset
                && w[0].time_max_before_ms <= w[1].time_max_before_ms
        });
        rises.then_some(Seal { records: u64_at(body, 0), index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_refuses_disorder() {
        let entry =
            |z, offset, time| IndexEntry { first_zxid: Zxid::new(z), offset, time_max_before_ms: time };
        let index = vec![entry(1, 4096, i64::MIN), entry(9, 70_000, 5), entry(10, 140_000, 5)];
        let body = Seal::encode(12, &index);
        assert_eq!(Seal::decode(&body), Some(Seal { records: 12, index: index.clone() }));
        assert_eq!(Seal::decode(&body[..body.len() - 1]), None);
        assert_eq!(Seal::decode(&body[..body.len() - ENTRY]), None);
        assert_eq!(Seal::decode(&[]), None);
        assert_eq!(Seal::decode(&Seal::encode(12, &[index[1], index[0]])), None);
        assert_eq!(Seal::decode(&Seal::encode(0, &[])), Some(Seal::default()));
    }
}
