use std::sync::atomic::Ordering;
use std::time::Duration;

use super::lead::Begin;
use super::shared::Shared;
use crate::base::{Error, ErrorKind};

/// How often the first committer looks around while the log is in use. Bounds how long a group can lie that
/// nobody waits for, polls or has let go of.
const TICK: Duration = Duration::from_millis(1);

/// How long after the last group the first committer goes on looking around.
const AWAKE_NS: u64 = 20_000_000;

impl Shared {
    /// The body of a committer: writes groups for those who do not wait in threads of their own. The first
    /// one also keeps the log's housekeeping: forgotten groups, idle marks, stuck writes.
    pub(super) fn commit_in_background(&self, first: bool) {
        while !self.stop.load(Ordering::Acquire) {
            let word = if first { &self.keeper } else { &self.helpers };
            let seen = word.value();
            let kicked = self.kicked.swap(false, Ordering::AcqRel);
            if kicked || first {
                self.take_turns(kicked);
            }
            if self.kicked.load(Ordering::Acquire) {
                continue;
            }
            let timeout = if first { self.housekeeping() } else { None };
            word.announce();
            // Announced before the last look, so that whoever stops or kicks sees a sleeper to wake.
            let up = self.stop.load(Ordering::Acquire) || self.kicked.load(Ordering::Acquire);
            word.sleep(seen, if up { Some(Duration::ZERO) } else { timeout });
        }
    }

    /// Writes groups as long as there are some to write here.
    fn take_turns(&self, kicked: bool) {
        loop {
            let mut inner = self.inner.lock();
            let forgotten = inner.core.forming_since_ns().is_some_and(|at| {
                self.clock.nanos().saturating_sub(at) >= nanos(TICK) + nanos(self.options.group.delay)
            });
            if !kicked && !forgotten {
                return;
            }
            match self.begin(&mut inner) {
                Begin::Group(under_way) => {
                    drop(inner);
                    self.finish(under_way);
                }
                Begin::WaitUntil(at) => {
                    let wait = at.saturating_sub(self.clock.nanos());
                    self.room.wait_for(&mut inner, Duration::from_nanos(wait));
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
        let idle_ns = now.saturating_sub(inner.last_activity_ns);
        if let Some(after) = self.options.idle_mark {
            if idle_ns >= nanos(after) {
                if let Begin::Group(under_way) = self.begin_mark(&mut inner) {
                    drop(inner);
                    self.finish(under_way);
                    return Some(TICK);
                }
            } else if inner.core.is_idle() && idle_ns > AWAKE_NS {
                // Nothing to do but to wait for the time of the mark; an append wakes us earlier.
                inner.asleep = true;
                return Some(after.saturating_sub(Duration::from_nanos(idle_ns)).max(TICK));
            }
        }
        if inner.core.is_idle() && idle_ns > AWAKE_NS || inner.core.failure().is_some() {
            inner.asleep = true;
            return None;
        }
        Some(TICK)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
