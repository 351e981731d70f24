use std::sync::atomic::Ordering;
use std::time::Duration;

use super::shared::{Inner, Shared};
use crate::base::{HotGuard, Result};
use crate::format::SegmentFill;
use crate::log::commit::ActiveSegment;
use crate::log::prepare::Preparation;

/// How long to let a full or failing disk be before the next attempt.
const RETRY: Duration = Duration::from_millis(200);

/// So many times as long while the log is at rest.
const RETRIES_AT_REST: u32 = 10;

/// A segment up to this size is prepared in no time.
const SMALL: u64 = 1 << 20;

/// A log in which nothing was written for this long is at rest: what is prepared then disturbs nobody.
const QUIET: Duration = Duration::from_millis(20);

impl Shared {
    /// The body of the preparer: keeps one segment ready behind the one in use, made while nothing is written if it can.
    pub(super) fn prepare_in_background(&self) {
        self.clear_leftovers();
        while let Some(mut preparation) = self.next_preparation() {
            let outcome = loop {
                match preparation.step() {
                    Ok(None) => {}
                    Ok(Some(segment)) => break Ok(segment),
                    Err(error) => break Err(error),
                }
                if !self.pace(&preparation) {
                    // Half a segment is of no use to the next open, which would remove it. After a failure nothing is touched.
                    if self.failure().is_none() {
                        preparation.abandon();
                    }
                    return;
                }
            };
            let failed = outcome.is_err();
            self.prepared(&preparation, outcome);
            let mut inner = self.inner.lock();
            if failed {
                self.rest_after_failure(&mut inner);
            }
            inner.is_preparing = false;
        }
    }

    /// Has the next record begin a new segment.
    pub(crate) fn roll(&self) {
        let mut inner = self.inner.lock();
        inner.core.roll_next();
        if inner.core.wants_next() {
            inner.segment_wanted = true;
            self.prepare.notify_all();
        }
    }

    /// Clears away what the open found and had no time for: the part that the simulator runs as well.
    pub(crate) fn clear_leftovers(&self) {
        let leftovers = std::mem::take(&mut *self.leftovers.lock());
        leftovers.iter().for_each(|leftover| leftover.clear(self.directory.disk().as_ref()));
    }

    /// Takes in how a preparation ended: the part that the simulator runs as well.
    pub(crate) fn prepared(&self, preparation: &Preparation, outcome: Result<ActiveSegment>) {
        let mut inner = self.inner.lock();
        match outcome {
            Ok(segment) => {
                inner.next_seq += 1;
                inner.prepare_failure = None;
                inner.core.provide(segment);
            }
            Err(error) => {
                inner.stats.prepare_failed();
                // Who needs the segment is told of what has failed then.
                if preparation.is_needed() {
                    inner.prepare_failure = Some(error.clone());
                }
                if preparation.is_name_unsure() {
                    drop(inner);
                    self.fail(error);
                }
            }
        }
        self.room.notify_all();
    }

    /// Longer while nobody is in need of the segment.
    fn rest_after_failure(&self, inner: &mut HotGuard<'_, Inner>) {
        for rest in 0..RETRIES_AT_REST {
            let is_wanted = Self::is_time_to_prepare(inner) || self.stop.load(Ordering::Acquire);
            if rest > 0 && is_wanted {
                return;
            }
            self.prepare.wait_for(inner, RETRY);
        }
    }

    /// Waits until a segment is wanted. `None`: the log is closing.
    fn next_preparation(&self) -> Option<Preparation> {
        let mut inner = self.inner.lock();
        loop {
            if self.stop.load(Ordering::Acquire) || inner.core.failure().is_some() {
                return None;
            }
            let wants = inner.core.wants_next();
            if wants && (Self::is_time_to_prepare(&inner) || self.is_quiet(&inner)) {
                inner.segment_wanted = false;
                inner.is_preparing = true;
                let mut preparation = self.preparation(&mut inner);
                if !Self::is_time_to_prepare(&inner) && inner.plan.fill != SegmentFill::Growing {
                    preparation.do_not_grow();
                }
                return Some(preparation);
            }
            self.prepare.wait_for(&mut inner, if wants { QUIET } else { Duration::from_hours(1) });
        }
    }

    fn is_quiet(&self, inner: &Inner) -> bool {
        let quiet_ns = self.clock.nanos().saturating_sub(inner.last_activity_ns);
        inner.core.is_idle() && Duration::from_nanos(quiet_ns) >= QUIET
    }

    /// Not at once when a large segment is taken into use: its first quarter is written with the disk to itself, unless
    /// the log is [quiet](Shared::is_quiet) meanwhile.
    /// A segment that is smaller than the others, as after a crash, is soon full: with its first group.
    pub(super) fn is_time_to_prepare(inner: &Inner) -> bool {
        let active = inner.core.active();
        let small = active.header.capacity <= SMALL;
        let short = active.header.capacity < inner.plan.segment_bytes && active.groups > 0;
        small || short || inner.segment_wanted || active.offset >= active.header.capacity / 4
    }

    /// The preparation of the next segment, for the thread above and for the simulator.
    pub(crate) fn preparation(&self, inner: &mut Inner) -> Preparation {
        let Inner { plan, next_seq, random, .. } = inner;
        Preparation::new(self.directory.disk(), plan, *next_seq, &self.clock, random)
    }

    /// Rests after a piece so that commits get the disk; not when the segment in use fills up faster. What was begun in
    /// a quiet log rests until it is quiet again, or until it is time.
    /// Returns false if the log is closing or has failed.
    fn pace(&self, preparation: &Preparation) -> bool {
        let mut inner = self.inner.lock();
        let active = inner.core.active();
        let used = active.offset * 1000 / active.header.capacity;
        let bytes = preparation.piece_bytes();
        let hurry = used > 500 && used > preparation.permille() || inner.room_waiters > 0;
        if bytes > 0 && !hurry {
            let rest = bytes * 1_000_000_000 / self.options.prepare_bytes_per_second;
            self.prepare.wait_for(&mut inner, Duration::from_nanos(rest));
        }
        loop {
            if self.stop.load(Ordering::Acquire) || inner.core.failure().is_some() {
                return false;
            }
            if Self::is_time_to_prepare(&inner) || self.is_quiet(&inner) {
                return true;
            }
            self.prepare.wait_for(&mut inner, QUIET);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::base::{Clock, Epoch};
    use crate::log::{GroupPolicy, Log, LogOptions};
    use crate::sim::SimDisk;

    fn append(log: &Log, groups: u32) {
        for _ in 0..groups {
            log.append_next(Epoch::ZERO, 0, b"a group").unwrap().wait().unwrap();
        }
    }

    /// 64 pieces with 62 ms after each: more groups than that start meanwhile, and none of them cuts a rest short.
    #[test]
    fn groups_do_not_cut_the_preparers_rests_short() {
        let dir = tempfile::tempdir().unwrap();
        let options = LogOptions::new().segment_bytes(4 << 20).prepare_bytes_per_second(1 << 20);
        let clock = Clock::real();
        let (log, _) = options.open(dir.path()).unwrap();
        append(&log, 480);
        // On a slow disk it may be done in its own time.
        let is_done = !log.shared.inner().core.wants_next();
        assert!(!is_done || clock.nanos() > 3_900_000_000, "prepared at the pace of groups");
        log.close().unwrap();
    }

    /// On a full disk each attempt makes a file and removes it again: some times a second, not with each group.
    #[test]
    fn groups_do_not_cut_the_rest_after_a_failure_short() {
        let disk = SimDisk::new(7);
        let (log, _) = LogOptions::new().segment_bytes(2 << 20).block_bytes(4096).open_sim(&disk).unwrap();
        disk.set_space_bytes(Some(0));
        append(&log, 150);
        let clock = Clock::real();
        while log.stats().prepare_failures == 0 {
            std::thread::yield_now();
        }
        for group in 1..=100 {
            append(&log, 1);
            // A millisecond for each, in which an attempt could fail.
            while clock.nanos() < group * 1_000_000 {
                std::thread::yield_now();
            }
        }
        let most = 2 + clock.nanos() / 200_000_000;
        let failures = log.stats().prepare_failures;
        assert!(failures <= most, "{failures} attempts, {most} at most");
    }

    /// A record that is on its way for a second keeps a log busy, and its next segment waits.
    #[test]
    fn a_segment_is_prepared_while_nothing_is_written_and_waits_for_what_is() {
        let disk = SimDisk::new(7);
        let policy = GroupPolicy::new().delay(Duration::from_secs(1));
        let options =
            LogOptions::new().segment_bytes(4 << 20).prepare_bytes_per_second(16 << 20).group(policy);
        let (log, _) = options.open_sim(&disk).unwrap();
        let clock = Clock::real();
        let until = |ms: u64| {
            while clock.nanos() < ms * 1_000_000 {
                std::thread::yield_now();
            }
        };
        let ticket = log.append_next(Epoch::ZERO, 0, b"on its way").unwrap();
        until(40);
        let before = disk.operations();
        until(400);
        let after = disk.operations();
        let is_on_its_way = log.durable_zxid() < ticket.zxid();
        assert!(!is_on_its_way || before == after, "prepared beside a record");
        assert!(!is_on_its_way || log.shared.inner().core.wants_next());
        ticket.wait().unwrap();
        while log.shared.inner().core.wants_next() {
            assert!(clock.nanos() < 60_000_000_000, "not prepared at rest");
            std::thread::yield_now();
        }
        log.close().unwrap();
    }

    /// Room that is missing while nobody needs it may be there again when somebody does.
    #[test]
    fn a_full_disk_at_rest_makes_no_segment_that_grows() {
        let disk = SimDisk::new(7);
        let options = LogOptions::new().segment_bytes(4 << 20).prepare_bytes_per_second(1 << 30);
        // For one segment, and a good part of another.
        disk.set_space_bytes(Some(6 << 20));
        let (log, _) = options.open_sim(&disk).unwrap();
        let clock = Clock::real();
        while log.stats().prepare_failures == 0 {
            assert!(log.shared.inner().core.wants_next(), "prepared without room");
            assert!(clock.nanos() < 60_000_000_000, "not tried at rest");
            std::thread::yield_now();
        }
        disk.set_space_bytes(None);
        while log.shared.inner().core.wants_next() {
            assert!(clock.nanos() < 60_000_000_000, "not prepared when there was room");
            std::thread::yield_now();
        }
        assert_eq!(disk.read_file("0000000000000002.seg").unwrap()[20], 1, "written through with zeros");
        log.close().unwrap();
    }

    /// A close takes what is half prepared with it, and not what is ready.
    #[test]
    fn a_close_leaves_no_half_segment_behind() {
        let disk = SimDisk::new(7);
        let options = LogOptions::new().segment_bytes(4 << 20).prepare_bytes_per_second(1 << 20);
        let (log, _) = options.open_sim(&disk).unwrap();
        let is_half = |name: &String| name.ends_with(".seg.tmp");
        let clock = Clock::real();
        while !disk.names().iter().any(is_half) {
            assert!(clock.nanos() < 60_000_000_000, "not prepared at rest");
            std::thread::yield_now();
        }
        log.close().unwrap();
        assert!(!disk.names().iter().any(is_half), "{:?}", disk.names());
    }

    /// What has no time to lose does: a segment that fills up faster than the next one is made.
    #[test]
    fn the_preparer_hurries_when_the_segment_in_use_is_nearly_full() {
        let options = LogOptions::new().segment_bytes(4 << 20).prepare_bytes_per_second(1 << 20);
        // In memory: a disk that takes long would look the same.
        let (log, _) = options.block_bytes(4096).open_sim(&SimDisk::new(7)).unwrap();
        let clock = Clock::real();
        append(&log, 1100);
        assert_eq!(log.stats().rolls, 1);
        assert!(clock.nanos() < 2_000_000_000, "prepared at its own pace, which takes 4 s");
        log.close().unwrap();
    }
}
