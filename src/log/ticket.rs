use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::log::engine::{Shared, callback_panicked};
use crate::log::waiting::{Listener, Tell};

/// The promise that an appended record will be durable, or that you will be told why not.
///
/// Wait for it in a thread, poll it, await it as a `Future` (no runtime is needed), or leave a callback. A
/// thread that waits writes the group itself if nobody else does, which is the fastest way there is. A
/// record whose ticket is dropped is written all the same, within about a millisecond; one whose ticket is kept and
/// not looked at, within about ten.
///
/// Acknowledged means durable. An error means *unknown*: the record may or may not be there after the log is
/// opened anew.
#[must_use = "the record is durable only once its ticket says so"]
pub struct AppendTicket {
    shared: Arc<Shared>,
    zxid: Zxid,
    batch: u64,
    /// A listener was left: a committer was told.
    is_listened: bool,
    /// The task that was left as one. It is told, so that asking again leaves nothing more.
    asked_by: Option<Waker>,
}

impl AppendTicket {
    pub(crate) fn new(shared: Arc<Shared>, zxid: Zxid, batch: u64) -> AppendTicket {
        AppendTicket { shared, zxid, batch, is_listened: false, asked_by: None }
    }

    /// The record's zxid; of a batch, the last one's.
    pub fn zxid(&self) -> Zxid {
        self.zxid
    }

    /// Blocks until the record is durable. Returns its zxid. A thread that happens to be writing the group
    /// itself returns when that write ends, even if it is [stuck](crate::LogOptions::stuck_after).
    ///
    /// # Errors
    /// [`ErrorKind::Poisoned`] if a write failed: nothing is known of this record.
    pub fn wait(self) -> Result<Zxid> {
        self.wait_on()
    }

    /// The same. The ticket stays good.
    pub(crate) fn wait_on(&self) -> Result<Zxid> {
        self.shared.wait(self.zxid, self.batch, None).map(|_| self.zxid)
    }

    /// Tells whoever is called with each new last durable zxid, if anybody is, that it is this record's at least: for
    /// who has learned it before.
    pub(crate) fn tell_durable(&self) {
        if let Some(call) = self.shared.on_durable.get() {
            (call.0)(self.zxid);
        }
    }

    /// Monotonic nanoseconds.
    pub(crate) fn now_ns(&self) -> u64 {
        self.shared.clock.nanos()
    }

    /// Blocks until the record is durable, at most for `timeout`. The ticket stays good.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] when the time has run out; [`ErrorKind::Poisoned`] if a write failed. A thread
    /// that happens to be writing the group itself returns when that write ends, even if it is late.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Zxid> {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let deadline = self.shared.clock.nanos().saturating_add(nanos);
        if self.shared.wait(self.zxid, self.batch, Some(deadline))? {
            return Ok(self.zxid);
        }
        let why = format!("zxid {} is not durable after {timeout:?}", self.zxid);
        Err(Error::new(ErrorKind::Timeout, "timeout", why))
    }

    /// Whether the record is durable by now. Never blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Poisoned`] if a write failed.
    pub fn is_durable(&self) -> Result<bool> {
        if let Some(outcome) = self.shared.outcome(self.zxid) {
            return outcome.map(|()| true);
        }
        self.shared.kick();
        Ok(false)
    }

    /// Calls `call` once the record is durable or the log has failed: at once and here if that is so by
    /// now, else in a thread of the log. It must be quick, and must not wait for a ticket.
    pub fn on_durable(mut self, call: impl FnOnce(Result<Zxid>) + Send + 'static) {
        let zxid = self.zxid;
        self.listen(Tell::Call(Box::new(move |outcome| call(outcome.map(|()| zxid)))));
    }

    /// Leaves a listener. It may have become durable in between, so look again, and tell everyone of this
    /// group if so.
    fn listen(&mut self, tell: Tell) {
        self.is_listened = true;
        let waiting = self.shared.waiting();
        waiting.listen(Listener { batch: self.batch, tell });
        match self.shared.outcome(self.zxid) {
            Some(outcome) => {
                if !waiting.tell(self.batch, self.batch + 1, &outcome) {
                    self.shared.fail(callback_panicked());
                }
            }
            None => self.shared.kick(),
        }
    }
}

impl Future for AppendTicket {
    type Output = Result<Zxid>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Zxid>> {
        if self.shared.outcome(self.zxid).is_none() {
            let is_known = self.asked_by.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
            if is_known {
                self.shared.kick();
            } else {
                self.asked_by = Some(cx.waker().clone());
                self.listen(Tell::Waker(cx.waker().clone()));
            }
        }
        match self.shared.outcome(self.zxid) {
            Some(outcome) => Poll::Ready(outcome.map(|()| self.zxid)),
            None => Poll::Pending,
        }
    }
}

impl Drop for AppendTicket {
    fn drop(&mut self) {
        if !self.is_listened {
            self.shared.let_go(self.zxid);
        }
    }
}

impl fmt::Debug for AppendTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppendTicket").field("zxid", &self.zxid).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use std::task::Wake;

    use super::*;
    use crate::base::Epoch;
    use crate::log::{GroupPolicy, Log, LogOptions};
    use crate::sim::SimDisk;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Task(AtomicU32);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn durable(log: &Log) -> AppendTicket {
        let ticket = log.append_next(Epoch::ZERO, 0, b"durable").unwrap();
        while !ticket.is_durable().unwrap() {
            std::thread::yield_now();
        }
        ticket
    }

    /// Nobody else tells it: all who are told of its group were told before.
    #[test]
    fn a_callback_for_what_is_durable_is_called_at_once_and_its_panic_fails_the_log() {
        let (log, _) = LogOptions::new().segment_bytes(1 << 20).open_sim(&SimDisk::new(1)).unwrap();
        let ticket = durable(&log);
        let (zxid, told) = (ticket.zxid(), Arc::new(AtomicU64::new(0)));
        let telling = told.clone();
        ticket.on_durable(move |outcome| telling.store(outcome.unwrap().get(), Ordering::SeqCst));
        assert_eq!(told.load(Ordering::SeqCst), zxid.get());
        assert_eq!(log.shared.waiting().listeners(), 0);
        durable(&log).on_durable(|_| panic!("a test's"));
        assert_eq!(log.shared.failure().map(Error::kind), Some(ErrorKind::Poisoned));
        log.close().unwrap_err();
    }

    #[test]
    fn a_ticket_whose_time_runs_out_says_so_and_stays_good() {
        let group = GroupPolicy::new().delay(Duration::from_secs(1));
        let (log, _) =
            LogOptions::new().segment_bytes(1 << 20).group(group).open_sim(&SimDisk::new(1)).unwrap();
        let ticket = log.append_next(Epoch::ZERO, 0, b"late").unwrap();
        // Before anything is written, unless it has been a second meanwhile.
        let outcome = ticket.wait_timeout(Duration::from_millis(1));
        let is_durable = log.durable_zxid() == ticket.zxid();
        assert!(is_durable || outcome.is_err_and(|error| error.kind() == ErrorKind::Timeout));
        let zxid = ticket.zxid();
        assert_eq!(ticket.wait().unwrap(), zxid);
        log.close().unwrap();
    }

    /// Asking again costs nothing, however many tickets others, or the same task, have in flight.
    #[test]
    fn a_ticket_is_asked_for_once_by_each_task() {
        let dir = tempfile::tempdir().unwrap();
        // So long that all of it is in one group, which is written when the log is closed.
        let group = GroupPolicy::new().delay(Duration::from_secs(1));
        let (log, _) = LogOptions::new().group(group).open(dir.path()).unwrap();
        let mut tickets: Vec<_> =
            (0..3).map(|_| log.append_next(Epoch::ZERO, 0, b"awaited").unwrap()).collect();
        let (one, other) = (Arc::new(Task::default()), Arc::new(Task::default()));
        let mut ask = |task: &Arc<Task>| {
            let waker = Waker::from(task.clone());
            for ticket in &mut tickets {
                assert!(Pin::new(ticket).poll(&mut Context::from_waker(&waker)).is_pending());
            }
        };
        (0..5).for_each(|_| ask(&one));
        assert_eq!(log.shared.waiting().listeners(), 3);
        // A ticket that is handed to another task tells that one.
        (0..5).for_each(|_| ask(&other));
        assert_eq!(log.shared.waiting().listeners(), 6);
        log.close().unwrap();
        assert_eq!((one.0.load(Ordering::SeqCst), other.0.load(Ordering::SeqCst)), (3, 3));
        let waker = Waker::from(one);
        for mut ticket in tickets {
            let zxid = ticket.zxid();
            match Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(outcome) => assert_eq!(outcome.unwrap(), zxid),
                Poll::Pending => panic!("{ticket:?}"),
            }
        }
    }
}
