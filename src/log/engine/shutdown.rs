use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use super::lead::Begin;
use super::shared::Shared;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::io::{Lock, WriteMode};
use crate::log::Log;
use crate::log::directory::sync_segment;
use crate::log::segments::Segment;

/// The threads behind an open log: the committers, the keeper, and the preparer.
#[derive(Debug)]
pub(crate) struct Threads {
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts them.
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Threads> {
        let mut threads = Threads { handles: Vec::new() };
        for _ in 0..shared.options.group.in_flight_max {
            let own = shared.clone();
            threads.spawn("arborlog-commit", move || own.commit_in_background())?;
        }
        let own = shared.clone();
        threads.spawn("arborlog-keeper", move || own.keep_house())?;
        let own = shared.clone();
        threads.spawn("arborlog-prepare", move || own.prepare_in_background())?;
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(body);
        self.handles.push(thread.map_err(|e| Error::io("start a thread", e))?);
        Ok(())
    }

    /// Ends them. They finish the write they are at; a write that is stuck is not waited for.
    pub(crate) fn stop(&mut self, shared: &Shared) {
        shared.tell_to_stop();
        shared.prepare.notify_all();
        shared.room.notify_all();
        shared.gathered.notify_all();
        shared.keeper.wake_all();
        shared.helpers.wake_all();
        let stuck = shared.is_stuck();
        for handle in self.handles.drain(..) {
            if !stuck {
                handle.join().expect("a thread of the log panicked");
            }
        }
    }
}

impl Log {
    /// [Closes](Log::close) the log because another history takes its place: readers are told so.
    pub(crate) fn close_replaced(self) -> Result<()> {
        self.shared.cut(Zxid::ZERO);
        self.close()
    }
}

impl Shared {
    /// Under the lock: between a thread's look at the flag and its sleep the word would be lost, and the preparer sleeps
    /// for an hour.
    fn tell_to_stop(&self) {
        let _inner = self.inner.lock();
        self.stop.store(true, Ordering::Release);
    }

    /// Writes all that is logged, and lets nothing more in. Errors of this kind are what appends get from
    /// now on.
    pub(crate) fn drain(&self, kind: ErrorKind) -> Result<()> {
        let mut inner = self.inner.lock();
        inner.core.shut(kind);
        loop {
            if let Some(first) = inner.core.failure() {
                return Err(Error::poisoned_by(first));
            }
            if inner.core.is_idle() {
                return Ok(());
            }
            if let Begin::Group(under_way) = self.begin(&mut inner) {
                drop(inner);
                self.finish(under_way);
                inner = self.inner.lock();
                continue;
            }
            inner.room_waiters += 1;
            self.room.wait_for(&mut inner, Duration::from_millis(10));
            inner.room_waiters -= 1;
        }
    }

    /// Whether a write is under way that has been for too long.
    fn is_stuck(&self) -> bool {
        let inner = self.inner.lock();
        let under_way = inner.queues.len() < self.options.group.in_flight_max;
        let bound_ns = u64::try_from(self.options.stuck_after.as_nanos()).unwrap_or(u64::MAX);
        let late = |start| self.clock.nanos().saturating_sub(start) >= bound_ns;
        under_way && inner.core.oldest_start_ns().is_some_and(late)
    }

    /// Gives up what is logged and not written, and waits for the writes under way, unless one is stuck.
    pub(crate) fn abandon(&self) {
        self.fail(Error::new(
            ErrorKind::Closed,
            "closed",
            "the log was dropped before this was durable".into(),
        ));
        let give_up_ns =
            self.clock.nanos() + u64::try_from(self.options.stuck_after.as_nanos()).unwrap_or(u64::MAX);
        let mut inner = self.inner.lock();
        while inner.queues.len() < self.options.group.in_flight_max && self.clock.nanos() < give_up_ns {
            inner.room_waiters += 1;
            self.room.wait_for(&mut inner, Duration::from_millis(10));
            inner.room_waiters -= 1;
        }
    }

    /// Lets go of the directory, if nothing can write to it any more.
    pub(crate) fn release_lock(&self) {
        let quiet = self.inner.lock().queues.len() == self.options.group.in_flight_max;
        if quiet {
            drop(self.lock.lock().take());
        }
    }
}

impl Shared {
    /// Writes the clean mark: everything that was logged is durable, and nothing is under way.
    pub(crate) fn mark_closed(&self) -> Result<()> {
        let durable = self.durable();
        if self.is_unsynced() {
            let known = self.directory.manifest().durable_zxid;
            let written = |s: &&Segment| s.ended.as_ref().is_none_or(|e| e.last_zxid > known);
            let written: Vec<u64> =
                self.segments.read().iter().filter(written).map(|s| s.header.seq).collect();
            written.into_iter().try_for_each(|seq| sync_segment(self.directory.disk().as_ref(), seq))?;
        }
        let committed = self.directory.commit(|m| {
            m.clean = true;
            m.durable_zxid = durable;
        });
        committed.map(drop)
    }

    /// Whether groups are written and not synced: the manifest may then claim nothing of them.
    fn is_unsynced(&self) -> bool {
        self.options.write_mode == WriteMode::Unsynced
    }

    /// Hands the directory's lock over.
    pub(crate) fn take_lock(&self) -> Option<Box<dyn Lock>> {
        self.lock.lock().take()
    }

    /// Changes the epoch: between two groups, durable before the first append of it.
    pub(crate) fn advance_epoch(&self, epoch: Epoch) -> Result<()> {
        let _one_by_one = self.rare.lock();
        let now = self.epoch();
        if epoch == now {
            return Ok(());
        }
        if epoch < now && !crate::planted("epoch_unchecked") {
            let why = format!("epoch {epoch} is older than the durable epoch {now}");
            return Err(Error::new(ErrorKind::Fenced, "fenced", why));
        }
        self.drain(ErrorKind::Fenced)?;
        let durable = self.durable();
        let committed = self.directory.commit(|m| {
            m.epoch = m.epoch.max(epoch);
            if !self.is_unsynced() {
                m.durable_zxid = durable;
            }
        });
        match committed {
            Ok(_) => {
                self.inner.lock().core.reopen(epoch);
                self.epoch.store(epoch.get(), Ordering::Release);
                Ok(())
            }
            Err(error) => {
                // Whether the new epoch stands on disk is not known: nothing may be let in any more.
                self.fail(error.clone());
                Err(error)
            }
        }
    }

    /// Blocks until something after `zxid` is durable, the log fails, or the time runs out.
    pub(crate) fn wait_for_growth(&self, zxid: Zxid, timeout: Duration) -> Result<bool> {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let deadline = self.clock.nanos().saturating_add(nanos);
        loop {
            if self.durable() > zxid {
                return Ok(true);
            }
            if let Some(failure) = self.failure() {
                return Err(failure.clone());
            }
            let now = self.clock.nanos();
            if now >= deadline {
                return Ok(false);
            }
            let mut inner = self.inner.lock();
            if inner.core.durable_zxid() > zxid {
                return Ok(true);
            }
            inner.room_waiters += 1;
            let left = Duration::from_nanos(deadline - now).min(Duration::from_millis(100));
            self.room.wait_for(&mut inner, left);
            inner.room_waiters -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogOptions;
    use crate::sim::SimDisk;

    /// Found by fuzzing the engine: a close waited for a preparer that had looked just before it was told.
    #[test]
    fn nobody_is_told_to_stop_between_a_look_and_a_sleep() {
        let (log, _) = LogOptions::new().open_sim(&SimDisk::new(1)).expect("open");
        let shared = log.shared.clone();
        // As the preparer holds it while it looks.
        let looking = shared.inner.lock();
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| shared.tell_to_stop());
            // Nobody tells: that is the fault. So long it would take at most.
            shared.helpers.announce();
            shared.helpers.sleep(shared.helpers.value(), Some(Duration::from_millis(50)));
            let is_told = shared.stop.load(Ordering::Acquire);
            drop(looking);
            closing.join().expect("told");
            assert!(!is_told && shared.stop.load(Ordering::Acquire));
        });
    }
}
