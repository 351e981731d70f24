use super::data_tree::DataTree;
use super::digest::node_digest;
use super::store::{Children, Node, NodeId};
use crate::base::Zxid;

/// The part of a parent's state that only parents have.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) cversion: i32,
    pub(super) pzxid: Zxid,
    pub(super) children: Children,
}

impl Family {
    pub(super) fn new(pzxid: Zxid) -> Family {
        Family { cversion: 0, pzxid, children: Children::default() }
    }

    /// A create's effect, unless a later one's is there already. Compared as serial numbers, so that the count goes
    /// on past the end of its 32 bits.
    pub(super) fn raise(&mut self, cversion: i32, zxid: Zxid) {
        if cversion.wrapping_sub(self.cversion) > 0 {
            (self.cversion, self.pzxid) = (cversion, zxid);
        }
    }

    /// The same of a create that does not tell the parent's count: old logs do not, and -1, which a count that goes on
    /// past its end comes by, is written as if it were none.
    pub(super) fn raise_untold(&mut self, zxid: Zxid) {
        // What the parent has seen last tells whether it has seen this.
        if self.pzxid < zxid || self.cversion == -2 {
            self.raise(self.cversion.wrapping_add(1), zxid);
        }
    }
}

impl DataTree {
    /// What a node has for its children, made if it has had none.
    pub(super) fn family_mut(&mut self, id: NodeId) -> &mut Family {
        let node = self.nodes.at_mut(id);
        node.set(Node::PARENT, true);
        let pzxid = node.czxid();
        self.families.entry(id).or_insert_with(|| Family::new(pzxid))
    }

    /// Changes what a parent keeps of its children's coming and going, and the digest with it if the parent counts.
    pub(super) fn change_family(
        &mut self,
        parent: NodeId,
        in_digest: bool,
        change: impl FnOnce(&mut Family),
    ) {
        let family = self.family_mut(parent);
        let before = (family.cversion, family.pzxid);
        change(family);
        let after = (family.cversion, family.pzxid);
        if !in_digest || before == after {
            return;
        }
        let crc = self.nodes.at(parent).content_crc;
        let mut stat = self.stored_beside(parent, after);
        let new = node_digest(crc, &stat);
        (stat.cversion, stat.pzxid) = before;
        let old = node_digest(crc, &stat);
        self.digest = self.digest.wrapping_sub(old).wrapping_add(new);
    }

    pub(super) fn child_count(&self, id: NodeId) -> u32 {
        if !self.nodes.at(id).is(Node::PARENT) {
            return 0;
        }
        self.families.get(&id).map_or(0, |f| f.children.len())
    }
}
