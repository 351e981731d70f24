use std::path::Path;
use std::sync::Arc;

use super::home::{Directories, Home, Room};
use super::manifest_file::ManifestFile;
use super::options::EngineOptions;
use super::restore::replay;
use crate::base::{Epoch, Error, ErrorKind, Result, Zxid};
use crate::format::snapshot::SnapshotName;
use crate::format::{DatabaseId, EngineManifest, Numbering};
use crate::io::{Disk, EntryKind, OpenMode};
use crate::log::{LogOptions, LogView, RecoveryReport};
use crate::snapshot::{SnapshotFile, SnapshotInfo, load};
use crate::tree::DataTree;

/// How often a state that a live server changes under the eyes is looked at again.
const LOOKS_MAX: u32 = 5;

/// An engine's state as it stands on disk, to be looked at: no lock, no file, not one byte changes, also beside a live
/// server.
#[derive(Debug)]
pub struct EngineView {
    /// The tree at the last txn that is whole on disk.
    pub tree: DataTree,
    /// The database.
    pub database_id: DatabaseId,
    /// Which log and snapshots are in use.
    pub generation: u64,
    /// The newest epoch that was accepted.
    pub accepted_epoch: Epoch,
    /// The epoch of the leader whose history this is.
    pub current_epoch: Epoch,
    /// All snapshots, newest first: what each says of itself, or what is the matter with it.
    pub snapshots: Vec<(Zxid, Result<SnapshotInfo>)>,
    /// The snapshot that the tree began with.
    pub began_with: Option<Zxid>,
    /// How many txns of the log came after it.
    pub replayed: u64,
    /// What opening the log would find.
    pub log: RecoveryReport,
}

/// Where a view looks.
pub(super) struct Place<'a> {
    pub(super) options: &'a EngineOptions,
    pub(super) home: &'a dyn Home,
}

impl EngineOptions {
    /// Looks at the engine in `dir` as it stands, without opening it.
    ///
    /// # Errors
    /// As [`open`](EngineOptions::open), for the same reasons; [`ErrorKind::Io`] with the code `no_log` if there is
    /// none.
    pub fn open_read_only(&self, dir: impl AsRef<Path>) -> Result<EngineView> {
        let home = Directories::open_to_read(dir.as_ref(), self.log_dir.as_deref())?;
        let place = Place { options: self, home: &home };
        several_looks(|| place.look()).map(|(view, _)| view)
    }
}

/// Looks again if it fails: a live server purges, and removes snapshots.
pub(super) fn several_looks<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let mut looks = 0;
    loop {
        looks += 1;
        match look() {
            Err(_) if looks < LOOKS_MAX => {}
            outcome => return outcome,
        }
    }
}

impl Place<'_> {
    pub(super) fn manifest(&self) -> Result<EngineManifest> {
        let Some(manifest) = ManifestFile::read(&self.home.root())? else {
            let why = "there is no engine in this directory".into();
            return Err(Error::new(ErrorKind::Io, "no_log", why));
        };
        Ok(manifest.get())
    }

    /// The log of the generation in use.
    pub(super) fn log(&self, manifest: &EngineManifest) -> Result<(LogView, RecoveryReport)> {
        let options =
            LogOptions { expected_database_id: Some(manifest.database_id), ..self.options.log.clone() };
        options.view_on(&self.home.room_to_read(Room::Log, manifest.generation)?)
    }

    /// The whole state, and the log whose end it is.
    pub(super) fn look(&self) -> Result<(EngineView, LogView)> {
        let manifest = self.manifest()?;
        let EngineManifest { database_id, generation, accepted, .. } = manifest;
        let snapshots = self.home.room_to_read(Room::Snapshots, generation)?;
        let files = snapshot_files(&snapshots, database_id)?;
        let mut began = None;
        let mut listed = Vec::new();
        for (end, file) in files {
            let info = file.and_then(|file| {
                if began.is_none() {
                    began = Some(load(&file, &mut |_| ())?.0);
                }
                Ok(file.info)
            });
            listed.push((end, info));
        }
        let began_with = began.as_ref().map(DataTree::last_zxid);
        // Without a whole snapshot the log begins with an empty tree; each refusal is listed.
        let mut tree = began.unwrap_or_default();
        let (view, log) = self.log(&manifest)?;
        // A truncation removes snapshots before it changes the log: one that is there still belongs to this log.
        let info =
            listed.iter().find_map(|(_, info)| info.as_ref().ok().filter(|i| Some(i.end) == began_with));
        if info.is_some_and(|info| !is_there(&snapshots, database_id, info)) {
            let why = "the engine has removed the snapshot that was read; look again".into();
            return Err(Error::new(ErrorKind::Busy, "busy", why));
        }
        let replayed = replay(&view, &mut tree, Zxid::MAX)?.txns;
        if view.last_zxid() < tree.last_zxid() {
            let why = format!("the log ends at {}, before the snapshot's end", view.last_zxid());
            return Err(Error::corrupt("log_behind_snapshot", why));
        }
        let seen = EngineView {
            tree,
            database_id,
            generation,
            accepted_epoch: accepted.max(log.epoch),
            current_epoch: log.epoch,
            snapshots: listed,
            began_with,
            replayed,
            log,
        };
        Ok((seen, view))
    }
}

/// Whether the snapshot is the same one still.
fn is_there(disk: &Arc<dyn Disk>, id: DatabaseId, info: &SnapshotInfo) -> bool {
    disk.open(&info.file, OpenMode::Read).is_ok_and(|file| {
        SnapshotFile::open_named(file, info.end, id, Numbering::Zxid).is_ok_and(|file| file.info == *info)
    })
}

/// The snapshots in a directory, newest first.
fn snapshot_files(disk: &Arc<dyn Disk>, id: DatabaseId) -> Result<Vec<(Zxid, Result<SnapshotFile>)>> {
    let mut found = Vec::new();
    for entry in disk.list().map_err(|e| Error::io("list the snapshots' directory", e))? {
        let SnapshotName::Snapshot(end) = SnapshotName::parse(&entry.name) else { continue };
        if entry.kind != EntryKind::File {
            continue;
        }
        let file = disk
            .open(&entry.name, OpenMode::Read)
            .map_err(|e| Error::io("open a snapshot", e).in_file(&entry.name))
            .and_then(|file| SnapshotFile::open_named(file, end, id, Numbering::Zxid));
        found.push((end, file));
    }
    found.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
    Ok(found)
}
