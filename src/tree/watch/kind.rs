/// What is watched, and for how long. A watcher may have every kind on the same path.
///
/// Source: ZooKeeper 3.9, where a watcher can have several kinds on one path; before, the last one replaced the
/// others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WatchKind {
    /// One creation, deletion or setting of the data of the node: what `getData` and `exists` leave. Only `exists`
    /// leaves one on a node that is missing.
    Data,
    /// One creation or deletion of a child, or the deletion of the node: what `getChildren` leaves.
    Child,
    /// All that `Data` and `Child` see, until it is removed.
    Persistent,
    /// All that `Data` sees of the node and of every node below it, until it is removed. That a node's children
    /// have changed is not told: the child that was created or deleted is.
    PersistentRecursive,
}

impl WatchKind {
    pub(super) const DATA: u8 = 1;
    pub(super) const CHILD: u8 = 2;
    pub(super) const PERSISTENT: u8 = 4;
    pub(super) const RECURSIVE: u8 = 8;
    pub(super) const ANY: u8 = 15;

    pub(super) const fn bit(self) -> u8 {
        match self {
            WatchKind::Data => WatchKind::DATA,
            WatchKind::Child => WatchKind::CHILD,
            WatchKind::Persistent => WatchKind::PERSISTENT,
            WatchKind::PersistentRecursive => WatchKind::RECURSIVE,
        }
    }
}
