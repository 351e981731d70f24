use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::answer::Answer;
use crate::base::Result;

/// Where an answer is put, once, and looked at until it is taken.
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

    /// Waits for the answer and takes it: for who does not come again.
    pub(super) fn wait_and_take(&self) -> Result<Answer> {
        let mut state = self.state.lock();
        loop {
            if let Some(answer) = state.answer.take() {
                return answer;
            }
            self.filled.wait(&mut state);
        }
    }

    /// Waits for the answer, at most so long. None if the time ran out.
    pub(super) fn wait(&self, timeout: Duration) -> Option<Result<Answer>> {
        let mut state = self.state.lock();
        self.filled.wait_while_for(&mut state, |state| state.answer.is_none(), timeout);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Zxid;
    use crate::tree::Outcome;

    #[test]
    fn an_answer_that_was_looked_at_can_still_be_taken() {
        let slot = Slot::default();
        let answer = Answer { zxid: Zxid::new(1), time_ms: 2, outcome: Outcome::Done, found: None };
        assert!(slot.poll(Waker::noop()).is_none() && slot.wait(Duration::ZERO).is_none());
        slot.fill(Ok(answer.clone()));
        assert_eq!(slot.wait(Duration::ZERO).unwrap().unwrap(), answer);
        assert_eq!(slot.poll(Waker::noop()).unwrap().unwrap(), answer);
        assert_eq!(slot.wait_and_take().unwrap(), answer);
    }
}
