use super::data_tree::{DataTree, ROOT};
use super::store::{Node, NodeId};
use super::stored_stat::StoredStat;
use crate::format::AclList;

/// A node as a walk meets it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WalkedNode<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its data, or null.
    pub data: Option<&'a [u8]>,
    /// Its ACL.
    pub acl: AclList<'a>,
    /// Its state as it is stored.
    pub stat: StoredStat,
}

/// A walk over all nodes of a tree, in steps between which the tree may change.
///
/// A node that is there from the first step to the last is met exactly once. One that is created, deleted or
/// changed in between may be met or not, and in any of its states: the txns of that time, replayed, make it right.
/// Nodes come in no order; a child may come before its parent.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    next: NodeId,
    /// Where the nodes ended at the first step: whoever creates them faster than the walk goes must not keep it for
    /// ever.
    end: Option<NodeId>,
    /// The path of the parent of the node met last, since neighbours in the store are often siblings.
    parent: Option<NodeId>,
    path: Vec<u8>,
    parent_len: usize,
}

impl Walk {
    /// A walk that has met no node yet.
    pub fn new() -> Walk {
        Walk::default()
    }

    /// How far it has come: 0 to 1.
    pub fn progress(&self, tree: &DataTree) -> f64 {
        let end = self.end.unwrap_or(tree.nodes.end());
        f64::from(self.next.min(end)) / f64::from(end.max(1))
    }

    fn path_of(&mut self, tree: &DataTree, id: NodeId) -> &str {
        let parent = tree.nodes.at(id).parent;
        if self.parent != Some(parent) {
            self.path.clear();
            self.path.extend(tree.path_of(parent).as_bytes());
            if parent == ROOT {
                self.path.clear();
            }
            (self.parent, self.parent_len) = (Some(parent), self.path.len());
        }
        self.path.truncate(self.parent_len);
        self.path.push(b'/');
        if id != ROOT {
            self.path.extend(tree.name(id));
        }
        std::str::from_utf8(&self.path).expect("names came as text")
    }
}

impl DataTree {
    /// Goes on with a walk for at most `places` places of the store, most of which hold a node. False at its end.
    ///
    /// Step by step under a lock, the lock is held for about half a microsecond a place.
    pub fn walk(&self, walk: &mut Walk, places: u32, visit: &mut dyn FnMut(WalkedNode<'_>)) -> bool {
        // The tree may have changed since the last step, and the parent's number may be another node's.
        walk.parent = None;
        let end = *walk.end.get_or_insert(self.nodes.end());
        for _ in 0..places {
            let Some(id) = self.nodes.next(walk.next).filter(|id| *id < end) else { break };
            walk.next = id + 1;
            if !self.nodes.at(id).is(Node::LIVE) {
                continue;
            }
            let data = self.nodes.data(id);
            let acl = self.acls.get(self.acl_number(id));
            let stat = self.stored(id);
            let path = walk.path_of(self, id);
            visit(WalkedNode { path, data, acl, stat });
        }
        let next = self.nodes.next(walk.next).filter(|id| *id < end);
        walk.next = next.unwrap_or(end);
        next.is_some()
    }
}
