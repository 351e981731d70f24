//! How far one write has come, and what to do next. Pure: no ring, no memory, no file.

use std::io;

use rustix::io::Errno;

use crate::io::Durability;
use crate::io::transfer::{IDLE_ATTEMPTS_MAX, advance, is_transient};

/// The most that one entry asks for: the kernel stops short of 2 GiB, and this keeps what is left aligned.
const ATTEMPT_BYTES_MAX: usize = 1 << 30;

/// One request of an attempt, as its completion names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Write,
    Sync,
}

/// What to hand to the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    /// Bytes `from..from + len` of the buffer; with `then_sync`, an `fdatasync` linked behind.
    Write { from: usize, len: usize, then_sync: bool },
    /// An `fdatasync` alone, when all bytes are written.
    Sync,
}

/// What a completion leads to.
#[derive(Debug)]
pub(super) enum Next {
    /// Another part of the attempt is still under way.
    Wait,
    Begin(Attempt),
    Finish(io::Result<()>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Unused,
    UnderWay,
    Ended(i32),
}

/// One write on its way.
#[derive(Debug)]
pub(super) struct Progress {
    len: usize,
    align: usize,
    durability: Durability,
    written: usize,
    /// Attempts in a row that brought nothing.
    idle: u32,
    /// Bytes that the current attempt asked for.
    asked: usize,
    write: State,
    sync: State,
    /// Whether a sync of the current attempt can only have started after its write ended.
    ordered: bool,
}

impl Progress {
    pub(super) fn new(len: usize, align: usize, durability: Durability) -> Progress {
        let (write, sync) = (State::Unused, State::Unused);
        Progress { len, align, durability, written: 0, idle: 0, asked: 0, write, sync, ordered: true }
    }

    /// The first thing to do.
    pub(super) fn first(&mut self) -> Next {
        self.next(false)
    }

    /// Takes a completion. Nothing follows before every part of the attempt has ended: a slot never has
    /// completions of two attempts to come.
    ///
    /// # Panics
    /// If the part is not under way.
    pub(super) fn ended(&mut self, part: Part, result: i32) -> Next {
        let state = match part {
            Part::Write => &mut self.write,
            Part::Sync => &mut self.sync,
        };
        assert_eq!(*state, State::UnderWay, "a completion of nothing: {part:?} {result}");
        *state = State::Ended(result);
        if part == Part::Sync && self.write == State::UnderWay {
            // It overtook the write that it had to follow.
            self.ordered = false;
        }
        if self.write == State::UnderWay || self.sync == State::UnderWay { Next::Wait } else { self.decide() }
    }

    /// The link of write and sync fell apart: they entered the kernel in two submissions.
    pub(super) fn link_broken(&mut self) {
        self.ordered = false;
    }

    fn decide(&mut self) -> Next {
        let mut whole = true;
        let mut failure = io::Error::from(io::ErrorKind::WriteZero);
        let before = self.written;
        if let State::Ended(result) = self.write {
            whole = usize::try_from(result) == Ok(self.asked);
            match check(result) {
                Ok(count) => match advance(self.align, self.written, count, self.written + self.asked) {
                    Some(end) => self.written = end,
                    None => return Next::Finish(Err(io::Error::other("more bytes written than asked"))),
                },
                Err(errno) if is_transient(errno) => failure = errno.into(),
                Err(errno) => return Next::Finish(Err(errno.into())),
            }
        }
        let mut synced = false;
        if let State::Ended(result) = self.sync {
            match check(result) {
                Ok(_) => synced = whole && self.ordered,
                // It did not run: cancelled with its write, interrupted, or told to come again.
                Err(errno) if is_transient(errno) && whole => failure = errno.into(),
                Err(errno) if is_transient(errno) => {}
                // It ran and failed, and may have dropped what it should have kept: never again.
                Err(errno) => return Next::Finish(Err(errno.into())),
            }
        }
        let moved = self.written > before || synced;
        self.idle = if moved { 0 } else { self.idle + 1 };
        if self.idle > IDLE_ATTEMPTS_MAX { Next::Finish(Err(failure)) } else { self.next(synced) }
    }

    fn next(&mut self, synced: bool) -> Next {
        let then_sync = self.durability == Durability::ThenSync;
        let rest = self.len - self.written;
        self.ordered = true;
        if rest > 0 {
            self.asked = rest.min(ATTEMPT_BYTES_MAX);
            // Behind a write that leaves something for later, a sync would be for nothing.
            let then_sync = then_sync && self.asked == rest;
            self.write = State::UnderWay;
            self.sync = if then_sync { State::UnderWay } else { State::Unused };
            Next::Begin(Attempt::Write { from: self.written, len: self.asked, then_sync })
        } else if then_sync && !synced {
            (self.write, self.sync) = (State::Unused, State::UnderWay);
            Next::Begin(Attempt::Sync)
        } else {
            Next::Finish(Ok(()))
        }
    }
}

/// A completion carries a count, or an error number negated; `errno` itself says nothing.
fn check(result: i32) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(result.saturating_neg()))
}
