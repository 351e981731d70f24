use std::fmt;

/// The term of a leader. A log never accepts an append of an older epoch than the newest durable one.
///
/// ZooKeeper's epochs have 32 bits (the high half of a [`Zxid`](crate::Zxid)); Raft's terms have 64,
/// so 64 are kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch of a log that no leader has claimed yet.
    pub const ZERO: Epoch = Epoch(0);

    /// From a number.
    pub const fn new(raw: u64) -> Epoch {
        Epoch(raw)
    }

    /// As a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
