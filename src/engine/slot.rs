use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::answer::Answer;
use crate::base::Result;

/// Where an answer is put, once, and taken from, once.
#[derive(Debug, Default)]
pub(super) struct Slot {
    is_filled: AtomicBool,
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct State {
    answer: Option<Result<Answer>>,
    waker: Option<Waker>,
}

impl Slot {
    pub(super) fn fill(&self, answer: Result<Answer>) {
        let mut state = self.state.lock();
        state.answer = Some(answer);
        let waker = state.waker.take();
        self.is_filled.store(true, Ordering::Release);
        drop(state);
        self.filled.notify_all();
        if let Some(waker) = waker {
            // A task that panics where it is woken is its executor's matter: others are to be answered behind it.
            let _panic = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    pub(super) fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::Acquire)
    }

    /// Waits for the answer, at most so long. None if the time ran out.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> Option<Result<Answer>> {
        let mut state = self.state.lock();
        let is_empty = |state: &mut State| state.answer.is_none();
        match timeout {
            None => self.filled.wait_while(&mut state, is_empty),
            Some(timeout) => {
                self.filled.wait_while_for(&mut state, is_empty, timeout);
            }
        }
        state.answer.clone()
    }

    /// The answer if it is there; else `waker` is called when it is.
    pub(super) fn poll(&self, waker: &Waker) -> Option<Result<Answer>> {
        let mut state = self.state.lock();
        if state.answer.is_none() {
            state.waker = Some(waker.clone());
        }
        state.answer.clone()
    }
}
