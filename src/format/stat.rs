use crate::base::Zxid;

/// What ZooKeeper tells of a node beside its data: the eleven fields of its `Stat`.
///
/// As a client sees it: `cversion` counts creates and deletes of children, and `ephemeral_owner` is 0 for
/// container and TTL nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stat {
    /// The txn that created the node.
    pub czxid: Zxid,
    /// The txn that last set its data.
    pub mzxid: Zxid,
    /// When it was created: the leader's wall clock in milliseconds since 1970.
    pub ctime_ms: i64,
    /// When its data was last set.
    pub mtime_ms: i64,
    /// How often its data was set.
    pub version: i32,
    /// How often its children changed: twice the creates, less the children that are there. Wraps.
    pub cversion: i32,
    /// How often its ACL was set.
    pub aversion: i32,
    /// The session whose end deletes it; 0 for a node that stays.
    pub ephemeral_owner: i64,
    /// The length of its data in bytes; 0 without data.
    pub data_bytes: i32,
    /// How many children it has.
    pub child_count: i32,
    /// The txn that last created or deleted a child, or the node itself.
    pub pzxid: Zxid,
}
