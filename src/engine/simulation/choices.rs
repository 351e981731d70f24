use crate::base::Random;
use crate::sim::CrashImage;

/// Where a run takes its choices from.
pub(super) enum Choices<'a> {
    #[cfg_attr(not(test), expect(dead_code, reason = "seeds are for the tests"))]
    Seed(Random),
    /// A fuzzer's, one or two for each choice.
    Bytes(&'a [u8]),
}

impl Choices<'_> {
    /// Whether there is nothing left to choose by.
    pub(super) fn is_at_end(&self) -> bool {
        matches!(self, Choices::Bytes([]))
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        match self {
            Choices::Seed(random) => random.below(bound),
            Choices::Bytes(_) if bound <= 256 => self.byte() % bound.max(1),
            Choices::Bytes(_) => (self.byte() << 8 | self.byte()) % bound,
        }
    }

    pub(super) fn size(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("below a size")
    }

    pub(super) fn number(&mut self) -> u64 {
        match self {
            Choices::Seed(random) => random.next_u64(),
            Choices::Bytes(_) => self.byte(),
        }
    }

    /// What a power cut leaves.
    pub(super) fn image(&mut self) -> CrashImage {
        match self.below(4) {
            0 => CrashImage::DropUnsynced,
            1 => CrashImage::KeepAll,
            _ => CrashImage::Random(self.number()),
        }
    }

    /// The next byte; zero behind the last one.
    fn byte(&mut self) -> u64 {
        let Choices::Bytes(bytes) = self else { return 0 };
        let Some((first, rest)) = bytes.split_first() else { return 0 };
        *bytes = rest;
        u64::from(*first)
    }
}
