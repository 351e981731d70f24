//! Whether a whole entry follows behind bytes that are none.

use std::ops::{Bound, RangeBounds};

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
    passed: &[impl RangeBounds<u64>],
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
            // Each range is left for good: a torn multi may have as many as there are places that look like an entry.
            let is_behind =
                |range: &&_| matches!(RangeBounds::end_bound(*range), Bound::Excluded(end) if *end <= offset);
            while passed.next_if(is_behind).is_some() {}
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
    use std::cell::Cell;
    use std::io;
    use std::ops::Range;

    use super::*;

    const NONE: &[Range<u64>] = &[];

    /// A range that counts how often it is looked at.
    struct Looked<'a>(Range<u64>, &'a Cell<u64>);

    impl RangeBounds<u64> for Looked<'_> {
        fn start_bound(&self) -> Bound<&u64> {
            self.1.update(|count| count + 1);
            self.0.start_bound()
        }

        fn end_bound(&self) -> Bound<&u64> {
            self.1.update(|count| count + 1);
            self.0.end_bound()
        }
    }

    /// Memory that counts how much of it is read.
    struct Read<'a>(&'a [u8], &'a Cell<u64>);

    impl Bytes for Read<'_> {
        fn len_bytes(&self) -> io::Result<u64> {
            self.0.len_bytes()
        }

        fn read_bytes_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read_bytes_at(offset, buf)?;
            self.1.update(|count| count + read as u64);
            Ok(read)
        }
    }

    /// A multi of many small operations, whose data look like entries, each of them.
    #[test]
    fn lg_04_a_torn_multi_costs_as_much_as_it_is_long() {
        const COUNT: u64 = 20_000;
        let head = [&[0; 4][..], &[0xab; 4], &40_u32.to_be_bytes()].concat();
        let one = [&[0xff; 20][..], &head, &[0xff; 8]].concat();
        let bytes: Vec<u8> = one.iter().copied().cycle().take(40 * 20_000).collect();
        let (looks, read) = (Cell::new(0), Cell::new(0));
        let passed: Vec<Looked<'_>> =
            (0..COUNT).map(|number| Looked(40 * number + 20..40 * number + 32, &looks)).collect();
        let mut window = Window::new(Read(&bytes, &read)).unwrap();
        assert_eq!(find_entry(&mut window, 0, &passed, None, 1 << 20).unwrap(), None);
        let looks = looks.get();
        // Thrice to see that it is the one, and once to leave it behind.
        assert!((2 * COUNT..=5 * COUNT).contains(&looks), "{looks}");
        assert!(read.get() <= 2 * bytes.len() as u64, "{} of {}", read.get(), bytes.len());
    }

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
        let found = find_entry(&mut window, from, NONE, Some(Zxid::new(8)), 1 << 20).unwrap();
        assert_eq!(found, Some((entry_at, Zxid::new(9))));
        assert_eq!(find_entry(&mut window, (5 << 30) - 100_000, NONE, None, 1 << 20).unwrap(), None);
    }
}
