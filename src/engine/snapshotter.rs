use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::shared::EngineShared;
use super::take::take_snapshot;
use crate::base::{Clock, Error, ErrorKind, Result};
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
    clean_up_failure: Option<Error>,
    /// How often in a row it has failed.
    failures: u32,
    /// Before that time nothing is tried that only a trigger wants.
    not_before_ns: u64,
}

/// What the next snapshot is written for.
struct Wanted {
    tasks: Vec<Arc<Task>>,
    by_trigger: bool,
}

/// After a failure, a snapshot that a trigger wants is tried again so much later, and twice that after each more.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// But no later than this.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(5);

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

    /// Why what is no longer needed could not be removed.
    pub(super) fn clean_up_failure(&self) -> Option<Error> {
        self.state.lock().clean_up_failure.clone()
    }

    pub(super) fn cleaned_up(&self, outcome: Result<()>) {
        self.state.lock().clean_up_failure = outcome.err();
    }

    /// Takes note that the permit could not be asked for.
    fn not_permitted(&self, why: Error) {
        self.state.lock().failure = Some(why);
    }

    fn ended(&self, outcome: &Result<SnapshotInfo>, by_trigger: bool, now_ns: u64) {
        let mut state = self.state.lock();
        state.failure = outcome.as_ref().err().cloned();
        if outcome.is_ok() {
            (state.failures, state.not_before_ns) = (0, 0);
        } else if by_trigger {
            let after = RETRY_AFTER.saturating_mul(1 << state.failures.min(16)).min(RETRY_AFTER_MAX);
            state.failures += 1;
            state.not_before_ns = now_ns.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX));
            state.is_due = true;
        }
    }

    /// Waits for a request; none if it is time to end.
    fn next(&self, clock: &Clock) -> Option<Wanted> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            let left_ns = state.not_before_ns.saturating_sub(clock.nanos());
            let by_trigger = state.is_due && left_ns == 0;
            if by_trigger || !state.tasks.is_empty() {
                // One that is asked for does for the trigger, too.
                let by_trigger = std::mem::take(&mut state.is_due);
                return Some(Wanted { tasks: std::mem::take(&mut state.tasks), by_trigger });
            }
            if state.is_due {
                self.asked.wait_for(&mut state, Duration::from_nanos(left_ns));
            } else {
                self.asked.wait(&mut state);
            }
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
        let Some(permit) = &shared.options.snapshot_permit else {
            return Self::begin(shared);
        };
        // Asked without a lock: it is not ours. Nor is its panic that of whoever logs a txn.
        match catch_unwind(AssertUnwindSafe(|| permit())) {
            Ok(true) => Self::begin(shared),
            Ok(false) => {}
            Err(panic) => shared.requests.not_permitted(panicked("the permit for a snapshot", &*panic)),
        }
    }

    fn begin(shared: &EngineShared) {
        shared.order.lock().snapshot_begins();
        shared.requests.trigger();
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
    while let Some(Wanted { tasks, by_trigger }) = shared.requests.next(&shared.clock) {
        // A panic must not leave those waiting who have asked.
        let outcome = catch_unwind(AssertUnwindSafe(|| take_snapshot(shared))).unwrap_or_else(|panic| {
            let outcome = Err(panicked("the writing of a snapshot", &*panic));
            shared.pipeline.counters.snapshot_ended(0, &outcome);
            outcome
        });
        shared.requests.ended(&outcome, by_trigger, shared.clock.nanos());
        for task in tasks {
            task.end(outcome.clone());
        }
    }
}

/// The error that a panic becomes; its message is that of the panic, if it has one.
fn panicked(what: &str, panic: &(dyn Any + Send)) -> Error {
    Error::new(ErrorKind::Io, "snapshot_panicked", format!("{what} panicked: {}", panic_message(panic)))
}

/// What a panic says.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}
