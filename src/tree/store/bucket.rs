use bytemuck::{Pod, Zeroable};

pub(crate) const SLOTS: usize = 8;

/// A cache line of the index: up to eight entries, those in use before the free ones.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Bucket {
    hashes: [u32; SLOTS],
    /// One more than the number that is found; 0 where there is none.
    numbers: [u32; SLOTS],
}

impl Bucket {
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.numbers[SLOTS - 1] != 0
    }

    /// The number with that hash for which `is` says yes, and where it stands.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        // A byte for each slot, all ones or zero: they are compared together.
        let same = self.hashes.map(|other| if other == hash { u8::MAX } else { 0 });
        let mut hits = u64::from_le_bytes(same);
        while hits != 0 {
            let slot = (hits.trailing_zeros() / u8::BITS) as usize;
            let number = self.numbers[slot].wrapping_sub(1);
            if number != u32::MAX && is(number) {
                return Some((slot, number));
            }
            hits &= !(u64::from(u8::MAX) << (slot * 8));
        }
        None
    }

    /// All entries: hashes with numbers.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, u32)> {
        let numbers = self.numbers.into_iter().take_while(|number| *number != 0);
        self.hashes.into_iter().zip(numbers.map(|number| number - 1))
    }

    /// Adds an entry. There must be room.
    pub(crate) fn push(&mut self, hash: u32, number: u32) {
        let slot = self.numbers.iter().position(|number| *number == 0).expect("the caller has looked");
        (self.hashes[slot], self.numbers[slot]) = (hash, number + 1);
    }

    pub(crate) fn remove(&mut self, slot: usize) {
        let last = self.numbers.iter().rposition(|number| *number != 0).expect("one is to be removed");
        (self.hashes[slot], self.numbers[slot]) = (self.hashes[last], self.numbers[last]);
        (self.hashes[last], self.numbers[last]) = (0, 0);
    }
}
