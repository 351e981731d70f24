//! Power cuts: which image they leave, and moments to try several images from.

use std::fmt;

use super::content::SECTOR;
use super::disk::SimDisk;
use super::medium::Medium;
use super::state::Settings;
use crate::base::Random;

/// What a power cut keeps of what was not synced.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CrashImage {
    /// Nothing; and no write under way has landed.
    DropUnsynced,
    /// All of it, and all writes under way: also what killing the process alone would leave.
    KeepAll,
    /// A subset drawn from this seed: each sector, each step of the directory, each truncation and each
    /// length on its own, and each sector of the writes under way.
    Random(u64),
}

/// Which side of an operation a moment was taken on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// Just before the operation took effect.
    Before,
    /// Just after it.
    After,
}

/// The disk at one moment, with everything still open that a power cut would decide.
#[derive(Clone)]
pub struct SimMoment {
    pub(super) medium: Medium,
    pub(super) settings: Settings,
    pub(super) seed: u64,
    pub(super) nanos: u64,
    pub(super) operation: u64,
    pub(super) side: Side,
}

impl SimMoment {
    /// The number of the operation beside which this was taken; the first is 1. For a moment taken by
    /// [`SimDisk::moment`], the number of operations so far.
    pub fn operation(&self) -> u64 {
        self.operation
    }

    /// The side of that operation.
    pub fn side(&self) -> Side {
        self.side
    }

    /// A disk as it would come up after a power cut at this moment. Faults, counters and hooks start anew;
    /// the settings and the virtual time carry over.
    pub fn image(&self, image: CrashImage) -> SimDisk {
        SimDisk::after_crash(self, image)
    }
}

impl fmt::Debug for SimMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimMoment")
            .field("operation", &self.operation)
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}

/// Draws what a power cut keeps.
pub(super) enum Dice {
    DropAll,
    KeepAll,
    Draw {
        random: Random,
        /// In how many of eight cases something is kept. Changes with every file: evenly mixed images alone
        /// would hardly ever keep, or drop, all but one of many sectors.
        keep_of_eight: u64,
    },
}

impl Dice {
    pub(super) fn new(image: CrashImage) -> Dice {
        match image {
            CrashImage::DropUnsynced => Dice::DropAll,
            CrashImage::KeepAll => Dice::KeepAll,
            CrashImage::Random(seed) => Dice::Draw { random: Random::from_seed(seed), keep_of_eight: 4 },
        }
    }

    pub(super) fn next_file(&mut self) {
        if let Dice::Draw { random, keep_of_eight } = self {
            *keep_of_eight = [1, 4, 4, 7][index(random, 4)];
        }
    }

    pub(super) fn keep(&mut self) -> bool {
        match self {
            Dice::DropAll => false,
            Dice::KeepAll => true,
            Dice::Draw { random, keep_of_eight } => random.below(8) < *keep_of_eight,
        }
    }

    /// A length from `durable` to `cached`: either, or a sector's boundary between them.
    pub(super) fn between(&mut self, durable: usize, cached: usize) -> usize {
        assert!(durable <= cached, "a shorter cached length is a truncation, which is decided before");
        match self {
            Dice::DropAll => durable,
            Dice::KeepAll => cached,
            Dice::Draw { random, .. } => match random.below(4) {
                0 => durable,
                1 | 2 => cached,
                _ => {
                    let sectors = (cached / SECTOR).saturating_sub(durable / SECTOR);
                    if sectors == 0 {
                        return durable;
                    }
                    (durable / SECTOR + 1 + index(random, sectors)) * SECTOR
                }
            },
        }
    }

    /// Overwrites `sector` with noise, seldom.
    pub(super) fn spoil(&mut self, sector: &mut [u8]) {
        if let Dice::Draw { random, .. } = self
            && random.below(16) == 0
        {
            for byte in sector {
                *byte = random.next_u64().to_le_bytes()[7];
            }
        }
    }
}

/// A random index below `bound`.
pub(super) fn index(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).expect("below a usize")
}
