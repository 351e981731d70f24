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
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use crate::base::{Clock, Epoch, ErrorKind, Zxid, checksum};
    use crate::io::Backend;
    use crate::log::commit::Incoming;
    use crate::log::engine::Patience;
    use crate::log::{AppendTicket, Gather, GroupPolicy, Log, LogOptions, Record};
    use crate::sim::{Effect, Fault, FaultOp, NamePattern, SimDisk};

    /// A record that makes its group complete ends the wait for it, which would be of a tenth of a second in each round.
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
        let mut fastest_ns = u64::MAX;
        for round in 0..30_u64 {
            let begin_ns = clock.nanos();
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
            fastest_ns = fastest_ns.min(clock.nanos() - begin_ns);
        }
        assert!(fastest_ns < 90_000_000, "waited for nobody: {} ms", fastest_ns / 1_000_000);
        log.close().unwrap();
    }

    /// Looks again and again until it holds, for ten seconds at most.
    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let clock = Clock::real();
        while !holds() {
            assert!(clock.nanos() < 10_000_000_000, "{what} does not come");
            std::thread::yield_now();
        }
    }

    fn append(log: &Log) -> AppendTicket {
        log.append_next(Epoch::ZERO, 0, b"record").unwrap()
    }

    fn open(disk: &SimDisk, options: &LogOptions) -> Log {
        options.clone().segment_bytes(1 << 20).open_sim(disk).unwrap().0
    }

    /// Later than the keeper falls asleep, which it does for the time that is left.
    #[test]
    fn an_idle_log_writes_its_mark_and_then_sleeps() {
        let log = open(&SimDisk::new(7), &LogOptions::new().idle_mark(Some(Duration::from_millis(50))));
        for _ in 0..2 {
            append(&log).wait().unwrap();
            until("the mark", || {
                let inner = log.shared.inner();
                inner.core.is_idle() && !inner.core.wants_mark()
            });
            until("sleep", || log.shared.inner().asleep);
            assert!(!log.shared.mark_due.load(Ordering::Acquire), "the next one would come at once");
        }
        log.close().unwrap();
    }

    /// Nobody waits for it, and the keeper slept when it came.
    #[test]
    fn a_record_that_is_let_go_of_wakes_the_keeper_of_an_idle_log() {
        for idle_mark in [None, Some(Duration::from_hours(1))] {
            let log = open(&SimDisk::new(7), &LogOptions::new().idle_mark(idle_mark));
            for _ in 0..3 {
                until("sleep", || log.shared.inner().asleep);
                assert!(!log.shared.let_go.load(Ordering::Relaxed));
                let ticket = append(&log);
                let zxid = ticket.zxid();
                drop(ticket);
                until("the record", || log.durable_zxid() == zxid);
            }
            // Else a committer turns in circles.
            until("rest", || !log.shared.kicked.load(Ordering::Acquire));
            log.close().unwrap();
        }
    }

    /// It looks around each millisecond then, which costs those who write.
    #[test]
    fn only_a_record_that_is_not_durable_is_let_go_of() {
        let policy = GroupPolicy::new().delay(Duration::from_secs(1));
        let log = open(&SimDisk::new(7), &LogOptions::new().group(policy));
        let ticket = append(&log);
        until("the record", || ticket.is_durable().unwrap());
        drop(ticket);
        assert!(!log.shared.let_go.load(Ordering::Relaxed));
        let ticket = append(&log);
        let zxid = ticket.zxid();
        drop(ticket);
        // Unless it has been a second meanwhile.
        assert!(log.shared.let_go.load(Ordering::Relaxed) || log.durable_zxid() == zxid);
        log.close().unwrap();
    }

    #[test]
    fn a_log_that_has_failed_has_no_house_to_keep() {
        let disk = SimDisk::new(7);
        let log = open(&disk, &LogOptions::new());
        disk.inject(Fault::next(FaultOp::Write, Effect::EIO).on(NamePattern::Suffix(".seg".into())));
        let [first, second] = [append(&log), append(&log)];
        first.wait().unwrap_err();
        second.wait().unwrap_err();
        until("sleep", || log.shared.inner().asleep);
        log.close().unwrap_err();
    }

    /// While the write is under way, and with nobody who waits for it.
    #[test]
    fn a_stuck_write_is_told_of_by_the_keeper() {
        let disk = SimDisk::new(7);
        let log = open(&disk, &LogOptions::new().stuck_after(Duration::from_millis(20)));
        disk.inject(Fault::next(FaultOp::Write, Effect::Stall).on(NamePattern::Suffix(".seg".into())));
        let ticket = append(&log);
        assert!(!ticket.is_durable().unwrap());
        until("the failure", || log.shared.failure().is_some());
        assert_eq!(ticket.is_durable().unwrap_err().kind(), ErrorKind::Poisoned);
        disk.release_stalled();
        log.close().unwrap_err();
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
        let replaying = LogOptions::new().open_replaying(dir.path(), Zxid::ZERO, |_| ());
        let (log, report) = replaying.unwrap();
        assert_eq!((log.backend().backend, report.backend.refused), (Backend::Threads, None));
        log.close().unwrap();
    }

    /// Whether a committer was woken for the group that formed while another one was written, at whose end nobody slept
    /// for it yet.
    fn wakes_a_committer(patience: Patience) -> bool {
        let disk = SimDisk::new(4);
        // So that the second group is gathered for long, by whomever, and the keeper does not look after it either.
        let group = GroupPolicy::new().bytes_max(4096).delay(Duration::from_secs(1));
        let options = LogOptions::new().segment_bytes(1 << 20).idle_mark(None).group(group);
        let (log, _) = options.open_sim(&disk).unwrap();
        disk.inject(Fault::next(FaultOp::Write, Effect::Stall).on(NamePattern::Suffix(".seg".into())));
        let clock = Clock::real();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| log.commit_next(Epoch::ZERO, 0, &[1; 4000]).unwrap());
            while log.shared.inner().core.is_idle() {
                std::thread::yield_now();
            }
            let (payload, payload_crc) = (b"next".as_slice(), checksum::crc32(0, b"next"));
            let record = Incoming { zxid: None, epoch: Epoch::ZERO, time_ms: 0, payload, payload_crc };
            let _second = log.shared.append(&[record], patience).unwrap();
            assert_eq!(disk.release_stalled(), 1);
            first.join().unwrap();
        });
        let (begin, mut woken) = (clock.nanos(), false);
        while !woken && clock.nanos() - begin < 50_000_000 {
            woken = log.shared.inner().gatherers > 0;
        }
        log.close().unwrap();
        woken
    }

    #[test]
    fn no_committer_is_woken_where_a_thread_comes_to_wait() {
        assert!(wakes_a_committer(Patience::Forever));
        assert!(!wakes_a_committer(Patience::Attending));
    }
}
