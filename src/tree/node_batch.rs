use std::ops::Range;

use super::digest::whole_digest;
use super::path;
use super::stored_stat::StoredStat;
use super::walk::WalkedNode;
use crate::format::AclBuf;

/// Nodes on their way into a tree, with what needs nothing but themselves worked out: where a path's name begins, the
/// checksums. One thread can make it while another [loads](super::TreeLoader::batch) the one before.
#[derive(Debug, Default)]
pub struct NodeBatch {
    paths: String,
    data: Vec<u8>,
    /// Each once, as long as it is the same from node to node.
    acls: Vec<AclBuf>,
    acl_bytes: usize,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    path: Range<usize>,
    /// Where the name begins. Of the root, and of what can be no node's path, `None`.
    name: Option<usize>,
    data: Option<Range<usize>>,
    acl: usize,
    stat: StoredStat,
    digest: u32,
}

/// A node of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchNode<'b> {
    pub(super) node: WalkedNode<'b>,
    /// The parent's path and the name.
    pub(super) place: Option<(&'b str, &'b str)>,
    pub(super) digest: u32,
}

impl NodeBatch {
    /// A batch without nodes.
    pub fn new() -> NodeBatch {
        NodeBatch::default()
    }

    /// Adds a node.
    pub fn push(&mut self, node: &WalkedNode<'_>) {
        if self.acls.last().is_none_or(|acl| acl.as_list().as_bytes() != node.acl.as_bytes()) {
            self.acls.push(node.acl.to_buf());
            self.acl_bytes += node.acl.as_bytes().len();
        }
        let from = self.paths.len();
        self.paths.push_str(node.path);
        let data = node.data.map(|data| {
            let from = self.data.len();
            self.data.extend_from_slice(data);
            from..self.data.len()
        });
        self.rows.push(Row {
            path: from..self.paths.len(),
            name: path::split(node.path).map(|(_, name)| node.path.len() - name.len()),
            data,
            acl: self.acls.len() - 1,
            stat: node.stat,
            digest: whole_digest(node.path, node.data, &node.stat),
        });
    }

    /// How many nodes it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The bytes of all paths, data and ACLs.
    pub fn bytes(&self) -> usize {
        self.paths.len() + self.data.len() + self.acl_bytes
    }

    /// Takes all nodes out; the room for them stays.
    pub fn clear(&mut self) {
        self.paths.clear();
        self.data.clear();
        self.acls.clear();
        self.acl_bytes = 0;
        self.rows.clear();
    }

    pub(super) fn nodes(&self) -> impl ExactSizeIterator<Item = BatchNode<'_>> {
        self.rows.iter().map(|row| {
            let path = &self.paths[row.path.clone()];
            let data = row.data.clone().map(|range| &self.data[range]);
            BatchNode {
                node: WalkedNode { path, data, acl: self.acls[row.acl].as_list(), stat: row.stat },
                place: row.name.map(|name| {
                    let parent = &path[..name - 1];
                    (if parent.is_empty() { path::ROOT } else { parent }, &path[name..])
                }),
                digest: row.digest,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{AclEntry, AclList, Perms};

    /// Whoever hands batches over by their bytes is not to hold many copies of a large list.
    #[test]
    fn lists_that_change_from_node_to_node_count() {
        let mut large = AclBuf::new();
        large.push(AclEntry { perms: Perms::ALL, scheme: "auth", id: &"x".repeat(1000) });
        let mut batch = NodeBatch::new();
        let mut push = |acl: AclList<'_>| {
            batch.push(&WalkedNode { path: "/a", data: None, acl, stat: StoredStat::default() });
            batch.bytes()
        };
        let once = push(large.as_list());
        assert!(once > 1000);
        assert_eq!(push(large.as_list()), once + 2, "it stands there once");
        push(AclList::EMPTY);
        assert!(push(large.as_list()) > 2000);
        batch.clear();
        assert_eq!((batch.bytes(), batch.len()), (0, 0));
    }
}
