//! The simulated disk as its owner, a test, holds it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;

use super::content::SECTOR;
use super::counters::SimCounters;
use super::crash::{CrashImage, Side, SimMoment};
use super::fault::Fault;
use super::handle::Handle;
use super::medium::Medium;
use super::state::{Settings, Shared, State};
#[cfg(test)]
use crate::base::Clock;
use crate::io::Disk;

/// One directory on a simulated disk. Clones are the same disk; [`fork`](SimDisk::fork) makes another.
///
/// ```
/// use arborlog::sim::{CrashImage, SimDisk};
///
/// let disk = SimDisk::new(7);
/// disk.write_file("a", b"durable at once");
/// let after = disk.fork(CrashImage::DropUnsynced);
/// disk.remove_file("a");
/// assert_eq!(after.read_file("a").as_deref(), Some(&b"durable at once"[..]));
/// ```
#[derive(Clone)]
pub struct SimDisk {
    shared: Shared,
}

impl SimDisk {
    /// An empty directory. The seed decides the order in which writes end, and nothing else.
    pub fn new(seed: u64) -> SimDisk {
        let settings =
            Settings { torn_garbage: false, space_bytes: None, durable_nanos: 0, direct_align: Some(SECTOR) };
        SimDisk::from_state(State::new(seed, Medium::default(), settings, 0))
    }

    pub(super) fn after_crash(moment: &SimMoment, image: CrashImage) -> SimDisk {
        let SimMoment { settings, seed, nanos, .. } = *moment;
        let medium = moment.medium.crashed(image, settings.torn_garbage);
        SimDisk::from_state(State::new(seed, medium, settings, nanos))
    }

    fn from_state(state: State) -> SimDisk {
        SimDisk { shared: Arc::new(Mutex::new(state)) }
    }

    /// The disk for a new process; it works until power is cut.
    pub(crate) fn handle(&self) -> Arc<dyn Disk> {
        Arc::new(Handle::new(self.shared.clone()))
    }

    /// Cuts power. Every process dies: its calls fail from now on, its locks are gone, its writes under way
    /// have landed as the image says.
    pub fn crash(&self, image: CrashImage) {
        self.shared.lock().crash(image);
    }

    /// Cuts power when the operation with this number (see [`operations`](SimDisk::operations)) begins: it
    /// does not happen, and its caller is told that its process is dead.
    pub fn crash_at(&self, operation: u64, image: CrashImage) {
        self.shared.lock().crash_at = Some((operation, image));
    }

    /// The disk as it would come up if power were cut now. This one goes on unharmed.
    #[must_use]
    pub fn fork(&self, image: CrashImage) -> SimDisk {
        self.moment().image(image)
    }

    /// The present moment, to try several images from.
    pub fn moment(&self) -> SimMoment {
        let state = self.shared.lock();
        state.moment(state.operations, Side::After)
    }

    /// How many operations have begun that may change the disk: making a file, handing in a write, its end,
    /// a write without a queue, a sync of a file or the directory, a rename, a removal, a change of length,
    /// a reservation.
    pub fn operations(&self) -> u64 {
        self.shared.lock().operations
    }

    /// From now on asks `wanted` before and after each operation, with the operation's number, and keeps the
    /// moments it wants for [`take_moments`](SimDisk::take_moments). Replaces an earlier hook.
    ///
    /// The disk waits while `wanted` runs, so it must not call the disk. It may note how far the workload had
    /// come: the answers given before an operation began are what recovery from its moment must show.
    pub fn capture_moments(&self, wanted: impl FnMut(u64, Side) -> bool + Send + 'static) {
        self.shared.lock().capture = Some(Box::new(wanted));
    }

    /// The moments kept since the last call, oldest first.
    pub fn take_moments(&self) -> Vec<SimMoment> {
        std::mem::take(&mut self.shared.lock().moments)
    }

    /// Installs a rule; earlier ones stay.
    ///
    /// # Panics
    /// If the effect does not [fit](super::Effect::fits) the call, or `nth` is 0.
    pub fn inject(&self, fault: Fault) {
        self.shared.lock().faults.install(fault);
    }

    /// Removes all rules.
    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// Lets the writes end that are stalled now; returns how many. Later ones stall if a rule says so.
    pub fn release_stalled(&self) -> usize {
        let mut state = self.shared.lock();
        let stalled = state.medium.under_way.values_mut().filter(|write| write.stalled);
        let count = stalled.map(|write| write.stalled = false).count();
        state.released.notify_all();
        count
    }

    /// How many calls went wrong by a rule so far. A test asserts it, so that it cannot pass without its fault.
    pub fn fault_hits(&self) -> u64 {
        self.shared.lock().faults.hits()
    }

    /// What the disk was asked to do.
    pub fn counters(&self) -> SimCounters {
        self.shared.lock().counters
    }

    /// Bounds the blocks (of 4,096 bytes) that files may take; `None` takes the bound away. A write beyond it
    /// lands as far as there are blocks, then fails with `ENOSPC`; a reservation fails whole.
    pub fn set_space_bytes(&self, space_bytes: Option<u64>) {
        let space_bytes = space_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        self.shared.lock().settings.space_bytes = space_bytes;
    }

    /// Whether a sector of a write under way, which a [random](CrashImage::Random) power cut keeps, is
    /// seldom (1 in 16) noise instead. Off in a new disk: such a medium is worse than most logs assume.
    pub fn set_torn_garbage(&self, torn_garbage: bool) {
        self.shared.lock().settings.torn_garbage = torn_garbage;
    }

    /// The unit of direct writes for handles made later; `None`: no direct writes, files are opened through
    /// the cache instead. 512 in a new disk.
    ///
    /// # Panics
    /// If it is not a power of two from 512 to 4,096.
    pub fn set_direct_align_bytes(&self, align_bytes: Option<u32>) {
        let align = align_bytes.map(|bytes| {
            assert!(bytes.is_power_of_two() && (512..=4096).contains(&bytes), "{bytes} is no such unit");
            bytes as usize
        });
        self.shared.lock().settings.direct_align = align;
    }

    /// How long a durable write and a sync take, in virtual nanoseconds; 0 in a new disk.
    pub fn set_durable_nanos(&self, nanos: u64) {
        self.shared.lock().settings.durable_nanos = nanos;
    }

    /// The hand of the virtual clock, in nanoseconds. The disk turns it as told by
    /// [`set_durable_nanos`](SimDisk::set_durable_nanos); a test may turn it too.
    pub fn nanos(&self) -> Arc<AtomicU64> {
        self.shared.lock().nanos.clone()
    }

    /// The clock that goes by [`nanos`](SimDisk::nanos).
    #[cfg(test)]
    pub(crate) fn clock(&self) -> Clock {
        Clock::Virtual(self.nanos())
    }

    /// For the tools, which work on the state itself.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("SimDisk")
            .field("operations", &state.operations)
            .field("counters", &state.counters)
            .finish_non_exhaustive()
    }
}
