//! The disk with its users: processes, open files, locks, rules, counters, and the numbering of operations.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

use super::counters::SimCounters;
use super::crash::{CrashImage, Side, SimMoment};
use super::fault::{Effect, FaultBook, FaultOp};
use super::medium::Medium;
use super::names::InodeId;
use crate::base::Random;

pub(super) type Shared = Arc<Mutex<State>>;

/// Decides whether a moment is kept; see [`SimDisk::capture_moments`](super::SimDisk::capture_moments).
pub(super) type Capture = Box<dyn FnMut(u64, Side) -> bool + Send>;

/// What a disk is like, apart from what it holds.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub(super) torn_garbage: bool,
    pub(super) space_bytes: Option<usize>,
    pub(super) durable_nanos: u64,
    /// `None`: the file system offers no direct writes.
    pub(super) direct_align: Option<usize>,
}

/// Everything behind the one mutex.
pub(super) struct State {
    pub(super) medium: Medium,
    pub(super) settings: Settings,
    pub(super) faults: FaultBook,
    pub(super) counters: SimCounters,
    pub(super) random: Random,
    pub(super) nanos: Arc<AtomicU64>,
    pub(super) locks: BTreeMap<Arc<str>, u64>,
    pub(super) capture: Option<Capture>,
    pub(super) moments: Vec<SimMoment>,
    pub(super) crash_at: Option<(u64, CrashImage)>,
    pub(super) operations: u64,
    /// Told when stalled writes may end.
    pub(super) released: Arc<Condvar>,
    open: BTreeMap<InodeId, u64>,
    seed: u64,
    processes: u64,
    /// Processes up to this number died in a power cut.
    dead_through: u64,
    queues: u64,
}

impl State {
    pub(super) fn new(seed: u64, medium: Medium, settings: Settings, nanos: u64) -> State {
        State {
            medium,
            settings,
            faults: FaultBook::default(),
            counters: SimCounters::default(),
            random: Random::from_seed(seed),
            nanos: Arc::new(AtomicU64::new(nanos)),
            locks: BTreeMap::new(),
            capture: None,
            moments: Vec::new(),
            crash_at: None,
            operations: 0,
            released: Arc::default(),
            open: BTreeMap::new(),
            seed,
            processes: 0,
            dead_through: 0,
            queues: 0,
        }
    }

    pub(super) fn start_process(&mut self) -> u64 {
        self.processes += 1;
        self.processes
    }

    pub(super) fn is_dead(&self, process: u64) -> bool {
        process <= self.dead_through
    }

    pub(super) fn alive(&self, process: u64) -> io::Result<()> {
        if self.is_dead(process) { Err(dead()) } else { Ok(()) }
    }

    /// A queue draws from a generator of its own, so that committers in several threads, each with its own
    /// queue, do not change one another's order.
    pub(super) fn queue_random(&mut self) -> Random {
        self.queues += 1;
        Random::from_seed(self.seed ^ self.queues.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Carries out one operation that changes the disk: numbered, and a place where power may go.
    pub(super) fn operation<T>(
        &mut self,
        process: u64,
        run: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        self.alive(process)?;
        let number = self.operations + 1;
        if let Some((at, image)) = self.crash_at
            && number >= at
        {
            self.crash(image);
            return Err(dead());
        }
        self.capture(number, Side::Before);
        self.operations = number;
        let result = run(self);
        self.capture(number, Side::After);
        result
    }

    pub(super) fn moment(&self, operation: u64, side: Side) -> SimMoment {
        SimMoment {
            medium: self.medium.clone(),
            settings: self.settings,
            seed: self.seed,
            nanos: self.nanos.load(Ordering::Relaxed),
            operation,
            side,
        }
    }

    pub(super) fn crash(&mut self, image: CrashImage) {
        self.medium = self.medium.crashed(image, self.settings.torn_garbage);
        self.dead_through = self.processes;
        self.crash_at = None;
        self.locks.clear();
        self.open.clear();
        self.released.notify_all();
    }

    /// Counts a call for the rules. A plain error comes back as one; another effect is for the caller.
    pub(super) fn strike(&mut self, op: FaultOp, names: &[&str]) -> io::Result<Option<Effect>> {
        match self.faults.strike(op, names) {
            Some(Effect::Error(errno)) => Err(io::Error::from_raw_os_error(errno)),
            effect => Ok(effect),
        }
    }

    pub(super) fn note_open(&mut self, inode: InodeId) {
        *self.open.entry(inode).or_default() += 1;
    }

    pub(super) fn note_closed(&mut self, inode: InodeId) {
        let count = self.open.get_mut(&inode).expect("closed only after it was opened");
        *count -= 1;
        if *count == 0 {
            self.open.remove(&inode);
            if !self.medium.names.shows(inode) {
                self.collect();
            }
        }
    }

    /// Forgets files without a name and a user.
    pub(super) fn collect(&mut self) {
        let State { medium, open, .. } = self;
        medium.collect(|inode| open.contains_key(&inode));
    }

    /// Bytes of blocks still free; a removed file takes space for as long as it is open.
    pub(super) fn free_bytes(&self) -> usize {
        let Some(space) = self.settings.space_bytes else { return usize::MAX };
        let names = &self.medium.names;
        let used = self.medium.space_bytes(|inode| self.open.contains_key(&inode) || names.shows(inode));
        space.saturating_sub(used)
    }

    /// Something became durable: that takes its time.
    pub(super) fn pass_time(&self) {
        self.nanos.fetch_add(self.settings.durable_nanos, Ordering::Relaxed);
    }

    fn capture(&mut self, operation: u64, side: Side) {
        if self.capture.as_mut().is_some_and(|wanted| wanted(operation, side)) {
            let moment = self.moment(operation, side);
            self.moments.push(moment);
        }
    }
}

fn dead() -> io::Error {
    io::Error::other("the simulated process is dead: power was cut")
}
