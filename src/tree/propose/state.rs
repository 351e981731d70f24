use std::sync::Arc;

use super::super::data_tree::StoredStat;
use crate::format::Stat;

/// A node as it will be when all that is logged is applied.
#[derive(Clone, Debug)]
pub(super) struct NodeState {
    pub(super) stored: StoredStat,
    pub(super) child_count: u32,
    pub(super) data_bytes: usize,
    /// The bytes of its ACL list, if a change that is not applied has set it; else the tree has it.
    pub(super) acl: Option<Arc<[u8]>>,
}

impl NodeState {
    /// As a client will see it.
    pub(super) fn stat(&self) -> Stat {
        Stat {
            czxid: self.stored.czxid,
            mzxid: self.stored.mzxid,
            ctime_ms: self.stored.ctime_ms,
            mtime_ms: self.stored.mtime_ms,
            version: self.stored.version,
            cversion: self.external_cversion(),
            aversion: self.stored.aversion,
            ephemeral_owner: self.stored.owner.session_id(),
            data_bytes: i32::try_from(self.data_bytes).unwrap_or(i32::MAX),
            child_count: i32::try_from(self.child_count).unwrap_or(i32::MAX),
            pzxid: self.stored.pzxid,
        }
    }

    pub(super) fn external_cversion(&self) -> i32 {
        self.stored.cversion.wrapping_mul(2).wrapping_sub(self.child_count.cast_signed())
    }
}

/// What is known of a session beyond the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SessionState {
    Live,
    Closing,
}
