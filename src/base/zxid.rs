use std::fmt;

use super::{Epoch, Error, ErrorKind, Result};

/// The identifier of a transaction, and its place in the one total order.
///
/// In ZooKeeper's numbering the epoch of the leader stands in the high 32 bits and a counter in the
/// low 32 (Junqueira, Reed, Serafini: *Zab*, DSN 2011). The log itself asks only that identifiers
/// rise strictly, so a Raft index fits as well; see [`Numbering`](crate::Numbering).
///
/// `Zxid::ZERO` stands for "before the first transaction" and is never the identifier of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Zxid(u64);

impl Zxid {
    /// Before the first transaction.
    pub const ZERO: Zxid = Zxid(0);
    /// The largest identifier.
    pub const MAX: Zxid = Zxid(u64::MAX);

    /// From the raw 64 bits.
    pub const fn new(raw: u64) -> Zxid {
        Zxid(raw)
    }

    /// From its two halves. Takes the counter as it is, zero included.
    pub const fn from_parts(epoch: u32, counter: u32) -> Zxid {
        Zxid(((epoch as u64) << 32) | counter as u64)
    }

    /// The raw 64 bits.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The high 32 bits: the epoch of the leader that proposed it, in ZooKeeper's numbering.
    pub const fn epoch(self) -> Epoch {
        Epoch::new(self.0 >> 32)
    }

    /// The low 32 bits: the counter within the epoch, in ZooKeeper's numbering.
    pub const fn counter(self) -> u32 {
        (self.0 & 0xffff_ffff) as u32
    }

    /// The identifier after this one in the same epoch.
    ///
    /// # Errors
    /// [`ErrorKind::CounterExhausted`] when the 32-bit counter is at its end: a carry would forge the
    /// next epoch (ZOOKEEPER-1277). The server has to elect a new epoch.
    pub fn next_in_epoch(self) -> Result<Zxid> {
        if self.counter() == u32::MAX {
            return Err(Error::new(
                ErrorKind::CounterExhausted,
                "counter_exhausted",
                format!("the counter of {self} is at its end; start a new epoch"),
            ));
        }
        Ok(Zxid(self.0 + 1))
    }

    /// The identifier after this one as a plain number: for a log whose identifiers are indexes.
    ///
    /// # Errors
    /// [`ErrorKind::CounterExhausted`] at `u64::MAX`.
    pub fn next_index(self) -> Result<Zxid> {
        self.0.checked_add(1).map(Zxid).ok_or_else(|| {
            Error::new(
                ErrorKind::CounterExhausted,
                "counter_exhausted",
                "the 64-bit index is at its end".into(),
            )
        })
    }
}

impl fmt::Display for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

impl fmt::Debug for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_trip() {
        let zxid = Zxid::from_parts(7, 42);
        assert_eq!((zxid.epoch().get(), zxid.counter(), zxid.get()), (7, 42, (7 << 32) + 42));
        assert_eq!(zxid.to_string(), "0x70000002a");
    }

    #[test]
    fn ep_01_counter_never_carries_into_the_epoch() {
        let last = Zxid::from_parts(7, u32::MAX);
        assert_eq!(last.next_in_epoch().unwrap_err().kind(), ErrorKind::CounterExhausted);
        assert_eq!(Zxid::from_parts(7, u32::MAX - 1).next_in_epoch().unwrap(), last);
        assert_eq!(last.next_index().unwrap(), Zxid::from_parts(8, 0));
        assert!(Zxid::MAX.next_index().is_err());
    }
}
