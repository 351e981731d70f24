use hashbrown::HashMap;

use super::data_tree::{DataTree, Rare, stored_in};
use super::digest::node_digest;
use super::store::{Children, Node, NodeId, Nodes};
use crate::base::Zxid;

/// The part of a parent's state that only parents have.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) cversion: i32,
    pub(super) pzxid: Zxid,
    pub(super) children: Children,
    /// The parent is in the directory.
    pub(super) is_listed: bool,
    /// The parent's own digest, if it is known: it changes with each child that comes or goes.
    digest: Option<u64>,
}

/// What a parent notices of a create: not what its child is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raise {
    /// The parent's count after it, if the txn tells.
    pub(super) cversion: Option<i32>,
    pub(super) zxid: Zxid,
    /// Whether the parent counts.
    pub(super) in_digest: bool,
}

impl Raise {
    /// A create's effect, unless a later one's is there already.
    pub(super) fn raise(&self, family: &mut Family) {
        match self.cversion {
            Some(cversion) => family.raise(cversion, self.zxid),
            None => family.raise_untold(self.zxid),
        }
    }
}

impl Family {
    fn new(pzxid: Zxid) -> Family {
        Family { cversion: 0, pzxid, children: Children::default(), is_listed: false, digest: None }
    }

    pub(super) fn counts(&self) -> (i32, Zxid) {
        (self.cversion, self.pzxid)
    }

    /// Compared as serial numbers, so that the count goes on past the end of its 32 bits.
    fn raise(&mut self, cversion: i32, zxid: Zxid) {
        if cversion.wrapping_sub(self.cversion) > 0 {
            (self.cversion, self.pzxid) = (cversion, zxid);
        }
    }

    /// Of a create that does not tell the parent's count: old logs do not, and -1, which a count that goes on
    /// past its end comes by, is written as if it were none.
    fn raise_untold(&mut self, zxid: Zxid) {
        // What the parent has seen last tells whether it has seen this.
        if self.pzxid < zxid || self.cversion == -2 {
            self.raise(self.cversion.wrapping_add(1), zxid);
        }
    }

    /// The parent's own fields have changed, and its digest is this now.
    pub(super) fn digest_changed(&mut self, digest: u64) {
        self.digest = Some(digest);
    }

    #[cfg(test)]
    pub(super) fn known_digest(&self) -> Option<u64> {
        self.digest
    }

    /// Takes over into the tree's digest what has changed since the counts were these, if the parent is in it.
    pub(super) fn settle(
        &mut self,
        before: (i32, Zxid),
        parent: NodeId,
        tables: (&Nodes, &HashMap<NodeId, Rare>),
        in_digest: bool,
        digest: &mut u64,
    ) {
        let after = self.counts();
        if !in_digest || before == after {
            return;
        }
        let crc = tables.0.at(parent).content_crc;
        let mut stat = stored_in(parent, before, tables);
        let old = self.digest.unwrap_or_else(|| node_digest(crc, &stat));
        (stat.cversion, stat.pzxid) = after;
        let new = node_digest(crc, &stat);
        self.digest = Some(new);
        *digest = digest.wrapping_sub(old).wrapping_add(new);
    }
}

/// What a node has for its children, made if it has had none.
#[inline]
pub(super) fn family_of<'f>(
    id: NodeId,
    nodes: &mut Nodes,
    families: &'f mut HashMap<NodeId, Family>,
) -> &'f mut Family {
    let node = nodes.at_mut(id);
    node.set(Node::PARENT, true);
    let pzxid = node.czxid();
    families.entry(id).or_insert_with(|| Family::new(pzxid))
}

impl DataTree {
    /// What a node has for its children, made if it has had none. Whoever changes its counts does so within a
    /// [`change`](DataTree::change) of the node, or before it counts.
    pub(super) fn family_mut(&mut self, id: NodeId) -> &mut Family {
        family_of(id, &mut self.nodes, &mut self.families)
    }

    /// Changes what a parent keeps of its children's coming and going, and the digest with it if the parent counts.
    pub(super) fn change_family(
        &mut self,
        parent: NodeId,
        in_digest: bool,
        change: impl FnOnce(&mut Family),
    ) {
        let DataTree { nodes, families, rare, digest, .. } = self;
        let family = family_of(parent, nodes, families);
        let before = family.counts();
        change(family);
        family.settle(before, parent, (nodes, rare), in_digest, digest);
    }

    pub(super) fn child_count(&self, id: NodeId) -> u32 {
        if !self.nodes.at(id).is(Node::PARENT) {
            return 0;
        }
        self.families.get(&id).map_or(0, |f| f.children.len())
    }
}
