//! The one reader of time. Everything below takes a [`Clock`], so that the simulator can turn the hands.

#[cfg(test)]
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Monotonic nanoseconds since some start, and wall-clock milliseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    Real(Instant),
    /// The simulator turns the hands.
    #[cfg(test)]
    Virtual(Arc<AtomicU64>),
}

impl Clock {
    pub(crate) fn real() -> Clock {
        #[expect(clippy::disallowed_methods, reason = "the clock's home")]
        Clock::Real(Instant::now())
    }

    /// Monotonic nanoseconds. Never goes back; its zero has no meaning.
    pub(crate) fn nanos(&self) -> u64 {
        match self {
            Clock::Real(start) => u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
            #[cfg(test)]
            Clock::Virtual(nanos) => nanos.load(Ordering::Relaxed),
        }
    }

    /// Wall-clock milliseconds since 1970; may jump either way.
    pub(crate) fn wall_ms(&self) -> i64 {
        match self {
            #[expect(clippy::disallowed_methods, reason = "the clock's home")]
            Clock::Real(_) => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX)),
            #[cfg(test)]
            Clock::Virtual(nanos) => {
                i64::try_from(nanos.load(Ordering::Relaxed) / 1_000_000).unwrap_or(i64::MAX)
            }
        }
    }
}
