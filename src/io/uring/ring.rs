//! The ring itself: three calls, so that tests can put another in its place.

use std::fmt;
use std::io;
use std::os::fd::RawFd;

use io_uring::{IoUring, opcode, squeue, types};

use crate::io::QUEUE_DEPTH;

/// Room for a write and a sync of every slot, so that a push never finds the ring full.
const ENTRIES: u32 = 8;
const _: () = assert!(ENTRIES as usize >= 2 * QUEUE_DEPTH);

/// `RWF_DSYNC` of linux/fs.h.
const RWF_DSYNC: i32 = 2;

/// Bytes that the kernel reads while a request is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    pub(super) start: *const u8,
    pub(super) len: u32,
}

// SAFETY: it is an address to pass on, read by the kernel only. Whoever reads through it has to uphold the
// contract of `Ring::push`, in whatever thread.
unsafe impl Send for Bytes {}

/// What a request does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// `linked`: the next request starts only after this one ended with all its bytes.
    Write { bytes: Bytes, offset: u64, dsync: bool, linked: bool },
    /// `fdatasync`.
    Sync,
}

/// One entry for the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) user_data: u64,
    pub(super) fd: RawFd,
    pub(super) action: Action,
}

/// What [`UringQueue`](super::UringQueue) needs of a ring.
pub(super) trait Ring: fmt::Debug {
    /// Puts an entry into the ring, to start with the next [`enter`](Ring::enter).
    ///
    /// # Safety
    /// The bytes and the descriptor must stay good until the request's completion was taken, or until it
    /// is certain that `enter` is never called again and had not consumed it.
    unsafe fn push(&mut self, request: &Request);
    /// Hands over what was pushed and waits until `completions` can be taken. Returns how many of the
    /// pushed requests the kernel consumed, oldest first: possibly fewer than there are.
    fn enter(&mut self, completions: usize) -> io::Result<usize>;
    /// Takes a completion: `user_data` and result.
    fn completion(&mut self) -> Option<(u64, i32)>;
}

/// The kernel's.
pub(super) struct KernelRing {
    ring: IoUring,
}

impl KernelRing {
    /// Sets up a ring that keeps the files `held` open until its last request has ended, even if the
    /// process dies before.
    pub(super) fn open(held: &[RawFd]) -> io::Result<KernelRing> {
        // Neither a single issuer (a queue may move between threads) nor polling (it costs a core).
        // Completions need not interrupt the thread that waits for them; kernels before 5.19 do not know that.
        let quiet = IoUring::builder().setup_coop_taskrun().build(ENTRIES);
        let ring = quiet.or_else(|_| IoUring::new(ENTRIES))?;
        if !held.is_empty() {
            ring.submitter().register_files(held)?;
        }
        Ok(KernelRing { ring })
    }
}

impl Ring for KernelRing {
    unsafe fn push(&mut self, request: &Request) {
        let fd = types::Fd(request.fd);
        let entry = match request.action {
            Action::Write { bytes, offset, dsync, linked } => opcode::Write::new(fd, bytes.start, bytes.len)
                .offset(offset)
                .rw_flags(if dsync { RWF_DSYNC } else { 0 })
                .build()
                .flags(if linked { squeue::Flags::IO_LINK } else { squeue::Flags::empty() }),
            Action::Sync => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
        };
        // SAFETY: the caller keeps bytes and descriptor good until the completion was taken.
        unsafe { self.ring.submission().push(&entry.user_data(request.user_data)) }
            .expect("the ring has room for every slot");
    }

    fn enter(&mut self, completions: usize) -> io::Result<usize> {
        self.ring.submit_and_wait(completions)
    }

    fn completion(&mut self) -> Option<(u64, i32)> {
        self.ring.completion().next().map(|entry| (entry.user_data(), entry.result()))
    }
}

impl fmt::Debug for KernelRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelRing").finish_non_exhaustive()
    }
}
