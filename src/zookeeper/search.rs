//! Whether a whole entry follows behind bytes that are none.

use std::ops::Range;

use super::bytes::{Bytes, Window};
use super::log_file::{ENTRY_END, ENTRY_HEAD_BYTES, TXN_HEADER_BYTES, split_head};
use crate::base::{Error, Result, Zxid};

const STEP_BYTES: usize = 64 * 1024;
/// What may be read again for places that look like an entry, beside as much as the file has. Only bytes that were
/// made for it need more.
const SPARE_BYTES: u64 = 64 << 20;

/// The first whole entry at `from` or behind it, with its zxid, which is above `last`.
///
/// Half of an old entry cannot be taken for one: ZooKeeper never writes twice into a file. What begins in one of the ranges
/// `passed`, which are in order, is none.
pub(super) fn find_entry<B: Bytes>(
    window: &mut Window<B>,
    from: u64,
    passed: &[Range<u64>],
    last: Option<Zxid>,
    limit: u32,
) -> Result<Option<(u64, Zxid)>> {
    let mut budget = window.file_len().saturating_add(SPARE_BYTES);
    let head_bytes = usize::try_from(ENTRY_HEAD_BYTES).unwrap_or(12);
    let (mut at, mut passed) = (from, passed.iter().peekable());
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
            while passed.next_if(|range| range.end <= offset).is_some() {}
            if passed.peek().is_some_and(|range| range.contains(&offset)) {
                continue;
            }
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

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Zeros, with an entry somewhere.
    struct Virtual {
        len: u64,
        entry_at: u64,
        entry: Vec<u8>,
    }

    impl Bytes for Virtual {
        fn len_bytes(&self) -> io::Result<u64> {
            Ok(self.len)
        }

        fn read_bytes_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
            let len = buf.len().min(usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX));
            for (at, byte) in (offset..).zip(&mut buf[..len]) {
                let inside =
                    at.checked_sub(self.entry_at).and_then(|at| self.entry.get(usize::try_from(at).ok()?));
                *byte = inside.copied().unwrap_or(0);
            }
            Ok(len)
        }
    }

    #[test]
    fn lg_04_an_entry_beyond_4_gib_is_found_at_its_place() {
        let mut payload = vec![0; 40];
        payload[19] = 9;
        let mut entry = u64::from(adler2::adler32_slice(&payload)).to_be_bytes().to_vec();
        entry.extend(40_u32.to_be_bytes());
        entry.extend(&payload);
        entry.push(ENTRY_END);
        let entry_at = (4 << 30) + 77;
        let mut window = Window::new(Virtual { len: 5 << 30, entry_at, entry }).unwrap();
        let from = (4 << 30) - 1_000_000;
        let found = find_entry(&mut window, from, &[], Some(Zxid::new(8)), 1 << 20).unwrap();
        assert_eq!(found, Some((entry_at, Zxid::new(9))));
        assert_eq!(find_entry(&mut window, (5 << 30) - 100_000, &[], None, 1 << 20).unwrap(), None);
    }
}
