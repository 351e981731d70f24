use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
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
}

impl AppendTicket {
    pub(crate) fn new(shared: Arc<Shared>, zxid: Zxid, batch: u64) -> AppendTicket {
        AppendTicket { shared, zxid, batch, is_listened: false }
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
        self.shared.wait(self.zxid, self.batch, None).map(|_| self.zxid)
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
            self.listen(Tell::Waker(cx.waker().clone()));
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
