//! Whether a whole entry follows behind bytes that are none.

use super::bytes::{Bytes, Window};
use super::log_file::{ENTRY_END, ENTRY_HEAD_BYTES, TXN_HEADER_BYTES, split_head};
use crate::base::{Error, Result, Zxid};

const STEP_BYTES: usize = 64 * 1024;
/// What may be read again for places that look like an entry, beside as much as the file has. Only bytes that were
/// made for it need more.
const SPARE_BYTES: u64 = 64 << 20;

/// The first whole entry at `from` or behind it, with its zxid, which is above `last`.
///
/// Half of an old entry cannot be taken for one: ZooKeeper never writes twice into a file.
pub(super) fn find_entry<B: Bytes>(
    window: &mut Window<B>,
    from: u64,
    last: Option<Zxid>,
    limit: u32,
) -> Result<Option<(u64, Zxid)>> {
    let mut budget = window.file_len().saturating_add(SPARE_BYTES);
    let head_bytes = usize::try_from(ENTRY_HEAD_BYTES).unwrap_or(12);
    let mut at = from;
    while at < window.file_len() {
        let piece = window.get(at, STEP_BYTES)?;
        let step = piece.len().saturating_sub(head_bytes - 1).max(1);
        if piece.len() < head_bytes {
            return Ok(None);
        }
        let candidates: Vec<usize> = if piece.iter().all(|byte| *byte == 0) {
            Vec::new()
        } else {
            (0..step).filter(|place| looks_like_one(&piece[*place..], limit)).collect()
        };
        for place in candidates {
            let offset = at + place as u64;
            if let Some(zxid) = whole_entry(window, offset, &mut budget)?.filter(|z| Some(*z) > last) {
                return Ok(Some((offset, zxid)));
            }
        }
        at += step as u64;
    }
    Ok(None)
}

/// A checksum of 32 bits in 64, and a length that a txn can have.
fn looks_like_one(bytes: &[u8], limit: u32) -> bool {
    split_head(bytes).is_some_and(|(checksum, length)| {
        checksum >> 32 == 0
            && u32::try_from(length).is_ok_and(|len| (TXN_HEADER_BYTES..=limit).contains(&len))
    })
}

fn whole_entry<B: Bytes>(window: &mut Window<B>, offset: u64, budget: &mut u64) -> Result<Option<Zxid>> {
    let Some((checksum, length)) = split_head(window.get(offset, 12)?) else { return Ok(None) };
    let len = u64::from(length.unsigned_abs());
    let end = offset + ENTRY_HEAD_BYTES + len;
    if end >= window.file_len() || window.get(end, 1)? != [ENTRY_END] {
        return Ok(None);
    }
    *budget = budget.checked_sub(len).ok_or_else(|| {
        let why = "too many places behind it look like an entry to tell whether one is";
        Error::corrupt("zk_log_damage", why).at_offset(offset)
    })?;
    let payload = window.get(offset + ENTRY_HEAD_BYTES, usize::try_from(len).unwrap_or(usize::MAX))?;
    let holds = u64::from(adler2::adler32_slice(payload)) == checksum;
    let zxid = payload.get(12..20).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    Ok(zxid.filter(|_| holds).map(Zxid::new))
}
