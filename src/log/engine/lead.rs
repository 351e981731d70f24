use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use super::shared::{Inner, Shared};
use crate::base::{Error, ErrorKind};
use crate::io::{Completion, Disk, Queue};
use crate::log::commit::{Leader, Progress, RetiredSegment, Start, Started};

/// The answer to someone who offers to write the forming group.
#[derive(Debug)]
pub(crate) enum Begin {
    /// Nothing to write, or enough under way.
    Nothing,
    /// Not before this time, unless more records come.
    WaitUntil(u64),
    /// Handed to the disk; [`Shared::finish`] sees it through.
    Group(UnderWay),
}

/// A group that the disk has, and the queue that carries it.
#[derive(Debug)]
pub(crate) struct UnderWay {
    lane: Lane,
    leader: Leader,
    writes: usize,
    started_ns: u64,
}

/// The group that comes next, and so whom to wake.
#[derive(Clone, Copy, Debug)]
struct Heir {
    batch: u64,
    /// A thread is on its way to wait for it: it sleeps, or it will see that nobody is at it.
    is_attended: bool,
}

/// A group of more records than this was waited for by a crowd.
const CROWD: u64 = 16;

/// What a group in flight is carried by: one queue for each kind of leader.
#[derive(Debug)]
pub(super) struct Lane {
    waiter: Box<dyn Queue>,
    committer: Box<dyn Queue>,
}

impl Lane {
    pub(super) fn open(disk: &dyn Disk) -> std::io::Result<Lane> {
        Ok(Lane { waiter: disk.waiting_queue()?, committer: disk.queue()? })
    }

    fn of(&mut self, leader: Leader) -> &mut dyn Queue {
        match leader {
            Leader::Waiter => self.waiter.as_mut(),
            Leader::Committer => self.committer.as_mut(),
        }
    }
}

impl Shared {
    /// First half of a turn: takes the forming group, if it may start, and hands it to the disk.
    pub(crate) fn begin(&self, inner: &mut Inner) -> Begin {
        self.begin_as(Leader::Committer, inner)
    }

    /// The same for a thread that waits for the group.
    pub(crate) fn begin_waiting(&self, inner: &mut Inner) -> Begin {
        self.begin_as(Leader::Waiter, inner)
    }

    fn begin_as(&self, leader: Leader, inner: &mut Inner) -> Begin {
        let now = self.clock.nanos();
        match inner.core.start(leader, now) {
            Start::Nothing => Begin::Nothing,
            Start::WaitUntil(at) => Begin::WaitUntil(at),
            Start::Group(started) => Begin::Group(self.hand_over(leader, inner, started, now)),
        }
    }

    /// The same for the mark of an idle log.
    pub(crate) fn begin_mark(&self, inner: &mut Inner) -> Begin {
        let now = self.clock.nanos();
        match inner.core.start_mark(now) {
            Start::Group(started) => Begin::Group(self.hand_over(Leader::Committer, inner, started, now)),
            _ => Begin::Nothing,
        }
    }

    fn hand_over(&self, leader: Leader, inner: &mut Inner, started: Started, now: u64) -> UnderWay {
        let mut lane = inner.queues.pop().expect("a queue for each group that may be in flight");
        inner.timed_batch = None;
        inner.last_activity_ns = now;
        inner.stats.group_started(&started.write);
        let mut writes = 1;
        if let Some(rolled) = started.rolled {
            self.rolled(inner, rolled.retired);
            lane.of(leader).submit(rolled.seal);
            writes += 1;
        }
        lane.of(leader).submit(started.write);
        self.busy.store(!inner.core.can_fly(), Ordering::SeqCst);
        if !inner.is_preparing && inner.core.wants_next() && Self::is_time_to_prepare(inner) {
            self.prepare.notify_all();
        }
        UnderWay { lane, leader, writes, started_ns: now }
    }

    fn rolled(&self, inner: &mut Inner, retired: RetiredSegment) {
        let active = inner.core.active();
        let mut segments = self.segments.write();
        segments.push_ended(retired);
        segments.push_active(active.header, active.floor_zxid);
        inner.stats.rolled();
        self.prepare.notify_all();
    }

    /// Second half of a turn: waits for the disk, publishes what has become durable, and wakes those who
    /// waited for it. First of all it wakes one who can write the next group, so that the disk is not idle
    /// while the others wake up.
    pub(crate) fn finish(&self, under_way: UnderWay) {
        let UnderWay { mut lane, leader, writes, started_ns } = under_way;
        let mut done: [Option<Completion>; 2] = [None, None];
        for slot in done.iter_mut().take(writes) {
            *slot = Some(lane.of(leader).wait());
        }
        let mut inner = self.inner.lock();
        let now = self.clock.nanos();
        inner.queues.push(lane);
        inner.last_activity_ns = now;
        inner.stats.group_ended(now.saturating_sub(started_ns));
        let mut progress: Option<Progress> = None;
        for completion in done.into_iter().flatten() {
            if let Some(p) = inner.core.complete(completion, now) {
                progress = Some(progress.map_or(p, |q| Progress { first_batch: q.first_batch, ..p }));
            }
        }
        self.busy.store(!inner.core.can_fly(), Ordering::SeqCst);
        let failure = inner.core.failure().cloned();
        if let Some(progress) = progress {
            inner.stats.acknowledged(progress.records);
            self.durable.raise(progress.durable_zxid);
        }
        let heir = (failure.is_none() && inner.core.forming_records() > 0)
            .then(|| Heir { batch: inner.core.forming_batch(), is_attended: inner.core.is_attended() });
        let room = inner.room_waiters > 0;
        drop(inner);
        self.wake_after(progress, heir, room, failure.as_ref());
    }

    fn wake_after(
        &self,
        progress: Option<Progress>,
        heir: Option<Heir>,
        room: bool,
        failure: Option<&Error>,
    ) {
        // With many writers awake the processor is what is short: the heir comes last then, so that its group
        // is larger, and fewer groups are written.
        let crowd = progress.is_some_and(|p| p.records > CROWD);
        if let Some(heir) = heir.filter(|_| !crowd) {
            self.wake_heir(heir);
        }
        if room {
            self.room.notify_all();
        }
        let all_took_it = progress.is_none_or(|progress| self.tell(progress));
        if let Some(heir) = heir.filter(|_| crowd) {
            self.wake_heir(heir);
        }
        if let Some(first) = failure {
            self.publish_failure(first);
        } else if !all_took_it {
            self.fail(callback_panicked());
        }
    }

    /// Tells those who wait what has become durable. False if a callback of theirs has panicked: this thread goes on,
    /// and so do the others who wait.
    fn tell(&self, progress: Progress) -> bool {
        let durable = progress.durable_zxid;
        let call = self.on_durable.get();
        let mut all_took_it = catch_unwind(AssertUnwindSafe(|| {
            if let Some(call) = call {
                (call.0)(durable);
            }
        }))
        .is_ok();
        for batch in progress.first_batch..progress.end_batch {
            self.waiting.wake(batch);
            all_took_it &= self.waiting.tell(batch, progress.end_batch, &Ok(()));
        }
        all_took_it
    }

    fn wake_heir(&self, heir: Heir) {
        let word = self.waiting.word(heir.batch);
        if word.has_sleepers() {
            word.wake_one();
        } else if !heir.is_attended {
            self.kick();
        }
    }
}

/// Nobody knows what a callback that has panicked did not do, so nothing more is taken.
#[cold]
pub(crate) fn callback_panicked() -> Error {
    let why = "a callback of a ticket panicked; what was durable then stays so".to_owned();
    Error::new(ErrorKind::Io, "callback_panicked", why)
}
