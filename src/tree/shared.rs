use parking_lot::{RwLock, RwLockReadGuard};

use super::apply::Outcome;
use super::change::Observer;
use super::data_tree::DataTree;
use super::lookup::NodePlace;
use super::warm::AHEAD;
use crate::format::Txn;

/// So many parts of a group.
const WARMED_BESIDE_READERS: usize = 4;

/// How often whoever holds the order tries to read the tree before it sleeps, and its pauses in between: some 40
/// microseconds in all, in which most groups are applied.
const TRIES: usize = 128;
const PAUSES: usize = 8;

/// A tree that some threads read while another one applies txns.
///
/// A reader never waits for a disk or a snapshot; only while a txn is applied, which becomes visible at once. That
/// takes half a microsecond to one and a half an operation, so a multi of as many operations as a record of 1 MiB can
/// hold (about 10,000) keeps readers out for 5 to 15 milliseconds: the price of showing it whole. Decision 0005 has the
/// figures.
#[derive(Debug, Default)]
pub struct SharedTree(RwLock<DataTree>);

impl SharedTree {
    /// Shares a tree.
    pub fn new(tree: DataTree) -> SharedTree {
        SharedTree(RwLock::new(tree))
    }

    /// The tree as it is now, and stays until the guard is dropped: keep it for a few reads, not for a long work, or
    /// the next txn has to wait.
    pub fn read(&self) -> RwLockReadGuard<'_, DataTree> {
        self.0.read()
    }

    /// The same for who has others wait for it, and may hold the tree already, in this thread. It does not wait behind
    /// a writer that waits for that; and it does not sleep while a group is applied, as all others would too.
    pub(crate) fn read_again(&self) -> RwLockReadGuard<'_, DataTree> {
        for _ in 0..TRIES {
            if let Some(tree) = self.0.try_read_recursive() {
                return tree;
            }
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
        self.0.read_recursive()
    }

    /// Applies a txn. Readers see all of it, or nothing.
    pub fn apply(&self, txn: &Txn<'_>, observer: &mut impl Observer) -> Outcome {
        self.0.write().apply(txn, observer)
    }

    /// Applies the txns of a group, one after the other, under one lock: to lock for each of them would cost readers
    /// more than the txns do. Readers see the tree before all of them or after.
    pub fn apply_group<'a>(
        &self,
        txns: impl IntoIterator<Item = Txn<'a>>,
        observer: &mut impl Observer,
    ) -> Vec<Outcome> {
        self.apply_found(txns.into_iter().map(|txn| (txn, None)), observer)
    }

    /// The same with what was found when the txns were proposed, if something was.
    pub(crate) fn apply_found<'a>(
        &self,
        txns: impl IntoIterator<Item = (Txn<'a>, Option<NodePlace>)>,
        observer: &mut impl Observer,
    ) -> Vec<Outcome> {
        let txns: Vec<_> = txns.into_iter().collect();
        let mut outcomes = Vec::with_capacity(txns.len());
        // Beside readers, as far as the processor's cache keeps it.
        let tree = self.0.read();
        let warmed: Vec<_> =
            txns.chunks(AHEAD).take(WARMED_BESIDE_READERS).map(|txns| tree.warm_for_found(txns)).collect();
        drop(tree);
        let mut warmed = warmed.into_iter();
        let mut tree = self.0.write();
        for txns in txns.chunks(AHEAD) {
            let hints = warmed.next().unwrap_or_else(|| tree.warm_for_found(txns));
            outcomes.extend(
                txns.iter().zip(hints).map(|((txn, _), hint)| tree.apply_hinted(txn, hint, observer)),
            );
        }
        outcomes
    }

    /// Takes the tree out again.
    pub fn into_inner(self) -> DataTree {
        self.0.into_inner()
    }
}
