use hashbrown::{HashMap, HashSet};

use super::store::NodeId;

/// The sessions that were created and not closed, and the ephemeral nodes of each owner.
///
/// An owner need not be a session that is known: an old log may have lost it. Expiry is not here; it belongs to
/// the server that the clients are connected to.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    timeouts_ms: HashMap<i64, i32>,
    ephemerals: HashMap<i64, HashSet<NodeId>>,
}

impl Sessions {
    pub(crate) fn create(&mut self, id: i64, timeout_ms: i32) {
        self.timeouts_ms.insert(id, timeout_ms);
    }

    /// Ends a session; whether there was one.
    pub(crate) fn close(&mut self, id: i64) -> bool {
        self.timeouts_ms.remove(&id).is_some()
    }

    pub(crate) fn timeout_ms(&self, id: i64) -> Option<i32> {
        self.timeouts_ms.get(&id).copied()
    }

    /// Sessions with their timeouts, in the order of their numbers.
    pub(crate) fn all(&self) -> Vec<(i64, i32)> {
        let mut all: Vec<_> = self.timeouts_ms.iter().map(|(id, timeout)| (*id, *timeout)).collect();
        all.sort_unstable();
        all
    }

    pub(crate) fn own(&mut self, owner: i64, node: NodeId) {
        self.ephemerals.entry(owner).or_default().insert(node);
    }

    pub(crate) fn disown(&mut self, owner: i64, node: NodeId) {
        if let Some(nodes) = self.ephemerals.get_mut(&owner) {
            nodes.remove(&node);
            if nodes.is_empty() {
                self.ephemerals.remove(&owner);
            }
        }
    }

    /// The ephemeral nodes of an owner, in no order.
    pub(crate) fn ephemerals(&self, owner: i64) -> impl Iterator<Item = NodeId> {
        self.ephemerals.get(&owner).into_iter().flatten().copied()
    }

    /// Every owner of an ephemeral node, in the order of their numbers.
    pub(crate) fn owners(&self) -> Vec<i64> {
        let mut owners: Vec<_> = self.ephemerals.keys().copied().collect();
        owners.sort_unstable();
        owners
    }
}
