use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::answer::{Answer, Found};
use super::recent::Recent;
use super::slot::Slot;
use crate::base::{Error, ErrorKind, Zxid};
use crate::format::TxnBuf;
use crate::log::Log;
use crate::tree::{Change, Observer, Outcome, SharedTree};

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

/// A txn that is logged and not yet applied.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) zxid: Zxid,
    pub(super) txn: TxnBuf,
    pub(super) found: Found,
    pub(super) slot: Arc<Slot>,
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
    pub(super) recent: Mutex<Recent>,
}

struct Applier {
    observer: Box<dyn Observer + Send>,
    batch: Vec<Pending>,
}

/// An observer that is not known by its type.
struct Told<'a>(&'a mut (dyn Observer + Send));

impl Observer for Told<'_> {
    fn begins(&mut self, zxid: Zxid) {
        self.0.begins(zxid);
    }

    fn changed(&mut self, change: Change<'_>) {
        self.0.changed(change);
    }
}

impl Pipeline {
    pub(super) fn new(
        tree: SharedTree,
        commit: Commit,
        observer: Box<dyn Observer + Send>,
        recent: Recent,
    ) -> Pipeline {
        let applied = AtomicU64::new(tree.read().last_zxid().get());
        Pipeline {
            tree,
            commit,
            queue: Mutex::default(),
            applier: Mutex::new(Applier { observer, batch: Vec::new() }),
            applied,
            recent: Mutex::new(recent),
        }
    }

    /// Applies what becomes durable in the log, if nobody else decides.
    pub(super) fn follow(self: &Arc<Self>, log: &Log) {
        if self.commit == Commit::WhenDurable {
            let pipeline = self.clone();
            log.on_durable(move |durable| pipeline.apply_through(durable));
        }
    }

    pub(super) fn commit(&self) -> Commit {
        self.commit
    }

    /// The last txn that is applied.
    pub(super) fn applied(&self) -> Zxid {
        Zxid::new(self.applied.load(Ordering::Acquire))
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
        assert!(newest.is_some_and(|newest| newest.zxid == zxid), "{zxid} was not the newest");
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
        let mut applier = self.applier.lock();
        let Applier { observer, batch } = &mut *applier;
        loop {
            {
                let mut queue = self.queue.lock();
                while batch.len() < APPLIED_AT_ONCE && queue.front().is_some_and(|p| p.zxid <= through) {
                    batch.extend(queue.pop_front());
                }
            }
            let Some(last) = batch.last() else { return };
            let last = last.zxid;
            let txns = batch.iter().map(|pending| pending.txn.as_txn());
            let outcomes = self.tree.apply_group(txns, &mut Told(observer.as_mut()));
            self.applied.store(last.get(), Ordering::Release);
            let mut recent = self.recent.lock();
            for (pending, outcome) in batch.drain(..).zip(outcomes) {
                tell(pending.zxid, &outcome);
                let Pending { zxid, txn, found, slot } = pending;
                slot.fill(Ok(Answer { zxid, time_ms: txn.time_ms(), outcome, found }));
                recent.push(txn);
            }
        }
    }

    /// Ends the pipeline: whoever waits for a txn that was not applied is told so.
    pub(super) fn close(&self) {
        let _applier = self.applier.lock();
        for pending in self.queue.lock().drain(..) {
            let why = format!("the engine was closed before {} was applied", pending.zxid);
            pending.slot.fill(Err(Error::new(ErrorKind::Closed, "closed", why)));
        }
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("applied", &self.applied()).finish_non_exhaustive()
    }
}
