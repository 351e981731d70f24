use std::sync::atomic::Ordering;
use std::time::Duration;

use super::lead::Begin;
use super::shared::{Inner, Shared};
use crate::base::{Error, ErrorKind, Zxid};

/// How often the keeper looks around while records are let go of. Bounds how long their group can lie.
const TICK: Duration = Duration::from_millis(1);

/// How often it does while all who append keep their tickets: bounds how long a group lies that nobody looks at yet.
/// A thread that wakes each millisecond takes a processor from the one that holds the lock, and all others wait for
/// both: that was a third of the 99.9th percentile, at one writer and at 64 (decision 0002).
const SLOW_TICK: Duration = Duration::from_millis(10);

/// How long after the last group the keeper goes on looking around.
const AWAKE_NS: u64 = 20_000_000;

impl Shared {
    /// The body of a committer: writes groups for those who do not wait in threads of their own.
    pub(super) fn commit_in_background(&self) {
        while !self.stop.load(Ordering::Acquire) {
            let seen = self.helpers.value();
            if self.kicked.swap(false, Ordering::AcqRel) {
                self.take_turns();
                continue;
            }
            self.helpers.announce();
            // Announced before the last look, so that whoever stops or kicks sees a sleeper to wake.
            let up = self.stop.load(Ordering::Acquire) || self.kicked.load(Ordering::Acquire);
            self.helpers.sleep(seen, up.then_some(Duration::ZERO));
        }
    }

    /// The body of the keeper: has forgotten groups and idle marks written, and tells when a write is stuck.
    /// It never writes itself, because then a stuck write would have nobody left to tell of it.
    pub(super) fn keep_house(&self) {
        while !self.stop.load(Ordering::Acquire) {
            let seen = self.keeper.value();
            let timeout = self.housekeeping();
            self.keeper.announce();
            let up = self.stop.load(Ordering::Acquire);
            self.keeper.sleep(seen, if up { Some(Duration::ZERO) } else { timeout });
        }
    }

    /// Writes groups as long as there are some to write here, and the mark if one is due.
    fn take_turns(&self) {
        loop {
            let mut inner = self.inner.lock();
            let mut turn = self.begin(&mut inner);
            if matches!(turn, Begin::Nothing) && self.mark_due.swap(false, Ordering::AcqRel) {
                turn = self.begin_mark(&mut inner);
            }
            match turn {
                Begin::Group(under_way) => {
                    drop(inner);
                    self.finish(under_way);
                }
                Begin::WaitUntil(at) => {
                    let wait = at.saturating_sub(self.clock.nanos());
                    inner.gatherers += 1;
                    self.gathered.wait_for(&mut inner, Duration::from_nanos(wait));
                    inner.gatherers -= 1;
                    if self.stop.load(Ordering::Acquire) {
                        return;
                    }
                }
                Begin::Nothing => return,
            }
        }
    }

    /// Looks for stuck writes and idle logs. Returns how long to sleep: a tick while the log is in use, for
    /// ever when there is nothing left to do.
    fn housekeeping(&self) -> Option<Duration> {
        let mut inner = self.inner.lock();
        let now = self.clock.nanos();
        if let Some(start) = inner.core.oldest_start_ns()
            && now.saturating_sub(start) > nanos(self.options.stuck_after)
            && inner.core.failure().is_none()
        {
            drop(inner);
            let bound = self.options.stuck_after;
            let why = format!(
                "a write has not ended within {bound:?}; its memory is kept until the kernel answers"
            );
            self.fail(Error::new(ErrorKind::Io, "io_stuck", why));
            return Some(TICK);
        }
        let forgotten_ns = nanos(TICK) + nanos(self.options.group.delay);
        if inner.core.forming_since_ns().is_some_and(|at| now.saturating_sub(at) >= forgotten_ns) {
            self.kick();
            return Some(TICK);
        }
        let idle_ns = now.saturating_sub(inner.last_activity_ns);
        if let Some(after) = self.options.idle_mark {
            if idle_ns >= nanos(after) {
                if inner.core.wants_mark() {
                    self.mark_due.store(true, Ordering::Release);
                    self.kick();
                    return Some(TICK);
                }
            } else if inner.core.is_idle() && idle_ns > AWAKE_NS {
                // Nothing to do but to wait for the time of the mark; an append wakes us earlier.
                self.fall_asleep(&mut inner);
                return Some(after.saturating_sub(Duration::from_nanos(idle_ns)).max(TICK));
            }
        }
        if inner.core.is_idle() && idle_ns > AWAKE_NS || inner.core.failure().is_some() {
            self.fall_asleep(&mut inner);
            return None;
        }
        Some(if self.let_go.load(Ordering::Relaxed) { TICK } else { SLOW_TICK })
    }

    /// The keeper sleeps until an append wakes it. Nothing is left that was let go of.
    fn fall_asleep(&self, inner: &mut Inner) {
        inner.asleep = true;
        self.let_go.store(false, Ordering::Relaxed);
    }

    /// A ticket is gone, and nobody else looks at its record: if it is not durable, the keeper has to.
    pub(crate) fn let_go(&self, zxid: Zxid) {
        let is_watched = self.durable() >= zxid || self.let_go.load(Ordering::Relaxed);
        if !is_watched && !self.let_go.swap(true, Ordering::Relaxed) {
            self.keeper.wake_one();
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::base::{Clock, Epoch, Zxid};
    use crate::io::Backend;
    use crate::log::{AppendTicket, Gather, GroupPolicy, LogOptions, Record};
    use crate::sim::SimDisk;

    /// A record that makes its group complete ends the wait for it: of a tenth of a second in each of thirty rounds.
    #[test]
    fn a_committer_that_gathers_starts_when_the_last_record_is_here() {
        let policy = GroupPolicy::new().gather(Gather::Always(Duration::from_millis(100)));
        let (log, _) =
            LogOptions::new().segment_bytes(1 << 20).group(policy).open_sim(&SimDisk::new(7)).unwrap();
        let clock = Clock::real();
        let append = |payload: &[u8]| log.append_next(Epoch::ZERO, 0, payload).unwrap();
        let until_durable = |ticket: &AppendTicket| {
            while !ticket.is_durable().unwrap() {
                std::thread::yield_now();
            }
        };
        for round in 0..30_u64 {
            // Two that are acknowledged together are expected back together.
            let record = |n| Record {
                zxid: Zxid::new(round * 4 + n),
                epoch: Epoch::ZERO,
                time_ms: 0,
                payload: b"one of two",
            };
            until_durable(&log.append_batch(&[record(1), record(2)]).unwrap());
            let first = append(b"the first");
            while !first.is_durable().unwrap() && log.shared.inner().gatherers == 0 {
                std::thread::yield_now();
            }
            until_durable(&append(b"the second"));
        }
        assert!(clock.nanos() < 2_000_000_000, "waited for nobody: {} ms", clock.nanos() / 1_000_000);
        log.close().unwrap();
    }

    /// A ring is for several groups in flight, and for those who ask for it.
    #[test]
    fn one_group_in_flight_is_written_plainly() {
        let dir = tempfile::tempdir().unwrap();
        let (log, report) = LogOptions::new().segment_bytes(1 << 20).open(dir.path()).unwrap();
        assert_eq!((log.backend().backend, report.backend.refused), (Backend::Threads, None));
        log.close().unwrap();
        let several = LogOptions::new().group(GroupPolicy::new().in_flight_max(2));
        let (log, _) = several.open(dir.path()).unwrap();
        let info = log.backend();
        assert_eq!(info.backend == Backend::Threads, info.refused.is_some());
        log.close().unwrap();
    }
}
