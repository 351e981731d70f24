//! When the group that is forming may start.

use std::time::Duration;

use crate::log::options::{Gather, GroupPolicy};

/// How long those who were just woken are waited for: they come back one after the other. The last of 64 threads on two
/// processors is back after about 150 us, and what is gained by one group less is more than what a bound that rarely runs
/// out costs; of a few, who is not back soon does something else first (decision 0002).
const BOUND_NS: u64 = 60_000;
const BOUND_WRITER_NS: u64 = 4_000;
/// So much for each where a snapshot's thread may hold up one or another of them, and all would wait with it.
const BOUND_WRITER_OVERLAPPING_NS: u64 = 2_000;
const BOUND_MAX_NS: u64 = 300_000;
/// More writers than this are a crowd: one half is waited for, and while its group is written, the other half is woken.
const ONE_COHORT_MAX: u32 = 64;
/// The same where what a writer does for its record takes longer than the record's share of a write.
const ONE_COHORT_MAX_OVERLAPPING: u32 = 16;
/// Who did not come back in time, twice in a row, is not waited for again in so many groups: two waits in vain of these
/// are above the 99th percentile. Who comes back in time now and then is waited for.
const GROUPS_WITHOUT_ABSENT: u32 = 256;

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
    one_cohort_max: u32,
    /// Writers that are expected to come back: those just released and those already waiting.
    expected: u32,
    released_ns: u64,
    /// Most records of the last group had a thread each. Else a few threads append many each, and there are few to wake.
    is_one_each: bool,
    /// Somebody was told to wait for the group that is forming.
    has_waited: bool,
    /// How many were missing in the last group for which somebody waited; one such group alone may have met a hiccup.
    missing: u32,
    /// How many of those expected are not waited for, since they were missing twice in a row.
    absent: u32,
    /// Groups since then.
    groups_without_absent: u32,
}

impl Policy {
    pub(super) fn new(policy: &GroupPolicy) -> Policy {
        let one_cohort_max = match policy.gather {
            Gather::Overlapping => ONE_COHORT_MAX_OVERLAPPING,
            Gather::Off | Gather::Always(_) | Gather::Adaptive => ONE_COHORT_MAX,
        };
        Policy {
            delay_ns: nanos(policy.delay),
            gather: policy.gather,
            one_cohort_max,
            expected: 0,
            released_ns: 0,
            is_one_each: false,
            has_waited: false,
            missing: 0,
            absent: 0,
            groups_without_absent: 0,
        }
    }

    /// A group of `records` was acknowledged while `waiting` records were forming.
    pub(super) fn released(&mut self, records: u32, waiting: u32, now_ns: u64) {
        self.expected = records.saturating_add(waiting);
        self.released_ns = now_ns;
        self.groups_without_absent += 1;
        if self.groups_without_absent >= GROUPS_WITHOUT_ABSENT {
            (self.absent, self.missing, self.groups_without_absent) = (0, 0, 0);
        }
    }

    /// A group of `records` starts, of which `attended` have a thread each that waits for them.
    pub(super) fn started(&mut self, records: u32, attended: u32) {
        if std::mem::take(&mut self.has_waited) {
            self.learn(records);
        }
        self.is_one_each = attended > records / 2;
        self.expected = 0;
    }

    /// Who did not come, although they were waited for, until `records` were here.
    fn learn(&mut self, records: u32) {
        let came = if self.comes_in_halves() { records.saturating_mul(2) } else { records };
        let missing = if records < self.wanted() { self.expected.saturating_sub(came) } else { 0 };
        let before = std::mem::replace(&mut self.missing, missing);
        if missing > 0 && before > 0 {
            (self.absent, self.groups_without_absent) = (missing.min(before), 0);
        }
    }

    /// Whether nobody who is waited for is missing in a group of `records`.
    pub(super) fn are_all_here(&self, records: u32) -> bool {
        self.delay_ns == 0 && records >= self.wanted()
    }

    /// Whether a group of `records`, the first of which came at `opened_ns`, may start.
    pub(super) fn readiness(
        &mut self,
        leader: Leader,
        records: u32,
        opened_ns: u64,
        now_ns: u64,
    ) -> Readiness {
        let mut start_ns = opened_ns.saturating_add(self.delay_ns);
        let bound = match self.gather {
            Gather::Off => 0,
            Gather::Always(bound) => nanos(bound),
            // Tasks cost little to wake: it is the disk that a crowd of them is short of.
            Gather::Adaptive | Gather::Overlapping if leader == Leader::Committer && self.is_crowd() => 0,
            Gather::Adaptive => bound_ns(self.present(), BOUND_WRITER_NS),
            Gather::Overlapping => bound_ns(self.present(), BOUND_WRITER_OVERLAPPING_NS),
        };
        if records < self.wanted() {
            start_ns = start_ns.max(self.released_ns.saturating_add(bound));
        }
        if self.are_all_here(records) || start_ns <= now_ns {
            Readiness::Now
        } else {
            self.has_waited = true;
            Readiness::At(start_ns)
        }
    }

    /// How many records a group waits for.
    fn wanted(&self) -> u32 {
        match self.gather {
            Gather::Off | Gather::Always(_) => self.expected,
            Gather::Adaptive | Gather::Overlapping if self.comes_in_halves() => self.present() / 2,
            Gather::Adaptive | Gather::Overlapping => self.present(),
        }
    }

    /// A few threads that append many records each are all here soon, however many records these are.
    fn comes_in_halves(&self) -> bool {
        self.is_crowd() && (self.is_one_each || self.gather == Gather::Overlapping)
    }

    fn is_crowd(&self) -> bool {
        self.present() > self.one_cohort_max
    }

    /// Those expected without those who did not come.
    fn present(&self) -> u32 {
        self.expected.saturating_sub(self.absent)
    }
}

fn bound_ns(writers: u32, each_ns: u64) -> u64 {
    (BOUND_NS + u64::from(writers) * each_ns).min(BOUND_MAX_NS)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(gather: Gather) -> Policy {
        Policy::new(&GroupPolicy::new().gather(gather))
    }

    /// One turn of a closed loop: `released` are woken, `came` of them are here when the time is up. Tells whether these
    /// had to wait.
    fn turn(policy: &mut Policy, released: u32, came: u32) -> bool {
        policy.released(released, 0, 0);
        let waits = policy.readiness(Leader::Waiter, came, 0, 0) != Readiness::Now;
        policy.started(came, came);
        waits
    }

    /// How many a group waits for if so many were released.
    fn wanted(policy: &mut Policy, released: u32, leader: Leader) -> u32 {
        policy.released(released, 0, 0);
        let waits = |records: &u32| policy.readiness(leader, *records, 0, 0) != Readiness::Now;
        1 + (1..released + 2).rev().find(waits).unwrap_or(0)
    }

    #[test]
    fn a_group_waits_for_all_who_come_back_and_not_for_ever() {
        for (gather, writers, bound_ns) in [
            (Gather::Adaptive, 2, 68_000),
            (Gather::Adaptive, 16, 124_000),
            (Gather::Adaptive, 64, 300_000),
            (Gather::Overlapping, 2, 64_000),
            (Gather::Overlapping, 16, 92_000),
        ] {
            let mut policy = policy(gather);
            policy.released(writers - 1, 1, 500);
            let bound = Readiness::At(500 + bound_ns);
            assert_eq!(policy.readiness(Leader::Waiter, writers - 1, 600, 600), bound);
            assert_eq!(policy.readiness(Leader::Waiter, writers, 600, 600), Readiness::Now);
            assert_eq!(policy.readiness(Leader::Waiter, 1, 600, 500 + bound_ns), Readiness::Now);
        }
    }

    #[test]
    fn of_a_crowd_one_half_is_waited_for_and_by_a_committer_nobody() {
        for (gather, one_cohort_max) in [(Gather::Adaptive, 64), (Gather::Overlapping, 16)] {
            let mut policy = policy(gather);
            turn(&mut policy, 2, 2);
            let mut wanted = |released, leader| wanted(&mut policy, released, leader);
            assert_eq!(wanted(one_cohort_max, Leader::Waiter), one_cohort_max, "{gather:?}");
            assert_eq!(wanted(one_cohort_max, Leader::Committer), one_cohort_max, "{gather:?}");
            assert_eq!(wanted(one_cohort_max + 2, Leader::Waiter), one_cohort_max / 2 + 1, "{gather:?}");
            assert_eq!(wanted(one_cohort_max + 2, Leader::Committer), 1, "{gather:?}");
        }
    }

    #[test]
    fn few_threads_that_append_many_records_each_are_no_two_halves() {
        for (attended, expected) in [(50, 100), (51, 50)] {
            let mut policy = policy(Gather::Adaptive);
            policy.started(100, attended);
            assert_eq!(wanted(&mut policy, 100, Leader::Waiter), expected);
        }
        let mut policy = policy(Gather::Overlapping);
        policy.started(100, 0);
        assert_eq!(wanted(&mut policy, 100, Leader::Waiter), 50);
    }

    #[test]
    fn who_is_missing_twice_in_a_row_is_not_waited_for() {
        let mut policy = policy(Gather::Adaptive);
        assert!(turn(&mut policy, 16, 12));
        assert_eq!(wanted(&mut policy, 16, Leader::Waiter), 16, "once is a hiccup");
        assert!(turn(&mut policy, 16, 13));
        assert_eq!(wanted(&mut policy, 16, Leader::Waiter), 13, "the fewer of the two");
        assert!(!turn(&mut policy, 16, 13), "and nobody waits in vain any more");
        policy.released(16, 0, 0);
        assert_ne!(policy.readiness(Leader::Waiter, 12, 0, 0), Readiness::Now);
        policy.started(13, 13);
        assert!(turn(&mut policy, 16, 12));
        assert_eq!(wanted(&mut policy, 16, Leader::Waiter), 13, "a hiccup does not bring back who is absent");
    }

    #[test]
    fn a_group_that_is_complete_in_between_forgives() {
        let mut policy = policy(Gather::Adaptive);
        for _ in 0..20 {
            assert!(turn(&mut policy, 16, 12));
            // Waited for, and come: the second look finds all.
            policy.released(16, 0, 0);
            assert_ne!(policy.readiness(Leader::Waiter, 15, 0, 0), Readiness::Now);
            policy.started(16, 16);
        }
        assert_eq!(wanted(&mut policy, 16, Leader::Waiter), 16);
    }

    #[test]
    fn of_a_crowd_twice_what_came_is_there() {
        let mut policy = policy(Gather::Adaptive);
        turn(&mut policy, 200, 200);
        for came in [90, 80] {
            assert!(turn(&mut policy, 200, came));
        }
        assert_eq!(
            wanted(&mut policy, 200, Leader::Waiter),
            90,
            "twenty are absent, the others come in halves"
        );
    }

    #[test]
    fn who_was_absent_is_waited_for_again_some_time_later() {
        let mut policy = policy(Gather::Adaptive);
        let mut waits = |groups: u32| (0..groups).filter(|_| turn(&mut policy, 4, 1)).count();
        assert_eq!(waits(2), 2);
        assert_eq!(waits(GROUPS_WITHOUT_ABSENT - 1), 0);
        assert_eq!(waits(3), 2, "twice again, and no more");
    }

    #[test]
    fn nothing_is_learned_where_nobody_waited() {
        let mut policy = policy(Gather::Adaptive);
        for _ in 0..5 {
            // A log at rest: the next record comes long after the last group.
            policy.released(16, 0, 0);
            assert_eq!(policy.readiness(Leader::Waiter, 1, 1_000_000, 1_000_000), Readiness::Now);
            policy.started(1, 1);
        }
        assert_eq!(wanted(&mut policy, 16, Leader::Waiter), 16);
    }

    #[test]
    fn the_bound_counts_from_the_release_and_the_delay_from_the_first_record() {
        let always = Gather::Always(Duration::from_micros(100));
        for (gather, delay_us, expected, records, readiness) in [
            (Gather::Off, 0, 16, 1, Readiness::Now),
            (Gather::Adaptive, 0, 16, 1, Readiness::At(5_000 + 124_000)),
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
        let mut policy = policy(Gather::Adaptive);
        policy.released(16, 0, 0);
        policy.started(1, 1);
        assert_eq!(policy.readiness(Leader::Waiter, 1, 0, 0), Readiness::Now);
    }
}
