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

/// Slots, a byte of ones for each.
pub(crate) struct Hits(u64);

impl Iterator for Hits {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let slot = self.0.trailing_zeros() / u8::BITS;
        self.0 &= !(u64::from(u8::MAX).checked_shl(slot * u8::BITS)?);
        Some(slot as usize)
    }
}

impl Bucket {
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.numbers[SLOTS - 1] != 0
    }

    /// The slots that have this hash, and perhaps free ones.
    #[inline]
    pub(crate) fn hits(&self, hash: u32) -> Hits {
        // A byte for each slot, all ones or zero: they are compared together.
        Hits(u64::from_le_bytes(self.hashes.map(|other| if other == hash { u8::MAX } else { 0 })))
    }

    /// The number at a slot; none if it is free.
    #[inline]
    pub(crate) fn number(&self, slot: usize) -> Option<u32> {
        self.numbers[slot].checked_sub(1)
    }

    /// All entries: hashes with numbers.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, u32)> {
        let numbers = self.numbers.into_iter().take_while(|number| *number != 0);
        self.hashes.into_iter().zip(numbers.map(|number| number - 1))
    }

    /// How many entries it has. Counted without a branch, as that would often be guessed wrong.
    #[inline]
    fn len(&self) -> usize {
        self.numbers.iter().map(|number| usize::from(*number != 0)).sum()
    }

    /// Adds an entry. There must be room.
    pub(crate) fn push(&mut self, hash: u32, number: u32) {
        let slot = self.len();
        (self.hashes[slot], self.numbers[slot]) = (hash, number + 1);
    }

    /// Removes the entry at a slot that is in use.
    pub(crate) fn remove(&mut self, slot: usize) {
        let last = self.len() - 1;
        (self.hashes[slot], self.numbers[slot]) = (self.hashes[last], self.numbers[last]);
        (self.hashes[last], self.numbers[last]) = (0, 0);
    }
}
