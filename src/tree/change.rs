use crate::base::Zxid;

/// What an applied txn has changed, for watches and followers of the tree. Told in the order of the changes, and
/// only for what has been changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Change<'a> {
    /// A node was created. Its parent's children have changed as well, which is not told apart.
    Created {
        /// The node.
        path: &'a str,
    },
    /// A node was deleted. Its parent's children have changed as well, which is not told apart.
    Deleted {
        /// The node.
        path: &'a str,
    },
    /// A node's data was set.
    DataSet {
        /// The node.
        path: &'a str,
    },
    /// A node's ACL was set. ZooKeeper's watches do not tell that.
    AclSet {
        /// The node.
        path: &'a str,
    },
    /// A session began.
    SessionCreated {
        /// The session.
        id: i64,
    },
    /// A session ended; its ephemeral nodes are told as deleted before.
    SessionClosed {
        /// The session.
        id: i64,
    },
}

/// Is told of every change while a txn is applied. It cannot look at the tree, which is between two states.
pub trait Observer {
    /// The changes that follow are those of this txn; there may be none.
    fn begins(&mut self, _zxid: Zxid) {}

    /// Takes note of a change.
    fn changed(&mut self, change: Change<'_>);
}

/// Takes no note.
impl Observer for () {
    fn changed(&mut self, _: Change<'_>) {}
}

impl<F: FnMut(Change<'_>)> Observer for F {
    fn changed(&mut self, change: Change<'_>) {
        self(change);
    }
}
