//! Segments whose every checksum is right, and whose groups do not belong together all the same.

use super::scan::{SegmentScan, StopKind, scan_segment};
use crate::base::checksum::{Fold, crc32};
use crate::base::{Epoch, Zxid};
use crate::format::{
    DatabaseId, GROUP_HEADER_BYTES, GroupHeader, GroupKind, RecordHeader, SegmentFill, SegmentHeader,
    frame_bytes,
};
use crate::io::OpenMode;
use crate::sim::SimDisk;

const BLOCK: u64 = 512;
const FIRST: u64 = 4096;

/// What of a group can be wrong beside its bytes.
#[derive(Clone, Copy)]
struct Group {
    prev: u64,
    zxid: u64,
    epoch: u64,
    time_before_ms: i64,
    durable: u64,
}

const fn group(zxid: u64) -> Group {
    let time_before_ms = if zxid == 1 { i64::MIN } else { 100 };
    Group { prev: zxid - 1, zxid, epoch: 2, time_before_ms, durable: 0 }
}

/// Scans a segment of these groups, of one block each; the one of zxid 0 is a block of garbage.
fn scan(groups: &[Group], limit: Option<u64>) -> SegmentScan {
    let database_id = DatabaseId::from_bytes([7; 16]);
    let header = SegmentHeader {
        database_id,
        seq: 1,
        salt: 9,
        capacity: FIRST + 8 * BLOCK,
        block_bytes: BLOCK,
        fill: SegmentFill::Zeroed,
        created_ms: 0,
    };
    let mut bytes = header.encode();
    for group in groups {
        let start = bytes.len();
        let (payload, mut fold) = (b"record", Fold::new());
        let zxid = Zxid::new(group.zxid);
        let (head, crc) = RecordHeader::encode(database_id.seed(), zxid, 100, 6, crc32(0, payload));
        fold.add(crc);
        let group_header = GroupHeader {
            kind: GroupKind::Records,
            record_count: 1,
            body_bytes: frame_bytes(payload.len()) as u64,
            offset: start as u64,
            seq: 1,
            first_zxid: zxid,
            last_zxid: zxid,
            prev_zxid: Zxid::new(group.prev),
            durable_zxid: Zxid::new(group.durable),
            epoch: Epoch::new(group.epoch),
            time_max_before_ms: group.time_before_ms,
            body_check: fold.value(),
        };
        bytes.extend(group_header.encode(header.seed()));
        bytes.extend(head);
        bytes.extend(payload);
        bytes.resize(start + 512, 0);
        if group.zxid == 0 {
            bytes[start..start + GROUP_HEADER_BYTES].fill(0x55);
        }
    }
    bytes.resize(usize::try_from(header.capacity).unwrap(), 0);
    let disk = SimDisk::new(1);
    disk.write_file("segment", &bytes);
    let file = disk.handle().open("segment", OpenMode::Read).unwrap();
    scan_segment(file.as_ref(), 1, database_id, limit.map(Zxid::new)).unwrap()
}

fn stop(groups: &[Group]) -> (StopKind, Option<Zxid>) {
    let scan = scan(groups, None);
    (scan.stop.kind, scan.last_zxid)
}

/// No write of arborlog leaves them, so they are refused and not cut: whatever is behind them may have been acknowledged.
#[test]
fn hz_07_a_group_that_does_not_follow_is_a_misfit() {
    let two = Some(Zxid::new(2));
    assert_eq!(stop(&[group(1), group(2), group(3)]), (StopKind::Zeros, Some(Zxid::new(3))));
    for wrong in [
        Group { prev: 1, ..group(3) },
        Group { prev: 3, ..group(4) },
        Group { epoch: 1, ..group(3) },
        Group { time_before_ms: 99, ..group(3) },
        Group { time_before_ms: 101, ..group(3) },
    ] {
        assert_eq!(stop(&[group(1), group(2), wrong]), (StopKind::Misfit, two));
        // It is a valid group: what it tells of others counts.
        let scan = scan(&[group(1), group(2), Group { durable: 1, ..wrong }], None);
        let beyond = scan.beyond.unwrap();
        assert_eq!((beyond.offset, beyond.claims), (FIRST + 2 * BLOCK, Zxid::new(1)));
    }
    // The first one of a segment may begin anywhere.
    let first = Group { prev: 7, time_before_ms: 100, ..group(9) };
    assert_eq!(stop(&[first]), (StopKind::Zeros, Some(Zxid::new(9))));
    assert_eq!(scan(&[first], None).floor_zxid, Some(Zxid::new(7)));
}

/// Behind garbage, every header that holds is evidence, and the highest claim of them counts, wherever it stands.
#[test]
fn tt_01_all_that_stands_behind_the_stop_is_evidence() {
    let garbage = Group { prev: 0, zxid: 0, ..group(1) };
    for claims in [[2, 3, 1], [3, 2, 1], [1, 2, 3]] {
        let mut groups = vec![group(1), group(2), garbage];
        groups.extend(
            [(4, claims[0]), (5, claims[1]), (6, claims[2])]
                .map(|(zxid, durable)| Group { durable, ..group(zxid) }),
        );
        let scan = scan(&groups, None);
        assert_eq!((scan.stop.kind, scan.last_zxid), (StopKind::Garbage, Some(Zxid::new(2))));
        let beyond = scan.beyond.unwrap();
        let zxids = (beyond.first_zxid.get(), beyond.last_zxid.get(), beyond.claims.get());
        assert_eq!((beyond.offset, zxids), (FIRST + 3 * BLOCK, (4, 6, 3)), "{claims:?}");
        assert_eq!((scan.claims, scan.claims_anywhere()), (Zxid::ZERO, Zxid::new(3)));
    }
    let scan = scan(&[group(1), Group { durable: 1, ..group(2) }, group(3)], None);
    assert_eq!((scan.claims, scan.beyond), (Zxid::new(1), None), "also of those that are well");
}

/// The manifest ends a segment: nothing behind that record is read, claimed or counted.
#[test]
fn tr_01_a_segment_ends_where_the_manifest_says() {
    let groups = [group(1), group(2), Group { durable: 2, ..group(3) }];
    for (limit, end) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
        let scan = scan(&groups, Some(limit));
        assert_eq!(scan.stop.kind, StopKind::Limit, "{limit}");
        assert_eq!((scan.records, scan.groups, scan.end_offset), (end, end, FIRST + end * BLOCK), "{limit}");
        assert_eq!(scan.claims, if limit == 3 { Zxid::new(2) } else { Zxid::ZERO }, "{limit}");
    }
    // A record that is not there contradicts the manifest.
    let gap = Group { prev: 2, ..group(4) };
    assert_eq!(scan(&[group(1), group(2), gap], Some(3)).stop.kind, StopKind::Misfit);
}
