//! CRC-32 (IEEE, the polynomial of zlib) by `crc32fast`, and the fold that ties records to their group.

/// CRC-32 of `bytes`, starting from `seed` so that equal bytes of another life have another checksum.
pub(crate) fn crc32(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    hasher.update(bytes);
    hasher.finalize()
}

/// A CRC-32 that is not at its end: more bytes may come. What the processor can do for it is asked once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crc32(crc32fast::Hasher);

impl Crc32 {
    /// One that starts from `seed`, as [`crc32`] does.
    pub(crate) fn seeded(seed: u32) -> Crc32 {
        Crc32(crc32fast::Hasher::new_with_initial(seed))
    }

    /// Of several runs of bytes, one behind the other.
    #[inline]
    pub(crate) fn of<const N: usize>(parts: [&[u8]; N]) -> Crc32 {
        let mut crc = Crc32::default();
        parts.iter().for_each(|part| crc.0.update(part));
        crc
    }

    /// Its value with these bytes behind the others.
    #[inline]
    pub(crate) fn and(mut self, bytes: &[u8]) -> u32 {
        self.0.update(bytes);
        self.0.finalize()
    }
}

/// By what the CRC-32 of some bytes changes if they, or those at their end, are changed by `difference`, exclusive or.
/// A CRC is linear but for what it begins and ends with, which is the same for both.
pub(crate) fn crc32_of_difference(difference: &[u8]) -> u32 {
    !crc32(u32::MAX, difference)
}

/// Folds the header checksums of a group's records, in order, into the 64 bits that its group header carries.
///
/// A record is already covered by its own checksums; the fold makes sure that exactly these records, in
/// this order, belong to this group. It is a mixing step, not a checksum: one multiplication a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fold(u64);

impl Fold {
    pub(crate) const fn new() -> Fold {
        Fold(0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn add(&mut self, header_crc: u32) {
        // The multiplier is the 64-bit golden ratio; the rotation carries high bits back down so that
        // order matters in every bit.
        self.0 = (self.0.rotate_left(23) ^ u64::from(header_crc)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_is_the_one_of_zlib_when_unseeded() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_ne!(crc32(1, b"123456789"), crc32(0, b"123456789"));
        assert_eq!(Crc32::of([b"12", b"", b"345"]).and(b"6789"), 0xcbf4_3926);
        let (changed, difference) = (b"123466789", [0, 0, 0, 0, b'5' ^ b'6', 0, 0, 0, 0]);
        assert_eq!(crc32(0, changed), 0xcbf4_3926 ^ crc32_of_difference(&difference));
        assert_eq!(crc32_of_difference(&difference), crc32_of_difference(&difference[4..]));
    }

    #[test]
    fn fold_sees_order_and_loss() {
        let fold = |list: &[u32]| {
            list.iter()
                .fold(Fold::new(), |mut f, &c| {
                    f.add(c);
                    f
                })
                .value()
        };
        assert_ne!(fold(&[1, 2, 3]), fold(&[1, 3, 2]));
        assert_ne!(fold(&[1, 2, 3]), fold(&[1, 2]));
        assert_ne!(fold(&[0]), fold(&[0, 0]));
    }
}
