use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use super::lead::{Begin, Lane};
use crate::base::{Clock, Epoch, Error, ErrorKind, HotCondition, HotGuard, HotLock, Random, Result, Zxid};
use crate::io::{Lock, WaitWord};
use crate::log::commit::{Admission, GroupCommit, Incoming};
use crate::log::directory::LogDirectory;
use crate::log::options::LogOptions;
use crate::log::prepare::SegmentPlan;
use crate::log::recover::{Leftover, Opened};
use crate::log::retain::Pins;
use crate::log::segments::SegmentSet;
use crate::log::stats::Recorder;
use crate::log::waiting::WaitingRoom;
use crate::log::watermark::Watermark;

/// What is called with each new last durable zxid.
pub(crate) struct OnDurable(pub(crate) Box<dyn Fn(Zxid) + Send + Sync>);

impl fmt::Debug for OnDurable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDurable")
    }
}

/// What all handles, tickets, readers and threads of one open log share.
///
/// Lock order: `rare`, then the manifest's, then `inner`, then `segments`, then `pins`.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) inner: HotLock<Inner>,
    /// For those who wait for room, for a segment, or for everything to be written.
    pub(super) room: HotCondition,
    /// For the committer that waits for more records of its group.
    pub(super) gathered: HotCondition,
    /// For the preparer.
    pub(super) prepare: HotCondition,
    pub(super) durable: Watermark,
    /// The newest durable epoch, for everyone to see without the lock.
    pub(super) epoch: AtomicU64,
    pub(super) failed: OnceLock<Error>,
    pub(super) waiting: WaitingRoom,
    /// Where the keeper sleeps.
    pub(super) keeper: WaitWord,
    /// Tickets were dropped before their records were durable since the log was last idle.
    pub(super) let_go: AtomicBool,
    /// Where the committers sleep.
    pub(super) helpers: WaitWord,
    /// As many groups are in flight as may be: a look without the lock for those who could lead.
    pub(super) busy: AtomicBool,
    /// Somebody wants the forming group written who does not wait in a thread.
    pub(super) kicked: AtomicBool,
    /// The idle log wants a mark; the next committer that is kicked writes it.
    pub(super) mark_due: AtomicBool,
    pub(super) stop: AtomicBool,
    /// What comes after is no part of the log any more; all of it is as long as the log is open.
    pub(super) cut_after: AtomicU64,
    pub(crate) segments: RwLock<SegmentSet>,
    pub(crate) pins: Mutex<Pins>,
    pub(crate) directory: LogDirectory,
    pub(crate) clock: Clock,
    pub(crate) options: LogOptions,
    /// What the open left to clear away.
    pub(super) leftovers: Mutex<Vec<Leftover>>,
    pub(super) lock: Mutex<Option<Box<dyn Lock>>>,
    /// Called with each new last durable zxid.
    pub(crate) on_durable: OnceLock<OnDurable>,
    /// Held through each rare change of the log as a whole (epoch, purge), so that they come one by one.
    pub(crate) rare: Mutex<()>,
}

/// What the one lock of the hot path guards.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) core: GroupCommit,
    /// Queues that carry nothing: one for each group that may be in flight.
    pub(super) queues: Vec<Lane>,
    pub(crate) stats: Recorder,
    /// Somebody cannot go on without the next segment.
    pub(super) segment_wanted: bool,
    /// The preparer is at it, or rests after it has failed: nobody has to wake it, and its rests are not to be cut short.
    pub(super) is_preparing: bool,
    /// Why the last preparation of a segment failed.
    pub(super) prepare_failure: Option<Error>,
    pub(super) next_seq: u64,
    pub(super) plan: SegmentPlan,
    pub(super) random: Random,
    /// The group for which a waiting thread keeps the time.
    pub(super) timed_batch: Option<u64>,
    /// Whether the keeper sleeps without a tick.
    pub(super) asleep: bool,
    /// Committers that wait for more records.
    pub(super) gatherers: u32,
    /// Threads that wait for `room`.
    pub(super) room_waiters: u32,
    pub(super) last_activity_ns: u64,
}

/// What a log starts with.
#[derive(Debug)]
pub(crate) struct StartOptions {
    pub(crate) options: LogOptions,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) lock: Option<Box<dyn Lock>>,
}

/// How long an append may wait for room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    None,
    Forever,
    /// The caller will wait for the record as well, at once.
    Attending,
}

impl Shared {
    /// Tells readers that are still there that what comes after `last` is cut off, or replaced.
    pub(crate) fn cut(&self, last: Zxid) {
        self.cut_after.store(last.get(), Ordering::Release);
    }

    /// What readers may still be given; none if it is all there is.
    pub(crate) fn cut_after(&self) -> Option<Zxid> {
        Some(self.cut_after.load(Ordering::Acquire)).filter(|last| *last != u64::MAX).map(Zxid::new)
    }

    pub(crate) fn new(opened: Opened, start: StartOptions) -> Result<Arc<Shared>> {
        let StartOptions { options, clock, random, lock } = start;
        let disk = opened.directory.disk().clone();
        let queues = (0..options.group.in_flight_max)
            .map(|_| Lane::open(disk.as_ref()).map_err(|e| Error::io("set up a queue of writes", e)))
            .collect::<Result<Vec<_>>>()?;
        let seed = opened.plan.database_id.seed();
        let core = GroupCommit::new(&options, seed, opened.position, opened.active, opened.next);
        let inner = Inner {
            core,
            queues,
            stats: Recorder::new(&options),
            segment_wanted: false,
            is_preparing: false,
            prepare_failure: None,
            next_seq: opened.next_seq,
            plan: opened.plan,
            random,
            timed_batch: None,
            asleep: false,
            gatherers: 0,
            room_waiters: 0,
            last_activity_ns: clock.nanos(),
        };
        Ok(Arc::new(Shared {
            inner: HotLock::new(inner),
            room: HotCondition::new(),
            gathered: HotCondition::new(),
            prepare: HotCondition::new(),
            durable: Watermark::new(opened.position.last_zxid),
            epoch: AtomicU64::new(opened.position.epoch.get()),
            cut_after: AtomicU64::new(u64::MAX),
            failed: OnceLock::new(),
            waiting: WaitingRoom::new(),
            keeper: WaitWord::default(),
            let_go: AtomicBool::new(false),
            helpers: WaitWord::default(),
            rare: Mutex::new(()),
            busy: AtomicBool::new(false),
            kicked: AtomicBool::new(false),
            mark_due: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            segments: RwLock::new(opened.segments),
            pins: Mutex::new(Pins::default()),
            directory: opened.directory,
            clock,
            options,
            leftovers: Mutex::new(opened.leftovers),
            lock: Mutex::new(lock),
            on_durable: OnceLock::new(),
        }))
    }

    pub(crate) fn inner(&self) -> HotGuard<'_, Inner> {
        self.inner.lock()
    }

    /// The highest record that is durable. Never falls.
    pub(crate) fn durable(&self) -> Zxid {
        self.durable.get()
    }

    /// The newest durable epoch. Never falls.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch::new(self.epoch.load(Ordering::Acquire))
    }

    /// The failure that everyone gets to see, once there was one.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.failed.get()
    }

    /// What a waiter for `zxid` is told, if there is something to tell.
    pub(crate) fn outcome(&self, zxid: Zxid) -> Option<Result<()>> {
        if self.durable() >= zxid {
            return Some(Ok(()));
        }
        self.failure().map(|e| Err(e.clone()))
    }

    /// Orders records; returns the last one's zxid and their group.
    pub(crate) fn append(&self, records: &[Incoming<'_>], patience: Patience) -> Result<(Zxid, u64)> {
        if crate::planted("batch_split") && records.len() > 1 {
            self.append(&records[..1], patience)?;
            return self.append(&records[1..], patience);
        }
        let mut inner = self.inner.lock();
        loop {
            let now = if inner.core.forming_records() == 0 { self.clock.nanos() } else { 0 };
            match inner.core.append(records, now)? {
                Admission::Logged { last_zxid, batch } => {
                    if patience == Patience::Attending {
                        inner.core.attend();
                    }
                    if inner.asleep {
                        inner.asleep = false;
                        self.keeper.wake_one();
                    }
                    if inner.gatherers > 0 && inner.core.is_gathered() {
                        drop(inner);
                        self.gathered.notify_all();
                    }
                    return Ok((last_zxid, batch));
                }
                // Whoever may not block must not write either; a committer does.
                Admission::GroupFull if patience == Patience::None => self.kick(),
                Admission::GroupFull => {
                    if let Begin::Group(under_way) = self.begin_waiting(&mut inner) {
                        drop(inner);
                        self.finish(under_way);
                        inner = self.inner.lock();
                        continue;
                    }
                }
                Admission::SegmentFull => {
                    inner.segment_wanted = true;
                    self.prepare.notify_all();
                    if let Some(error) = &inner.prepare_failure {
                        return Err(error.clone());
                    }
                }
            }
            if patience == Patience::None {
                let why = "the queue before the disk is full";
                return Err(Error::new(ErrorKind::Busy, "busy", why.into()));
            }
            inner.room_waiters += 1;
            // Bounded, so that a wake that got lost costs a moment and not for ever.
            self.room.wait_for(&mut inner, Duration::from_millis(100));
            inner.room_waiters -= 1;
        }
    }

    /// Waits until `zxid`, which is in group `batch`, is durable; writes the group itself if nobody else does.
    /// Returns false if the time ran out.
    pub(crate) fn wait(&self, zxid: Zxid, batch: u64, deadline_ns: Option<u64>) -> Result<bool> {
        let mut keeps_time = false;
        loop {
            let word = self.waiting.word(batch);
            let seen = word.value();
            if let Some(outcome) = self.outcome(zxid) {
                return outcome.map(|()| true);
            }
            if deadline_ns.is_none() && !keeps_time {
                // Announced before the look: whoever ends the group in flight either is seen to be at it, or
                // sees a sleeper to wake.
                word.announce();
                if self.busy.load(Ordering::SeqCst) && self.failure().is_none() {
                    word.sleep(seen, None);
                    continue;
                }
                word.renounce();
            }
            let mut inner = self.inner.lock();
            if std::mem::take(&mut keeps_time) && inner.timed_batch == Some(batch) {
                inner.timed_batch = None;
            }
            if inner.core.durable_zxid() >= zxid {
                return Ok(true);
            }
            let mut until = deadline_ns;
            if inner.core.forming_batch() == batch {
                match self.begin_waiting(&mut inner) {
                    Begin::Group(under_way) => {
                        drop(inner);
                        self.finish(under_way);
                        continue;
                    }
                    // One of the waiters keeps the time for all.
                    Begin::WaitUntil(at) if inner.timed_batch != Some(batch) => {
                        inner.timed_batch = Some(batch);
                        keeps_time = true;
                        until = Some(until.map_or(at, |d| d.min(at)));
                    }
                    Begin::WaitUntil(_) | Begin::Nothing => {}
                }
            }
            let seen = word.value();
            word.announce();
            drop(inner);
            // The failure is published before the wake, so it is seen here or it ends the sleep.
            let timeout = match until {
                _ if self.failure().is_some() => Some(Duration::ZERO),
                Some(at) => Some(Duration::from_nanos(at.saturating_sub(self.clock.nanos()))),
                None => None,
            };
            if !word.sleep(seen, timeout) && deadline_ns.is_some_and(|d| self.clock.nanos() >= d) {
                // Whoever keeps the time for others and leaves has a committer take over.
                self.kick();
                return self.outcome(zxid).map_or(Ok(false), |outcome| outcome.map(|()| true));
            }
        }
    }

    /// Has the forming group written by a committer: for those who do not wait in a thread.
    pub(crate) fn kick(&self) {
        if !self.kicked.swap(true, Ordering::AcqRel) {
            self.helpers.wake_one();
        }
    }

    pub(crate) fn waiting(&self) -> &WaitingRoom {
        &self.waiting
    }

    /// Takes in a failure: tells everyone who waits, and everyone who comes after.
    pub(crate) fn fail(&self, error: Error) {
        let first = {
            let mut inner = self.inner.lock();
            inner.core.fail(error);
            inner.core.failure().cloned().expect("just set")
        };
        self.publish_failure(&first);
    }

    pub(super) fn publish_failure(&self, first: &Error) {
        if self.failed.set(Error::poisoned_by(first)).is_ok() {
            let told = Err(self.failed.get().cloned().expect("just set"));
            self.waiting.fail(&told);
            self.room.notify_all();
            self.gathered.notify_all();
            self.keeper.wake_all();
            self.helpers.wake_all();
        }
    }
}
