use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::answer::Answer;
use super::slot::Slot;
use crate::base::{Error, ErrorKind, Result, Zxid};
use crate::log::AppendTicket;

/// The promise that a txn will be durable, then applied, and that you will be told what it did; or why not.
///
/// Wait for it in a thread, or await it as a `Future` (no runtime is needed). A txn whose ticket is dropped is logged
/// and applied all the same.
///
/// An error means *unknown*: the txn may or may not be there after the engine is opened anew.
#[must_use = "a request is answered only by its ticket"]
pub struct Ticket {
    durable: AppendTicket,
    is_durable: bool,
    slot: Arc<Slot>,
}

impl Ticket {
    pub(super) fn new(durable: AppendTicket, slot: Arc<Slot>) -> Ticket {
        Ticket { durable, is_durable: false, slot }
    }

    /// The txn's zxid.
    pub fn zxid(&self) -> Zxid {
        self.durable.zxid()
    }

    /// Blocks until the txn is durable, whether it is applied or not: what a server waits for before it tells its
    /// leader that it has the txn.
    ///
    /// # Errors
    /// [`ErrorKind::Poisoned`] if a write failed.
    pub fn wait_durable(&self) -> Result<Zxid> {
        // A year: the log is not asked to wait without a bound, so that the ticket stays good.
        self.durable.wait_timeout(Duration::from_hours(24 * 365))
    }

    /// Blocks until the txn is durable and applied.
    ///
    /// Do not call it while you hold the tree ([`Engine::tree`](crate::Engine::tree)): the txn could not be applied.
    ///
    /// # Errors
    /// [`ErrorKind::Poisoned`] if a write failed, [`ErrorKind::Closed`] if the engine was closed before it was applied.
    pub fn wait(self) -> Result<Answer> {
        self.durable.wait_on()?;
        self.apply();
        self.slot.wait_and_take()
    }

    /// The same, at most for `timeout`. The ticket stays good.
    ///
    /// # Errors
    /// As [`wait`](Ticket::wait), and [`ErrorKind::Timeout`].
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Answer> {
        let begin_ns = self.durable.now_ns();
        let zxid = self.durable.wait_timeout(timeout)?;
        self.apply();
        // What is left of it.
        let passed = Duration::from_nanos(self.durable.now_ns().saturating_sub(begin_ns));
        self.slot.wait(timeout.saturating_sub(passed)).unwrap_or_else(|| {
            let why = format!("zxid {zxid} is durable, but is not applied after {timeout:?}");
            Err(Error::new(ErrorKind::Timeout, "timeout", why))
        })
    }

    /// Applies what is durable, unless whoever wrote it has done so, or the server decides: only where it does not, the
    /// log has somebody to tell. So a ticket needs no share of its own in the pipeline, which all would count up and down.
    fn apply(&self) {
        if !self.slot.is_filled() {
            self.durable.tell_durable();
        }
    }
}

impl Future for Ticket {
    type Output = Result<Answer>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Answer>> {
        if !self.is_durable {
            match Pin::new(&mut self.durable).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(_)) => self.is_durable = true,
            }
        }
        self.apply();
        self.slot.poll(cx.waker()).map_or(Poll::Pending, Poll::Ready)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("zxid", &self.zxid()).finish_non_exhaustive()
    }
}
