use super::event::{WatchEvent, WatchEventKind};
use super::kind::WatchKind;
use super::table::WatchTable;
use crate::base::{Code, Zxid};
use crate::format::Stat;
use crate::tree::data_tree::DataTree;

/// What a client watched on the connection that it has lost, and how much it had seen.
///
/// Source: ZooKeeper's `SetWatches` and `SetWatches2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SetWatches<'a> {
    /// The last zxid that the client has heard of.
    pub seen: Zxid,
    /// Data watches on nodes that were there.
    pub data: &'a [&'a str],
    /// Data watches on nodes that were missing.
    pub exist: &'a [&'a str],
    /// Child watches.
    pub child: &'a [&'a str],
    /// Persistent watches.
    pub persistent: &'a [&'a str],
    /// Persistent recursive watches.
    pub recursive: &'a [&'a str],
}

impl WatchTable {
    /// Sets the watches of a client again that has come back. What they would have fired for in the meantime is
    /// told at once, and such a watch is not set: it has fired. Persistent watches are set, and what they have
    /// missed is not told.
    ///
    /// A node that was deleted and created anew is told as changed; for a watch on a missing node, one that was
    /// created and deleted again is not told. Call it under the lock under which the tree is read.
    ///
    /// Source: ZooKeeper's `DataTree.setWatches`.
    ///
    /// # Errors
    /// [`Code::QUOTA_EXCEEDED`] if a limit is reached. What was set and told before stays so: close the connection.
    pub fn set_watches(
        &mut self,
        watcher: u64,
        tree: &DataTree,
        wanted: &SetWatches<'_>,
        told: &mut impl FnMut(WatchEvent<'_>),
    ) -> Result<(), Code> {
        let missed = |path: &str, zxid_of: fn(&Stat) -> Zxid, kind| match tree.exists(path) {
            None => Some(WatchEventKind::NodeDeleted),
            Some(stat) => (zxid_of(&stat) > wanted.seen).then_some(kind),
        };
        let mut set_or_tell = |path: &str, kind, missed: Option<WatchEventKind>| match missed {
            Some(kind) => {
                told(WatchEvent { watcher, kind, path, zxid: None });
                Ok(())
            }
            None => self.add(watcher, path, kind),
        };
        for path in wanted.data {
            let missed = missed(path, |stat| stat.mzxid, WatchEventKind::NodeDataChanged);
            set_or_tell(path, WatchKind::Data, missed)?;
        }
        for path in wanted.exist {
            let missed = tree.exists(path).map(|_| WatchEventKind::NodeCreated);
            set_or_tell(path, WatchKind::Data, missed)?;
        }
        for path in wanted.child {
            let missed = missed(path, |stat| stat.pzxid, WatchEventKind::NodeChildrenChanged);
            set_or_tell(path, WatchKind::Child, missed)?;
        }
        wanted.persistent.iter().try_for_each(|path| self.add(watcher, path, WatchKind::Persistent))?;
        wanted.recursive.iter().try_for_each(|path| self.add(watcher, path, WatchKind::PersistentRecursive))
    }
}
