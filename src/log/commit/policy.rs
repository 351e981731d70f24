//! When the group that is forming may start.

use std::time::Duration;

use crate::log::options::{Gather, GroupPolicy};

/// Waits that are worth their while: longer than this, the device has been idle too long.
const ADAPTIVE_BOUND_NS: u64 = 60_000;
/// Above this many writers the processor is busy waking them, and waiting for all only idles the disk.
const ADAPTIVE_WRITERS_MAX: u32 = 24;

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
            let missed = records * 4 < self.expected * 3;
            self.misses = if missed { (self.misses + 1).min(64) } else { self.misses / 2 };
        }
        self.expected = 0;
    }

    /// Whether a group of `records`, the first of which came at `opened_ns`, may start.
    pub(super) fn readiness(&self, records: u32, opened_ns: u64, now_ns: u64) -> Readiness {
        let mut start_ns = opened_ns.saturating_add(self.delay_ns);
        let bound = match self.gather {
            Gather::Off => 0,
            Gather::Always(bound) => nanos(bound),
            // Backs off while waiting does not bring the writers back, and tries again now and then.
            Gather::Adaptive if self.expected > ADAPTIVE_WRITERS_MAX || self.misses > 8 => 0,
            Gather::Adaptive => ADAPTIVE_BOUND_NS,
        };
        if records < self.expected {
            start_ns = start_ns.max(self.released_ns.saturating_add(bound));
        }
        if self.delay_ns == 0 && records >= self.expected || start_ns <= now_ns {
            Readiness::Now
        } else {
            Readiness::At(start_ns)
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
