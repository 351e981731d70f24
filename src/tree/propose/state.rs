use std::sync::Arc;

use super::super::lookup::NodePlace;
use super::super::stored_stat::StoredStat;
use crate::format::Stat;

/// A node as it will be when all that is logged is applied.
#[derive(Clone, Debug)]
pub(super) struct NodeState {
    pub(super) stored: StoredStat,
    pub(super) child_count: u32,
    pub(super) data_bytes: usize,
    pub(super) acl: AclState,
    /// Where it was found in the tree, if it was.
    pub(super) place: Option<NodePlace>,
}

/// Where a node's ACL list is.
#[derive(Clone, Debug)]
pub(super) enum AclState {
    /// In the tree, under this number: no change that is not applied has set it.
    InTree(u32),
    /// These bytes.
    Set(Arc<[u8]>),
}

impl NodeState {
    /// As a client will see it.
    pub(super) fn stat(&self) -> Stat {
        self.stored.shown(self.child_count, self.data_bytes)
    }
}

/// What is known of a session beyond the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SessionState {
    Live,
    Closing,
}
