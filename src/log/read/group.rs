use crate::base::checksum::{self, Crc32, Fold};
use crate::base::{Epoch, Zxid};
use crate::format::layout::is_zero;
use crate::format::{
    GROUP_HEADER_BYTES, GroupHeader, GroupKind, RECORD_HEADER_BYTES, RecordHeader, Seal, frame_bytes,
};

use super::Record;

/// What is wrong with a group whose header is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadGroup {
    /// Where in the group.
    pub(crate) offset: u64,
    /// A stable word for what is wrong.
    pub(crate) code: &'static str,
    /// The records that are lost by it: exactly these where only payloads are damaged, all that follow where
    /// a header is.
    pub(crate) first_zxid: Zxid,
    pub(crate) last_zxid: Zxid,
}

/// What a whole group amounts to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupTotals {
    /// The running maximum of the times, this group included.
    pub(crate) time_max_ms: i64,
}

/// Checks every byte of a group: each record's two checksums and its place in the order, the fold over
/// them, the padding. `bytes` is the group with header and padding.
pub(crate) fn verify_group(
    header: &GroupHeader,
    bytes: &[u8],
    segment_seed: u32,
    database_seed: u32,
) -> Result<GroupTotals, BadGroup> {
    let body_end = GROUP_HEADER_BYTES + usize::try_from(header.body_bytes).unwrap_or(usize::MAX);
    let bad = |offset: usize, code, first_zxid| {
        Err(BadGroup { offset: offset as u64, code, first_zxid, last_zxid: header.last_zxid })
    };
    let Some((body, padding)) = bytes.split_at_checked(body_end) else {
        return bad(0, "group_short", header.first_zxid);
    };
    let time_max_ms = match header.kind {
        GroupKind::Records => verify_records(header, body, database_seed)?,
        GroupKind::Mark => header.time_max_before_ms,
        GroupKind::Seal => {
            let body = &body[GROUP_HEADER_BYTES..];
            let crc = u64::from(checksum::crc32(segment_seed, body));
            if crc != header.body_check || Seal::decode(body).is_none() {
                return bad(GROUP_HEADER_BYTES, "seal_checksum", header.last_zxid);
            }
            header.time_max_before_ms
        }
    };
    if !is_zero(padding) {
        return bad(body_end, "group_padding", header.first_zxid);
    }
    Ok(GroupTotals { time_max_ms })
}

fn verify_records(header: &GroupHeader, group: &[u8], seed: u32) -> Result<i64, BadGroup> {
    let mut at = GROUP_HEADER_BYTES;
    let mut last = header.prev_zxid;
    let mut fold = Fold::new();
    let mut time_max_ms = header.time_max_before_ms;
    let mut damaged: Option<BadGroup> = None;
    let (of_header, of_payload) = (Crc32::seeded(seed), Crc32::default());
    let from = |at: usize, code, first: Zxid| BadGroup {
        offset: at as u64,
        code,
        first_zxid: first,
        last_zxid: header.last_zxid,
    };
    let unknown = |last: Zxid| {
        if last < header.first_zxid { header.first_zxid } else { Zxid::new(last.get().saturating_add(1)) }
    };
    for _ in 0..header.record_count {
        let Some(record) = RecordHeader::decode_next(&group[at..], &of_header) else {
            return Err(damaged.unwrap_or(from(at, "record_header", unknown(last))));
        };
        let length = record.payload_bytes as usize;
        let (start, end) = (at + RECORD_HEADER_BYTES, at + frame_bytes(length));
        let orderly = record.zxid > last && record.zxid <= header.last_zxid;
        if !orderly || end > group.len() {
            return Err(damaged.unwrap_or(from(at, "record_order", unknown(last))));
        }
        let (payload, padding) = group[start..end].split_at(length);
        let right = of_payload.clone().and(payload) == record.payload_crc && is_zero(padding);
        if !right && !crate::planted("payload_unverified") {
            // The header is right, so the damage is exactly this record's: go on, to name the others too.
            let first = damaged.map_or(from(at, "record_checksum", record.zxid), |d| d);
            damaged = Some(BadGroup { last_zxid: record.zxid, ..first });
        }
        fold.add(record.header_crc);
        time_max_ms = time_max_ms.max(record.time_ms);
        last = record.zxid;
        at = end;
    }
    if let Some(damaged) = damaged {
        return Err(damaged);
    }
    if at != group.len() || last != header.last_zxid || fold.value() != header.body_check {
        return Err(from(GROUP_HEADER_BYTES, "group_fold", header.first_zxid));
    }
    Ok(time_max_ms)
}

/// The records of a group that has been verified, one after the other, without copying.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    epoch: Epoch,
    seed: u32,
    at: usize,
    left: u32,
}

impl Records {
    pub(crate) fn of(header: &GroupHeader, database_seed: u32) -> Records {
        Records {
            epoch: header.epoch,
            seed: database_seed,
            at: GROUP_HEADER_BYTES,
            left: header.record_count,
        }
    }

    /// The next record of the group that stands in `group`.
    pub(crate) fn next<'g>(&mut self, group: &'g [u8]) -> Option<Record<'g>> {
        if self.left == 0 {
            return None;
        }
        let header = RecordHeader::decode(group.get(self.at..)?, self.seed)?;
        let start = self.at + RECORD_HEADER_BYTES;
        let payload = group.get(start..start + header.payload_bytes as usize)?;
        self.left -= 1;
        self.at += frame_bytes(payload.len());
        Some(Record { zxid: header.zxid, epoch: self.epoch, time_ms: header.time_ms, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 512;
    const SEGMENT_SEED: u32 = 3;
    const DATABASE_SEED: u32 = 4;

    fn header() -> GroupHeader {
        GroupHeader {
            kind: GroupKind::Records,
            record_count: 0,
            body_bytes: 0,
            offset: 4096,
            seq: 1,
            first_zxid: Zxid::new(6),
            last_zxid: Zxid::new(8),
            prev_zxid: Zxid::new(5),
            durable_zxid: Zxid::new(5),
            epoch: Epoch::ZERO,
            time_max_before_ms: 50,
            body_check: 0,
        }
    }

    /// A group of these records, at these times, all of whose checksums are right.
    fn group(records: &[(u64, i64)]) -> (GroupHeader, Vec<u8>) {
        let (mut bytes, mut fold) = (vec![0; GROUP_HEADER_BYTES], Fold::new());
        for (zxid, time_ms) in records {
            let payload = b"record";
            let crc = checksum::crc32(0, payload);
            let (head, head_crc) = RecordHeader::encode(DATABASE_SEED, Zxid::new(*zxid), *time_ms, 6, crc);
            fold.add(head_crc);
            let end = bytes.len() + frame_bytes(payload.len());
            bytes.extend(head);
            bytes.extend(payload);
            bytes.resize(end, 0);
        }
        let header = GroupHeader {
            record_count: u32::try_from(records.len()).unwrap(),
            body_bytes: (bytes.len() - GROUP_HEADER_BYTES) as u64,
            body_check: fold.value(),
            ..header()
        };
        bytes.resize(usize::try_from(header.total_bytes(BLOCK)).unwrap(), 0);
        (header, bytes)
    }

    fn verify(header: &GroupHeader, bytes: &[u8]) -> Result<i64, (&'static str, u64, u64)> {
        let found = verify_group(header, bytes, SEGMENT_SEED, DATABASE_SEED);
        found
            .map(|totals| totals.time_max_ms)
            .map_err(|bad| (bad.code, bad.first_zxid.get(), bad.last_zxid.get()))
    }

    /// What each of them guards has no checksum of its own that is wrong.
    #[test]
    fn records_that_do_not_belong_together_are_no_group() {
        let (whole, bytes) = group(&[(6, 70), (7, 20), (8, 60)]);
        assert_eq!(verify(&whole, &bytes), Ok(70), "the running maximum");
        assert_eq!(verify(&GroupHeader { time_max_before_ms: 90, ..whole }, &bytes), Ok(90));
        for (records, from) in [
            (&[(6, 0), (6, 0), (8, 0)], 7),
            (&[(7, 0), (6, 0), (8, 0)], 8),
            (&[(5, 0), (7, 0), (8, 0)], 6),
            (&[(6, 0), (7, 0), (9, 0)], 8),
        ] {
            let (header, bytes) = group(records);
            assert_eq!(verify(&header, &bytes), Err(("record_order", from, 8)), "{records:?}");
        }
        let fold = Err(("group_fold", 6, 8));
        let (short, bytes_of_short) = group(&[(6, 0), (7, 0)]);
        assert_eq!(verify(&short, &bytes_of_short), fold, "it ends before its last one");
        assert_eq!(verify(&GroupHeader { body_check: whole.body_check ^ 1, ..whole }, &bytes), fold);
        // The last record stands where the padding would.
        let (two, bytes) = group(&[(6, 0), (8, 0), (9, 0)]);
        let (_, of_two) = group(&[(6, 0), (8, 0)]);
        let mut both = Fold::new();
        for at in [GROUP_HEADER_BYTES, GROUP_HEADER_BYTES + frame_bytes(6)] {
            both.add(RecordHeader::decode(&of_two[at..], DATABASE_SEED).unwrap().header_crc);
        }
        let header = GroupHeader { record_count: 2, body_check: both.value(), ..two };
        assert_eq!(verify(&header, &bytes), fold, "a record more than it counts");
        // A frame that ends with the group, and one that ends behind it.
        let end = GROUP_HEADER_BYTES + usize::try_from(whole.body_bytes).unwrap();
        let (whole, bytes) = group(&[(6, 70), (7, 20), (8, 60)]);
        assert_eq!(verify(&whole, &bytes[..end]), Ok(70));
        let cut = GroupHeader { body_bytes: whole.body_bytes - 8, ..whole };
        assert_eq!(verify(&cut, &bytes[..end - 8]), Err(("record_order", 8, 8)));
    }

    #[test]
    fn a_damaged_payload_or_padding_names_its_records() {
        let (header, whole) = group(&[(6, 70), (7, 20), (8, 60)]);
        let frame = frame_bytes(6);
        for (damaged, from, to) in [(&[0][..], 6, 6), (&[1], 7, 7), (&[0, 1], 6, 7), (&[2], 8, 8)] {
            for at in [0, 5, 7] {
                let mut bytes = whole.clone();
                let payload = |n: usize| GROUP_HEADER_BYTES + n * frame + RECORD_HEADER_BYTES;
                damaged.iter().for_each(|n| bytes[payload(*n) + at] ^= 0x40);
                assert_eq!(verify(&header, &bytes), Err(("record_checksum", from, to)), "{damaged:?} {at}");
            }
        }
    }

    #[test]
    fn a_seal_is_one_by_its_content_too() {
        let seal = |body: &[u8]| {
            let check = u64::from(checksum::crc32(SEGMENT_SEED, body));
            let (kind, last) = (GroupKind::Seal, Zxid::new(5));
            let body_bytes = body.len() as u64;
            let header = GroupHeader { kind, last_zxid: last, body_bytes, body_check: check, ..header() };
            let mut bytes = vec![0; GROUP_HEADER_BYTES];
            bytes.extend(body);
            (header, bytes)
        };
        let (header, bytes) = seal(&Seal::encode(3, &[]));
        assert_eq!(verify(&header, &bytes), Ok(50));
        assert!(verify(&GroupHeader { body_check: header.body_check ^ 1, ..header }, &bytes).is_err());
        let (header, bytes) = seal(b"no index of anything");
        assert_eq!(verify(&header, &bytes).map_err(|(code, ..)| code), Err("seal_checksum"));
    }
}
