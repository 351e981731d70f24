//! A word that threads can sleep on (a futex), with a count of the sleepers so that nobody wakes nobody.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::futex;

/// The kernel compares the word with what the sleeper saw, so a wake between the look and the sleep is
/// never lost.
#[derive(Debug, Default)]
// A line of its own: the words of neighbouring groups are touched by different threads.
#[repr(align(128))]
pub(crate) struct WaitWord {
    word: AtomicU32,
    sleepers: AtomicU32,
}

impl WaitWord {
    /// What to hand to [`sleep`](WaitWord::sleep); look at the condition after reading it.
    pub(crate) fn value(&self) -> u32 {
        self.word.load(Ordering::Acquire)
    }

    /// Announces a sleeper; [`sleep`](WaitWord::sleep) takes it back.
    pub(crate) fn announce(&self) {
        self.sleepers.fetch_add(1, Ordering::AcqRel);
    }

    /// Sleeps while the word is `seen`, at most for `timeout`. Returns false if the time ran out. May wake
    /// without a reason. [`announce`](WaitWord::announce) comes first.
    pub(crate) fn sleep(&self, seen: u32, timeout: Option<Duration>) -> bool {
        let timeout = timeout.map(|t| futex::Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(t.subsec_nanos()),
        });
        let result = futex::wait(&self.word, futex::Flags::PRIVATE, seen, timeout.as_ref());
        self.sleepers.fetch_sub(1, Ordering::AcqRel);
        // An interrupted or outdated sleep is a wake without a reason; the caller looks again.
        result != Err(rustix::io::Errno::TIMEDOUT)
    }

    /// Whether anyone sleeps, or is about to.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::Acquire) > 0
    }

    /// Wakes everyone with one call.
    pub(crate) fn wake_all(&self) {
        self.wake(i32::MAX.unsigned_abs());
    }

    /// Wakes one.
    pub(crate) fn wake_one(&self) {
        self.wake(1);
    }

    fn wake(&self, count: u32) {
        self.word.fetch_add(1, Ordering::AcqRel);
        if self.has_sleepers() {
            // The call fails only for a bad address or flag; either would be a bug here.
            futex::wake(&self.word, futex::Flags::PRIVATE, count).expect("waking sleepers of a word of ours");
        }
    }
}
