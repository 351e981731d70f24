use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::home::Home;
use super::manifest_file::ManifestFile;
use super::options::EngineOptions;
use super::order::Order;
use super::pipeline::Pipeline;
use super::snapshotter::Requests;
use crate::base::{Clock, Epoch, Error, ErrorKind, Result};
use crate::io::Lock;
use crate::log::Log;
use crate::snapshot::SnapshotStore;

/// What an engine's handle and its thread share.
///
/// Lock order: `writing`, then `order`, then the pipeline's.
pub(super) struct EngineShared {
    pub(super) log: Log,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) order: Mutex<Order>,
    pub(super) store: SnapshotStore,
    pub(super) manifest: ManifestFile,
    pub(super) requests: Arc<Requests>,
    /// Held while a snapshot is written.
    pub(super) writing: Mutex<()>,
    pub(super) options: EngineOptions,
    pub(super) clock: Clock,
    pub(super) home: Arc<dyn Home>,
    pub(super) lock: Box<dyn Lock>,
}

/// How often whoever finds the order held looks again before it sleeps, and how often of these without letting others run
/// meanwhile; the pauses before such a look, a microsecond in all.
const LOOKS: u32 = 40;
const LOOKS_AT_ONCE: u32 = 2;
const PAUSES: u32 = 16;

impl EngineShared {
    /// Takes the order, which each holds for some two microseconds: less than it takes to sleep and be woken. So whoever
    /// finds it held lets other threads run, of which there may be many, and looks again. Bounded, since whoever holds it
    /// may not be running.
    pub(super) fn take_order(&self) -> MutexGuard<'_, Order> {
        for look in 0..LOOKS {
            if let Some(order) = self.order.try_lock() {
                return order;
            }
            if look < LOOKS_AT_ONCE {
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
            } else {
                std::thread::yield_now();
            }
        }
        self.order.lock()
    }

    /// Refuses what would be applied beside an observer that has panicked.
    pub(super) fn check_observer(&self) -> Result<()> {
        self.pipeline.failure().map_or(Ok(()), |error| Err(Error::poisoned_by(error)))
    }

    /// Refuses what comes in the name of a leader that was replaced.
    pub(super) fn check_leader(&self, leader: Epoch) -> Result<()> {
        let accepted = self.manifest.accepted();
        if leader < accepted && !crate::planted("no_leader_check") {
            let why = format!("the leader of epoch {leader} was replaced: epoch {accepted} was accepted");
            return Err(Error::new(ErrorKind::Fenced, "fenced", why));
        }
        Ok(())
    }
}
