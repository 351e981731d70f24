use super::{Ops, Paths};
use crate::base::{Code, Zxid};
use crate::format::AclList;

/// One change of the tree as the log carries it. Replaying it on a state that has it already changes nothing.
///
/// Source: ZooKeeper's `TxnHeader` and its txn records.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Txn<'a> {
    /// Its place in the one order. In the log it stands in the record's header.
    pub zxid: Zxid,
    /// The leader's wall clock in milliseconds; in the log it stands in the record's header.
    pub time_ms: i64,
    /// The session that asked for it; 0 for none.
    pub session_id: i64,
    /// The client's number of the request.
    pub cxid: i32,
    /// The tree's digest after it, if the leader knew.
    pub digest: Option<u64>,
    /// What it does.
    pub body: TxnBody<'a>,
}

/// What a txn does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TxnBody<'a> {
    /// Creates a node.
    Create(Create<'a>),
    /// Deletes a node without children.
    Delete {
        /// The node.
        path: &'a str,
    },
    /// Deletes a container or TTL node that has served its time.
    DeleteContainer {
        /// The node.
        path: &'a str,
    },
    /// Deletes nodes, each before its parent. Not in ZooKeeper.
    DeleteAll {
        /// The nodes.
        paths: Paths<'a>,
    },
    /// Sets a node's data.
    SetData {
        /// The node.
        path: &'a str,
        /// The data, or null.
        data: Option<&'a [u8]>,
        /// The new version.
        version: i32,
    },
    /// Sets the ensemble's configuration: as `SetData`.
    Reconfig {
        /// The configuration node.
        path: &'a str,
        /// The configuration.
        data: Option<&'a [u8]>,
        /// The new version.
        version: i32,
    },
    /// Sets a node's ACL.
    SetAcl {
        /// The node.
        path: &'a str,
        /// The list.
        acl: AclList<'a>,
        /// The new aversion.
        version: i32,
    },
    /// Changes nothing: a condition that held.
    Check {
        /// The node.
        path: &'a str,
        /// The version that was asked for.
        version: i32,
    },
    /// Begins a session.
    CreateSession {
        /// Its timeout in milliseconds.
        timeout_ms: i32,
    },
    /// Ends a session and deletes its ephemeral nodes.
    CloseSession {
        /// The nodes, if the leader listed them; what else the session has goes as well.
        paths: Option<Paths<'a>>,
    },
    /// A request that failed; it has used up its zxid.
    Error {
        /// Why.
        code: Code,
    },
    /// Several operations, all or nothing.
    Multi(Ops<'a>),
}

impl TxnBody<'_> {
    /// Whether it may have failed where it was logged: an error, or a multi with one. What else fails does not fit the
    /// state.
    pub(crate) fn may_fail(&self) -> bool {
        matches!(self, TxnBody::Error { .. } | TxnBody::Multi(_))
    }
}

/// A node to create.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Create<'a> {
    /// Its path, with the sequence number if it has one.
    pub path: &'a str,
    /// Its data, or null.
    pub data: Option<&'a [u8]>,
    /// Its ACL, expanded.
    pub acl: AclList<'a>,
    /// What sort of node, and which of ZooKeeper's txns.
    pub kind: CreateKind,
    /// How many children the parent has had created with this one; `None` leaves it to the parent, as old logs do.
    pub parent_cversion: Option<i32>,
}

/// What sort of node is created, and by which of ZooKeeper's txns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CreateKind {
    /// `create`.
    Plain {
        /// Whether the node belongs to the txn's session.
        ephemeral: bool,
    },
    /// `create2`: the same, answered with the Stat.
    WithStat {
        /// Whether the node belongs to the txn's session.
        ephemeral: bool,
    },
    /// `createContainer`.
    Container,
    /// `createTTL`.
    Ttl {
        /// How long the node stays after its last change when it has no children, in milliseconds: 1 to
        /// [`TTL_MS_MAX`](crate::limits::TTL_MS_MAX).
        ttl_ms: i64,
    },
}
