use std::sync::Arc;

use super::home::{Home, Room};
use super::options::EngineOptions;
use super::progress::{Activity, Progress};
use crate::base::{Clock, Epoch, Random, Result};
use crate::format::{DatabaseId, Numbering};
use crate::log::LogOptions;
use crate::snapshot::SnapshotStore;
use crate::tree::{DataTree, SharedTree, Walk};

/// Places of the tree that are visited at once; nobody else wants it.
const PLACES_AT_ONCE: u32 = 16 * 1024;

/// A generation that is built beside the one in use: it becomes the engine's by a change of its manifest.
pub(super) struct Generation<'a> {
    pub(super) home: &'a Arc<dyn Home>,
    pub(super) number: u64,
    pub(super) database_id: DatabaseId,
    pub(super) options: &'a EngineOptions,
    pub(super) clock: &'a Clock,
}

impl Generation<'_> {
    /// Its snapshots, of which there are none yet.
    pub(super) fn store(&self) -> Result<SnapshotStore> {
        let disk = self.home.room(Room::Snapshots, self.number)?;
        let random = Random::from_system();
        Ok(SnapshotStore::open(disk, self.database_id, Numbering::Zxid, random)?.0)
    }

    /// Writes a whole state: a snapshot of the tree, and a log that begins behind it, in this epoch at least. All of
    /// it is durable when this returns.
    pub(super) fn write(&self, store: &SnapshotStore, tree: DataTree, epoch: Epoch) -> Result<()> {
        let (end, digest, sessions) = (tree.last_zxid(), tree.digest(), tree.sessions());
        let (activity, total) = (Activity::WriteSnapshot, Some(tree.len()));
        let told = Progress { activity, done_bytes: 0, total_bytes: None, done: 0, total };
        self.options.progress.tell(&told);
        let mut writer = store.begin(end, self.clock.wall_ms())?;
        let (tree, mut walk) = (SharedTree::new(tree), Walk::new());
        while writer.walk(&tree, &mut walk, PLACES_AT_ONCE)? {}
        for (id, timeout_ms) in sessions {
            writer.session(id, timeout_ms)?;
        }
        let mut sealed = writer.seal(end, digest)?;
        sealed.verify()?;
        sealed.publish()?;
        let disk = self.home.room(Room::Log, self.number)?;
        let options = LogOptions {
            expected_database_id: Some(self.database_id),
            created_after: end,
            ..self.options.log.clone()
        };
        let (log, _) = options.open_replaying_on(&disk, end, &mut |_| ())?;
        if epoch > log.epoch() {
            log.advance_epoch(epoch)?;
        }
        log.close()
    }
}
