use std::fmt;

/// The outcome of a request as ZooKeeper's protocol numbers it: 0, or why not.
///
/// Source: `org.apache.zookeeper.KeeperException.Code`. A number that is no constant here is kept as it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(i32);

impl Code {
    /// Done.
    pub const OK: Code = Code(0);
    /// Another operation of the same multi has failed, before or after this one.
    pub const RUNTIME_INCONSISTENCY: Code = Code(-2);
    /// The request, or the txn that it makes, is larger than the log takes.
    pub const MARSHALLING_ERROR: Code = Code(-5);
    /// Switched off in this server.
    pub const UNIMPLEMENTED: Code = Code(-6);
    /// A path, flag or bound that no tree could fulfil.
    pub const BAD_ARGUMENTS: Code = Code(-8);
    /// There never was such a session.
    pub const UNKNOWN_SESSION: Code = Code(-12);
    /// The node, or its parent, is not there.
    pub const NO_NODE: Code = Code(-101);
    /// No entry of the ACL grants it.
    pub const NO_AUTH: Code = Code(-102);
    /// The version is not the expected one.
    pub const BAD_VERSION: Code = Code(-103);
    /// The parent is ephemeral.
    pub const NO_CHILDREN_FOR_EPHEMERALS: Code = Code(-108);
    /// The node is there.
    pub const NODE_EXISTS: Code = Code(-110);
    /// The node has children.
    pub const NOT_EMPTY: Code = Code(-111);
    /// The session has been closed, or has expired.
    pub const SESSION_EXPIRED: Code = Code(-112);
    /// The ACL list is empty, or an entry of it is invalid.
    pub const INVALID_ACL: Code = Code(-114);
    /// A hard limit would be exceeded.
    pub const QUOTA_EXCEEDED: Code = Code(-125);

    /// The code of that number.
    pub const fn new(number: i32) -> Code {
        Code(number)
    }

    /// Its number.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// Whether it says that the request was carried out.
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }

    /// ZooKeeper's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Code::OK => "ok",
            Code::RUNTIME_INCONSISTENCY => "runtime inconsistency",
            Code::MARSHALLING_ERROR => "marshalling error",
            Code::UNIMPLEMENTED => "unimplemented",
            Code::BAD_ARGUMENTS => "bad arguments",
            Code::UNKNOWN_SESSION => "unknown session",
            Code::NO_NODE => "no node",
            Code::NO_AUTH => "no auth",
            Code::BAD_VERSION => "bad version",
            Code::NO_CHILDREN_FOR_EPHEMERALS => "no children for ephemerals",
            Code::NODE_EXISTS => "node exists",
            Code::NOT_EMPTY => "not empty",
            Code::SESSION_EXPIRED => "session expired",
            Code::INVALID_ACL => "invalid ACL",
            Code::QUOTA_EXCEEDED => "quota exceeded",
            _ => "unnamed",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({}: {})", self.0, self.name())
    }
}
