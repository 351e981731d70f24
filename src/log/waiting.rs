use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::base::Result;
use crate::base::sync::{AtomicU32, Mutex, Ordering, fence};
use crate::io::WaitWord;

/// Groups that are waited for at once are far fewer; two that share a place only wake each other in vain.
const PLACES: usize = 64;

/// Where those wait whose group is not durable yet. Each group has a place of its own, so that one call
/// wakes exactly the waiters of one group.
pub(crate) struct WaitingRoom {
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    word: WaitWord,
    /// How many listeners there are, to pass by without a lock where there are none.
    listener_count: AtomicU32,
    listeners: Mutex<Vec<Listener>>,
}

/// Someone to tell, other than by waking a thread.
pub(crate) struct Listener {
    pub(crate) batch: u64,
    pub(crate) tell: Tell,
}

/// How to tell.
pub(crate) enum Tell {
    /// A task that polls a ticket.
    Waker(Waker),
    /// A function to call.
    Call(Box<dyn FnOnce(Result<()>) + Send>),
}

impl WaitingRoom {
    pub(crate) fn new() -> WaitingRoom {
        WaitingRoom { places: (0..PLACES).map(|_| Place::default()).collect() }
    }

    fn place(&self, batch: u64) -> &Place {
        &self.places[usize::try_from(batch % PLACES as u64).expect("less than 64")]
    }

    /// The word on which to sleep for a group.
    pub(crate) fn word(&self, batch: u64) -> &WaitWord {
        &self.place(batch).word
    }

    /// Adds a listener. The caller must look again afterwards whether the group has become durable, and
    /// then call [`tell`](WaitingRoom::tell) itself.
    pub(crate) fn listen(&self, listener: Listener) {
        let place = self.place(listener.batch);
        let mut listeners = place.listeners.lock();
        listeners.push(listener);
        place.listener_count.fetch_add(1, Ordering::SeqCst);
        // Pairs with the fence in `tell`: either the one who tells sees the listener, or the listener's next
        // look sees the watermark.
        fence(Ordering::SeqCst);
    }

    /// Wakes the threads that wait for group `batch`.
    pub(crate) fn wake(&self, batch: u64) {
        self.place(batch).word.wake_all();
    }

    /// Tells the listeners of all groups before `end_batch` that share the place of `batch`. Whether all of them took
    /// it: false if one has panicked, which is not the fault of whoever tells.
    #[must_use = "a callback that panicks is told of"]
    pub(crate) fn tell(&self, batch: u64, end_batch: u64, result: &Result<()>) -> bool {
        let place = self.place(batch);
        fence(Ordering::SeqCst);
        if place.listener_count.load(Ordering::SeqCst) == 0 {
            return true;
        }
        let told: Vec<Listener> = {
            let mut listeners = place.listeners.lock();
            let told: Vec<Listener> = listeners.extract_if(.., |l| l.batch < end_batch).collect();
            let count = u32::try_from(told.len()).expect("a listener needs memory");
            place.listener_count.fetch_sub(count, Ordering::SeqCst);
            told
        };
        // Outside the lock: a callback may append and listen again.
        let mut all_took_it = true;
        for listener in told {
            let tell = || match listener.tell {
                Tell::Waker(waker) => waker.wake(),
                Tell::Call(call) => call(result.clone()),
            };
            all_took_it &= catch_unwind(AssertUnwindSafe(tell)).is_ok();
        }
        all_took_it
    }

    /// Wakes and tells everyone: the log has failed.
    pub(crate) fn fail(&self, result: &Result<()>) {
        for batch in 0..PLACES as u64 {
            self.wake(batch);
            // The log has failed already.
            let _all_took_it = self.tell(batch, u64::MAX, result);
        }
    }

    /// How many listeners there are.
    pub(crate) fn listeners(&self) -> u32 {
        self.places.iter().map(|p| p.listener_count.load(Ordering::Relaxed)).sum()
    }
}

impl fmt::Debug for WaitingRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitingRoom").field("listeners", &self.listeners()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::{Error, ErrorKind};

    fn listen(room: &Arc<WaitingRoom>, told: &Arc<Mutex<Vec<u64>>>, batch: u64) {
        let told = told.clone();
        let call = Box::new(move |_| told.lock().push(batch));
        room.listen(Listener { batch, tell: Tell::Call(call) });
    }

    fn room() -> (Arc<WaitingRoom>, Arc<Mutex<Vec<u64>>>) {
        (Arc::new(WaitingRoom::new()), Arc::new(Mutex::new(Vec::new())))
    }

    /// Else a ticket says too early that it is durable, or never.
    #[test]
    fn those_of_one_place_are_told_up_to_the_end_and_no_further() {
        let (room, told) = room();
        let places = PLACES as u64;
        for batch in [1 + 2 * places, 1, 1 + places, 2] {
            listen(&room, &told, batch);
        }
        assert!(room.tell(1, 1 + 2 * places, &Ok(())));
        assert_eq!((&*told.lock(), room.listeners()), (&vec![1, 1 + places], 2));
        assert!(room.tell(1, 2 + 2 * places, &Ok(())));
        assert_eq!((&*told.lock(), room.listeners()), (&vec![1, 1 + places, 1 + 2 * places], 1));
    }

    #[test]
    fn a_callback_that_panics_is_told_of_and_keeps_nobody_from_being_told() {
        let (room, told) = room();
        room.listen(Listener { batch: 1, tell: Tell::Call(Box::new(|_| panic!("a test's"))) });
        listen(&room, &told, 1);
        assert!(!room.tell(1, 2, &Ok(())));
        assert_eq!((&*told.lock(), room.listeners()), (&vec![1], 0));
    }

    #[test]
    fn a_callback_may_listen_again() {
        let (room, told) = room();
        let (again, told_again) = (room.clone(), told.clone());
        let call = Box::new(move |_| listen(&again, &told_again, 1));
        room.listen(Listener { batch: 1, tell: Tell::Call(call) });
        for told in [0, 1] {
            assert_eq!(room.listeners(), 1, "{told}");
            assert!(room.tell(1, 2, &Ok(())));
        }
        assert_eq!((&*told.lock(), room.listeners()), (&vec![1], 0));
    }

    #[test]
    fn a_failure_is_told_in_all_places_and_of_all_groups() {
        let (room, told) = room();
        let batches = (0..PLACES as u64).chain([5 * PLACES as u64, 7 * PLACES as u64 - 1]);
        batches.clone().for_each(|batch| listen(&room, &told, batch));
        let seen = room.word(PLACES as u64 - 1).value();
        room.word(PLACES as u64 - 1).announce();
        room.fail(&Err(Error::new(ErrorKind::Io, "failed", "a test's".into())));
        // The word has changed: this returns at once.
        assert!(room.word(PLACES as u64 - 1).sleep(seen, None));
        let mut told = told.lock().clone();
        told.sort_unstable();
        assert_eq!(told, batches.collect::<Vec<_>>());
        assert_eq!(room.listeners(), 0);
    }
}
