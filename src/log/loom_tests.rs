//! Every order in which a waiter, a poller and two leaders can meet around the watermark.
//!
//! The waiter and the leader are those of `engine/shared.rs` and `engine/lead.rs`, reduced to what they do
//! with the lock, the watermark and the waiting room.

use std::task::{Wake, Waker};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use super::waiting::{Listener, Tell, WaitingRoom};
use super::watermark::Watermark;
use crate::base::Zxid;
use crate::base::sync::Mutex;

struct Log {
    inner: Mutex<u64>,
    durable: Watermark,
    room: WaitingRoom,
}

fn log() -> Arc<Log> {
    Arc::new(Log { inner: Mutex::new(0), durable: Watermark::new(Zxid::ZERO), room: WaitingRoom::new() })
}

impl Log {
    /// `Shared::wait`
    fn wait(&self, zxid: u64, batch: u64) {
        while self.durable.get() < Zxid::new(zxid) {
            let inner = self.inner.lock();
            if *inner >= zxid {
                return;
            }
            let word = self.room.word(batch);
            let seen = word.value();
            word.announce();
            drop(inner);
            word.sleep(seen, None);
        }
    }

    /// `Shared::finish`
    fn finish(&self, zxid: u64, batch: u64) {
        let mut inner = self.inner.lock();
        *inner = (*inner).max(zxid);
        self.durable.raise(Zxid::new(zxid));
        drop(inner);
        self.room.wake(batch);
        assert!(self.room.tell(batch, batch + 1, &Ok(())));
    }
}

#[test]
fn loom_a_waiter_is_never_left_asleep() {
    loom::model(|| {
        let log = log();
        let waiter = {
            let log = log.clone();
            thread::spawn(move || log.wait(1, 0))
        };
        log.finish(1, 0);
        waiter.join().unwrap();
        assert_eq!(log.durable.get(), Zxid::new(1));
    });
}

#[test]
fn loom_two_leaders_wake_their_own_waiters_and_the_watermark_only_rises() {
    loom::model(|| {
        let log = log();
        let waiter = {
            let log = log.clone();
            thread::spawn(move || {
                log.wait(2, 1);
                assert!(log.durable.get() >= Zxid::new(2));
            })
        };
        let leader = {
            let log = log.clone();
            thread::spawn(move || log.finish(1, 0))
        };
        log.finish(2, 1);
        leader.join().unwrap();
        waiter.join().unwrap();
        assert_eq!(log.durable.get(), Zxid::new(2));
    });
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn loom_a_task_that_finds_nothing_is_woken() {
    loom::model(|| {
        let log = log();
        let leader = {
            let log = log.clone();
            thread::spawn(move || log.finish(1, 0))
        };
        // `AppendTicket::poll`: leave a waker, then look again.
        let flag = std::sync::Arc::new(Flag(AtomicBool::new(false)));
        log.room.listen(Listener { batch: 0, tell: Tell::Waker(Waker::from(flag.clone())) });
        let pending = log.durable.get() < Zxid::new(1);
        if !pending {
            assert!(log.room.tell(0, 1, &Ok(())));
        }
        leader.join().unwrap();
        assert!(!pending || flag.0.load(Ordering::SeqCst), "pending, and nobody will ever say so");
    });
}

#[test]
fn loom_a_waiter_that_found_the_log_busy_is_handed_the_lead() {
    loom::model(|| {
        let log = log();
        let busy = Arc::new(AtomicBool::new(true));
        let waiter = {
            let (log, busy) = (log.clone(), busy.clone());
            thread::spawn(move || {
                // The look without the lock of `Shared::wait`, then the lead.
                while log.durable.get() < Zxid::new(1) {
                    let word = log.room.word(0);
                    let seen = word.value();
                    word.announce();
                    if busy.load(Ordering::SeqCst) {
                        word.sleep(seen, None);
                        continue;
                    }
                    word.renounce();
                    log.finish(1, 0);
                }
            })
        };
        // `Shared::finish` of the group before, and what it leaves to its heir. Who does not sleep yet is on its way, and
        // needs no committer.
        busy.store(false, Ordering::SeqCst);
        if log.room.word(0).has_sleepers() {
            log.room.word(0).wake_one();
        }
        waiter.join().unwrap();
        assert_eq!(log.durable.get(), Zxid::new(1));
    });
}
