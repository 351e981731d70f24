use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::base::{Result, Zxid};
use crate::log::engine::Shared;
use crate::log::read::not_in_log;

/// What must not be purged: for each holder, the last record that it does not need any more.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    held: BTreeMap<u64, Zxid>,
    next: u64,
    /// What a purge is about to remove; nobody can pin it any more.
    leaving: Zxid,
}

impl Pins {
    /// From here on, everything up to `through` is as good as purged.
    pub(crate) fn leave(&mut self, through: Zxid) {
        self.leaving = through;
    }

    /// The last record that nobody needs any more.
    pub(crate) fn oldest(&self) -> Option<Zxid> {
        self.held.values().min().copied()
    }
}

#[cfg(test)]
impl crate::log::Log {
    /// Whether a purge is about to remove what comes after `after`. Unlike the try to pin it, asking keeps nothing.
    pub(crate) fn is_leaving(&self, after: Zxid) -> bool {
        after < self.shared.pins.lock().leaving
    }
}

/// A pin inside the crate.
#[derive(Debug)]
pub(crate) struct Pin {
    shared: Arc<Shared>,
    id: u64,
}

impl Pin {
    /// Pins all records after `after`. Fails if they are not all there any more.
    pub(crate) fn new(shared: &Arc<Shared>, after: Zxid) -> Result<Pin> {
        // Both locks, in their order: between the look and the pin nothing may be purged.
        let segments = shared.segments.read();
        let mut pins = shared.pins.lock();
        let floor = segments.first().map_or(Zxid::ZERO, |s| s.floor_zxid);
        if after < floor.max(pins.leaving) {
            return Err(not_in_log(after, "it was purged"));
        }
        let id = pins.next;
        pins.next += 1;
        pins.held.insert(id, after);
        Ok(Pin { shared: shared.clone(), id })
    }

    /// Needs only what comes after `after` from now on.
    pub(crate) fn advance(&self, shared: &Shared, after: Zxid) {
        shared.pins.lock().held.insert(self.id, after);
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.shared.pins.lock().held.remove(&self.id);
    }
}

/// Keeps the records after some zxid from being purged while it lives: for a stream or a backup in progress.
pub struct LogPin(pub(crate) Pin);

impl fmt::Debug for LogPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogPin").field(&self.0.id).finish()
    }
}
