use super::super::owner::Owner;
use super::super::stored_stat::StoredStat;
use crate::base::{Code, Zxid};
use crate::format::Acl;

/// A change that somebody asks for.
///
/// A version of -1 stands for any. Permissions are those of ZooKeeper: to create or delete a node is a matter of its
/// parent's ACL, everything else of its own.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Request<'a> {
    /// Creates a node.
    Create(CreateRequest<'a>),
    /// Creates a node unless it is there: then nothing is changed, and the proposal has its Stat, which takes
    /// [`Perms::READ`](crate::Perms::READ). Not in ZooKeeper, and not for sequential nodes.
    CreateIfAbsent(CreateRequest<'a>),
    /// Sets a node's data whatever its version, or creates the node with that data. Of a node that is there, mode
    /// and ACL stay. Not in ZooKeeper, and not for sequential nodes.
    Upsert(CreateRequest<'a>),
    /// Deletes a node without children.
    Delete {
        /// The node.
        path: &'a str,
        /// The version that it must have.
        version: i32,
    },
    /// Deletes a node and all below it, at once; the permission is asked of each parent. Not in ZooKeeper.
    DeleteRecursive {
        /// The node.
        path: &'a str,
    },
    /// Deletes a container or TTL node that has served its time, for the server itself. What became another node, or
    /// got a child or a change in the meantime, stays.
    DeleteContainer {
        /// The node.
        path: &'a str,
    },
    /// Sets a node's data.
    SetData {
        /// The node.
        path: &'a str,
        /// The data, or null.
        data: Option<&'a [u8]>,
        /// The version that it must have.
        version: i32,
    },
    /// Sets a node's ACL.
    SetAcl {
        /// The node.
        path: &'a str,
        /// The list, to be expanded.
        acl: &'a [Acl],
        /// The aversion that it must have.
        version: i32,
    },
    /// Asks that a node is there, and has that version.
    Check {
        /// The node.
        path: &'a str,
        /// The version that it must have.
        version: i32,
    },
    /// Asks that a node is not there. Not in ZooKeeper.
    CheckNotExists {
        /// The node.
        path: &'a str,
    },
    /// Asks that a node is there, and that its Stat is as expected. Not in ZooKeeper.
    CheckStat {
        /// The node.
        path: &'a str,
        /// What is expected.
        expected: StatCheck,
    },
    /// Several of those above, all or nothing.
    Multi(&'a [Request<'a>]),
    /// Begins the context's session.
    CreateSession {
        /// Its timeout in milliseconds.
        timeout_ms: i32,
    },
    /// Ends the context's session and deletes its ephemeral nodes. With more of them than a txn takes, it goes in
    /// several txns; see [`Proposal::is_unfinished`](super::Proposal::is_unfinished).
    CloseSession,
    /// Sets the ensemble's configuration. That it is a good one is for the server to know.
    Reconfig {
        /// The configuration.
        data: Option<&'a [u8]>,
    },
}

/// A node to create.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CreateRequest<'a> {
    /// Its path; for a sequential node without the number.
    pub path: &'a str,
    /// Its data, or null.
    pub data: Option<&'a [u8]>,
    /// Its ACL, to be expanded.
    pub acl: &'a [Acl],
    /// What sort of node.
    pub mode: CreateMode,
    /// Whether the client wants the Stat: ZooKeeper has another txn for that.
    pub with_stat: bool,
}

impl<'a> CreateRequest<'a> {
    /// A persistent node. For another sort: `CreateRequest { mode, ..CreateRequest::new(path, data, acl) }`.
    pub const fn new(path: &'a str, data: &'a [u8], acl: &'a [Acl]) -> CreateRequest<'a> {
        CreateRequest { path, data: Some(data), acl, mode: CreateMode::Persistent, with_stat: false }
    }
}

/// What sort of node is created.
///
/// The number of a sequential node is the count of children that were created under its parent. If that name is
/// taken, by a node that somebody has named so or because the count went past the end of its 32 bits, it is the
/// next number that is free; ZooKeeper fails then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CreateMode {
    /// It stays until it is deleted.
    Persistent,
    /// It belongs to the session.
    Ephemeral,
    /// Persistent, with a number behind its name.
    PersistentSequential,
    /// Ephemeral, with a number behind its name.
    EphemeralSequential,
    /// A container.
    Container,
    /// With a time to live.
    Ttl {
        /// In milliseconds: 1 to [`Owner::TTL_MAX_MS`](crate::Owner::TTL_MAX_MS).
        ttl_ms: i64,
    },
    /// With a time to live, and a number behind its name.
    TtlSequential {
        /// In milliseconds: 1 to [`Owner::TTL_MAX_MS`](crate::Owner::TTL_MAX_MS).
        ttl_ms: i64,
    },
}

impl CreateMode {
    /// The mode of that number in ZooKeeper's protocol. `ttl_ms` is negative in a request without one.
    ///
    /// Source: `org.apache.zookeeper.CreateMode`.
    ///
    /// # Errors
    /// [`Code::BAD_ARGUMENTS`] if there is no such number, or a time to live with a mode that has none.
    pub const fn from_flags(flags: i32, ttl_ms: i64) -> Result<CreateMode, Code> {
        let mode = match flags {
            0 => CreateMode::Persistent,
            1 => CreateMode::Ephemeral,
            2 => CreateMode::PersistentSequential,
            3 => CreateMode::EphemeralSequential,
            4 => CreateMode::Container,
            5 => return Ok(CreateMode::Ttl { ttl_ms }),
            6 => return Ok(CreateMode::TtlSequential { ttl_ms }),
            _ => return Err(Code::BAD_ARGUMENTS),
        };
        if ttl_ms >= 0 { Err(Code::BAD_ARGUMENTS) } else { Ok(mode) }
    }

    pub(super) const fn is_sequential(self) -> bool {
        matches!(
            self,
            CreateMode::PersistentSequential
                | CreateMode::EphemeralSequential
                | CreateMode::TtlSequential { .. }
        )
    }

    pub(super) const fn owner(self, session_id: i64) -> Owner {
        match self {
            CreateMode::Persistent | CreateMode::PersistentSequential => Owner::Persistent,
            CreateMode::Ephemeral | CreateMode::EphemeralSequential => Owner::Session(session_id),
            CreateMode::Container => Owner::Container,
            CreateMode::Ttl { ttl_ms } | CreateMode::TtlSequential { ttl_ms } => Owner::Ttl { ttl_ms },
        }
    }
}

/// What a node's Stat is expected to be. Fields that are `None` may be anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StatCheck {
    /// The txn that created the node: another one if it was deleted and created again.
    pub czxid: Option<Zxid>,
    /// The txn that last set its data.
    pub mzxid: Option<Zxid>,
    /// The txn that last created or deleted a child.
    pub pzxid: Option<Zxid>,
    /// How often its data was set.
    pub version: Option<i32>,
    /// How often its children changed, as a client sees it.
    pub cversion: Option<i32>,
    /// How often its ACL was set.
    pub aversion: Option<i32>,
    /// Who it belongs to.
    pub owner: Option<Owner>,
    /// How many children it has.
    pub child_count: Option<u32>,
}

impl StatCheck {
    pub(super) fn holds(&self, stored: &StoredStat, cversion: i32, child_count: u32) -> bool {
        fn is<T: PartialEq + Copy>(expected: Option<T>, found: T) -> bool {
            expected.is_none_or(|expected| expected == found)
        }
        is(self.czxid, stored.czxid)
            && is(self.mzxid, stored.mzxid)
            && is(self.pzxid, stored.pzxid)
            && is(self.version, stored.version)
            && is(self.cversion, cversion)
            && is(self.aversion, stored.aversion)
            && is(self.owner, stored.owner)
            && is(self.child_count, child_count)
    }
}
