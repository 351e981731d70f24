//! Writes carried out by the thread that waits for them: the reference, and what is left where io_uring is refused.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use super::transfer::write_fully;
use super::{Completion, Durability, File, QUEUE_DEPTH, Queue, WriteOp};

/// Writes in the order they were handed in, one per [`wait`](Queue::wait).
#[derive(Debug, Default)]
pub(super) struct ThreadsQueue {
    waiting: VecDeque<WriteOp>,
    /// Kernels before 4.7 and some file systems do not know a write that is itself durable.
    dsync_refused: bool,
}

impl Queue for ThreadsQueue {
    fn submit(&mut self, op: WriteOp) {
        assert!(self.waiting.len() < QUEUE_DEPTH, "more than {QUEUE_DEPTH} writes under way");
        self.waiting.push_back(op);
    }

    fn wait(&mut self) -> Completion {
        let op = self.waiting.pop_front().expect("a write is under way");
        let result = self.carry_out(&op);
        Completion { tag: op.tag, buffer: op.buffer, result }
    }

    fn under_way(&self) -> usize {
        self.waiting.len()
    }
}

impl ThreadsQueue {
    fn carry_out(&mut self, op: &WriteOp) -> io::Result<()> {
        let bytes = op.buffer.as_slice();
        if op.durability == Durability::Dsync && !self.dsync_refused {
            match write_dsync(&*op.file, op.offset, bytes) {
                Err(error) if is_unknown(&error) => self.dsync_refused = true,
                result => return result,
            }
        }
        op.file.write_all_at(op.offset, bytes)?;
        match op.durability {
            Durability::None => Ok(()),
            Durability::Dsync | Durability::ThenSync => op.file.sync(),
        }
    }
}

impl Drop for ThreadsQueue {
    fn drop(&mut self) {
        while self.under_way() > 0 {
            // Nobody is left to be told of a failure; nothing of it was acknowledged.
            drop(self.wait());
        }
    }
}

/// Whether the kernel does not know the call or the flag; nothing was written then.
fn is_unknown(error: &io::Error) -> bool {
    [Errno::OPNOTSUPP, Errno::NOSYS].iter().any(|e| error.raw_os_error() == Some(e.raw_os_error()))
}

fn write_dsync(file: &dyn File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let Some(fd) = file.raw_fd() else { return Err(Errno::OPNOTSUPP.into()) };
    // SAFETY: `file` owns the descriptor and outlives this borrow of it.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let align = usize::try_from(file.align_bytes()).map_err(io::Error::other)?;
    write_fully(align, offset, bytes, |offset, rest| {
        pwritev2(fd, &[IoSlice::new(rest)], offset, ReadWriteFlags::DSYNC)
    })
}
