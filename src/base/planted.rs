//! Bugs put in on purpose, so that the simulator can show that it would find them.
//!
//! Without the `planted-bugs` feature every question is answered "no" at compile time.

#[cfg(feature = "planted-bugs")]
mod switch {
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// Plants one bug in this thread, or none. The simulator runs the whole log in one thread.
    pub fn plant(bug: Option<&'static str>) {
        PLANTED.set(bug);
    }

    pub(crate) fn planted(bug: &str) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "planted-bugs")]
pub use switch::plant;
#[cfg(feature = "planted-bugs")]
pub(crate) use switch::planted;

/// Whether this bug is planted here.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn planted(_bug: &str) -> bool {
    false
}
