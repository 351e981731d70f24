use bytemuck::Zeroable;

use super::arena::Arena;
use super::{Node, NodeId};

/// Records to a piece of memory.
const PIECE_NODES: usize = 512;

/// The records of all nodes, by number. Growing never moves them.
#[derive(Debug)]
pub(crate) struct Nodes {
    arena: Arena,
    end: NodeId,
    free: Vec<NodeId>,
    live: u32,
}

impl Nodes {
    /// More nodes than this do not fit: 28 bits.
    pub(crate) const MAX: u32 = (1 << 28) - 1;

    pub(crate) fn new() -> Nodes {
        Nodes { arena: Arena::new(PIECE_NODES * size_of::<Node>()), end: 0, free: Vec::new(), live: 0 }
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> u32 {
        self.live
    }

    /// One more than the highest number in use, ever.
    pub(crate) fn end(&self) -> NodeId {
        self.end
    }

    /// The memory of all records.
    pub(crate) fn bytes(&self) -> u64 {
        self.arena.bytes()
    }

    /// Takes in a record and numbers it. `None` if there are too many.
    pub(crate) fn insert(&mut self, node: Node) -> Option<NodeId> {
        if let Some(id) = self.free.pop() {
            *self.at_mut(id) = node;
            self.live += 1;
            return Some(id);
        }
        let id = self.end;
        if id >= Nodes::MAX {
            return None;
        }
        if (id as usize).is_multiple_of(PIECE_NODES) {
            self.arena.add();
        }
        self.end += 1;
        *self.at_mut(id) = node;
        self.live += 1;
        Some(id)
    }

    /// Frees a place.
    pub(crate) fn remove(&mut self, id: NodeId) {
        *self.at_mut(id) = Node::zeroed();
        self.free.push(id);
        self.live -= 1;
    }

    /// The node of that number, if it lives.
    pub(crate) fn get(&self, id: NodeId) -> Option<&Node> {
        (id < self.end).then(|| self.at(id)).filter(|node| node.is(Node::LIVE))
    }

    /// The record of a number that is known to be in use.
    pub(crate) fn at(&self, id: NodeId) -> &Node {
        let id = id as usize;
        let piece: &[Node] = bytemuck::cast_slice(self.arena.piece(id / PIECE_NODES));
        &piece[id % PIECE_NODES]
    }

    pub(crate) fn at_mut(&mut self, id: NodeId) -> &mut Node {
        let id = id as usize;
        let piece: &mut [Node] = bytemuck::cast_slice_mut(self.arena.piece_mut(id / PIECE_NODES));
        &mut piece[id % PIECE_NODES]
    }
}
