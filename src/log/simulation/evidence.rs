//! Which groups a directory holds, and which of them damage has hit.

use super::model::Model;
use super::oracle::Bytes;
use crate::base::Zxid;
use crate::format::{GROUP_HEADER_BYTES, GroupHeader, GroupKind, Name, SegmentHeader};

/// A group that was hit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) kind: GroupKind,
    pub(super) prev: Zxid,
    pub(super) last: Zxid,
}

/// The groups of `before` that do not stand in `after` as they did.
pub(super) fn hit_groups(before: &Bytes, after: &Bytes) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (name, bytes) in before {
        let Name::Segment(seq) = Name::parse(name) else { continue };
        let Ok(header) = SegmentHeader::decode(bytes) else { continue };
        let now = after.get(name).map_or(&[][..], |b| &b[..]);
        let same = |from: usize, to: usize| now.get(from..to) == bytes.get(from..to);
        let block = usize::try_from(header.block_bytes).expect("small");
        let mut at = usize::try_from(header.first_group_offset()).expect("small");
        while let Some(head) = bytes.get(at..at + GROUP_HEADER_BYTES) {
            if let Some(group) = GroupHeader::decode(head, header.seed(), seq, at as u64) {
                let end = (at + usize::try_from(group.total_bytes(header.block_bytes)).expect("small"))
                    .min(bytes.len());
                if !same(0, 4096) || !same(at, end) {
                    hits.push(Hit { kind: group.kind, prev: group.prev_zxid, last: group.last_zxid });
                }
            }
            at += block;
        }
    }
    hits
}

impl Model {
    /// What a log that was damaged so must still hold if it opens at all.
    ///
    /// Undecidable by design, and so not asked for: acknowledged groups that were hit and that nothing else
    /// proves durable (no later group that was durable and is unharmed, no mark, no manifest). Their damage
    /// looks like the torn end of a write that was under way; they are the newest ones, and an idle log
    /// writes a mark to close this window.
    pub(super) fn required_after(&self, hits: &[Hit]) -> Zxid {
        let acked = hits.iter().filter(|h| h.last <= self.acked && h.last > self.floor);
        let Some(first) = acked.map(|h| h.prev).min() else { return self.acked };
        let lost = |g: &super::model::Launched| {
            hits.iter().any(|h| h.last == g.last && (h.kind == GroupKind::Mark) == g.is_mark)
        };
        self.evidence(lost).max(first.min(self.acked))
    }
}
