/// How long after a txn was logged writers are taken to be busy. A snapshot at full speed delays the very txns that would
/// show that there are writers, and writes much between two of them.
const BUSY_NS: u64 = 100_000_000;

/// How long a snapshot's writer waits after each write and each read of a piece, so that the disk is there for the log.
#[derive(Debug)]
pub(super) struct Pace {
    /// The most bytes a second, whatever else there is to do.
    bound: Option<u64>,
    /// The most while txns are logged.
    beside_writers: Option<u64>,
    /// When the last wait was to end.
    ended_ns: u64,
    /// Until when writers are busy.
    busy_until_ns: u64,
}

impl Pace {
    pub(super) fn new(bound: Option<u64>, beside_writers: Option<u64>, now_ns: u64) -> Pace {
        Pace { bound, beside_writers, ended_ns: now_ns, busy_until_ns: 0 }
    }

    /// How long to wait after so many bytes were written. The time that they took counts; what was slower than it had
    /// to be is not made up for by a burst. `has_logged`: whether a txn was logged since the last call.
    pub(super) fn wait_ns(&mut self, bytes: u64, now_ns: u64, has_logged: bool) -> u64 {
        if has_logged {
            self.busy_until_ns = now_ns + BUSY_NS;
        }
        let beside_writers = self.beside_writers.filter(|_| now_ns < self.busy_until_ns);
        let rate = [self.bound, beside_writers].into_iter().flatten().min();
        let takes_ns = rate.map_or(0, |rate| bytes.saturating_mul(1_000_000_000) / rate.max(1));
        let end_ns = now_ns.max(self.ended_ns.saturating_add(takes_ns));
        self.ended_ns = end_ns;
        end_ns - now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_holds_beside_writers_and_not_without() {
        let mut pace = Pace::new(None, Some(1000), 0);
        assert_eq!(pace.wait_ns(100, 5, false), 0);
        // A tenth of a second since the last one ended, less what the write took.
        assert_eq!(pace.wait_ns(100, 30_000_005, true), 70_000_000);
        assert_eq!(pace.wait_ns(100, 100_000_005, true), 100_000_000);
        // It took a second by itself: no wait now, and no burst later.
        assert_eq!(pace.wait_ns(100, 1_200_000_005, true), 0);
        assert_eq!(pace.wait_ns(100, 1_200_000_005, true), 100_000_000);
        assert_eq!(pace.wait_ns(u64::MAX, 1_300_000_005, false), 0);
    }

    #[test]
    fn a_writer_that_rests_for_a_moment_is_one_still() {
        let mut pace = Pace::new(None, Some(1000), 0);
        assert_eq!(pace.wait_ns(1, 0, true), 1_000_000);
        assert_eq!(pace.wait_ns(1, 50_000_000, false), 0, "it took longer by itself");
        assert_eq!(pace.wait_ns(1, 50_000_000, false), 1_000_000);
        assert_eq!(pace.wait_ns(1, BUSY_NS, false), 0, "nobody writes");
    }

    #[test]
    fn the_lower_of_two_bounds_holds() {
        for (bound, beside, busy, expected) in [
            (Some(10), Some(1000), true, 10),
            (Some(1000), Some(10), true, 10),
            (Some(1000), Some(10), false, 1000),
            (Some(1000), None, true, 1000),
        ] {
            let mut pace = Pace::new(bound, beside, 0);
            assert_eq!(pace.wait_ns(1, 0, busy), 1_000_000_000 / expected);
        }
        assert_eq!(Pace::new(None, None, 0).wait_ns(u64::MAX, 7, true), 0);
    }
}
