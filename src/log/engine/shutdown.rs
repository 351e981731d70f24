use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use super::lead::Begin;
use super::shared::Shared;
use crate::base::{Error, ErrorKind, Result};

/// The threads behind an open log: the committers, and the preparer.
#[derive(Debug)]
pub(crate) struct Threads {
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts them.
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Threads> {
        let mut threads = Threads { handles: Vec::new() };
        for n in 0..shared.options.group.in_flight_max {
            let own = shared.clone();
            threads.spawn("arborlog-commit", move || own.commit_in_background(n == 0))?;
        }
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
        shared.stop.store(true, Ordering::Release);
        shared.prepare.notify_all();
        shared.room.notify_all();
        shared.background.wake_all();
        let stuck = shared.failure().is_some_and(|e| e.to_string().contains("[io_stuck]"));
        for handle in self.handles.drain(..) {
            if !stuck {
                handle.join().expect("a thread of the log panicked");
            }
        }
    }
}

impl Shared {
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

    /// Gives up what is logged and not written, and waits for the writes under way, unless one is stuck.
    pub(crate) fn abandon(&self) {
        self.fail(Error::new(ErrorKind::Closed, "closed", "the log was dropped before this was durable".into()));
        let give_up_ns = self.clock.nanos() + u64::try_from(self.options.stuck_after.as_nanos()).unwrap_or(u64::MAX);
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
