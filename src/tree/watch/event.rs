use crate::base::Zxid;

/// What a watcher is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WatchEvent<'a> {
    /// Who is told.
    pub watcher: u64,
    /// What has happened.
    pub kind: WatchEventKind,
    /// To which node. For [`WatchEventKind::NodeChildrenChanged`] it is the parent.
    pub path: &'a str,
    /// The txn that did it. `None` if it was missed, and is told when watches are set again: ZooKeeper sends -1.
    pub zxid: Option<Zxid>,
}

/// What has happened to a node.
///
/// Source: `org.apache.zookeeper.Watcher.Event.EventType`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WatchEventKind {
    /// It was created.
    NodeCreated,
    /// It was deleted.
    NodeDeleted,
    /// Its data was set, be it to what it was.
    NodeDataChanged,
    /// A child of it was created or deleted.
    NodeChildrenChanged,
}

impl WatchEventKind {
    /// ZooKeeper's number, as clients are sent it.
    pub const fn number(self) -> i32 {
        match self {
            WatchEventKind::NodeCreated => 1,
            WatchEventKind::NodeDeleted => 2,
            WatchEventKind::NodeDataChanged => 3,
            WatchEventKind::NodeChildrenChanged => 4,
        }
    }
}
