use hashbrown::HashMap;

use super::data_tree::DataTree;
use super::digest::recounted_digest;
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
        Family { cversion: 0, pzxid, children: Children::default(), is_listed: false }
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

    /// Takes over into the parent's digest what has changed since the counts were these. The digests before and after.
    #[inline]
    pub(super) fn settle(&self, before: (i32, Zxid), parent: &mut Node) -> (u32, u32) {
        let old = parent.digest;
        if before != self.counts() {
            parent.digest = recounted_digest(old, before, self.counts());
        }
        (old, parent.digest)
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
        let family = family_of(parent, &mut self.nodes, &mut self.families);
        let before = family.counts();
        change(family);
        let (old, new) = family.settle(before, self.nodes.at_mut(parent));
        if in_digest {
            self.digest = self.digest.wrapping_sub(old.into()).wrapping_add(new.into());
        }
    }

    pub(super) fn child_count(&self, id: NodeId) -> u32 {
        if !self.nodes.at(id).is(Node::PARENT) {
            return 0;
        }
        self.families.get(&id).map_or(0, |f| f.children.len())
    }
}
