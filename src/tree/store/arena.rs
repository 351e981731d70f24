use memmap2::MmapMut;

/// Memory is asked of the system in pieces of this size, of which only what is used takes real memory.
const REGION_BYTES: usize = 32 << 20;
/// From so much on it is to come in huge pages, which save most of the misses when a large tree is read at random;
/// a small tree is not to pay for them.
const HUGE_FROM: usize = 2 << 20;

/// The memory grows by this much.
pub(crate) const PIECE_BYTES: usize = 32 << 10;
const REGION_PIECES: usize = REGION_BYTES / PIECE_BYTES;

/// Memory that only grows, in equal pieces that can be found by their number.
///
/// Beside the allocator's for one reason: it can ask for huge pages.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    regions: Vec<MmapMut>,
    pieces: usize,
}

impl Arena {
    /// Adds a piece of zeros and tells its number.
    ///
    /// # Panics
    /// If the system has no memory left, as every allocation does.
    pub(crate) fn add(&mut self) -> usize {
        let number = self.pieces;
        self.pieces += 1;
        if number / REGION_PIECES == self.regions.len() {
            let region = MmapMut::map_anon(REGION_BYTES).expect("there is memory");
            self.regions.push(region);
            if self.regions.len() > 1 {
                self.ask_for_huge_pages();
            }
        } else if self.pieces * PIECE_BYTES == HUGE_FROM {
            self.ask_for_huge_pages();
        }
        number
    }

    fn ask_for_huge_pages(&self) {
        #[cfg(target_os = "linux")]
        if let Some(region) = self.regions.last() {
            // A wish: without it everything works, more slowly.
            let _wish = region.advise(memmap2::Advice::HugePage);
        }
    }

    /// The bytes of a piece.
    pub(crate) fn piece_mut(&mut self, number: usize) -> &mut [u8] {
        &mut self.at_mut(number * PIECE_BYTES)[..PIECE_BYTES]
    }

    /// The bytes from one on, counted over all pieces: those of its piece, and some behind it.
    #[inline]
    pub(crate) fn at(&self, byte: usize) -> &[u8] {
        &self.regions[byte / REGION_BYTES][byte % REGION_BYTES..]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, byte: usize) -> &mut [u8] {
        &mut self.regions[byte / REGION_BYTES][byte % REGION_BYTES..]
    }

    /// How much is in use.
    pub(crate) fn bytes(&self) -> u64 {
        (self.pieces * PIECE_BYTES) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_keep_what_is_written_to_them() {
        let mut arena = Arena::default();
        for number in 0..5000 {
            assert_eq!(arena.add(), number);
            assert!(arena.at(number * PIECE_BYTES)[..PIECE_BYTES].iter().all(|b| *b == 0));
            arena.piece_mut(number).fill(number.to_le_bytes()[0]);
        }
        assert!(
            (0..5000)
                .all(|n| arena.at(n * PIECE_BYTES)[..PIECE_BYTES].iter().all(|b| *b == n.to_le_bytes()[0]))
        );
        assert_eq!(arena.bytes(), 5000 * PIECE_BYTES as u64);
    }
}
