//! Numbers of as many bytes as they need: seven bits a byte, the lowest first.

/// Appends a number.
pub(super) fn put_u64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends a number near zero, on either side.
pub(super) fn put_i64(out: &mut Vec<u8>, value: i64) {
    put_u64(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// What is left of a body while it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    pub(super) fn at(self) -> usize {
        self.at
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let first = *self.bytes.get(self.at)?;
        self.at += 1;
        if first < 0x80 {
            return Some(first.into());
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            let bits = u64::from(byte & 0x7f);
            value |= bits << shift;
            if byte < 0x80 {
                // Of the tenth byte one bit counts.
                return (bits << shift >> shift == bits).then_some(value);
            }
        }
        None
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        let value = self.u64()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        i32::try_from(self.i64()?).ok()
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = *self.bytes.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(array)
    }

    /// Where so many bytes are as the number before them says.
    pub(super) fn range(&mut self) -> Option<(u32, u32)> {
        let len = usize::try_from(self.u64()?).ok()?;
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len())?;
        let range = (u32::try_from(self.at).ok()?, u32::try_from(end).ok()?);
        self.at = end;
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_u64(&mut out, value);
            put_i64(&mut out, value.cast_signed());
            let mut cursor = Cursor::new(&out, 0);
            assert_eq!((cursor.u64(), cursor.i64()), (Some(value), Some(value.cast_signed())));
            assert_eq!((cursor.at(), cursor.u64()), (out.len(), None));
        }
        assert_eq!(Cursor::new(&[0xff; 11], 0).u64(), None);
        assert_eq!(Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], 0).u64(), None);
        assert_eq!(Cursor::new(&[200, 1, 0], 0).range(), None);
    }
}
