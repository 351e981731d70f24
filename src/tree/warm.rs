//! Several paths at once: a look-up is mostly waiting for memory, and those of several paths can wait together.

use super::data_tree::DataTree;
use super::lookup::Spot;
use super::path;
use super::read::NodeRef;
use crate::format::{Txn, TxnBody};

/// So many look-ups are under way together. More lines than that a processor does not wait for at once.
pub(super) const AHEAD: usize = 32;

/// What a node is looked up for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// To read it, or to change it in its place.
    Look,
    Add,
    Remove,
}

impl DataTree {
    /// The nodes at several paths, each as [`get`](DataTree::get) finds it. Faster than one after the other when there
    /// are many nodes: a server that has several requests to answer asks for all of them.
    pub fn get_many(&self, paths: &[&str]) -> Vec<Option<NodeRef<'_>>> {
        let mut nodes = Vec::with_capacity(paths.len());
        for paths in paths.chunks(AHEAD) {
            self.warm(paths.iter().map(|path| (*path, Use::Look)));
            nodes.extend(paths.iter().map(|path| self.get(path)));
        }
        nodes
    }

    /// Has the memory fetched that these txns will need, at most [`AHEAD`] of them. What they change for each other
    /// makes no difference but in time.
    pub(super) fn warm_for(&self, txns: &[Txn<'_>]) {
        self.warm(txns.iter().filter_map(|txn| path_of(&txn.body)));
    }

    /// Has the memory fetched of at most [`AHEAD`] nodes, and of what their parents have.
    fn warm<'p>(&self, paths: impl Iterator<Item = (&'p str, Use)>) {
        let mut hashes = [None; AHEAD];
        for (hash, (path, to)) in hashes.iter_mut().zip(paths) {
            *hash = path::split(path).and_then(|(parent, name)| {
                let parent = self.find(parent)?;
                let spot = self.spot(parent, name.as_bytes());
                self.warm_spot(&spot, to);
                // What is to be added has no record.
                (to != Use::Add).then_some(spot.hash)
            });
        }
        for hash in hashes.into_iter().flatten() {
            // Most probably the node itself.
            if let Some(id) = self.index.find(hash, |_| true) {
                self.nodes.prefetch(id);
            }
        }
    }

    /// Has the memory fetched in which a child is found, and of what its parent has.
    pub(super) fn warm_spot(&self, spot: &Spot<'_>, to: Use) {
        self.index.prefetch(spot.hash);
        if to != Use::Look
            && let Some(family) = self.families.get(&spot.parent)
        {
            family.children.prefetch(spot.name, to == Use::Remove);
        }
    }
}

/// The node that a txn changes, and how.
fn path_of<'t>(body: &TxnBody<'t>) -> Option<(&'t str, Use)> {
    match *body {
        TxnBody::Create(ref create) => Some((create.path, Use::Add)),
        TxnBody::Delete { path } | TxnBody::DeleteContainer { path } => Some((path, Use::Remove)),
        TxnBody::SetData { path, .. } | TxnBody::SetAcl { path, .. } => Some((path, Use::Look)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::AclList;
    use crate::tree::SharedTree;
    use crate::tree::tests::{create, txn};

    #[test]
    fn many_are_found_as_one_by_one_and_a_group_is_applied_in_order() {
        let paths: Vec<String> = (0..100)
            .map(|n| if n % 10 == 0 { format!("/p{n}") } else { format!("/p{}/{n}", n / 10 * 10) })
            .collect();
        let group =
            || paths.iter().zip(1..).map(|(path, zxid)| txn(zxid, create(path, b"x", AclList::EMPTY, 1)));
        let mut single = DataTree::new();
        let outcomes: Vec<_> = group().map(|txn| single.apply(&txn, &mut ())).collect();
        let shared = SharedTree::new(DataTree::new());
        assert_eq!(shared.apply_group(group(), &mut ()), outcomes);
        let tree = shared.into_inner();
        assert_eq!((tree.digest(), tree.len()), (single.digest(), 104));
        let mut asked: Vec<&str> = paths.iter().map(String::as_str).collect();
        asked.extend(["/", "", "/none", "/p0/none", "//", "/p0/"]);
        let found: Vec<_> = tree.get_many(&asked).iter().map(|node| node.map(|node| node.path())).collect();
        let wanted: Vec<_> = asked.iter().map(|path| tree.get(path).map(|node| node.path())).collect();
        assert_eq!(found, wanted);
        assert_eq!(found.iter().flatten().count(), 101);
    }
}
