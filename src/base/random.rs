//! A small deterministic generator (`SplitMix64`), seeded from the system or from a test's seed.

use std::hash::{BuildHasher, Hasher};

/// `SplitMix64` (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, OOPSLA 2014).
///
/// Good enough for identities and salts; not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    #[cfg(any(test, feature = "sim"))]
    pub(crate) const fn from_seed(seed: u64) -> Random {
        Random(seed)
    }

    /// Seeded by the standard library's per-process random keys, the process id and an address.
    pub(crate) fn from_system() -> Random {
        let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        Random(hasher.finish())
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no number");
        self.next_u64() % bound
    }
}
