use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::answer::{Answer, Found};
use super::recent::Recent;
use super::slot::Slot;
use super::snapshotter::panic_message;
use super::stats::Counters;
use crate::base::{Error, ErrorKind, Zxid};
use crate::format::TxnBuf;
use crate::log::Log;
use crate::tree::{Change, NodePlace, Observer, Outcome, SharedTree};

/// Who decides that a txn is applied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Commit {
    /// Nobody but the disk: a txn is applied when it is durable here. For a server that stands alone. The default.
    #[default]
    WhenDurable,
    /// The server, which knows what a quorum has: by [`Engine::apply`](crate::Engine::apply).
    ByServer,
}

/// Most txns that are applied under one lock of the tree, so that readers get their turn.
const APPLIED_AT_ONCE: usize = 256;
/// Most bytes of them, as long as one is larger: what a multi of some thousand operations has.
const APPLIED_BYTES: usize = 128 * 1024;

/// A txn that is logged and not yet applied.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) txn: TxnBuf,
    pub(super) found: Option<Box<Found>>,
    /// Where its node was found.
    pub(super) node: Option<NodePlace>,
    pub(super) slot: Arc<Slot>,
    /// When it was asked for.
    pub(super) since_ns: u64,
}

/// A txn that was applied by the server's decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Applied {
    /// The txn.
    pub zxid: Zxid,
    /// What it did.
    pub outcome: Outcome,
}

/// From the log to the tree: the txns that wait to be applied, and the tree that they are applied to.
pub(super) struct Pipeline {
    pub(super) tree: SharedTree,
    commit: Commit,
    queue: Mutex<VecDeque<Pending>>,
    /// Only who holds this applies, so that txns are applied in order.
    applier: Mutex<Applier>,
    applied: AtomicU64,
    logged: AtomicU64,
    pub(super) recent: Mutex<Recent>,
    pub(super) counters: Counters,
    /// Why nothing more is taken: the observer has panicked.
    failure: OnceLock<Error>,
}

struct Applier {
    observer: Box<dyn Observer + Send>,
    batch: Vec<Pending>,
}

/// Nobody is told of changes.
pub(super) struct Unobserved;

impl Observer for Unobserved {
    fn changed(&mut self, _: Change<'_>) {}
}

/// An observer that is not known by its type, and that is not asked again once it has panicked: the panic is not that
/// of the thread that applies.
struct Told<'a> {
    observer: &'a mut (dyn Observer + Send),
    failure: &'a OnceLock<Error>,
}

impl Told<'_> {
    fn tell(&mut self, tell: impl FnOnce(&mut (dyn Observer + Send))) {
        if self.failure.get().is_some() {
            return;
        }
        let observer = &mut *self.observer;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| tell(observer))) {
            let why = format!("the observer of changes panicked: {}", panic_message(&*panic));
            self.failure.get_or_init(|| Error::new(ErrorKind::Poisoned, "observer_panicked", why));
        }
    }
}

impl Observer for Told<'_> {
    fn begins(&mut self, zxid: Zxid) {
        self.tell(|observer| observer.begins(zxid));
    }

    fn changed(&mut self, change: Change<'_>) {
        self.tell(|observer| observer.changed(change));
    }
}

impl Pipeline {
    pub(super) fn new(
        tree: SharedTree,
        commit: Commit,
        observer: Box<dyn Observer + Send>,
        recent: Recent,
        counters: Counters,
    ) -> Pipeline {
        let last = tree.read().last_zxid().get();
        let (applied, logged) = (AtomicU64::new(last), AtomicU64::new(last));
        Pipeline {
            tree,
            commit,
            queue: Mutex::default(),
            applier: Mutex::new(Applier { observer, batch: Vec::new() }),
            applied,
            logged,
            recent: Mutex::new(recent),
            counters,
            failure: OnceLock::new(),
        }
    }

    /// Applies what becomes durable in the log, if nobody else decides.
    pub(super) fn follow(self: &Arc<Self>, log: &Log) {
        if self.commit == Commit::WhenDurable {
            let pipeline = self.clone();
            log.on_durable(move |durable| pipeline.apply_through(durable));
        }
    }

    /// How the observer has failed, if it has.
    pub(super) fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    pub(super) fn commit(&self) -> Commit {
        self.commit
    }

    /// The last txn that is applied.
    pub(super) fn applied(&self) -> Zxid {
        Zxid::new(self.applied.load(Ordering::Acquire))
    }

    /// The same, and those of the newest txns that are in memory: all that are applied up to it, as far back as they go.
    pub(super) fn applied_and_recent(&self) -> (Zxid, Vec<Zxid>) {
        let recent = self.recent.lock();
        (self.applied(), recent.zxids())
    }

    /// The last txn that is logged.
    pub(super) fn last_logged(&self) -> Zxid {
        Zxid::new(self.logged.load(Ordering::Acquire))
    }

    /// Takes note that a txn was logged. Only who holds the order calls it.
    pub(super) fn logged(&self, zxid: Zxid) {
        self.logged.store(zxid.get(), Ordering::Release);
    }

    /// How many txns wait to be applied.
    pub(super) fn waiting(&self) -> usize {
        self.queue.lock().len()
    }

    /// Takes in a txn that is about to be logged: before it is, so that it is here when it is durable.
    pub(super) fn push(&self, pending: Pending) {
        self.queue.lock().push_back(pending);
    }

    /// Takes the newest txn back, which could not be logged.
    pub(super) fn pop_newest(&self, zxid: Zxid) {
        let newest = self.queue.lock().pop_back();
        assert!(newest.is_some_and(|newest| newest.txn.zxid() == zxid), "{zxid} was not the newest");
    }

    /// Applies what waits, up to `through`.
    pub(super) fn apply_through(&self, through: Zxid) {
        self.apply(through, |_, _| {});
    }

    /// The same; tells what became of each txn.
    pub(super) fn apply_and_tell(&self, through: Zxid) -> Vec<Applied> {
        let mut applied = Vec::new();
        self.apply(through, |zxid, outcome| applied.push(Applied { zxid, outcome: outcome.clone() }));
        applied
    }

    fn apply(&self, through: Zxid, mut tell: impl FnMut(Zxid, &Outcome)) {
        let mut answers = Vec::new();
        loop {
            self.apply_some(through, &mut tell, &mut answers);
            if answers.is_empty() {
                return;
            }
            // Without a lock: a task may be polled right here, and look at the engine.
            for (slot, answer) in answers.drain(..) {
                slot.fill(Ok(answer));
            }
        }
    }

    /// Applies what is applied together, and collects what is to be answered.
    fn apply_some(
        &self,
        through: Zxid,
        tell: &mut impl FnMut(Zxid, &Outcome),
        answers: &mut Vec<(Arc<Slot>, Answer)>,
    ) {
        let mut applier = self.applier.lock();
        let Applier { observer, batch } = &mut *applier;
        {
            let mut queue = self.queue.lock();
            let mut bytes = 0;
            while batch.len() < APPLIED_AT_ONCE && bytes < APPLIED_BYTES {
                let Some(pending) = queue.pop_front_if(|p| p.txn.zxid() <= through) else { break };
                bytes += pending.txn.as_bytes().len();
                batch.push(pending);
            }
        }
        let Some(last) = batch.last() else { return };
        let last = last.txn.zxid();
        let txns = batch.iter().map(|pending| (pending.txn.as_txn(), pending.node));
        let outcomes =
            self.tree.apply_found(txns, &mut Told { observer: observer.as_mut(), failure: &self.failure });
        let errors = outcomes.iter().filter(|outcome| !outcome.code().is_ok()).count();
        self.counters.applied(outcomes.len() as u64, errors as u64);
        let now_ns = self.counters.now_ns();
        // Told under the lock: a plan for a peer takes what is applied and is not here for what only the peer has.
        answers.reserve(batch.len());
        let mut recent = self.recent.lock();
        self.applied.store(last.get(), Ordering::Release);
        for (pending, outcome) in batch.drain(..).zip(outcomes) {
            let Pending { txn, found, slot, since_ns, .. } = pending;
            let zxid = txn.zxid();
            tell(zxid, &outcome);
            self.counters.answered(since_ns, now_ns);
            answers.push((slot, Answer { zxid, time_ms: txn.time_ms(), outcome, found }));
            recent.push(txn);
        }
    }

    /// Takes the observer out, for the engine that comes after this one.
    pub(super) fn take_observer(&self) -> Box<dyn Observer + Send> {
        std::mem::replace(&mut self.applier.lock().observer, Box::new(Unobserved))
    }

    /// Ends the pipeline: whoever waits for a txn that was not applied is told so.
    pub(super) fn close(&self) {
        let _applier = self.applier.lock();
        for pending in self.queue.lock().drain(..) {
            let why = format!("the engine was closed before {} was applied", pending.txn.zxid());
            pending.slot.fill(Err(Error::new(ErrorKind::Closed, "closed", why)));
        }
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("applied", &self.applied()).finish_non_exhaustive()
    }
}
