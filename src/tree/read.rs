use super::data_tree::{DataTree, plain_of};
use super::owner::Owner;
use super::store::{Data, Node, NodeId};
use super::stored_stat::StoredStat;
use crate::base::Zxid;
use crate::format::{AclList, Stat};

/// A node, borrowed from its tree.
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'t> {
    tree: &'t DataTree,
    id: NodeId,
}

impl<'t> NodeRef<'t> {
    /// Its Stat as a client sees it.
    pub fn stat(&self) -> Stat {
        self.tree.stat(self.id)
    }

    /// Its state as it is stored.
    pub fn stored(&self) -> StoredStat {
        self.tree.stored(self.id)
    }

    /// Its data, or null. Of a node that shows the totals of a quota, these.
    pub fn data(&self) -> Option<&'t [u8]> {
        self.tree.data(self.id)
    }

    /// How many bytes are stored as its data, whatever it shows.
    pub(super) fn stored_data_bytes(&self) -> usize {
        self.tree.stored_data_bytes(self.id)
    }

    /// Its data to keep: shared with the tree if it has more than about 4 KiB, else copied, which costs less.
    pub fn data_to_keep(&self) -> Option<Data> {
        if let Some(text) = self.tree.quotas.text(self.id) {
            return Some(Data::copied(text.as_bytes()));
        }
        self.tree.nodes.shared(self.id)
    }

    /// Its ACL.
    pub fn acl(&self) -> AclList<'t> {
        self.tree.acls.get(self.tree.acl_number(self.id))
    }

    /// Who it belongs to.
    pub fn owner(&self) -> Owner {
        self.tree.owner(self.id)
    }

    /// Its path.
    pub fn path(&self) -> String {
        self.tree.path_of(self.id)
    }

    /// Its name: the last part of its path. Empty for the root.
    pub fn name(&self) -> &'t str {
        std::str::from_utf8(self.tree.name(self.id)).expect("names came as text")
    }

    /// Its digest, as it counts into the tree's.
    pub fn digest(&self) -> u64 {
        self.tree.digest_of(self.id).into()
    }

    /// How many children it has.
    pub fn child_count(&self) -> u32 {
        self.tree.child_count(self.id)
    }

    /// Its children in the order of their names (as bytes), those after the name `after` if one is given.
    pub fn children(&self, after: Option<&str>) -> impl Iterator<Item = NodeRef<'t>> + use<'t> {
        let tree = self.tree;
        let children = tree.families.get(&self.id).map(|f| {
            f.children
                .iter(after.map(str::as_bytes), move |id| tree.name(id))
                .map(move |id| NodeRef { tree, id })
        });
        children.into_iter().flatten()
    }

    /// Its child of that name.
    pub fn child(&self, name: &str) -> Option<NodeRef<'t>> {
        let id = self.tree.find_child(self.id, name.as_bytes())?;
        Some(NodeRef { tree: self.tree, id })
    }
}

impl DataTree {
    /// The node at a path.
    pub fn get(&self, path: &str) -> Option<NodeRef<'_>> {
        self.find(path).map(|id| self.node(id))
    }

    pub(super) fn node(&self, id: NodeId) -> NodeRef<'_> {
        NodeRef { tree: self, id }
    }

    /// The Stat of the node at a path, if it exists.
    pub fn exists(&self, path: &str) -> Option<Stat> {
        self.find(path).map(|id| self.stat(id))
    }

    pub(super) fn data(&self, id: NodeId) -> Option<&[u8]> {
        match self.quotas.text(id) {
            Some(text) => Some(text.as_bytes()),
            None => self.nodes.data(id),
        }
    }

    pub(super) fn stored_data_bytes(&self, id: NodeId) -> usize {
        self.nodes.data_bytes(id)
    }

    /// How many bytes are shown as a node's data.
    pub(super) fn data_bytes(&self, id: NodeId) -> usize {
        self.shown_bytes(id, self.nodes.data_bytes(id))
    }

    /// The same of a node that has so many.
    #[inline]
    pub(super) fn shown_bytes(&self, id: NodeId, stored: usize) -> usize {
        self.quotas.text(id).map_or(stored, str::len)
    }

    pub(super) fn stat(&self, id: NodeId) -> Stat {
        let (node, data_bytes) = (self.nodes.at(id), self.data_bytes(id));
        if !node.is(Node::PARENT | Node::RARE) {
            return plain_of(node).shown(0, data_bytes);
        }
        let (stored, child_count) = self.stored_and_children(id);
        stored.shown(child_count, data_bytes)
    }

    /// The zxid of the last txn that was applied.
    pub fn last_zxid(&self) -> Zxid {
        self.last_zxid
    }

    /// ZooKeeper's digest of the tree (version 2).
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// How many nodes there are, those that servers keep included.
    pub fn len(&self) -> u64 {
        self.nodes.len().into()
    }

    /// The memory that nodes with their names and small data, and the index, take outside of the allocator, in bytes: it comes in huge pages where
    /// the system has them.
    pub fn arena_bytes(&self) -> u64 {
        self.nodes.bytes() + self.index.bytes()
    }

    /// Never: a tree has a root.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The lengths of all paths and data together, as ZooKeeper estimates the size of its data.
    pub fn approximate_bytes(&self) -> u64 {
        self.approximate_bytes
    }

    /// The timeout of a session in milliseconds, if there is such a session.
    pub fn session_timeout_ms(&self, id: i64) -> Option<i32> {
        self.sessions.timeout_ms(id)
    }

    /// All sessions with their timeouts in milliseconds, in the order of their numbers.
    pub fn sessions(&self) -> Vec<(i64, i32)> {
        self.sessions.all()
    }

    /// The paths of a session's ephemeral nodes, in order.
    pub fn ephemeral_paths(&self, session_id: i64) -> Vec<String> {
        let mut paths: Vec<_> = self.sessions.ephemerals(session_id).map(|id| self.path_of(id)).collect();
        paths.sort_unstable();
        paths
    }

    /// All that own ephemeral nodes, in the order of their numbers.
    pub fn ephemeral_owners(&self) -> Vec<i64> {
        self.sessions.owners()
    }

    /// Containers and TTL nodes that may go: without children, and for a container not new, for a TTL node not
    /// changed for longer than its time. In the order of their paths.
    ///
    /// Source: ZooKeeper's `ContainerManager`.
    pub fn expired_paths(&self, now_ms: i64) -> Vec<String> {
        let expired = |id: &NodeId| {
            let stored = self.stored(*id);
            // Of a container that was used, the count may have gone past the end of its bits.
            let is_new = stored.owner == Owner::Container && stored.cversion == 0;
            stored.may_go(now_ms) && !is_new && self.child_count(*id) == 0
        };
        let mut paths: Vec<_> =
            self.expiring.iter().copied().filter(expired).map(|id| self.path_of(id)).collect();
        paths.sort_unstable();
        paths
    }
}
