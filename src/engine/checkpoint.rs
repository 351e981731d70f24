use std::path::Path;

use super::handle::Engine;
use super::home::{Directories, Home, Room};
use super::manifest_file::ManifestFile;
use crate::base::{Error, Result, Zxid};
use crate::format::EngineManifest;
use crate::io::BackendChoice;

/// What a checkpoint holds.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CheckpointReport {
    /// Its last txn: all that was durable when it was begun.
    pub last_zxid: Zxid,
    /// The snapshots in it, newest first.
    pub snapshots: Vec<Zxid>,
    /// Files that have a name there too, and take no room of their own.
    pub linked_files: u64,
    /// Files of which a copy was made.
    pub copied_files: u64,
    /// The bytes of these.
    pub copied_bytes: u64,
}

impl Engine {
    /// Makes a double of the engine in the empty directory `dir`, which must exist: a state of one moment, which opens
    /// as an engine of its own. On the same file system it takes next to no time and room: sealed segments of the log
    /// and snapshots are linked; the segments that are in use or were cut are copied, up to what is durable. On another
    /// one all is copied. Its log stands in `dir` too, wherever the engine's is. Writers go on meanwhile; a snapshot
    /// that is being written is waited for.
    ///
    /// Nothing is read that need not be copied: damage that is here already is in the double, too. Before you rely on it, have
    /// `arborlog verify` read it.
    ///
    /// The manifest comes last: a directory without one is no checkpoint, and what is in it may be removed.
    ///
    /// What is linked is never written under either name again, but to repair a damaged record, which repairs both; so
    /// damage to a linked file is damage to both, and a backup that shall outlive the disk has to be copied from there.
    /// The double has the database's id: for a second database beside the first, see [`restore`](crate::restore).
    ///
    /// # Errors
    /// - [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): something is in `dir`.
    /// - [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::NoSpace`](crate::ErrorKind::NoSpace),
    ///   [`ErrorKind::Poisoned`](crate::ErrorKind::Poisoned). The engine is unharmed.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<CheckpointReport> {
        let home = Directories::open(dir.as_ref(), None, BackendChoice::Threads)?;
        self.checkpoint_to(&home)
    }

    pub(super) fn checkpoint_to(&self, home: &dyn Home) -> Result<CheckpointReport> {
        let shared = self.shared();
        let root = home.root();
        if !root.list().map_err(|e| Error::io("list a directory", e))?.is_empty() {
            return Err(Error::invalid("the directory for the checkpoint is not empty"));
        }
        // No snapshot comes or goes meanwhile, and nothing is purged.
        let _writing = shared.writing.lock();
        let generation = shared.manifest.get().generation;
        let log = shared.log.checkpoint(&home.room(Room::Log, generation)?)?;
        let snapshots = shared.store.snapshots();
        let (linked, copied) = shared.store.duplicate_to(home.room(Room::Snapshots, generation)?.as_ref())?;
        // Read last: what was promised by the time of the last txn is promised there, too.
        let EngineManifest { database_id, accepted, .. } = shared.manifest.get();
        ManifestFile::create(&root, EngineManifest::of_whole(database_id, accepted, generation))?;
        Ok(CheckpointReport {
            last_zxid: log.last_zxid,
            snapshots,
            linked_files: log.linked + linked,
            copied_files: log.copied + copied.len() as u64,
            copied_bytes: log.copied_bytes + copied.iter().sum::<u64>(),
        })
    }
}
