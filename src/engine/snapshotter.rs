use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::shared::EngineShared;
use super::take::take_snapshot;
use crate::base::{Error, ErrorKind, Result};
use crate::snapshot::SnapshotInfo;

/// A snapshot that was asked for.
#[derive(Debug)]
#[must_use = "a snapshot that nobody waits for may fail unheard"]
pub struct SnapshotTask(Arc<Task>);

#[derive(Debug, Default)]
struct Task {
    outcome: Mutex<Option<Result<SnapshotInfo>>>,
    ended: Condvar,
}

impl Task {
    fn end(&self, outcome: Result<SnapshotInfo>) {
        *self.outcome.lock() = Some(outcome);
        self.ended.notify_all();
    }
}

impl SnapshotTask {
    /// Waits until the snapshot is published.
    ///
    /// # Errors
    /// Why there is none. Older snapshots are unharmed, and the engine goes on.
    pub fn join(self) -> Result<SnapshotInfo> {
        let mut outcome = self.0.outcome.lock();
        self.0.ended.wait_while(&mut outcome, |outcome| outcome.is_none());
        outcome.clone().expect("it has ended")
    }

    /// Whether it is published, or has failed.
    pub fn is_done(&self) -> bool {
        self.0.outcome.lock().is_some()
    }
}

/// What the snapshotter is asked for.
#[derive(Debug, Default)]
pub(super) struct Requests {
    state: Mutex<State>,
    asked: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Those who wait for the next snapshot.
    tasks: Vec<Arc<Task>>,
    /// A trigger wants one.
    is_due: bool,
    is_stopping: bool,
    failure: Option<Error>,
}

impl Requests {
    pub(super) fn ask(&self) -> Result<SnapshotTask> {
        let mut state = self.state.lock();
        if state.is_stopping {
            return Err(Error::new(ErrorKind::Closed, "closed", "the engine is closing".into()));
        }
        let task = Arc::new(Task::default());
        state.tasks.push(task.clone());
        self.asked.notify_all();
        Ok(SnapshotTask(task))
    }

    fn trigger(&self) {
        self.state.lock().is_due = true;
        self.asked.notify_all();
    }

    /// Why the last one has failed.
    pub(super) fn failure(&self) -> Option<Error> {
        self.state.lock().failure.clone()
    }

    fn ended(&self, outcome: &Result<SnapshotInfo>) {
        self.state.lock().failure = outcome.as_ref().err().cloned();
    }

    /// Waits for a request; none if it is time to end.
    fn next(&self) -> Option<Vec<Arc<Task>>> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            if state.is_due || !state.tasks.is_empty() {
                state.is_due = false;
                return Some(std::mem::take(&mut state.tasks));
            }
            self.asked.wait(&mut state);
        }
    }

    /// Waits so long, or until it is time to end.
    pub(super) fn pause(&self, time: Duration) {
        let mut state = self.state.lock();
        self.asked.wait_while_for(&mut state, |state| !state.is_stopping, time);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    fn stop(&self) {
        let mut state = self.state.lock();
        state.is_stopping = true;
        for task in state.tasks.drain(..) {
            task.end(Err(Error::new(ErrorKind::Closed, "closed", "the engine was closed".into())));
        }
        self.asked.notify_all();
    }
}

/// The thread that writes snapshots.
pub(super) struct Snapshotter {
    shared: Option<Arc<EngineShared>>,
    thread: Option<JoinHandle<()>>,
}

impl Snapshotter {
    pub(super) fn start(shared: &Arc<EngineShared>) -> Result<Snapshotter> {
        let body = shared.clone();
        let thread = std::thread::Builder::new()
            .name("arborlog-snapshot".into())
            .spawn(move || write_snapshots(&body))
            .map_err(|e| Error::io("start the thread for snapshots", e))?;
        Ok(Snapshotter { shared: Some(shared.clone()), thread: Some(thread) })
    }

    /// Asks for a snapshot, which is due, if it is permitted.
    pub(super) fn check(&self) {
        let Some(shared) = &self.shared else { return };
        // Asked without a lock: it is not ours.
        if shared.options.snapshot_permit.as_ref().is_none_or(|permit| permit()) {
            shared.order.lock().snapshot_begins();
            shared.requests.trigger();
        }
    }

    /// Ends the thread; a snapshot that is being written is given up.
    pub(super) fn stop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.requests.stop();
        }
        if let Some(thread) = self.thread.take() {
            // A panic there has been told by the panic's own message.
            let _ended = thread.join();
        }
    }
}

impl Drop for Snapshotter {
    fn drop(&mut self) {
        self.stop();
    }
}

fn write_snapshots(shared: &EngineShared) {
    while let Some(tasks) = shared.requests.next() {
        let outcome = take_snapshot(shared);
        shared.requests.ended(&outcome);
        for task in tasks {
            task.end(outcome.clone());
        }
    }
}
