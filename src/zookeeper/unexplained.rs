use hashbrown::HashMap;

use crate::base::{Code, Zxid};
use crate::format::{Txn, TxnBody};
use crate::tree::{DataTree, Outcome};

/// So many are kept: more than a snapshot can take up while it is written.
const KEPT_MAX: usize = 1 << 20;

/// Txns that could not be done, though they could be when they were logged.
///
/// Behind a fuzzy snapshot that may be so, if the snapshot has what a later txn did: a node is not there, since it was
/// deleted later, or is there and of a later txn. When the log tells of no such txn, snapshot and log are not of one
/// history, and without digests nothing else tells.
#[derive(Debug, Default)]
pub(super) struct Unexplained {
    /// The first txn that missed a node.
    missed: HashMap<String, Zxid>,
    /// The same of nodes that may have been those of a session that ended, which old servers do not list: the next such end
    /// explains them all at once.
    missed_owned: HashMap<String, Zxid>,
    /// The first that nothing can explain.
    first: Option<Zxid>,
    count: u64,
    is_exact: bool,
}

impl Unexplained {
    /// Of a replay behind an empty tree, or a snapshot that was written before the first txn, if `is_exact`: nothing can
    /// be done already.
    pub(super) fn new(is_exact: bool) -> Unexplained {
        Unexplained { is_exact, ..Unexplained::default() }
    }

    /// How many there are, once all txns were applied, and the first.
    pub(super) fn first(&self) -> Option<(u64, Zxid)> {
        let missed = self.missed.values().chain(self.missed_owned.values()).copied();
        let first = missed.chain(self.first).min()?;
        Some((self.count + self.missed_count() as u64, first))
    }

    /// Whether the txns to come may explain one.
    pub(super) fn is_waiting(&self) -> bool {
        self.missed_count() > 0
    }

    fn missed_count(&self) -> usize {
        self.missed.len() + self.missed_owned.len()
    }

    /// Takes note of a txn that was applied.
    pub(super) fn note(&mut self, tree: &DataTree, txn: &Txn<'_>, outcome: &Outcome) {
        match (&txn.body, outcome) {
            (TxnBody::Multi(ops), Outcome::Multi(outcomes)) => {
                // One that failed as a whole has an error in it, and changed nothing.
                if ops.iter().any(|op| matches!(op, TxnBody::Error { .. })) {
                    return;
                }
                for (op, outcome) in ops.iter().zip(outcomes) {
                    self.note_one(tree, txn.zxid, &op, outcome);
                }
            }
            (body, outcome) => self.note_one(tree, txn.zxid, body, outcome),
        }
    }

    fn note_one(&mut self, tree: &DataTree, zxid: Zxid, body: &TxnBody<'_>, outcome: &Outcome) {
        match body {
            TxnBody::Delete { path } | TxnBody::DeleteContainer { path } => self.explain(path),
            TxnBody::CloseSession { paths: Some(paths) } => paths.iter().for_each(|path| self.explain(path)),
            // Its room goes, too: to empty it costs as much as it has room, and it may come often.
            TxnBody::CloseSession { paths: None } => self.missed_owned = HashMap::new(),
            _ => {}
        }
        let Outcome::Failed(code) = outcome else { return };
        // One that is not there now was deleted by the same multi, and of it nothing is known any more.
        let is_later = |path: &str| tree.get(path).is_none_or(|node| node.stored().czxid >= zxid);
        match *body {
            TxnBody::Create(ref create) if *code == Code::NODE_EXISTS && is_later(create.path) => {}
            TxnBody::Create(_) if *code == Code::NODE_EXISTS => self.cannot_be(zxid),
            TxnBody::Create(ref create) => {
                // No ephemeral node has children.
                let parent = create.path.rsplit_once('/').map_or("", |(parent, _)| parent);
                self.miss(parent, zxid, false);
            }
            // The snapshot has this very deletion, unless it is the one of before the first txn.
            TxnBody::Delete { .. } | TxnBody::DeleteContainer { .. } if self.is_exact => self.cannot_be(zxid),
            TxnBody::SetData { path, .. } | TxnBody::Reconfig { path, .. } | TxnBody::SetAcl { path, .. } => {
                self.miss(path, zxid, true);
            }
            _ => {}
        }
    }

    fn explain(&mut self, path: &str) {
        self.missed.remove(path);
        self.missed_owned.remove(path);
    }

    fn miss(&mut self, path: &str, zxid: Zxid, may_be_owned: bool) {
        if self.missed_count() >= KEPT_MAX {
            return self.cannot_be(zxid);
        }
        if !may_be_owned {
            let first = self.missed_owned.remove(path).unwrap_or(zxid);
            self.missed.entry_ref(path).or_insert(first);
        } else if !self.missed.contains_key(path) {
            self.missed_owned.entry_ref(path).or_insert(zxid);
        }
    }

    fn cannot_be(&mut self, zxid: Zxid) {
        self.first.get_or_insert(zxid);
        self.count += 1;
    }
}
