//! How waiters learn that their group is durable: one wake-up call per group, and no lock on the way out.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The last durable group, and two words to sleep on: one for groups of even numbers, one for odd. At
/// most two groups have waiters at a time, and those of the one that still gathers are left asleep
/// when the other becomes durable.
#[derive(Debug, Default)]
pub struct Watermark {
    durable_group: AtomicU64,
    words: [AtomicU32; 2],
}

impl Watermark {
    /// Whether that group is durable.
    pub fn covers(&self, group: u64) -> bool {
        self.durable_group.load(Ordering::Acquire) >= group
    }

    /// To be taken under the log's lock, before sleeping on it.
    pub fn ticket(&self, group: u64) -> u32 {
        self.word(group).load(Ordering::Acquire)
    }

    /// Sleeps until a call came after `ticket` was taken; may also return without one.
    pub fn sleep(&self, group: u64, ticket: u32) {
        // SAFETY: the word outlives the call, and a null timeout means none.
        unsafe {
            let word = self.word(group).as_ptr();
            let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, word, operation, ticket, ptr::null::<libc::timespec>());
        }
    }

    /// Moves the watermark. To be called under the log's lock.
    pub fn advance(&self, group: u64) {
        self.durable_group.store(group, Ordering::Release);
        self.word(group).fetch_add(1, Ordering::Release);
        self.word(group + 1).fetch_add(1, Ordering::Release);
    }

    /// Wakes all of the durable group, and one of the next group to lead it.
    pub fn call(&self, group: u64) {
        self.wake(group, i32::MAX);
        self.wake(group + 1, 1);
    }

    fn wake(&self, group: u64, count: i32) {
        // SAFETY: the word outlives the call, which only compares its address.
        unsafe {
            let word = self.word(group).as_ptr();
            libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count);
        }
    }

    fn word(&self, group: u64) -> &AtomicU32 {
        &self.words[(group % 2) as usize]
    }
}
