use super::event::{WatchEvent, WatchEventKind};
use super::kind::WatchKind;
use super::pairs::{AHEAD, Pair, Pairs};
use crate::base::{Code, Zxid};
use crate::tree::change::Change;
use crate::tree::path;

/// How many watches a table takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WatchLimits {
    /// In all; no table takes more than 2^28 - 1.
    pub total: u32,
    /// Of one watcher.
    pub per_watcher: u32,
}

impl Default for WatchLimits {
    /// As many as fit.
    fn default() -> WatchLimits {
        WatchLimits { total: Pairs::MAX, per_watcher: Pairs::MAX }
    }
}

/// Who watches what. Nobody is told by it: each event is handed to the caller, who knows what a watcher is (a
/// connection, say) and gave it its number.
///
/// A client must not read a state before it was told of the changes that led there. So fire the watches *inside* of
/// [`apply`](crate::DataTree::apply), with an observer that calls [`trigger`](WatchTable::trigger), and add a watch
/// under the same read lock as the read that leaves it. With a [`SharedTree`](crate::SharedTree) and a mutex around
/// the table, always lock the tree first: the observer locks the table when it is called. For groups of txns, write
/// an [`Observer`](crate::Observer) that keeps the zxid it is told.
///
/// Whether a watcher may still read the node is for whoever delivers the event to check, as ZooKeeper does since
/// 3.8.4; the ACL of a node that is deleted has to be looked up before.
///
/// # Memory
/// 24 bytes, and 5 for a place in an index that is 0.44 to 0.875 full, for each of these: a pair of a watcher and a
/// path (whatever the kinds), a path with a watch (and the path itself), a watcher. The room of records grows by a
/// sixteenth, so that is 30 to 37 bytes each. What is gone leaves its record to the next one, and costs up to 8 bytes
/// more until then; all is given back when the last watch goes. So a table takes at most 37 bytes and the bytes of
/// the path for each one that there is, and 45 for each one more that there was since the table was last empty.
///
/// Source: ZooKeeper's `WatchManager` and `DataTree`.
///
/// ```
/// use arborlog::{AclList, Change, Create, CreateKind, DataTree, Txn, TxnBody, WatchKind, WatchTable, Zxid};
///
/// let mut tree = DataTree::new();
/// let mut watches = WatchTable::new();
/// watches.add(17, "/", WatchKind::Child).unwrap();
/// watches.add(17, "/a", WatchKind::Data).unwrap();
///
/// let kind = CreateKind::Plain { ephemeral: false };
/// let create = Create { path: "/a", data: None, acl: AclList::EMPTY, kind, parent_cversion: Some(1) };
/// let body = TxnBody::Create(create);
/// let txn = Txn { zxid: Zxid::new(1), time_ms: 0, session_id: 0, cxid: 0, digest: None, body };
/// let mut told = Vec::new();
/// tree.apply(&txn, &mut |change: Change<'_>| {
///     watches.trigger(txn.zxid, change, &mut |event| {
///         told.push(format!("{} {:?} {}", event.watcher, event.kind, event.path));
///     });
/// });
/// assert_eq!(told, ["17 NodeCreated /a", "17 NodeChildrenChanged /"]);
/// assert!(watches.is_empty());
/// ```
#[derive(Debug)]
pub struct WatchTable {
    pairs: Pairs,
    limits: WatchLimits,
    watches: u32,
    /// Of these, the recursive ones: without any, nobody looks at the nodes above.
    recursive: u32,
    /// Counts what is fired; 0 is none.
    round: u32,
}

/// What is told to everybody.
#[derive(Clone, Copy)]
struct Firing<'a> {
    kind: WatchEventKind,
    path: &'a str,
    zxid: Zxid,
}

impl WatchTable {
    /// A table without watches and without limits.
    pub fn new() -> WatchTable {
        WatchTable::with_limits(WatchLimits::default())
    }

    /// A table that takes no more than so many watches.
    pub fn with_limits(limits: WatchLimits) -> WatchTable {
        let limits = WatchLimits { total: limits.total.min(Pairs::MAX), ..limits };
        WatchTable { pairs: Pairs::new(), limits, watches: 0, recursive: 0, round: 0 }
    }

    /// How many watches there are: one for each watcher, path and kind.
    pub fn len(&self) -> u32 {
        self.watches
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.watches == 0
    }

    /// How many paths have a watch.
    pub fn path_count(&self) -> usize {
        self.pairs.paths.len()
    }

    /// How many watchers have a watch.
    pub fn watcher_count(&self) -> usize {
        self.pairs.watchers.len()
    }

    /// Adds a watch. One that is there already stays as it is, and counts once.
    ///
    /// Whether there is such a node makes no difference here: after a `getData` or `getChildren` that found none,
    /// do not call it, as ZooKeeper does not.
    ///
    /// # Errors
    /// [`Code::QUOTA_EXCEEDED`] if a limit is reached; nothing has changed then.
    pub fn add(&mut self, watcher: u64, path: &str, kind: WatchKind) -> Result<(), Code> {
        let found = self.pairs.find(path, watcher);
        if found.is_some_and(|pair| self.pairs.at(pair).modes() & kind.bit() != 0) {
            return Ok(());
        }
        if self.watches >= self.limits.total || self.watches_of(watcher) >= self.limits.per_watcher {
            return Err(Code::QUOTA_EXCEEDED);
        }
        let number = found.unwrap_or_else(|| self.pairs.insert(path, watcher));
        let pair = self.pairs.at_mut(number);
        pair.set_modes(pair.modes() | kind.bit());
        let watcher = pair.watcher;
        self.pairs.watchers.at_mut(watcher).name.watches += 1;
        self.watches += 1;
        self.recursive += u32::from(kind == WatchKind::PersistentRecursive);
        Ok(())
    }

    /// How many watches a watcher has.
    pub fn watches_of(&self, watcher: u64) -> u32 {
        let number = self.pairs.watchers.find(&watcher.to_le_bytes());
        number.map_or(0, |number| self.pairs.watchers.at(number).name.watches)
    }

    /// Whether there is such a watch, of any kind if none is given.
    ///
    /// Source: `checkWatches`.
    pub fn contains(&self, watcher: u64, path: &str, kind: Option<WatchKind>) -> bool {
        let pair = self.pairs.find(path, watcher);
        pair.is_some_and(|pair| self.pairs.at(pair).modes() & bits(kind) != 0)
    }

    /// Removes a watch, those of all kinds if none is given; whether there was one.
    ///
    /// Source: `removeWatches`, which answers `NoWatcher` (-121) if there was none.
    pub fn remove(&mut self, watcher: u64, path: &str, kind: Option<WatchKind>) -> bool {
        let Some(number) = self.pairs.find(path, watcher) else { return false };
        let modes = self.pairs.at(number).modes() & bits(kind);
        self.end(number, modes);
        modes != 0
    }

    /// Removes all watches of a watcher, whose connection was closed, and tells how many.
    pub fn remove_watcher(&mut self, watcher: u64) -> u32 {
        let Some(number) = self.pairs.watchers.find(&watcher.to_le_bytes()) else { return 0 };
        let count = self.pairs.watchers.at(number).name.watches;
        for _ in 0..self.pairs.watchers.at(number).ring.pairs {
            let first = self.pairs.watchers.at(number).ring.first;
            self.end(first, WatchKind::ANY);
        }
        count
    }

    /// Fires the watches that wait for a change: hands out their events and removes those that fire once.
    ///
    /// A creation or deletion is told first to those who watch the node, then to those who watch its parent's
    /// children. Among equals, who watched first is told first. Nobody is told twice of the same event. A creation
    /// fires data watches of the node, and child watches of the parent; a deletion data and child watches of the
    /// node, and child watches of the parent; the setting of data fires data watches. An ACL or a session fires
    /// nothing.
    ///
    /// Without watches it costs a comparison.
    ///
    /// Source: ZooKeeper's `DataTree.createNode`, `deleteNode`, `setData`, and `WatchManager.triggerWatch`.
    pub fn trigger(&mut self, zxid: Zxid, change: Change<'_>, told: &mut impl FnMut(WatchEvent<'_>)) {
        if self.is_empty() {
            return;
        }
        let (kind, path) = match change {
            Change::Created { path } => (WatchEventKind::NodeCreated, path),
            Change::Deleted { path } => (WatchEventKind::NodeDeleted, path),
            Change::DataSet { path } => (WatchEventKind::NodeDataChanged, path),
            Change::AclSet { .. } | Change::SessionCreated { .. } | Change::SessionClosed { .. } => return,
        };
        self.fire(Firing { kind, path, zxid }, told);
        if kind != WatchEventKind::NodeDataChanged
            && let Some((parent, _)) = path::split(path)
        {
            self.fire(Firing { kind: WatchEventKind::NodeChildrenChanged, path: parent, zxid }, told);
        }
    }

    fn fire(&mut self, firing: Firing<'_>, told: &mut impl FnMut(WatchEvent<'_>)) {
        self.next_round();
        // Those that hear of it, and those of them that have done their duty.
        let (hear, end) = match firing.kind {
            WatchEventKind::NodeCreated | WatchEventKind::NodeDataChanged => {
                (WatchKind::DATA | WatchKind::PERSISTENT | WatchKind::RECURSIVE, WatchKind::DATA)
            }
            WatchEventKind::NodeDeleted => (WatchKind::ANY, WatchKind::DATA | WatchKind::CHILD),
            WatchEventKind::NodeChildrenChanged => {
                (WatchKind::CHILD | WatchKind::PERSISTENT, WatchKind::CHILD)
            }
        };
        self.fire_at(firing.path, hear, end, firing, told);
        if self.recursive > 0 && firing.kind != WatchEventKind::NodeChildrenChanged {
            let mut at = firing.path;
            while let Some((parent, _)) = path::split(at) {
                self.fire_at(parent, WatchKind::RECURSIVE, 0, firing, told);
                at = parent;
            }
        }
    }

    fn next_round(&mut self) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.pairs.watchers.all_mut().for_each(|watcher| watcher.told = 0);
            self.round = 1;
        }
    }

    /// Fires what watches `at`, which is the event's path or one above it.
    fn fire_at(
        &mut self,
        at: &str,
        hear: u8,
        end: u8,
        firing: Firing<'_>,
        told: &mut impl FnMut(WatchEvent<'_>),
    ) {
        let Some(path) = self.pairs.paths.find(at.as_bytes()) else { return };
        let ring = self.pairs.paths.at(path).ring;
        let go = |pair: &Pair| pair.modes() & hear != 0 && pair.modes() & !end == 0;
        self.pairs.will_go(ring, go);
        let mut next = ring.first;
        for turn in 0..ring.pairs {
            if turn.is_multiple_of(AHEAD) && ring.pairs - turn >= AHEAD {
                self.pairs.prefetch(next, go);
            }
            let number = next;
            let pair = *self.pairs.at(number);
            next = pair.behind_on_path();
            if pair.modes() & hear == 0 {
                continue;
            }
            let watcher = &mut self.pairs.watchers.at_mut(pair.watcher).name;
            if watcher.told != self.round {
                watcher.told = self.round;
                let Firing { kind, path, zxid } = firing;
                told(WatchEvent { watcher: watcher.id, kind, path, zxid: Some(zxid) });
            }
            self.end(number, pair.modes() & end);
        }
        self.pairs.have_gone();
    }

    /// Takes modes away from a pair, which goes with the last one.
    fn end(&mut self, number: u32, modes: u8) {
        let pair = self.pairs.at_mut(number);
        let ended = pair.modes() & modes;
        if ended == 0 {
            return;
        }
        let (watcher, left) = (pair.watcher, pair.modes() & !ended);
        pair.set_modes(left);
        self.watches -= ended.count_ones();
        self.recursive -= u32::from(ended & WatchKind::RECURSIVE != 0);
        self.pairs.watchers.at_mut(watcher).name.watches -= ended.count_ones();
        if left == 0 {
            self.pairs.remove(number);
        }
    }

    /// As after so many firings that the next one's number is used again.
    #[cfg(test)]
    pub(super) fn set_round_to_last(&mut self) {
        self.pairs.watchers.all_mut().for_each(|watcher| watcher.told = 1);
        self.round = u32::MAX;
    }

    #[cfg(test)]
    pub(super) fn recursive_count(&self) -> u32 {
        self.recursive
    }

    #[cfg(test)]
    pub(super) fn index_work(&self) -> u64 {
        self.pairs.index_work()
    }

    /// Room that is held, in use or not.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.pairs.capacity()
    }
}

impl Default for WatchTable {
    fn default() -> WatchTable {
        WatchTable::new()
    }
}

fn bits(kind: Option<WatchKind>) -> u8 {
    kind.map_or(WatchKind::ANY, WatchKind::bit)
}
