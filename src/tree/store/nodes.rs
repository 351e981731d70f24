use super::{BlobId, Node, NodeId, Packed};
use crate::base::Zxid;

/// Records are kept in pages, so that growing never copies them and never stalls.
const PAGE_NODES: usize = 1024;

/// The records of all nodes, by number.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    pages: Vec<Vec<Node>>,
    free: Vec<NodeId>,
    live: u32,
}

impl Nodes {
    /// More nodes than this do not fit: 28 bits.
    pub(crate) const MAX: u32 = (1 << 28) - 1;

    /// How many nodes there are.
    pub(crate) fn len(&self) -> u32 {
        self.live
    }

    /// One more than the highest number in use, ever.
    pub(crate) fn end(&self) -> NodeId {
        let full = self.pages.len().saturating_sub(1) * PAGE_NODES;
        let last = self.pages.last().map_or(0, Vec::len);
        NodeId::try_from(full + last).expect("bounded by MAX")
    }

    /// Takes in a record and numbers it. `None` if there are too many.
    pub(crate) fn insert(&mut self, node: Node) -> Option<NodeId> {
        if let Some(id) = self.free.pop() {
            *self.at_mut(id) = node;
            self.live += 1;
            return Some(id);
        }
        let id = self.end();
        if id >= Nodes::MAX {
            return None;
        }
        if self.pages.last().is_none_or(|page| page.len() == PAGE_NODES) {
            // The first page grows as it is needed, so that a small tree is small.
            let room = if self.pages.is_empty() { 8 } else { PAGE_NODES };
            self.pages.push(Vec::with_capacity(room));
        }
        self.pages.last_mut().expect("just made sure").push(node);
        self.live += 1;
        Some(id)
    }

    /// Frees a place.
    pub(crate) fn remove(&mut self, id: NodeId) {
        let freed = Node {
            czxid: Zxid::ZERO,
            mzxid: Zxid::ZERO,
            ctime: Packed::ZERO,
            mtime: Packed::ZERO,
            version: 0,
            content_crc: 0,
            parent: 0,
            blob: 0,
            acl: 0,
            blob_class: BlobId::NONE.class,
            flags: 0,
        };
        *self.at_mut(id) = freed;
        self.free.push(id);
        self.live -= 1;
    }

    /// The node of that number, if it lives.
    pub(crate) fn get(&self, id: NodeId) -> Option<&Node> {
        let id = id as usize;
        self.pages.get(id / PAGE_NODES)?.get(id % PAGE_NODES).filter(|node| node.is(Node::LIVE))
    }

    /// The record of a number that is known to be in use.
    pub(crate) fn at(&self, id: NodeId) -> &Node {
        &self.pages[id as usize / PAGE_NODES][id as usize % PAGE_NODES]
    }

    pub(crate) fn at_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.pages[id as usize / PAGE_NODES][id as usize % PAGE_NODES]
    }
}
