//! What holds for all values: what is written is read back, and no bytes at all make a reader panic.

use proptest::prelude::*;

use super::{
    Cut, DatabaseId, GroupHeader, GroupKind, IndexEntry, Manifest, Name, Numbering, RecordHeader, Seal,
    SegmentHeader,
};
use crate::base::{Epoch, Zxid};

fn manifests() -> impl Strategy<Value = Manifest> {
    let cuts = proptest::collection::vec((1u64..1000, 0u64..1 << 40, 1u64..1000), 0..6);
    let numbers = (any::<[u8; 16]>(), 1u64..1 << 40, any::<u64>(), any::<u64>(), any::<bool>(), cuts);
    numbers.prop_map(|(id, version, epoch, durable, flag, steps)| {
        let (mut seq, mut zxid, mut cuts) = (1, 0, Vec::new());
        for (gap, rise, jump) in steps {
            seq += gap;
            zxid += rise;
            cuts.push(Cut { seq, last_zxid: Zxid::new(zxid), next_seq: seq + jump });
            seq += jump;
        }
        Manifest {
            database_id: DatabaseId::from_bytes(id),
            version,
            numbering: if flag { Numbering::Zxid } else { Numbering::Index },
            epoch: Epoch::new(epoch),
            durable_zxid: Zxid::new(durable),
            clean: flag,
            first_seq: 1,
            floor_zxid: Zxid::ZERO,
            cuts,
        }
    })
}

proptest! {
    #[test]
    fn a_manifest_is_read_back(manifest in manifests()) {
        prop_assert_eq!(Manifest::decode(manifest.encode().as_bytes()).unwrap(), manifest);
    }

    #[test]
    fn a_record_header_is_read_back(seed: u32, zxid: u64, time: i64, bytes: u32, crc: u32) {
        let (encoded, header_crc) = RecordHeader::encode(seed, Zxid::new(zxid), time, bytes, crc);
        let read = RecordHeader::decode(&encoded, seed).unwrap();
        let (zxid, time_ms) = (Zxid::new(zxid), time);
        prop_assert_eq!(read, RecordHeader { header_crc, payload_crc: crc, payload_bytes: bytes, zxid, time_ms });
    }

    #[test]
    fn a_group_header_is_read_back(
        seed: u32, seq: u64, offset: u64, prev in 0u64..1 << 62, rise in 1u64..1 << 20, count in 1u32..1000,
        back in 0u64..1000, epoch: u64, time: i64, check: u64, body in 0u64..1 << 30,
    ) {
        let first = prev + rise;
        let last = first + u64::from(count) - 1;
        let header = GroupHeader {
            kind: GroupKind::Records,
            record_count: count,
            body_bytes: body,
            offset,
            seq,
            first_zxid: Zxid::new(first),
            last_zxid: Zxid::new(last),
            prev_zxid: Zxid::new(prev),
            durable_zxid: Zxid::new(prev.saturating_sub(back)),
            epoch: Epoch::new(epoch),
            time_max_before_ms: time,
            body_check: check,
        };
        prop_assert_eq!(GroupHeader::decode(&header.encode(seed), seed, seq, offset), Some(header));
    }

    #[test]
    fn a_seal_is_read_back(records: u64, steps in proptest::collection::vec((1u64..1 << 30, 1u64..1 << 30, 0i64..1 << 30), 0..50)) {
        let mut at = IndexEntry { first_zxid: Zxid::ZERO, offset: 0, time_max_before_ms: i64::MIN };
        let index: Vec<IndexEntry> = steps
            .into_iter()
            .map(|(zxid, offset, time)| {
                at.first_zxid = Zxid::new(at.first_zxid.get() + zxid);
                at.offset += offset;
                at.time_max_before_ms += time;
                at
            })
            .collect();
        prop_assert_eq!(Seal::decode(&Seal::encode(records, &index)), Some(Seal { records, index }));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..5000), seed: u32, text in ".*") {
        let _verdicts = (
            SegmentHeader::decode(&bytes).is_ok(),
            GroupHeader::decode(&bytes, seed, 1, 4096),
            RecordHeader::decode(&bytes, seed),
            Seal::decode(&bytes),
            Manifest::decode(&bytes).is_ok(),
            Manifest::decode(text.as_bytes()).is_ok(),
            Name::parse(&text),
        );
    }
}
