use crate::base::checksum::{self, Fold};
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
        let Some(record) = RecordHeader::decode(&group[at..], seed) else {
            return Err(damaged.unwrap_or(from(at, "record_header", unknown(last))));
        };
        let length = record.payload_bytes as usize;
        let (start, end) = (at + RECORD_HEADER_BYTES, at + frame_bytes(length));
        let orderly = record.zxid > last && record.zxid <= header.last_zxid;
        if !orderly || end > group.len() {
            return Err(damaged.unwrap_or(from(at, "record_order", unknown(last))));
        }
        let (payload, padding) = group[start..end].split_at(length);
        let right = checksum::crc32(0, payload) == record.payload_crc && is_zero(padding);
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
