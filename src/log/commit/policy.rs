//! When the group that is forming may start.

use std::time::Duration;

use crate::log::options::{Gather, GroupPolicy};

/// Waits that are worth their while: longer than this, the device has been idle too long.
const ADAPTIVE_BOUND_NS: u64 = 60_000;
/// More writers than this do not all come back in that time: the processor is busy waking them, and waiting for
/// them only idles the disk.
const WRITERS_MAX: u32 = 24;
/// From so many writers on, the processor is what they are short of: larger groups are fewer groups, and a group
/// that waits passes over fewer of those that are about to run.
const CROWD: u32 = 96;
/// What a crowd is given for each writer, about the time that waking one takes, and at most.
const CROWD_WRITER_NS: u64 = 1_000;
const CROWD_BOUND_NS: u64 = 200_000;

/// Who writes a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leader {
    /// A thread that waits for it.
    Waiter,
    /// A thread of the log: those who wait are tasks, or are called.
    Committer,
}

/// The answer of the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Readiness {
    Now,
    /// Not before this time, unless more records come.
    At(u64),
}

/// The state behind the decision: how many writers the last group has just woken.
#[derive(Debug)]
pub(super) struct Policy {
    delay_ns: u64,
    gather: Gather,
    /// Writers that are expected to come back: those just released and those already waiting.
    expected: u32,
    released_ns: u64,
    /// How often in a row the expected writers did not come back in time.
    misses: u32,
}

impl Policy {
    pub(super) fn new(policy: &GroupPolicy) -> Policy {
        Policy {
            delay_ns: nanos(policy.delay),
            gather: policy.gather,
            expected: 0,
            released_ns: 0,
            misses: 0,
        }
    }

    /// A group of `records` was acknowledged while `waiting` records were forming.
    pub(super) fn released(&mut self, records: u32, waiting: u32, now_ns: u64) {
        self.expected = records.saturating_add(waiting);
        self.released_ns = now_ns;
    }

    /// A group of `records` starts.
    pub(super) fn started(&mut self, records: u32) {
        if self.expected > 1 {
            // Of a crowd it is worth waiting for a part.
            let wanted = if self.expected > WRITERS_MAX {
                self.expected / 4
            } else {
                self.expected - self.expected / 4
            };
            let missed = records < wanted;
            self.misses = if missed { (self.misses + 1).min(64) } else { self.misses / 2 };
        }
        self.expected = 0;
    }

    /// Whether nobody who is expected is missing in a group of `records`: nothing is left to wait for.
    pub(super) fn are_all_here(&self, records: u32) -> bool {
        self.delay_ns == 0 && records >= self.expected
    }

    /// Whether a group of `records`, the first of which came at `opened_ns`, may start.
    pub(super) fn readiness(&self, leader: Leader, records: u32, opened_ns: u64, now_ns: u64) -> Readiness {
        let mut start_ns = opened_ns.saturating_add(self.delay_ns);
        let bound = match self.gather {
            Gather::Off => 0,
            Gather::Always(bound) => nanos(bound),
            // Backs off while waiting does not bring the writers back, and tries again now and then.
            Gather::Adaptive if self.misses > 8 => 0,
            // Tasks cost little to wake: it is the disk that a crowd of them is short of.
            Gather::Adaptive if self.expected > CROWD && leader == Leader::Waiter => {
                (u64::from(self.expected) * CROWD_WRITER_NS).min(CROWD_BOUND_NS)
            }
            Gather::Adaptive if self.expected > WRITERS_MAX => 0,
            Gather::Adaptive => ADAPTIVE_BOUND_NS,
        };
        if records < self.expected {
            start_ns = start_ns.max(self.released_ns.saturating_add(bound));
        }
        if self.are_all_here(records) || start_ns <= now_ns {
            Readiness::Now
        } else {
            Readiness::At(start_ns)
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting_for(released: u32, waiting: u32) -> Policy {
        let mut policy = Policy::new(&GroupPolicy::new());
        policy.released(released, waiting, 0);
        policy
    }

    #[test]
    fn a_group_waits_for_those_who_come_back_soon() {
        for writers in [2, 16, WRITERS_MAX] {
            let policy = waiting_for(writers, 0);
            assert_eq!(policy.readiness(Leader::Waiter, 1, 0, 0), Readiness::At(ADAPTIVE_BOUND_NS));
            assert_eq!(policy.readiness(Leader::Waiter, writers, 0, 0), Readiness::Now);
            assert_eq!(policy.readiness(Leader::Waiter, 1, 0, ADAPTIVE_BOUND_NS), Readiness::Now);
        }
    }

    #[test]
    fn a_crowd_is_waited_for_longer_and_what_is_between_is_not() {
        assert_eq!(waiting_for(30, 20).readiness(Leader::Waiter, 20, 0, 0), Readiness::Now);
        assert_eq!(waiting_for(60, 90).readiness(Leader::Waiter, 90, 0, 0), Readiness::At(150_000));
        assert_eq!(waiting_for(600, 900).readiness(Leader::Waiter, 900, 0, 0), Readiness::At(CROWD_BOUND_NS));
        for (expected, readiness) in [(600, Readiness::Now), (8, Readiness::At(ADAPTIVE_BOUND_NS))] {
            assert_eq!(waiting_for(expected, 0).readiness(Leader::Committer, 1, 0, 0), readiness);
        }
    }

    #[test]
    fn waiting_in_vain_is_given_up_and_tried_again() {
        let mut policy = Policy::new(&GroupPolicy::new());
        let mut turn = |records| {
            policy.released(16, 0, 0);
            let waits = policy.readiness(Leader::Waiter, records, 0, 0) != Readiness::Now;
            policy.started(records);
            waits
        };
        let waited = (0..20).filter(|_| turn(1)).count();
        assert_eq!(waited, 9, "it backs off");
        assert!(!turn(16) && !turn(16), "all are here");
        assert!(turn(15), "it tries again");
    }

    /// Whether waiting is given up after nine rounds in which so many of the released writers came back.
    fn gives_up(released: u32, came: u32) -> bool {
        let mut policy = Policy::new(&GroupPolicy::new());
        for _ in 0..9 {
            policy.released(released, 0, 0);
            policy.started(came);
        }
        policy.released(2, 0, 0);
        policy.readiness(Leader::Waiter, 1, 0, 0) == Readiness::Now
    }

    #[test]
    fn three_quarters_are_enough_and_a_quarter_of_many() {
        for (released, enough) in [(2, 2), (16, 12), (WRITERS_MAX, 18), (WRITERS_MAX + 1, 6), (CROWD + 4, 25)]
        {
            assert!(gives_up(released, enough - 1), "{released}");
            assert!(!gives_up(released, enough), "{released}");
        }
    }

    #[test]
    fn three_good_rounds_are_enough_however_often_it_was_in_vain() {
        for misses in [64, 1000] {
            let mut policy = Policy::new(&GroupPolicy::new());
            let mut turn = |released, records| {
                policy.released(released, 0, 0);
                let waits = policy.readiness(Leader::Waiter, 1, 0, 0) != Readiness::Now;
                policy.started(records);
                waits
            };
            for _ in 0..misses {
                turn(16, 1);
            }
            for good in 0..3 {
                // A writer alone says nothing of others.
                assert!(!turn(1, 1) && !turn(16, 16), "{misses} {good}");
            }
            assert!(turn(16, 16), "{misses}");
        }
    }

    #[test]
    fn the_bound_counts_from_the_release_and_the_delay_from_the_first_record() {
        let always = Gather::Always(Duration::from_micros(100));
        for (gather, delay_us, expected, records, readiness) in [
            (Gather::Off, 0, 16, 1, Readiness::Now),
            (Gather::Adaptive, 0, 16, 1, Readiness::At(5_000 + ADAPTIVE_BOUND_NS)),
            (Gather::Adaptive, 0, CROWD, 1, Readiness::Now),
            (always, 0, 1_000, 1, Readiness::At(105_000)),
            (always, 50, 16, 1, Readiness::At(105_000)),
            (always, 200, 16, 1, Readiness::At(207_000)),
            (always, 50, 16, 16, Readiness::At(57_000)),
        ] {
            let delay = Duration::from_micros(delay_us);
            let mut policy = Policy::new(&GroupPolicy::new().gather(gather).delay(delay));
            policy.released(expected, 0, 5_000);
            let is = policy.readiness(Leader::Waiter, records, 7_000, 7_000);
            assert_eq!(is, readiness, "{gather:?} {delay_us} {expected} {records}");
        }
    }

    #[test]
    fn who_was_released_is_expected_in_the_next_group_alone() {
        let mut policy = waiting_for(16, 0);
        policy.started(1);
        assert_eq!(policy.readiness(Leader::Waiter, 1, 0, 0), Readiness::Now);
    }
}
