//! A word that threads can sleep on (a futex), with a count of the sleepers so that nobody wakes nobody.

use crate::base::sync::{AtomicU32, Ordering, fence};
use std::time::Duration;

/// The kernel compares the word with what the sleeper saw, so a wake between the look and the sleep is
/// never lost.
#[derive(Debug, Default)]
// A line of its own: the words of neighbouring groups are touched by different threads.
#[repr(align(128))]
pub(crate) struct WaitWord {
    word: Word,
    sleepers: AtomicU32,
}

impl WaitWord {
    /// What to hand to [`sleep`](WaitWord::sleep); look at the condition after reading it.
    pub(crate) fn value(&self) -> u32 {
        self.word.value()
    }

    /// Announces a sleeper; [`sleep`](WaitWord::sleep) takes it back.
    pub(crate) fn announce(&self) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // Pairs with the fence in `has_sleepers`: what the sleeper looks at next is as new as the other's look.
        fence(Ordering::SeqCst);
    }

    /// Takes an announcement back: there is something better to do than to sleep.
    pub(crate) fn renounce(&self) {
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Sleeps while the word is `seen`, at most for `timeout`. Returns false if the time ran out. May wake
    /// without a reason. [`announce`](WaitWord::announce) comes first.
    pub(crate) fn sleep(&self, seen: u32, timeout: Option<Duration>) -> bool {
        let woken = self.word.sleep(seen, timeout);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        woken
    }

    /// Whether anyone sleeps, or is about to.
    pub(crate) fn has_sleepers(&self) -> bool {
        fence(Ordering::SeqCst);
        self.sleepers.load(Ordering::SeqCst) > 0
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
        // First the word, then the look at the sleepers; a sleeper announces itself and then the word is
        // compared: one of the two sees the other.
        self.word.change();
        if self.has_sleepers() {
            self.word.wake(count);
        }
    }
}

#[cfg(not(loom))]
#[derive(Debug, Default)]
struct Word(AtomicU32);

#[cfg(not(loom))]
impl Word {
    fn value(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    fn change(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn sleep(&self, seen: u32, timeout: Option<Duration>) -> bool {
        use rustix::thread::futex;
        let timeout = timeout.map(|t| futex::Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(t.subsec_nanos()),
        });
        // An interrupted or outdated sleep is a wake without a reason; the caller looks again.
        let result = futex::wait(&self.0, futex::Flags::PRIVATE, seen, timeout.as_ref());
        result != Err(rustix::io::Errno::TIMEDOUT)
    }

    fn wake(&self, count: u32) {
        use rustix::thread::futex;
        // The call fails only for a bad address or flag; either would be a bug here.
        futex::wake(&self.0, futex::Flags::PRIVATE, count).expect("waking sleepers of a word of ours");
    }
}

/// The same promise out of loom's own parts; it has no time.
#[cfg(loom)]
#[derive(Debug, Default)]
struct Word {
    value: crate::base::sync::Mutex<u32>,
    changed: loom::sync::Condvar,
}

#[cfg(loom)]
impl Word {
    fn value(&self) -> u32 {
        *self.value.lock()
    }

    fn change(&self) {
        *self.value.lock() += 1;
    }

    fn sleep(&self, seen: u32, _timeout: Option<Duration>) -> bool {
        let mut value = self.value.lock();
        while *value == seen {
            value = self.changed.wait(value).expect("loom does not poison");
        }
        true
    }

    fn wake(&self, count: u32) {
        let _value = self.value.lock();
        if count == 1 { self.changed.notify_one() } else { self.changed.notify_all() }
    }
}
