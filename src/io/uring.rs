//! Writes by io_uring.

mod ring;
mod slot;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;

use rustix::io::Errno;

use self::ring::{Action, Bytes, KernelRing, Request, Ring};
use self::slot::{Attempt, Next, Part, Progress};
use super::transfer::IDLE_ATTEMPTS_MAX;
use super::{Completion, Durability, QUEUE_DEPTH, Queue, WriteOp};

/// A queue whose ring also keeps the files `held` open while any of its writes runs: given the directory's
/// lock, no one else gets it before the last write of a killed process has ended.
pub(super) fn open_queue(held: &[RawFd]) -> io::Result<Box<dyn Queue>> {
    Ok(Box::new(UringQueue::on(KernelRing::open(held)?)))
}

/// One ring for one committer.
///
/// The invariant behind every `unsafe` here: a slot owns the buffer and the file of its write from `submit`
/// until all its completions were taken, and the queue is not dropped before. Moving a slot moves no byte.
#[derive(Debug)]
struct UringQueue<R: Ring> {
    slots: [Option<Slot>; QUEUE_DEPTH],
    ring: R,
    /// Pushed, and not consumed by the kernel yet; oldest first.
    pushed: VecDeque<UserData>,
    /// Numbers the attempts, so that a completion cannot be taken for one of another attempt.
    generation: u64,
    /// Set for good when the ring takes nothing any more.
    broken: Option<i32>,
    /// Refusals of `enter` in a row.
    refusals: u32,
    /// Completions that belong to nothing under way.
    strays: u64,
}

#[derive(Debug)]
struct Slot {
    op: WriteOp,
    fd: RawFd,
    progress: Progress,
    generation: u64,
    outcome: Option<io::Result<()>>,
    /// The slots, as bits, that must end before this outcome is told.
    awaits: u32,
    /// The failure of another write of the same file that may have taken this one's pages.
    tainted: Option<i32>,
}

impl Slot {
    /// Whether the sync of another write may have to do with the bytes of this one. A direct write that is
    /// itself durable leaves nothing for others to lose.
    fn shares_syncs(&self) -> bool {
        match self.op.durability {
            Durability::None => false,
            Durability::ThenSync => true,
            Durability::Dsync => self.op.file.align_bytes() == 1,
        }
    }

    fn taint(&mut self, errno: i32) {
        if self.shares_syncs() {
            self.tainted = Some(errno);
            if let Some(outcome @ Ok(())) = &mut self.outcome {
                *outcome = Err(io::Error::from_raw_os_error(errno));
            }
        }
    }

    fn can_be_told(&self) -> bool {
        self.outcome.is_some() && self.awaits == 0
    }
}

/// What comes back with a completion: generation, slot and part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct UserData {
    generation: u64,
    slot: usize,
    part: Part,
}

const SLOT_BITS: u32 = 2;
const _: () = assert!(QUEUE_DEPTH <= 1 << SLOT_BITS);

impl UserData {
    fn pack(self) -> u64 {
        self.generation << (SLOT_BITS + 1) | (self.slot as u64) << 1 | u64::from(self.part == Part::Sync)
    }

    fn unpack(packed: u64) -> UserData {
        UserData {
            generation: packed >> (SLOT_BITS + 1),
            slot: usize::try_from((packed >> 1) & ((1 << SLOT_BITS) - 1)).expect("two bits"),
            part: if packed & 1 == 1 { Part::Sync } else { Part::Write },
        }
    }
}

impl<R: Ring> UringQueue<R> {
    fn on(ring: R) -> UringQueue<R> {
        UringQueue {
            slots: [const { None }; QUEUE_DEPTH],
            ring,
            pushed: VecDeque::with_capacity(2 * QUEUE_DEPTH),
            generation: 0,
            broken: None,
            refusals: 0,
            strays: 0,
        }
    }

    fn hand_in(&mut self, op: WriteOp) {
        let fd = op.file.raw_fd().expect("io_uring writes to files of the kernel only");
        let len = op.buffer.len();
        let end = op.offset.checked_add(len as u64).expect("an offset within a file");
        // Far below -1, which would mean the file's current position.
        assert!(i64::try_from(end).is_ok(), "a write to offset {}", op.offset);
        for other in self.slots.iter().flatten().filter(|other| other.fd == fd) {
            let other_end = other.op.offset + other.op.buffer.len() as u64;
            assert!(end <= other.op.offset || other_end <= op.offset, "two writes under way overlap");
        }
        let align = usize::try_from(op.file.align_bytes()).expect("a small alignment");
        assert!(
            op.offset.is_multiple_of(align as u64) && len.is_multiple_of(align),
            "{len} bytes at {} of the direct file {}",
            op.offset,
            op.file.name()
        );
        let index = self.slots.iter().position(Option::is_none);
        let index = index.unwrap_or_else(|| panic!("more than {QUEUE_DEPTH} writes under way"));
        let mut progress = Progress::new(len, align, op.durability);
        let next = progress.first();
        self.slots[index] =
            Some(Slot { op, fd, progress, generation: 0, outcome: None, awaits: 0, tainted: None });
        self.follow(index, next);
        // Handed over by `wait`, which follows at once: one system call instead of two.
    }

    fn take_one(&mut self) -> Completion {
        assert!(self.count() > 0, "no write is under way");
        loop {
            while let Some((user_data, result)) = self.ring.completion() {
                self.complete(UserData::unpack(user_data), result);
            }
            if let Some(slot) = self.slots.iter_mut().find_map(|slot| slot.take_if(|slot| slot.can_be_told()))
            {
                let result = slot.outcome.expect("just seen");
                return Completion { tag: slot.op.tag, buffer: slot.op.buffer, result };
            }
            self.enter(1);
        }
    }

    fn count(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    fn complete(&mut self, of: UserData, result: i32) {
        let slot = self.slots[of.slot].as_mut();
        match slot.filter(|slot| slot.generation == of.generation && slot.outcome.is_none()) {
            Some(slot) => {
                let next = slot.progress.ended(of.part, result);
                self.follow(of.slot, next);
            }
            None => self.strays += 1,
        }
    }

    fn follow(&mut self, index: usize, next: Next) {
        let outcome = match (next, self.broken) {
            (Next::Wait, _) => return,
            (Next::Begin(attempt), None) => return self.begin(index, attempt),
            (Next::Begin(_), Some(errno)) => Err(io::Error::from_raw_os_error(errno)),
            (Next::Finish(result), _) => result,
        };
        self.settle(index, outcome);
    }

    /// Notes how a write ended, and what that means for others of its file.
    ///
    /// A failed sync takes the kernel's one report of lost pages with it, so a sync of the same file that
    /// runs beside it may succeed although its own pages are among the lost. Hence a write is answered only
    /// when those that overlapped it have ended, and fails if one of them failed.
    fn settle(&mut self, index: usize, outcome: io::Result<()>) {
        let failed =
            outcome.as_ref().err().map(|error| error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()));
        let slot = self.slots[index].as_mut().expect("a slot in use");
        let (fd, shares_syncs, durability) = (slot.fd, slot.shares_syncs(), slot.op.durability);
        let tainted = slot.tainted.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)));
        slot.outcome = Some(outcome.and(tainted));
        let mut awaits = 0;
        for (at, other) in self.slots.iter_mut().enumerate() {
            let Some(other) = other.as_mut().filter(|other| at != index && other.fd == fd) else { continue };
            let concerns_other = other.outcome.is_none() || other.awaits & 1 << index != 0;
            other.awaits &= !(1 << index);
            if let (true, true, Some(errno)) = (concerns_other, durability != Durability::None, failed) {
                other.taint(errno);
            }
            if shares_syncs && other.outcome.is_none() && other.op.durability != Durability::None {
                awaits |= 1 << at;
            }
        }
        self.slots[index].as_mut().expect("a slot in use").awaits = awaits;
    }

    fn begin(&mut self, index: usize, attempt: Attempt) {
        self.generation += 1;
        let generation = self.generation;
        let slot = self.slots[index].as_mut().expect("a slot in use");
        slot.generation = generation;
        let fd = slot.fd;
        let write = match attempt {
            Attempt::Sync => None,
            Attempt::Write { from, len, then_sync } => {
                let bytes = &slot.op.buffer.as_slice()[from..from + len];
                let bytes = Bytes { start: bytes.as_ptr(), len: u32::try_from(len).expect("at most 1 GiB") };
                let offset = slot.op.offset + from as u64;
                let dsync = slot.op.durability == Durability::Dsync;
                Some((Action::Write { bytes, offset, dsync, linked: then_sync }, then_sync))
            }
        };
        let then_sync = write.is_none_or(|(_, then_sync)| then_sync);
        let write = write.map(|(action, _)| (Part::Write, action));
        for (part, action) in write.into_iter().chain(then_sync.then_some((Part::Sync, Action::Sync))) {
            let user_data = UserData { generation, slot: index, part };
            // SAFETY: the slot owns the buffer and the file until this request's completion was taken, or
            // until the ring is broken and never entered again; see the invariant at the type.
            unsafe { self.ring.push(&Request { user_data: user_data.pack(), fd, action }) };
            self.pushed.push_back(user_data);
        }
    }

    /// Hands the pushed requests over, and waits if `completions` is not 0. Failures that pass are left to
    /// the next round: whoever waits comes again.
    fn enter(&mut self, completions: usize) {
        if self.broken.is_some() {
            // What the kernel has, it still completes; there is only no way to be woken.
            return pause();
        }
        match self.ring.enter(completions) {
            Ok(consumed) => self.consumed(consumed),
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::INTR) => {}
                Some(Errno::AGAIN | Errno::BUSY) if self.refusals < IDLE_ATTEMPTS_MAX => {
                    self.refusals += 1;
                    pause();
                }
                errno => self.break_off(errno.unwrap_or(Errno::IO).raw_os_error()),
            },
        }
    }

    fn consumed(&mut self, count: usize) {
        self.refusals = 0;
        let Some(last) = self.pushed.drain(..count).next_back() else { return };
        // The kernel ends a chain with the submission, so a sync that was left behind runs on its own.
        let parted = self.pushed.front().is_some_and(|next| next.generation == last.generation);
        if let (true, Some(slot)) = (parted, &mut self.slots[last.slot]) {
            slot.progress.link_broken();
        }
    }

    /// The ring takes nothing any more. What it did not consume never starts, so it ends as cancelled; what
    /// it did consume is waited for.
    fn break_off(&mut self, errno: i32) {
        self.broken = Some(errno);
        while let Some(request) = self.pushed.pop_front() {
            self.complete(request, -Errno::CANCELED.raw_os_error());
        }
    }
}

/// A moment for the kernel to recover.
fn pause() {
    let millisecond = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // Interrupted, it is merely shorter.
    let _ = rustix::thread::nanosleep(&millisecond);
}

impl<R: Ring + Send> Queue for UringQueue<R> {
    fn submit(&mut self, op: WriteOp) {
        self.hand_in(op);
    }

    fn wait(&mut self) -> Completion {
        self.take_one()
    }

    fn under_way(&self) -> usize {
        self.count()
    }
}

impl<R: Ring> Drop for UringQueue<R> {
    fn drop(&mut self) {
        while self.count() > 0 {
            // Nobody is left to be told of a failure; nothing of it was acknowledged.
            drop(self.take_one());
        }
    }
}
