use std::ops::{Deref, DerefMut};
use std::sync::{self, PoisonError};
use std::time::Duration;

/// The lock of a hot path: one that many threads take for less than a microsecond each.
///
/// The standard library's mutex, because it is unfair: whoever runs takes it. `parking_lot`'s hands itself over to
/// the one that waits longest, twice a millisecond, and yields the processor before it waits. With more threads than
/// processors either makes all wait for one that is not running: three times the 99th percentile of 64 writers
/// (decision 0002). A panic does not poison it: what it guards is changed in steps that leave it whole.
#[derive(Debug, Default)]
pub(crate) struct HotLock<T>(sync::Mutex<T>);

/// Holds a [`HotLock`].
#[derive(Debug)]
pub(crate) struct HotGuard<'a, T>(Option<sync::MutexGuard<'a, T>>);

impl<T> HotLock<T> {
    pub(crate) fn new(value: T) -> HotLock<T> {
        HotLock(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> HotGuard<'_, T> {
        HotGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl<T> Deref for HotGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("taken out within `wait_for` only")
    }
}

impl<T> DerefMut for HotGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("taken out within `wait_for` only")
    }
}

/// Where to wait for a change of what a [`HotLock`] guards.
#[derive(Debug, Default)]
pub(crate) struct HotCondition(sync::Condvar);

impl HotCondition {
    pub(crate) fn new() -> HotCondition {
        HotCondition::default()
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Lets go of the lock, sleeps until woken, but not longer than `timeout`, and takes the lock again. May wake
    /// without a reason.
    pub(crate) fn wait_for<T>(&self, guard: &mut HotGuard<'_, T>, timeout: Duration) {
        let held = guard.0.take().expect("taken out here only");
        let (held, _) = self.0.wait_timeout(held, timeout).unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(held);
    }
}
